//! The file system of `lab strange-fs`, on which the command runs.

use crate::support;
use fixtures::{finish, names, or_skip};
use std::fs::File;
use std::path::Path;

/// Mounts the file system with these arguments, separated by blanks. The error is a reason to skip
/// the test.
pub fn mount(arguments: &str) -> Result<fixtures::Strange, String> {
    // A container may have the device but forbid its use, so the test opens it in the same way as
    // the daemon.
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    opened.map_err(|error| format!("/dev/fuse: {error}"))?;
    // `cargo xtask test` builds this program.
    let lab = Path::new(env!("CARGO_BIN_EXE_wrote")).with_file_name("lab");
    if !lab.exists() {
        return Err(format!("no {}: cargo build -p lab --features lab/verbs", lab.display()));
    }
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let mounted = fixtures::Strange::mount(&lab, fixtures::folder(), &arguments);
    mounted.inspect_err(|said| assert!(said.contains("Operation not permitted"), "{said}"))
}

#[test]
fn a_benchmark_continues_short_writes_ends_at_a_failed_flush_and_leaves_no_file() {
    // W2, W4. With `--keep-names`, a removed file keeps a name while it is open, as on NFS.
    for (arguments, code) in
        [("", 0), ("--keep-names", 0), ("--short-writes 12288", 0), ("--fail-fsync", 1)]
    {
        let strange = or_skip!(mount(arguments));
        let finished = finish(&mut support::bench(strange.path(), "--size 8M --runs 1"));
        assert_eq!(finished.code(), Some(code), "{arguments}: {finished:?}");
        let is_said = finished.stderr.contains("Input/output error");
        assert_eq!(is_said, code == 1, "{arguments}: {finished:?}");
        assert!(names(strange.path()).is_empty(), "{arguments}: {:?}", names(strange.path()));
    }
}
