//! Findings on the program and its machine, where a figure is not the disk's.

use crate::preload::library;
use crate::scene::{Disk, MIB, alone, bench, found, jobs, of, run, said, silent};
use crate::strange;
use crate::support::{self, document};
use fixtures::{Mounted, finish, is_installed, or_skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wrote_result::document::Document;

#[test]
fn generator_limited_is_said_where_data_is_made_more_slowly_than_memory_takes_it() {
    let slow = or_skip!(library("slow_memcpy.c"));
    let disk = or_skip!(Disk::ext4(64 * MIB));
    let mut command =
        support::bench(disk.path(), "--only stream/cached --bs 4K --size 8MiB --runs 1");
    command.args(["--format", "json"]).env("LD_PRELOAD", &slow.path);
    let document = document(&finish(&mut command));
    let finding = said(&document, "generator-limited", &["stream/cached"]);
    let rate = finding.evidence["generator_bytes_per_s"].as_f64().expect("a number");
    assert!(rate < 100e6, "{rate}");
}

#[test]
fn generator_limited_is_not_said_of_a_disk_that_is_slower() {
    let strange = or_skip!(strange::mount("--slow-rate 4MB/s"));
    let document = bench(strange.path(), "--only stream/direct-psync --size 2MiB --runs 1");
    silent(&document, "generator-limited");
}

#[test]
fn debug_build_is_said_of_one() {
    let folder = fixtures::folder();
    let document = bench(folder.path(), "--only small/cached --size 64KiB --runs 1");
    // The program has the build profile of these tests.
    assert_eq!(found(&document, "debug-build").is_some(), cfg!(debug_assertions));
}

/// Returns the program that `cargo build --release` made, if any.
fn release() -> Result<PathBuf, String> {
    let debug = Path::new(env!("CARGO_BIN_EXE_wrote"));
    let release = debug.with_file_name("../release/wrote");
    if release.exists() { Ok(release) } else { Err(format!("no {}", release.display())) }
}

#[test]
fn debug_build_is_not_said_of_a_release() {
    let release = or_skip!(release());
    let folder = fixtures::folder();
    let mut command = as_program(&release, support::bench(folder.path(), ""));
    command.args("--only small/cached --size 64KiB --runs 1 --format json".split(' '));
    silent(&document(&finish(&mut command)), "debug-build");
}

/// Returns a command with the same arguments for another program.
fn as_program(program: &Path, command: Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args());
    other.stdout(Stdio::piped()).stderr(Stdio::piped());
    other
}

/// Small reads of a file in memory, long enough that CPU time can be measured.
const CPU_BOUND: &str = "[memory]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=2\n\
                         norandommap=1\n";

#[test]
#[ignore = "nightly"]
fn cpu_limited_is_said_of_small_reads_of_a_file_system_in_memory() {
    alone(|| {
        or_skip!(is_installed("chrt"));
        let mounted = or_skip!(Mounted::tmpfs(64 * MIB));
        // The run has real-time priority: other processes would take CPU time from it.
        let command = jobs(mounted.path(), CPU_BOUND, "");
        let mut first = Command::new("chrt");
        first.args(["--fifo", "1"]).arg(command.get_program()).args(command.get_args());
        first.stdout(Stdio::piped()).stderr(Stdio::piped());
        said(&document(&finish(&mut first)), "cpu-limited", &["memory"]);
    });
}

#[test]
#[ignore = "nightly"]
fn cpu_limited_is_not_said_of_a_disk_that_is_waited_for() {
    alone(|| {
        let strange = or_skip!(strange::mount("--slow-rate 1MB/s"));
        let document = run(strange.path(), "[slow]\nrw=write\nbs=64k\nsize=2m\ndirect=1\n", "");
        silent(&document, "cpu-limited");
    });
}

/// Returns the result of small writes, with this library before the C library.
fn timed(library: Option<&Path>) -> Result<Document, String> {
    let disk = Disk::ext4(64 * MIB)?;
    let mut command = jobs(disk.path(), "[small]\nrw=write\nbs=4k\nsize=1m\n", "");
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    Ok(document(&finish(&mut command)))
}

#[test]
fn slow_clock_is_said_where_each_look_at_it_takes_tens_of_microseconds() {
    let slow = or_skip!(library("slow_clock.c"));
    let document = or_skip!(timed(Some(&slow.path)));
    let clock_read_ns = document.host.clock_read_ns.expect("it is measured");
    assert!(clock_read_ns > 10_000.0, "{clock_read_ns}");
    of(&document, "slow-clock");
}

#[test]
fn slow_clock_is_not_said_of_one_that_the_program_reads_by_itself() {
    let clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clocksource = std::fs::read_to_string(clocksource).unwrap_or_default();
    or_skip!(match clocksource.trim() {
        "tsc" | "kvm-clock" | "arch_sys_counter" => Ok(()),
        other => Err(format!("the kernel's clock is {other:?}, which may be slow")),
    });
    silent(&or_skip!(timed(None)), "slow-clock");
}
