//! Tests of input files that are not text, or too long. The program prints one line about each,
//! uses limited memory, and ends every wait when a signal arrives.

use crate::support::wrote;
use fixtures::{Finished, Running, finish, folder};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The subcommands that read a whole file; `@` is replaced by the file.
const READERS: [(&str, &str); 4] = [
    ("run @", ", the limit of a job file"),
    ("run --check @", ", the limit of a job file"),
    ("compare @ result.json", ", the limit of a result"),
    ("compare result.json @", ", the limit of a result"),
];

fn place() -> tempfile::TempDir {
    let folder = folder();
    let result = serde_json::to_string(&fixtures::samples::document()).expect("JSON");
    fs::write(folder.path().join("result.json"), result).expect("a file");
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    // Some file systems do not support files of this length.
    let sparse = File::create(folder.path().join("sparse")).expect("a file");
    sparse.set_len(100_000_000_000).or_else(|_| sparse.set_len(1 << 30)).expect("a hole");
    mknodat(CWD, folder.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    folder
}

fn reads(folder: &Path, words: &str, file: &str) -> Command {
    let words: Vec<String> = words.split(' ').map(|word| word.replace('@', file)).collect();
    let mut command = wrote(&words);
    command.current_dir(folder);
    command
}

fn assert_refused(finished: &Finished, because: &str) {
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert!(finished.complaint().contains(because), "{finished:?}");
}

#[test]
fn an_input_without_an_end_or_far_too_long_is_refused() {
    let folder = place();
    for (words, because) in READERS {
        for file in ["/dev/zero", "sparse"] {
            assert_refused(&finish(&mut reads(folder.path(), words, file)), because);
        }
        let endless = File::open("/dev/zero").expect("a device");
        let mut command = reads(folder.path(), words, "-");
        assert_refused(&finish(command.stdin(Stdio::from(endless))), because);
    }
}

#[cfg(feature = "serve")]
#[test]
fn a_server_refuses_files_without_an_end() {
    let folder = place();
    let because = ", the limit for such a file";
    for file in ["/dev/zero", "sparse"] {
        for words in [
            "serve --check --config @",
            "serve log --listen http://127.0.0.1:0 --token-file @",
            "serve log --listen tls://127.0.0.1:0 --cert-file @ --key-file @",
        ] {
            assert_refused(&finish(&mut reads(folder.path(), words, file)), because);
        }
    }
}

#[test]
fn a_folder_and_nothing_are_no_files_to_read() {
    let folder = place();
    for (words, _) in READERS {
        let finished = finish(&mut reads(folder.path(), words, "folder"));
        assert_refused(&finished, "folder: Is a directory (os error 21)");
        let finished = finish(&mut reads(folder.path(), words, "none"));
        assert_refused(&finished, "none: No such file or directory (os error 2)");
    }
}

#[test]
fn a_pipe_is_waited_for_until_a_writer_or_a_signal_comes() {
    let folder = place();
    for (words, _) in READERS {
        let mut running = Running::start(&mut reads(folder.path(), words, "pipe"));
        let writer = running.until("a reader of the pipe", || {
            let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            OpenOptions::new()
                .write(true)
                .custom_flags(nonblock)
                .open(folder.path().join("pipe"))
                .ok()
        });
        running.send(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code(), Some(130), "{finished:?}");
        assert_eq!(finished.complaint(), "wrote: interrupted");
        drop(writer);
    }
    let running = Running::start(&mut reads(folder.path(), "run --check @", "pipe"));
    fs::write(folder.path().join("pipe"), "[a]\nrw=write\nsize=1m\n").expect("a reader");
    let finished = running.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.contains("  a: write of 4k"), "{finished:?}");
}

#[test]
fn a_language_and_a_log_are_folders_of_files_and_nothing_else_is_read() {
    let folder = place();
    for file in ["/dev/zero", "sparse", "pipe"] {
        let finished = finish(&mut reads(folder.path(), "langs --add @ .", file));
        assert_refused(&finished, ": ");
        let finished = finish(&mut reads(folder.path(), "log stat @", file));
        assert!(matches!(finished.code(), Some(1 | 2)), "{finished:?}");
        finished.complaint();
    }
}
