//! Tests what a power loss leaves of a save, within `cargo test`, using the program `wrote`.
//!
//! ```no_run
//! # fn save(folder: &std::path::Path, text: &str) {}
//! # fn load(folder: &std::path::Path) -> String { String::new() }
//! // In a test function:
//! wrote_crash::test_from(
//!     |folder| save(folder, "old"),
//!     |folder| save(folder, "new"),
//!     |folder| match wrote_crash::has_returned() {
//!         true => assert_eq!(load(folder), "new"),
//!         false => assert!(["old", "new"].contains(&load(folder).as_str())),
//!     },
//! );
//! ```
//!
//! The program is found by the variable `WROTE`, or in `PATH`. See `docs/ci.md`.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::env;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, thread};

/// The variable that tells a child its job: `save:PLACE:FOLDER` or `check:PLACE:FOLDER`. A child
/// that has done its job leaves a file with the job's name in PLACE. The user may set the variable
/// to `skip`, which skips the test if the kernel does not permit tracing.
const JOB: &str = "WROTE_CRASH";
/// The exit code of `wrote trace` if the kernel does not permit tracing.
const NOT_TRACED: i32 = 125;

/// Runs `save` with an empty folder, and then `check` with each folder that a power loss during
/// `save` could have left. `save` and each `check` run in a child process, which executes this test
/// again up to this call, so a test can contain only one such call.
///
/// # Panics
///
/// If `check` panics for a folder, or if nothing could be tested. The message names the smallest
/// state with a failure, and the command that reproduces it.
#[track_caller]
pub fn test(save: impl FnOnce(&Path), check: impl FnOnce(&Path)) {
    test_from(|_| (), save, check);
}

/// Like [`test`], but `save` starts from a folder that `old` has filled.
///
/// # Panics
///
/// The panics of [`test`].
#[track_caller]
pub fn test_from(old: impl FnOnce(&Path), save: impl FnOnce(&Path), check: impl FnOnce(&Path)) {
    let job = env::var(JOB).unwrap_or_default();
    let [job, place, folder] = job.splitn(3, ':').collect::<Vec<_>>()[..] else {
        return trace(old, job == "skip");
    };
    match job {
        "save" => save(Path::new(folder)),
        _ => check(Path::new(folder)),
    }
    fs::write(Path::new(place).join(job), "").expect("a mark that the job is done");
    exit(0);
}

/// Returns, during a check, whether `save` had returned before the power loss.
pub fn has_returned() -> bool {
    env::var("WROTE_ANSWERS").is_ok_and(|answers| answers != "0")
}

#[track_caller]
fn trace(old: impl FnOnce(&Path), skips: bool) {
    // Each test runs in a separate thread.
    thread_local!(static IS_USED: Cell<bool> = const { Cell::new(false) });
    assert!(!IS_USED.replace(true), "a test can have one crash test only: write another test");
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let place = env::temp_dir().join(format!("wrote-crash-test-{}-{number}", std::process::id()));
    let folder = place.join("folder");
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    old(&folder);
    let this = thread::current();
    let name = this.name().filter(|name| *name != "main").expect("a call in a function of #[test]");
    let program = env::current_exe().expect("the path of this test");
    let child = |job: &str| {
        // Temporary folders that a child leaves behind are removed with the folders of this test.
        let folders = format!("TMPDIR={}", place.display());
        let words = [folders, format!("{JOB}={job}"), program.display().to_string()];
        let rest = ["--exact", name, "--include-ignored", "--nocapture"].map(str::to_owned);
        ["env".to_owned()].into_iter().chain(words).chain(rest)
    };
    let quoted = |word: String| format!("'{}'", word.replace('\'', r"'\''"));
    let check: Vec<String> = child(&format!("check:{}:DIR", place.display())).map(quoted).collect();
    let wrote = env::var_os("WROTE").unwrap_or_else(|| "wrote".into());
    let mut command = Command::new(&wrote);
    command.args(["trace", "--check", &check.join(" "), "--under"]).arg(&folder).arg("--");
    let ended = command.args(child(&format!("save:{0}:{0}/folder", place.display()))).output();
    let ended = ended.unwrap_or_else(|error| {
        let wrote = wrote.display();
        panic!("{wrote}: {error}: install wrote, or set WROTE to its path (docs/ci.md)")
    });
    let jobs = if ended.status.success() { &["save", "check"][..] } else { &["save"] };
    let missed = jobs.iter().find(|job| !place.join(job).exists());
    fs::remove_dir_all(&place).expect("the folder of the test can be removed");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    match (ended.status.code(), missed) {
        (Some(NOT_TRACED), _) if skips => eprintln!("skipped: {said}"),
        (_, Some(job)) => panic!("the child did not reach the end of the {job}:\n{said}"),
        (Some(0), None) => {}
        _ => panic!("{said}"),
    }
}
