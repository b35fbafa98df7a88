//! The logs of these tests, and the command run in their folder.

use crate::support::wrote;
use fixtures::{Finished, finish, folder, names};
use jiff::Timestamp;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use wrote::{Log, SyncPolicy};

/// Returns the command `wrote log` in the folder. Each word of `arguments` is an argument.
pub(super) fn log(folder: &Path, arguments: &str) -> Command {
    let mut command = wrote(&["log"]);
    command.args(arguments.split_whitespace()).current_dir(folder);
    command
}

/// Returns the standard output of a run, which must succeed.
pub(super) fn said(folder: &Path, arguments: &str) -> String {
    let finished = finish(&mut log(folder, arguments));
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
    finished.stdout
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Opens a log that is fast: small buffers and segments, and no flushes unless requested.
pub(super) fn open(folder: &Path) -> Log {
    let options = Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(16 << 10);
    options.segment_bytes(32 << 10).open(folder.join("events")).expect("a log")
}

/// Appends these records, each of which is a line of 100 bytes that begins with its number.
pub(super) fn append(log: &Log, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(log.append(text(number).as_bytes()).expect("room").sequence(), number);
    }
    log.sync().expect("a disk");
}

pub(super) fn text(number: u64) -> String {
    format!("record {number:<93}")
}

pub(super) fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| text(number) + "\n").collect()
}

/// Creates a folder with a closed log `events` that contains this number of records.
pub(super) fn place(records: u64) -> tempfile::TempDir {
    let folder = folder();
    let log = open(folder.path());
    append(&log, 0..records);
    log.close().expect("a disk");
    folder
}

/// Returns the segments of `events`, in order.
pub(super) fn segments(folder: &Path) -> Vec<PathBuf> {
    let is_segment = |name: &String| name.ends_with(".segment");
    let events = folder.join("events");
    names(&events).into_iter().filter(is_segment).map(|name| events.join(name)).collect()
}

/// Changes a byte in the middle of record `number` on the disk, and returns the path of its
/// segment.
pub(super) fn damage(folder: &Path, number: u64) -> PathBuf {
    let wanted = text(number);
    for path in segments(folder) {
        let mut bytes = fs::read(&path).expect("a file");
        let place = bytes.windows(wanted.len()).position(|bytes| bytes == wanted.as_bytes());
        if let Some(place) = place {
            bytes[place + 50] ^= 1;
            fs::write(&path, bytes).expect("a file");
            return path;
        }
    }
    panic!("record {number} is in no segment");
}

/// Returns the names and contents of all files of the log, except its lock, which names its last
/// owner.
pub(super) fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let events = folder.join("events");
    let files = names(&events).into_iter().filter(|name| name != "lock");
    let read = |name: String| (name.clone(), fs::read(events.join(name)).expect("a file"));
    files.map(read).collect()
}

/// Creates a log of 30 records in three parts, written at different times. Returns the times of the
/// records, from its JSON.
pub(super) fn place_with_times() -> (tempfile::TempDir, Vec<Timestamp>) {
    // The clock may step back, and other threads read it.
    for _ in 0..100 {
        let folder = folder();
        let log = open(folder.path());
        (0..3).for_each(|part| append(&log, part * 10..part * 10 + 10));
        log.close().expect("a disk");
        let all = said(folder.path(), "cat --json events");
        let time = |line: &str| json(line)["written_at"].as_str().expect("a time").parse();
        let times: Vec<Timestamp> = all.lines().map(|line| time(line).expect("a time")).collect();
        assert_eq!(times.len(), 30, "{all}");
        if times.is_sorted() && times[9] < times[10] && times[19] < times[20] {
            return (folder, times);
        }
    }
    panic!("the clock went back a hundred times");
}

/// Reads this number of records from a log that is followed.
pub(super) fn read(from: &mut impl Read, records: usize) -> String {
    let mut bytes = vec![0; records * 101];
    from.read_exact(&mut bytes).expect("as much comes");
    String::from_utf8(bytes).expect("it is text")
}

/// Runs `wrote log append` with this standard input.
pub(super) fn append_by_command(folder: &Path, arguments: &str, input: &[u8]) -> Finished {
    fs::write(folder.join("input"), input).expect("a file");
    let input = File::open(folder.join("input")).expect("a file");
    finish(log(folder, &format!("append {arguments} events")).stdin(input))
}
