//! A plain run on a plain disk. Special cases are in the unit tests of each finding.

use crate::scene::{Disk, MIB, bench, run};
use fixtures::or_skip;
use wrote_result::document::Document;

/// The findings that depend on the speed of this machine, and on other programs.
const BY_CHANCE: [&str; 9] = [
    "busy-neighbour",
    "cpu-limited",
    "debug-build",
    "depth-not-reached",
    "generator-limited",
    "lazy-init",
    "noisy",
    "slow-clock",
    "throttled",
];

#[test]
fn nothing_is_said_of_a_plain_run_on_a_plain_disk() {
    let disk = Disk::ext4(256 * MIB).and_then(Disk::without_cache);
    let disk = or_skip!(disk.and_then(|disk| disk.with("rotational", "1")));
    let rows = "--only stream/cached-fdatasync-at-end,stream/direct-io_uring-fdatasync-at-end";
    let benched =
        bench(disk.path(), &format!("{rows} --size 4MiB --time 60s --iodepth 1 --runs 2"));
    let jobs = "[global]\nbs=64k\nsize=4m\ndirect=1\n[write]\nrw=write\nfilename=file\n\
                [read]\nstonewall\nrw=read\nfilename=file\n[own]\nrw=randread\nnumjobs=2\n";
    for document in [benched, run(disk.path(), jobs, "")] {
        assert_eq!(said(&document), [""; 0], "{:?}", document.findings);
    }
}

/// Returns the ids of the findings that do not depend on chance.
fn said(document: &Document) -> Vec<&str> {
    let ids = document.findings.iter().map(|finding| &*finding.id);
    ids.filter(|id| !BY_CHANCE.contains(id)).collect()
}
