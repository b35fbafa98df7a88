//! Findings on the program and its machine, where a figure is not due to the disk.

use crate::preload::library;
use crate::scene::{Disk, MIB, alone, bench, found, jobs, of, said};
use crate::support::{self, document};
use fixtures::{Mounted, finish, is_installed, or_skip};
use std::path::Path;
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
fn debug_build_is_said_of_a_program_that_is_one() {
    let folder = fixtures::folder();
    let document = bench(folder.path(), "--only small/cached --size 64KiB --runs 1");
    // The program was built with the same profile as these tests.
    assert_eq!(found(&document, "debug-build").is_some(), cfg!(debug_assertions));
}

/// Small reads of a file in memory, for long enough to measure CPU time.
const CPU_BOUND: &str = "[memory]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=2\n\
                         norandommap=1\n";

#[test]
#[ignore = "nightly"]
fn cpu_limited_is_said_of_small_reads_of_a_file_system_in_memory() {
    alone(|| {
        or_skip!(is_installed("chrt"));
        let mounted = or_skip!(Mounted::tmpfs(64 * MIB));
        // The run has real-time priority, because other processes would otherwise take CPU time
        // from it.
        let command = jobs(mounted.path(), CPU_BOUND, "");
        let mut first = Command::new("chrt");
        first.args(["--fifo", "1"]).arg(command.get_program()).args(command.get_args());
        first.stdout(Stdio::piped()).stderr(Stdio::piped());
        said(&document(&finish(&mut first)), "cpu-limited", &["memory"]);
    });
}

/// Returns the result of small writes, with this library loaded before the C library.
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
