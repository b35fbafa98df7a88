//! Tests that no subcommand succeeds if standard input or output is closed or full.

use fixtures::{Finished, finish, folder, names};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a folder with a file, a log and a result.
fn place() -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("file"), "some").expect("a file");
    let log = wrote::Log::options().open(folder.path().join("log")).expect("a log");
    log.append(b"one").expect("room").wait().expect("durable");
    log.close().expect("closed");
    let document = serde_json::to_string(&fixtures::samples::document()).expect("JSON");
    fs::write(folder.path().join("result.json"), document).expect("a file");
    folder
}

/// Returns the command with these arguments, in the folder. The shell performs the redirection.
fn redirected(folder: &Path, arguments: &str, redirection: &str) -> Command {
    let mut command = Command::new("sh");
    let limit = if redirection == LIMITED { "ulimit -f 0; " } else { "" };
    command.args(["-c", &format!("{limit}exec \"$0\" {arguments} {redirection}")]);
    command.arg(env!("CARGO_BIN_EXE_wrote")).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A redirection to a file to which not a single byte may be written.
const LIMITED: &str = ">said";

/// Asserts that the command failed with this one line.
fn assert_failed(finished: &Finished, line: &str) {
    assert_eq!((finished.code(), finished.complaint()), (Some(1), line), "{finished:?}");
    assert_eq!(finished.stdout, "");
}

/// The commands that print results.
const PRINTERS: [&str; 13] = [
    "--help",
    "--version",
    "bench --help",
    "bench --list",
    "bench --schema",
    "langs --list",
    "completions bash",
    "man",
    "doctor .",
    "log stat log",
    "log verify log",
    "log cat log",
    "compare result.json result.json",
];

#[test]
fn a_result_that_nobody_can_get_is_an_error_of_every_verb() {
    let folder = place();
    for verb in PRINTERS {
        for (redirection, why) in [
            (">/dev/full", "No space left on device (os error 28)"),
            (">&-", "Bad file descriptor (os error 9)"),
            (LIMITED, "File too large (os error 27)"),
        ] {
            let finished = finish(&mut redirected(folder.path(), verb, redirection));
            assert_failed(&finished, &format!("wrote: standard output: {why}"));
        }
    }
}

#[test]
fn a_file_is_not_copied_to_a_standard_output_that_is_closed_or_full() {
    let folder = place();
    let said = "wrote: standard output: write at byte 0: ";
    let closed = finish(&mut redirected(folder.path(), "copy file -", ">&-"));
    assert_failed(&closed, &format!("{said}Bad file descriptor (os error 9)"));
    let full = finish(&mut redirected(folder.path(), "copy file -", ">/dev/full"));
    assert_failed(&full, &format!("{said}No space left on device (os error 28)"));
}

#[test]
fn nothing_is_made_of_a_standard_input_that_is_closed() {
    let folder = place();
    let copied = finish(&mut redirected(folder.path(), "copy - new", "<&-"));
    let said = "wrote: standard input: read at byte 0: Bad file descriptor (os error 9)";
    assert_failed(&copied, said);
    let before = names(folder.path());
    assert!(!before.contains(&"new".to_owned()), "{before:?}");
    let appended = finish(&mut redirected(folder.path(), "log append -q log", "<&-"));
    assert_failed(&appended, "wrote: standard input: Bad file descriptor (os error 9)");
    let both = finish(&mut redirected(folder.path(), "copy - new", "<&- >&-"));
    assert_failed(&both, said);
}

#[test]
fn a_null_device_that_the_caller_opened_is_none_that_is_closed() {
    let folder = place();
    for (arguments, redirection) in [
        ("copy -q file -", ">/dev/null"),
        ("copy -q file -", "1<>/dev/null"),
        ("copy -q - new", "</dev/null"),
        ("copy -q -f - new", "0<>/dev/null"),
        ("bench --list", "0<>/dev/null 1<>/dev/null 2<>/dev/null"),
    ] {
        let finished = finish(&mut redirected(folder.path(), arguments, redirection));
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{redirection}");
    }
}
