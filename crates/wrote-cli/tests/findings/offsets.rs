//! Findings on the options of jobs, and on gaps in the results of other tools.

use crate::scene::{Disk, MIB, alone, of, run, said};
use crate::strange;
use fixtures::or_skip;
use std::process::Command;
use wrote_jobs::import;
use wrote_result::document::Document;

#[test]
fn same_offsets_is_said_of_two_jobs_that_write_the_same_bytes() {
    let disk = or_skip!(Disk::ext4(64 * MIB));
    let jobs = "[global]\nrw=write\nbs=64k\nsize=2m\nfilename=shared\n[one]\n[other]\n";
    of(&run(disk.path(), jobs, "--allow-overlap"), "same-offsets");
}

/// Returns a job that writes at a rate for two seconds.
fn rated(rate: &str) -> String {
    format!("[rated]\nrw=write\nbs=64k\nsize=4m\ndirect=1\nrate={rate}\ntime_based\nruntime=2\n")
}

#[test]
#[ignore = "nightly"]
fn rate_not_reached_is_said_of_a_disk_that_takes_a_tenth_of_it() {
    alone(|| {
        let strange = or_skip!(strange::mount("--slow-rate 1000000"));
        said(&run(strange.path(), &rated("10m"), ""), "rate-not-reached", &["rated"]);
    });
}

/// Returns fio's result for a job that writes through the page cache, as imported.
fn fio(more: &str) -> Result<Document, String> {
    let folder = fixtures::folder();
    let mut fio = Command::new("fio");
    fio.args("--name=job --rw=write --bs=64k --size=4m --ioengine=psync".split(' '));
    fio.args(["--output-format=json", more]).arg("--directory").arg(folder.path());
    let output = fio.output().map_err(|error| format!("fio: {error}"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    Ok(import::read("fio.json", &text).expect("it is a result of fio's"))
}

#[test]
fn no_io_is_said_of_fios_engine_that_does_none() {
    of(&or_skip!(fio("--ioengine=null")), "no-io");
}

#[test]
fn flush_outside_clock_is_said_of_fios_cached_writes_without_a_flush() {
    of(&or_skip!(fio("--end_fsync=0")), "flush-outside-clock");
}
