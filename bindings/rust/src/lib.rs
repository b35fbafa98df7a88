//! Tests what a power loss leaves of a save, within `cargo test`, by the program `wrote`.
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
//! The program is found by the variable `WROTE` or in `PATH`. See `docs/ci.md`.

#![forbid(unsafe_code)]

use std::env;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, thread};

/// The job of a child: `save:FOLDER` or `check:FOLDER`. The user's `skip` asks to skip the test
/// where the kernel does not permit tracing.
const JOB: &str = "WROTE_CRASH";
/// The exit code of `wrote trace` where the kernel does not permit tracing.
const NOT_TRACED: i32 = 125;

/// Runs `save` with an empty folder, and then `check` with each folder that a power loss during
/// `save` could have left. Each runs in a child: this test of this program, executed again up to
/// this call.
///
/// # Panics
///
/// If `check` panics for a folder, or nothing could be tested. The message has the smallest such
/// state, and the command that makes it again.
#[track_caller]
pub fn test(save: impl FnOnce(&Path), check: impl FnOnce(&Path)) {
    test_from(|_| (), save, check);
}

/// The same from a folder that `old` has filled.
///
/// # Panics
///
/// As [`test`].
#[track_caller]
pub fn test_from(old: impl FnOnce(&Path), save: impl FnOnce(&Path), check: impl FnOnce(&Path)) {
    let job = env::var(JOB).unwrap_or_default();
    match job.split_once(':') {
        Some(("save", folder)) => save(Path::new(folder)),
        Some((_, folder)) => check(Path::new(folder)),
        None => return trace(old, job == "skip"),
    }
    exit(0);
}

/// Returns, in a check, whether `save` had returned before the power loss.
pub fn has_returned() -> bool {
    env::var("WROTE_ANSWERS").is_ok_and(|answers| answers != "0")
}

#[track_caller]
fn trace(old: impl FnOnce(&Path), skips: bool) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("wrote-crash-test-{}-{number}", std::process::id()));
    fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    old(&folder);
    let this = thread::current();
    let name = this.name().filter(|name| *name != "main").expect("a call in a function of #[test]");
    let program = env::current_exe().expect("the path of this test");
    let child = |job: &str| {
        let words = [format!("{JOB}={job}"), program.display().to_string()];
        let rest = ["--exact", name, "--include-ignored", "--nocapture"].map(str::to_owned);
        ["env".to_owned()].into_iter().chain(words).chain(rest)
    };
    let quoted = |word: String| format!("'{}'", word.replace('\'', r"'\''"));
    let check: Vec<String> = child("check:DIR").map(quoted).collect();
    let wrote = env::var_os("WROTE").unwrap_or_else(|| "wrote".into());
    let mut command = Command::new(&wrote);
    command.args(["trace", "--check", &check.join(" "), "--under"]).arg(&folder).arg("--");
    let ended = command.args(child(&format!("save:{}", folder.display()))).output();
    let ended = ended.unwrap_or_else(|error| {
        let wrote = wrote.display();
        panic!("{wrote}: {error}: install wrote, or set WROTE to its path (docs/ci.md)")
    });
    fs::remove_dir_all(&folder).expect("the folder of the test can be removed");
    let said = [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    match ended.status.code() {
        Some(0) => {}
        Some(NOT_TRACED) if skips => eprintln!("skipped: {}", said[1]),
        _ => panic!("{}{}", said[0], said[1]),
    }
}
