//! Tests of `wrote copy`: either a complete copy or none, one line on standard error, and nothing
//! left behind.

use crate::support::{terminal, wrote};
use fixtures::{Finished, Running, finish, folder, names};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Returns `len` pseudorandom bytes, so that no part of them repeats.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(|_| next()).take(len).collect()
}

/// Creates a folder with a file `from` that contains these bytes.
fn place(content: &[u8]) -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("from"), content).expect("a file");
    folder
}

/// Returns the command `wrote copy` in the folder. Each word of `arguments` is an argument.
fn copy(folder: &Path, arguments: &str) -> Command {
    let mut command = wrote(&["copy"]);
    command.args(arguments.split_whitespace()).current_dir(folder);
    command
}

/// Returns the only line about a copy, after asserting that the copy succeeded.
fn line(finished: &Finished) -> &str {
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    finished.stderr.trim_end()
}

/// Returns the only line of a refusal for bad usage.
fn refusal(command: &mut Command) -> String {
    let finished = finish(command);
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    finished.complaint().strip_prefix("wrote: ").expect("begins so").to_owned()
}

fn content(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("a file")
}

#[test]
fn a_file_is_copied_and_the_line_says_what_the_copy_survives() {
    let source = bytes(3 * MIB + 17);
    let folder = place(&source);
    let finished = finish(&mut copy(folder.path(), "from to"));
    let said = line(&finished);
    assert!(said.starts_with("copied 3.15 MB in ") && said.contains(" ("), "{said}");
    assert!(said.contains("survives a p"), "{said}");
    assert!(content(folder.path(), "to") == source);
    assert_eq!(names(folder.path()), ["from", "to"]);
}

#[test]
fn without_the_flush_only_a_process_crash_is_survived() {
    let folder = place(b"some");
    let finished = finish(&mut copy(folder.path(), "--sync --no-sync from to"));
    assert!(line(&finished).contains("(process-crash)"), "{finished:?}");
}

#[test]
fn a_quiet_copy_says_nothing() {
    let folder = place(b"some");
    let finished = finish(&mut copy(folder.path(), "-q from to"));
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    assert_eq!(content(folder.path(), "to"), b"some");
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    // W7
    let folder = place(b"new");
    fs::write(folder.path().join("to"), b"precious").expect("a file");
    let said = refusal(&mut copy(folder.path(), "from to"));
    assert_eq!(said, "to: already exists; --force replaces it");
    assert_eq!(content(folder.path(), "to"), b"precious");
    line(&finish(&mut copy(folder.path(), "--force from to")));
    assert_eq!(content(folder.path(), "to"), b"new");
    assert_eq!(names(folder.path()), ["from", "to"]);
}

#[test]
fn senseless_arguments_are_refused_in_one_line_and_nothing_is_made() {
    let folder = place(b"some");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    for (arguments, because) in [
        ("from to/", "to/: names a folder that does not exist"),
        ("from /dev/null", "/dev/null: is a device, a pipe or a socket, and a copy must be a file"),
        ("- /dev/null", "/dev/null: is a device, a pipe or a socket, and a copy must be a file"),
        ("-f - /dev/null", "/dev/null: is a device, a pipe or a socket, and a copy must be a file"),
        ("/dev/null to", "/dev/null: is neither a file nor a block device, so it can't be copied"),
        ("from from /dev/stdout", "/dev/stdout: standard output takes one file; cat joins several"),
    ] {
        assert_eq!(refusal(&mut copy(folder.path(), arguments)), because, "{arguments}");
    }
    assert_eq!(names(folder.path()), ["from", "sub"]);
}

#[test]
fn a_missing_path_is_named_and_bad_usage() {
    let folder = place(b"some");
    for (arguments, told) in
        [("nothing to", "nothing: does not exist"), ("from no/to", "no/to: there is no folder no")]
    {
        let finished = finish(&mut copy(folder.path(), arguments));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        assert_eq!(finished.complaint(), format!("wrote: {told}"));
    }
}

#[test]
fn a_verified_copy_is_told_with_its_checksum() {
    let folder = place(b"");
    let checksum_of_nothing = "; verified, XXH3 99aa06d3014798d86001c324468d497f";
    let finished = finish(&mut copy(folder.path(), "--verify from to"));
    assert!(line(&finished).contains(checksum_of_nothing), "{finished:?}");
    let finished = finish(&mut copy(folder.path(), "--verify - in"));
    assert!(line(&finished).contains(checksum_of_nothing), "{finished:?}");
}

#[test]
fn standard_input_becomes_a_file_and_the_file_standard_output_byte_by_byte() {
    for len in [0, 1, 4096, 5000, MIB, 3 * MIB + 1] {
        let source = bytes(len);
        let folder = place(&source);
        for arguments in ["- to", "-f --verify - to", "-f --bs 4k --iodepth 3 --no-sync - to"] {
            let from = File::open(folder.path().join("from")).expect("a file");
            let finished = finish(copy(folder.path(), arguments).stdin(from));
            line(&finished);
            assert!(content(folder.path(), "to") == source, "{arguments}: {len}");
        }
        let mut command = copy(folder.path(), "--bs 8k --iodepth 5 to -");
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout == source, "{len}");
        assert_eq!(names(folder.path()), ["from", "to"]);
    }
}

#[test]
fn standard_input_that_comes_in_pieces_is_put_together() {
    let source = bytes(200_001);
    let folder = folder();
    let mut command = copy(folder.path(), "--bs 16k - to");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    for piece in source.chunks(7777) {
        pipe.write_all(piece).expect("it reads");
    }
    assert!(!folder.path().join("to").exists(), "it is not whole yet");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(content(folder.path(), "to") == source);
}

#[test]
fn a_reader_that_goes_away_before_the_end_is_an_error() {
    let folder = place(&bytes(2 * MIB));
    let mut child = copy(folder.path(), "from -").spawn().expect("the program starts");
    let mut some = [0; 10];
    child.stdout.take().expect("a pipe").read_exact(&mut some).expect("it writes");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("wrote: standard output: write at byte "), "{said}");
    assert!(said.ends_with(": Broken pipe (os error 32)\n") && said.lines().count() == 1, "{said}");
}

/// Sends SIGINT once the copy has begun, and asserts that the copy stops and leaves only `left`
/// behind.
fn interrupt(folder: &Path, mut running: Running, left: &[&str]) {
    let has_begun = || names(folder).iter().any(|name| name.contains(".wrote-")).then_some(());
    running.until("a temporary file", has_begun);
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    assert_eq!(finished.complaint(), "wrote: interrupted");
    assert_eq!(names(folder), left);
}

#[test]
fn a_copy_of_standard_input_is_interrupted_while_nothing_comes() {
    let folder = place(b"old");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"not all").expect("room in the pipe");
    let running = Running::start(copy(folder.path(), "-f - from").stdin(reader));
    interrupt(folder.path(), running, &["from"]);
    assert_eq!(content(folder.path(), "from"), b"old");
}

#[test]
fn the_temporary_file_of_a_copy_is_kept_while_the_copy_lives_and_cleaned_when_it_is_dead() {
    let folder = place(b"old");
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    let hole = File::create(folder.path().join("folder/hole")).expect("a file");
    hole.set_len(64 << 30).expect("a hole");
    let before = names(folder.path());
    // The pipe stays open, so the copy waits for more.
    for arguments in ["-f - from", "--verify folder/hole to"] {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let mut running = Running::start(copy(folder.path(), arguments).stdin(reader));
        let has_begun = || names(folder.path()).into_iter().find(|name| name.contains(".wrote-"));
        let name = running.until("a temporary file", has_begun);
        let clean = || finish(wrote(&["clean", "."]).current_dir(folder.path()));
        let living = clean();
        assert_eq!(living.stdout, format!("kept ./{name}: its run is still going\n"), "{living:?}");
        running.send(Signal::KILL);
        assert_eq!(running.finish().signal(), Some(9));
        // The kernel closes a dead process's ring, which keeps the locked file open, only a moment
        // later.
        let is_dead = |clean: &Finished| !clean.stdout.starts_with("kept ");
        let mut cleans = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(50));
            clean()
        });
        let dead = cleans.by_ref().take(1200).find(is_dead).expect("the lock goes");
        assert!(dead.stdout.starts_with(&format!("removed ./{name} (")), "{dead:?}");
        assert_eq!((dead.code(), names(folder.path())), (Some(0), before.clone()));
    }
}

#[test]
fn a_copy_to_standard_output_is_interrupted_while_nobody_reads() {
    let folder = place(&bytes(2 * MIB));
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut running = Running::start(copy(folder.path(), "from -").stdout(writer));
    let mut one = [0];
    reader.read_exact(&mut one).expect("it writes");
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    assert_eq!(finished.stderr, "wrote: interrupted\n");
}

#[test]
fn a_limit_of_size_is_told_and_leaves_nothing() {
    let folder = place(&bytes(3 * MIB));
    for from in ["from", "-"] {
        // The unit is 512 bytes in dash and 1024 bytes in bash, so the limit is 1 or 2 MiB.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 2048 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_wrote")]);
        command.args(["copy", from, "to"]).current_dir(folder.path());
        let input = File::open(folder.path().join("from")).expect("a file");
        let finished = finish(command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        let said = finished.complaint();
        assert!(said.starts_with("wrote: to: ") && said.contains("File too large"), "{said}");
        assert_eq!(names(folder.path()), ["from"]);
    }
}

#[test]
fn one_of_several_that_fails_does_not_end_the_rest_unless_that_is_wanted() {
    let folder = place(b"some");
    fs::create_dir(folder.path().join("to")).expect("a folder");
    fs::write(folder.path().join("other"), b"more").expect("a file");
    let missing = "wrote: no: does not exist";
    let finished = finish(&mut copy(folder.path(), "--strict no from to"));
    assert_eq!((finished.code(), finished.stderr.trim_end()), (Some(2), missing), "{finished:?}");
    assert!(names(&folder.path().join("to")).is_empty());
    let finished = finish(&mut copy(folder.path(), "no from nor other to"));
    let said: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert_eq!(said[..2], [missing, &missing.replace("no:", "nor:")]);
    assert!(said[2].starts_with("copied 2 files, 8 B in "), "{said:?}");
    assert_eq!(said[3..], ["wrote: not copied: 2 errors"]);
    assert_eq!(names(&folder.path().join("to")), ["from", "other"]);
}

#[test]
fn names_of_open_files_are_streams() {
    let folder = place(b"some");
    let path = folder.path().join("redirected");
    fs::write(&path, b"").expect("a file");
    // A file to which output is redirected receives the bytes, and is not replaced.
    let file = File::options().append(true).open(&path).expect("a file");
    let finished = copy(folder.path(), "-qf from /dev/stdout").stdout(file).status();
    assert!(finished.expect("it runs").success());
    assert_eq!(content(folder.path(), "redirected"), b"some");
    let stdin = File::open(folder.path().join("from")).expect("a file");
    let finished = copy(folder.path(), "-q /dev/stdin to").stdin(stdin).status();
    assert!(finished.expect("it runs").success());
    assert_eq!(content(folder.path(), "to"), b"some");
    let file = File::options().append(true).open(&path).expect("a file");
    let said = copy(folder.path(), "-f from /dev/fd/2").stderr(file).status().expect("it runs");
    assert_eq!(said.code(), Some(2));
    let said = String::from_utf8(content(folder.path(), "redirected")).expect("text");
    assert_eq!(said, "somewrote: /dev/fd/2: leads to an open file: name that file itself\n");
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_cleared_before_the_line() {
    let folder = place(&bytes(MIB));
    for (arguments, draws) in [("from to", true), ("-fq from to", false)] {
        let (mut screen, end) = terminal().expect("a terminal");
        let mut command = copy(folder.path(), arguments);
        let mut child = command.env("TERM", "xterm").stderr(end).spawn().expect("it starts");
        // Reading the screen ends only once this process has closed the other end.
        drop(command);
        let mut said = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(bytes @ 1..) = screen.read(&mut piece) {
            said.extend_from_slice(&piece[..bytes]);
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(said.contains('\u{1b}'), draws, "{said:?}");
        let last = said.trim_end().rsplit(['\r', '\n', '\u{1b}']).next().unwrap_or_default();
        assert_eq!(last.contains("copied 1.05 MB in "), draws, "{said:?}");
    }
}
