//! `wrote log`: records on standard output, one line for an error, and only commands that say so
//! change the log.

use crate::support::{assert_golden, wrote};
use fixtures::{Finished, Mounted, Running, finish, folder, names, or_skip};
use jiff::Timestamp;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wrote::{Format, Log, SyncPolicy};

/// Returns the command `wrote log` in the folder, with a word for each argument.
fn log(folder: &Path, arguments: &str) -> Command {
    let mut command = wrote(&["log"]);
    command.args(arguments.split_whitespace()).current_dir(folder);
    command
}

/// Returns the standard output of a successful run.
fn said(folder: &Path, arguments: &str) -> String {
    let finished = finish(&mut log(folder, arguments));
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
    finished.stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Opens a fast log: small buffers and segments, and no flushes until it is told to flush.
fn open(folder: &Path, format: Format) -> Log {
    let options =
        Log::options().sync(SyncPolicy::No).format(format).buffers(2).buffer_bytes(16 << 10);
    options.segment_bytes(32 << 10).open(folder.join("events")).expect("a log")
}

/// Appends records `from..to`, each a line of 100 bytes that begins with its number.
fn append(log: &Log, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(log.append(text(number).as_bytes()).expect("room").sequence(), number);
    }
    log.sync().expect("a disk");
}

fn text(number: u64) -> String {
    format!("record {number:<93}")
}

fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| text(number) + "\n").collect()
}

/// Makes a folder with the closed log `events` of this number of records.
fn place(format: Format, records: u64) -> tempfile::TempDir {
    let folder = folder();
    let log = open(folder.path(), format);
    append(&log, 0..records);
    log.close().expect("a disk");
    folder
}

/// Returns the segments of `events`, in order.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let is_segment = |name: &String| name.ends_with(".segment") || name.ends_with(".log");
    let events = folder.join("events");
    names(&events).into_iter().filter(is_segment).map(|name| events.join(name)).collect()
}

/// Changes a byte in the middle of record `number` on the disk.
fn damage(folder: &Path, number: u64) -> PathBuf {
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

/// Returns the names and bytes of all files of the log but its lock. The lock names its last owner.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let events = folder.join("events");
    let files = names(&events).into_iter().filter(|name| name != "lock");
    let read = |name: String| (name.clone(), fs::read(events.join(name)).expect("a file"));
    files.map(read).collect()
}

const FORMATS: [Format; 2] = [Format::Framed, Format::Lines];

#[test]
fn cat_prints_all_records_or_those_that_were_asked_for() {
    for format in FORMATS {
        let folder = place(format, 1000);
        let said = |arguments: &str| said(folder.path(), &format!("cat {arguments} events"));
        assert!(said("") == lines(0..1000), "{format}");
        assert!(segments(folder.path()).len() > 1, "{format}");
        assert_eq!(said("--from 998"), lines(998..1000));
        assert_eq!(said("--from 997 --to 998"), lines(997..999));
        assert_eq!(said("--to 1"), lines(0..2));
        assert_eq!(said("--from 400 -n 2"), lines(400..402));
        assert_eq!(said("--count 0"), "");
        assert_eq!(said("--from 1000"), "");
    }
}

#[test]
fn records_of_any_bytes_are_told_apart_as_json() {
    let folder = folder();
    let log = open(folder.path(), Format::Framed);
    for bytes in [&b"plain"[..], b"", b"two\nlines", b"\xff\0"] {
        log.append(bytes).expect("room").wait().expect("a disk");
    }
    log.close().expect("a disk");
    let all = said(folder.path(), "cat --json events");
    let mut records: Vec<Value> = all.lines().map(json).collect();
    assert_eq!(records.len(), 4, "{all}");
    for record in &mut records {
        let written_at = record.as_object_mut().expect("an object").remove("written_at");
        let written_at = written_at.expect("a time");
        written_at.as_str().expect("a text").parse::<Timestamp>().expect("a time");
    }
    assert_eq!(records[0], json(r#"{"sequence": 0, "text": "plain"}"#));
    assert_eq!(records[1]["text"], "");
    assert_eq!(records[2]["text"], "two\nlines");
    assert_eq!(records[3], json(r#"{"sequence": 3, "bytes_base64": "/wA="}"#));
    let first = said(folder.path(), "cat --sequence --to 2 events");
    assert_eq!(first, "0\tplain\n1\t\n2\ttwo\nlines\n");
    let raw = log_bytes(folder.path(), "cat --raw events");
    assert_eq!(raw, b"plaintwo\nlines\xff\0");
}

/// Makes a log of 30 records in three parts, each later than the one before it, and returns the
/// times of its records by its JSON.
fn place_with_times() -> (tempfile::TempDir, Vec<Timestamp>) {
    // The clock may step back, and is read on other threads.
    for _ in 0..100 {
        let folder = folder();
        let log = open(folder.path(), Format::Framed);
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

#[test]
fn cat_prints_the_records_of_a_time_on_and_up_to_one() {
    let (folder, times) = place_with_times();
    let said = |arguments: &str| said(folder.path(), &format!("cat {arguments} events"));
    let first = |at: Timestamp| times.iter().position(|time| *time >= at).unwrap_or(30) as u64;
    let end = |at: Timestamp| times.iter().position(|time| *time > at).unwrap_or(30) as u64;
    let (one, two) = (times[10], times[20]);
    assert!(first(one) > 0 && end(one) < 30, "{times:?}");
    assert_eq!(said(&format!("--since {one}")), lines(first(one)..30));
    assert_eq!(said(&format!("--until {one}")), lines(0..end(one)));
    assert_eq!(said(&format!("--since {one} --until {two}")), lines(first(one)..end(two)));
    assert_eq!(said(&format!("--from 5 --until {one}")), lines(5..end(one)));
    assert_eq!(said(&format!("--since {one} -n 2")), lines(first(one)..first(one) + 2));
    assert_eq!(said("--since 1d"), lines(0..30));
    assert_eq!(said("--until 1d"), "");
    assert_eq!(said("--since 2999-01-01T00:00Z"), "");
    // Records before a time are no gap.
    let json = said(&format!("--json --since {one}"));
    assert!(json.starts_with(&format!("{{\"sequence\":{}", first(one))), "{json}");
    assert!(!json.contains("missing"), "{json}");
}

#[test]
fn tail_begins_with_a_time_and_follows_from_there() {
    let (folder, times) = place_with_times();
    let first = times.iter().position(|time| *time >= times[20]).expect("a record") as u64;
    let since = format!("--since {} events", times[20]);
    assert_eq!(said(folder.path(), &format!("tail {since}")), lines(first..30));
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), &format!("tail -f {since}"));
    let mut running = Running::start(command.stdout(output));
    drop(command);
    assert_eq!(read(&mut reader, 30 - first as usize), lines(first..30));
    let writer = open(folder.path(), Format::Framed);
    append(&writer, 30..35);
    assert_eq!(read(&mut reader, 5), lines(30..35));
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(130));
}

#[test]
fn a_log_without_times_refuses_a_time_in_one_line() {
    let folder = place(Format::Lines, 3);
    let without = said(folder.path(), "cat --json -n 1 events");
    assert!(!without.contains("written_at"), "{without}");
    for arguments in ["cat --since 1h events", "cat --until 1h events", "tail --since 1h events"] {
        let finished = finish(&mut log(folder.path(), arguments));
        assert_eq!((finished.code(), &*finished.stdout), (Some(2), ""), "{arguments}");
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        let because = "a log of lines does not say when a line was written";
        assert!(finished.stderr.contains(because), "{}", finished.stderr);
    }
    let finished = finish(&mut log(folder.path(), "cat --since yesterday events"));
    let line = "wrote: --since \"yesterday\": must be a time, as 2026-11-24T07:00Z or \
                2026-11-24T07:00, or an age, as 10m";
    assert_eq!((finished.code(), finished.stderr.trim_end()), (Some(2), line));
}

fn log_bytes(folder: &Path, arguments: &str) -> Vec<u8> {
    log(folder, arguments).output().expect("the program runs").stdout
}

#[test]
fn tail_prints_the_last_records() {
    for format in FORMATS {
        let folder = place(format, 500);
        let said = |arguments: &str| said(folder.path(), &format!("tail {arguments} events"));
        assert_eq!(said(""), lines(490..500));
        assert_eq!(said("-n 300"), lines(200..500));
        assert_eq!(said("-n 501"), lines(0..500));
        assert_eq!(said("-n 0"), "");
        assert_eq!(said("--from 498"), lines(498..500));
    }
}

#[test]
fn tail_passes_over_places_that_nobody_filled() {
    let folder = folder();
    let log = open(folder.path(), Format::Framed);
    append(&log, 0..5);
    for _ in 0..20 {
        let filled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = log.append_with(10, |_| std::panic::resume_unwind(Box::new("on purpose")));
        }));
        assert!(filled.is_err());
    }
    append(&log, 25..27);
    log.close().expect("a disk");
    assert_eq!(said(folder.path(), "tail -n 3 events"), lines(4..5) + &lines(25..27));
}

/// Reads this number of records of a followed log.
fn read(from: &mut impl Read, records: usize) -> String {
    let mut bytes = vec![0; records * 101];
    from.read_exact(&mut bytes).expect("as much comes");
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn tail_follows_what_is_appended_until_it_is_interrupted_and_says_no_word() {
    for format in FORMATS {
        let folder = folder();
        let writer = open(folder.path(), format);
        append(&writer, 0..20);
        let (mut reader, output) = std::io::pipe().expect("a pipe");
        let mut command = log(folder.path(), "tail -f events");
        let mut running = Running::start(command.stdout(output));
        drop(command);
        assert_eq!(read(&mut reader, 10), lines(10..20));
        // Enough records that segments end meanwhile.
        append(&writer, 20..1000);
        assert!(read(&mut reader, 980) == lines(20..1000), "{format}");
        append(&writer, 1000..1001);
        assert_eq!(read(&mut reader, 1), lines(1000..1001));
        running.send(Signal::INT);
        let finished = running.finish();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(130), ""), "{format}");
    }
}

#[test]
fn tail_waits_for_a_log_that_another_process_makes_where_it_is_told_to_retry() {
    let folder = folder();
    for arguments in ["tail -f new/events", "tail new/events"] {
        assert_eq!(finish(&mut log(folder.path(), arguments)).code(), Some(1), "{arguments}");
    }
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), "tail -F -n 3 new/events");
    let mut running = Running::start(command.stdout(output));
    drop(command);
    fs::create_dir(folder.path().join("new")).expect("a folder");
    for numbers in [0..100, 100..101, 101..500] {
        let mut command = log(folder.path(), "append --quiet new/events");
        let mut child = command.stdin(Stdio::piped()).spawn().expect("wrote");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(lines(numbers.clone()).as_bytes()).expect("it reads");
        drop(input);
        assert!(child.wait().expect("it ends").success());
        let count = numbers.clone().count();
        assert_eq!(read(&mut reader, count), lines(numbers));
    }
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(130), ""));
}

#[test]
fn a_reader_that_goes_away_ends_cat_and_a_log_that_is_followed() {
    let folder = place(Format::Framed, 2000);
    for arguments in ["cat events", "tail -f events", "tail -f -n 2000 events"] {
        let (mut reader, output) = std::io::pipe().expect("a pipe");
        let mut command = log(folder.path(), arguments);
        let running = Running::start(command.stdout(output));
        drop(command);
        read(&mut reader, 1);
        drop(reader);
        let finished = running.finish();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[test]
fn cat_is_interrupted_while_nobody_reads() {
    let folder = place(Format::Framed, 2000);
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut running = Running::start(log(folder.path(), "cat events").stdout(output));
    read(&mut reader, 1);
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    assert_eq!(finished.stderr, "wrote: interrupted\n");
}

#[test]
fn a_standard_output_that_is_full_is_an_error() {
    let folder = place(Format::Framed, 1);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let finished = finish(log(folder.path(), "cat events").stdout(full));
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let said = "wrote: standard output: No space left on device (os error 28)";
    assert_eq!(finished.complaint(), said);
}

#[test]
fn what_stat_and_verify_say_of_lines_are_the_golden_texts() {
    // Written by hand: where a log begins its next file depends on the pace of its producers.
    let folder = place(Format::Lines, 0);
    for lines in [0..324, 324..500] {
        let name = format!("events/{:020}.log", lines.start);
        let text: String = lines.map(|line| text(line) + "\n").collect();
        fs::write(folder.path().join(name), text).expect("a file");
    }
    assert_golden("log-stat.txt", &said(folder.path(), "stat events"));
    assert_golden("log-stat.json", &said(folder.path(), "stat --json events"));
    assert_golden("log-verify.txt", &said(folder.path(), "verify events"));
    assert_golden("log-verify.json", &said(folder.path(), "verify --json events"));
    assert_eq!(said(folder.path(), "verify --quiet events"), "");
}

#[test]
fn stat_tells_who_writes_and_how_the_log_was_left() {
    for format in FORMATS {
        let folder = folder();
        let writer = open(folder.path(), format);
        append(&writer, 0..500);
        let stat = json(&said(folder.path(), "stat --json events"));
        assert_eq!(stat["writer_process"], std::process::id(), "{stat}");
        let table = said(folder.path(), "stat events");
        assert!(table.contains(&format!("open for writing by process {}", std::process::id())));
        writer.close().expect("a disk");
        drop(writer);

        let stat = json(&said(folder.path(), "stat --json events"));
        assert_eq!((&stat["writer_process"], &stat["path"]), (&Value::Null, &"events".into()));
        assert_eq!((&stat["records"], &stat["next_sequence"]), (&500.into(), &500.into()));
        assert_eq!(stat["format"], format.to_string());
        assert_eq!(stat["segments"].as_array().map(Vec::len), Some(segments(folder.path()).len()));
        let table = said(folder.path(), "stat events");
        assert!(table.starts_with(&format!("events: {format}, 500 records in ")), "{table}");
    }
}

#[test]
fn a_whole_log_is_verified_and_left_as_it_is_by_repair() {
    for format in FORMATS {
        let folder = place(format, 500);
        let before = content(folder.path());
        let verified = said(folder.path(), "verify events");
        assert!(verified.starts_with("500 records in ") && verified.ends_with("50.0 kB, whole\n"));
        assert_eq!(json(&said(folder.path(), "verify --json events"))["whole"], true);
        assert_eq!(said(folder.path(), "repair --dry-run events"), verified);
        let repaired = said(folder.path(), "repair events");
        assert_eq!(repaired, "nothing to repair: 500 records, whole\n");
        assert!(content(folder.path()) == before, "{format}");
    }
}

/// Asserts that damage was found, and returns the report.
fn found(finished: &Finished) -> &str {
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let complaint = "wrote: events: damaged in 1 place; wrote log repair events keeps every record \
        that is whole\n";
    assert_eq!(finished.stderr, complaint);
    &finished.stdout
}

#[test]
fn damage_is_told_with_its_place_and_repaired_with_what_was_there_kept() {
    let folder = place(Format::Framed, 500);
    let path = damage(folder.path(), 100);
    let path = Path::new("events").join(path.file_name().expect("a name"));
    let before = content(folder.path());
    for arguments in ["verify events", "verify -q events", "repair --dry-run events"] {
        let finished = finish(&mut log(folder.path(), arguments));
        let told = found(&finished);
        let begin = format!("{}: damaged at byte ", path.display());
        assert!(told.starts_with(&begin) && told.contains("100"), "{told}");
        assert_eq!(told.lines().count(), if arguments.contains("-q") { 1 } else { 2 }, "{told}");
    }
    let verified = json(found(&finish(&mut log(folder.path(), "verify --json events"))));
    assert_eq!(
        (&verified["whole"], &verified["damage"][0]["sequence"]),
        (&false.into(), &100.into())
    );
    assert!(content(folder.path()) == before);

    // The records before the damage are printed before its report.
    let finished = finish(&mut log(folder.path(), "cat events"));
    assert_eq!((finished.code(), finished.stdout), (Some(1), lines(0..100)));
    let complaint = &finished.stderr;
    assert!(complaint.lines().count() == 1 && complaint.contains("wrote log"), "{complaint}");

    let repaired = said(folder.path(), "repair events");
    assert!(repaired.starts_with(&format!("{}: damaged at byte ", path.display())), "{repaired}");
    let kept = repaired.lines().find_map(|line| line.strip_prefix("kept as it was: "));
    let kept = fs::read(folder.path().join(kept.expect("a file is kept"))).expect("it is there");
    let (_, damaged) = before.iter().find(|(name, _)| path.ends_with(name)).expect("it was there");
    assert!(kept == *damaged);

    let left = said(folder.path(), "cat events");
    let verified = said(folder.path(), "verify events");
    assert!(left.starts_with(&lines(0..100)) && left.ends_with(&lines(400..500)), "{verified}");
    assert!(!left.contains(&text(100)));
    let records = left.lines().count();
    assert!(verified.starts_with(&format!("{records} records in ")), "{verified}");
    let sequences = said(folder.path(), "tail -n 450 --sequence events");
    let last = sequences.lines().last().expect("records");
    assert_eq!(last, format!("499\t{}", text(499)));
    assert_eq!(sequences.lines().count(), records.min(450));
}

/// Changes the content of a file.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("a file");
}

#[test]
fn lines_lost_before_the_last_file_are_damage_to_every_command_until_they_are_repaired() {
    let ways: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.truncate(bytes.len() - 101),
        |bytes| bytes[150] = 0,
        |bytes| bytes[100] = b' ',
    ];
    for way in ways {
        let folder = place(Format::Lines, 1000);
        let segments = segments(folder.path());
        change(&segments[segments.len() - 2], way);
        let before = content(folder.path());
        for verb in ["cat", "tail", "tail -n 500", "stat", "verify", "repair --dry-run"] {
            let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
            assert_eq!(finished.code(), Some(1), "{verb}: {finished:?}");
        }
        assert_eq!(append_by_command(folder.path(), "", b"more\n").code(), Some(1));
        assert!(content(folder.path()) == before, "nothing is changed");
        said(folder.path(), "repair events");
        for verb in ["cat", "tail", "stat", "verify"] {
            said(folder.path(), &format!("{verb} events"));
        }
        assert_eq!(append_by_command(folder.path(), "-q", b"more\n").code(), Some(0));
        assert_eq!(said(folder.path(), "tail -n 1 --sequence events"), "1000\tmore\n");
    }
}

#[test]
fn gaps_that_a_repair_left_are_told_by_stat_verify_and_cat() {
    let folder = place(Format::Framed, 500);
    for number in [0, 100, 101, 400] {
        damage(folder.path(), number);
    }
    said(folder.path(), "repair events");
    let told = "4 sequences have no record: 0, 100 to 101, 400\n";
    for verb in ["stat", "verify"] {
        let said = said(folder.path(), &format!("{verb} events"));
        assert!(said.contains(told), "{verb}: {said}");
    }
    let stat = json(&said(folder.path(), "stat --json events"));
    assert_eq!(stat["gaps"][1], json(r#"{"first_sequence": 100, "records": 2}"#));
    let all = said(folder.path(), "cat --json events");
    let lines: Vec<Value> = all.lines().map(json).collect();
    assert_eq!(lines.len(), 496 + 3);
    assert_eq!(lines[0], json(r#"{"sequence": 0, "missing": 1}"#));
    assert_eq!(lines[100], json(r#"{"sequence": 100, "missing": 2}"#));
    assert_eq!(lines[101]["sequence"], 102);
    let part = said(folder.path(), "cat --json --from 101 -n 1 events");
    assert_eq!(part.lines().map(json).next(), Some(json(r#"{"sequence": 101, "missing": 1}"#)));
}

/// A length that no test has the time to read.
const ENDLESS_BYTES: u64 = 8 << 40;

/// Makes a file endless by a hole; `false` where the file system knows no such file.
fn is_made_endless(path: &Path) -> bool {
    let file = File::options().write(true).create(true).truncate(false).open(path).expect("a file");
    let len_bytes = file.metadata().expect("a file").len();
    if file.set_len(ENDLESS_BYTES).is_err() {
        return false;
    }
    let behind = len_bytes.next_multiple_of(1 << 20);
    let is_known = seek(&file, SeekFrom::Data(behind)) == Err(Errno::NXIO);
    is_known || file.set_len(len_bytes).is_err()
}

#[test]
fn holes_are_passed_over_whatever_a_command_does() {
    for format in FORMATS {
        for place_of in ["sealed", "sealed and damaged", "last", "next"] {
            let folder = place(format, 1000);
            let segments = segments(folder.path());
            let is_sealed = place_of.starts_with("sealed");
            let path = match (place_of, format) {
                ("last", _) => segments[segments.len() - 1].clone(),
                ("next", Format::Framed) => {
                    folder.path().join(format!("events/{:020}.segment", segments.len() + 1))
                }
                ("next", Format::Lines) => folder.path().join("events/00000000000000001000.log"),
                _ => segments[0].clone(),
            };
            if place_of == "sealed and damaged" {
                change(&path, |bytes| bytes[300] = 0);
            }
            if !is_made_endless(&path) {
                return fixtures::skip("holes_are_passed_over", "no SEEK_DATA here");
            }
            let code = |verb: &str| {
                let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
                (finished.code(), finished.stdout.lines().count())
            };
            let context = format!("{format}, {place_of}");
            if place_of == "sealed and damaged" {
                assert_eq!(code("cat").0, Some(1), "{context}");
                assert_eq!(code("verify").0, Some(1), "{context}");
            } else {
                let garbage = format == Format::Lines && is_sealed;
                assert_eq!(code("cat"), (Some(0), 1000), "{context}");
                assert_eq!(code("tail"), (Some(0), 10), "{context}");
                assert_eq!(code("stat").0, Some(0), "{context}");
                assert_eq!(code("verify").0, Some(if garbage { 3 } else { 0 }), "{context}");
            }
            said(folder.path(), "repair events");
            assert_eq!(append_by_command(folder.path(), "-q", b"more\n").code(), Some(0));
            assert_eq!(said(folder.path(), "tail -n 1 -s events"), "1000\tmore\n", "{context}");
            assert_eq!(code("verify").0, Some(0), "{context}");
        }
    }
}

#[test]
fn garbage_behind_a_sealed_segment_has_a_word_and_an_exit_code_and_loses_nothing() {
    for format in FORMATS {
        let folder = place(format, 1000);
        let sealed = &segments(folder.path())[0];
        change(sealed, |bytes| bytes.extend([0, 0, 7, 0]));
        for (verb, last_line) in [
            ("verify", "whole besides: 1000 records in "),
            ("verify -q", "events/00000000000000000"),
            ("repair --dry-run", "whole besides: 1000 records in "),
        ] {
            let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
            assert_eq!(finished.code(), Some(3), "{format}, {verb}: {finished:?}");
            let complaint = "wrote: events: garbage in 1 place, no record is lost; wrote log repair \
                events removes it\n";
            assert_eq!(finished.stderr, complaint);
            let told = finished.stdout.lines().next().expect("the place");
            assert!(told.contains(": garbage from byte "), "{told}");
            let last = finished.stdout.lines().last().expect("a line");
            assert!(last.starts_with(last_line), "{last}");
        }
        let verified = finish(&mut log(folder.path(), "verify --json events"));
        let verified = json(&verified.stdout);
        assert_eq!((&verified["whole"], &verified["damage"]), (&false.into(), &json("[]")));
        assert_eq!(verified["garbage"].as_array().map(Vec::len), Some(1));
        assert!(said(folder.path(), "cat events") == lines(0..1000), "{format}");
        said(folder.path(), "stat events");
        assert_eq!(append_by_command(folder.path(), "-q", b"more\n").code(), Some(0));
        assert!(said(folder.path(), "repair events").contains("\nkept as it was: "));
        assert!(said(folder.path(), "verify events").ends_with(", whole\n"));
        assert!(said(folder.path(), "cat events") == lines(0..1000) + "more\n", "{format}");
    }
}

#[test]
fn a_log_that_is_written_is_not_repaired_and_has_no_second_writer() {
    let folder = folder();
    let writer = open(folder.path(), Format::Framed);
    append(&writer, 0..10);
    for verb in ["repair", "append"] {
        let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        let said = finished.complaint();
        assert!(said.starts_with("wrote: events"), "{said}");
        assert!(said.contains(&std::process::id().to_string()), "{said}");
    }
    append(&writer, 10..20);
    writer.close().expect("a disk");
    assert_eq!(said(folder.path(), "cat events"), lines(0..20));
}

#[test]
fn what_is_no_log_is_refused_in_one_line_and_nothing_is_made() {
    let folder = folder();
    fs::write(folder.path().join("file"), b"x").expect("a file");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for verb in ["cat", "tail", "tail -f", "stat", "verify", "repair"] {
        for path in ["file", "empty", "nothing"] {
            let finished = finish(&mut log(folder.path(), &format!("{verb} {path}")));
            assert!(matches!(finished.code(), Some(1 | 2)), "{verb} {path}: {finished:?}");
            let said = finished.complaint();
            assert!(said.starts_with(&format!("wrote: {path}: ")), "{verb} {path}: {said}");
        }
    }
    assert_eq!(names(folder.path()), ["empty", "file"]);
    assert_eq!(names(&folder.path().join("empty")), [""; 0]);
}

/// Runs `wrote log append` with this standard input.
fn append_by_command(folder: &Path, arguments: &str, input: &[u8]) -> Finished {
    fs::write(folder.join("input"), input).expect("a file");
    let input = File::open(folder.join("input")).expect("a file");
    finish(log(folder, &format!("append {arguments} events")).stdin(input))
}

#[test]
fn each_line_of_standard_input_becomes_a_record() {
    for (format, sync) in [("framed", "always"), ("framed", "no"), ("lines", "everysec")] {
        let folder = folder();
        let arguments = format!("--format {format} --sync {sync}");
        let finished = append_by_command(folder.path(), &arguments, b"one\n\nlast, without an end");
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
        let said_of_it = finished.stderr;
        assert!(said_of_it.starts_with("appended 3 records (0 to 2), 23 B, in "), "{said_of_it}");
        assert!(said_of_it.ends_with("survives a power loss\n"), "{said_of_it}");
        assert_eq!(said(folder.path(), "cat events"), "one\n\nlast, without an end\n");
        // The log keeps its first format.
        let finished = append_by_command(folder.path(), "-q", b"four\n");
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
        assert_eq!(said(folder.path(), "tail -n 1 --sequence events"), "3\tfour\n");
        let stat = json(&said(folder.path(), "stat --json events"));
        let closed = if format == "framed" { Value::Bool(true) } else { Value::Null };
        assert_eq!((&stat["format"], &stat["closed"]), (&format.into(), &closed));
    }
}

#[test]
fn a_line_that_is_no_record_is_told_with_its_number_and_those_before_it_stay() {
    let folder = folder();
    let finished = append_by_command(folder.path(), "--format lines -q", b"one\ntwo\0\nthree\n");
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let said_of_it = finished.complaint();
    assert!(said_of_it.starts_with("wrote: standard input: line 2: "), "{said_of_it}");
    let long = vec![b'x'; 3 << 20];
    let finished = append_by_command(folder.path(), "-q", &long);
    let said_of_it =
        "wrote: standard input: line 1: longer than 1 MiB; --record-max allows up to 63 MiB";
    assert_eq!(finished.complaint(), said_of_it);
    assert_eq!(said(folder.path(), "cat events"), "one\n");
}

#[test]
fn a_record_is_as_long_as_was_allowed_and_no_longer() {
    for (format, arguments, bytes_max) in [
        ("framed", "", 1 << 20),
        ("framed", "--record-max 3MiB", 3 << 20),
        ("lines", "--record-max 63MiB", 63 << 20),
        ("framed", "--record-max 63MiB", 63 << 20),
        ("framed", "--record-max 10", 10),
    ] {
        let folder = folder();
        let arguments = format!("-q --sync no --format {format} {arguments}");
        let mut input = vec![b'x'; bytes_max];
        let finished = append_by_command(folder.path(), &arguments, &input);
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
        assert_eq!(said(folder.path(), "cat --raw events").len(), bytes_max, "{arguments}");
        input.push(b'x');
        let finished = append_by_command(folder.path(), &arguments, &input);
        assert!(finished.complaint().contains("; --record-max allows up to 63 MiB"), "{arguments}");
    }
    let folder = folder();
    let finished = append_by_command(folder.path(), "--record-max 64MiB", b"one");
    assert_eq!(finished.code(), Some(2));
    assert!(finished.complaint().contains("is more than 63 MiB"), "{finished:?}");
}

#[test]
fn a_full_disk_ends_an_append_that_says_how_many_records_are_in() {
    let mounted = or_skip!(Mounted::tmpfs(8 << 20));
    for format in ["framed", "lines"] {
        let input = lines(0..200_000);
        let outside = folder();
        fs::write(outside.path().join("input"), input).expect("a file");
        let input = File::open(outside.path().join("input")).expect("a file");
        let mut command =
            log(mounted.path(), &format!("append --sync no --format {format} {format}"));
        let finished = finish(command.stdin(input));
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        let told = finished.complaint();
        assert!(told.contains("No space left on device"), "{told}");
        let cat = said(mounted.path(), &format!("cat {format}"));
        let there = cat.lines().count();
        assert!(there > 0 && told.ends_with(&format!(" (0 to {})", there - 1)), "{there}: {told}");
        assert!(told.contains(&format!("; {there} of ")), "{there}: {told}");
        fs::remove_dir_all(mounted.path().join(format)).expect("it is ours");
    }
}

#[test]
fn lines_are_there_as_they_come_and_stay_when_it_is_interrupted() {
    let folder = folder();
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    let mut running = Running::start(log(folder.path(), "append events").stdin(input));
    for (number, line) in ["one\n", "two\n"].iter().enumerate() {
        writer.write_all(line.as_bytes()).expect("it reads");
        running.until("the record", || {
            let cat = finish(&mut log(folder.path(), "cat events"));
            (cat.stdout.lines().count() == number + 1).then_some(())
        });
    }
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    let said_of_it: Vec<&str> = finished.stderr.lines().collect();
    assert!(said_of_it[0].starts_with("appended 2 records (0 to 1), 6 B, in "), "{said_of_it:?}");
    assert_eq!(said_of_it[1..], ["wrote: interrupted"]);
    assert_eq!(said(folder.path(), "cat events"), "one\ntwo\n");
}

#[test]
fn the_end_that_a_crash_tore_is_no_damage_and_kept_by_the_next_opening() {
    let folder = folder();
    let writer = open(folder.path(), Format::Lines);
    append(&writer, 0..3);
    writer.close().expect("a disk");
    drop(writer);
    let path = segments(folder.path()).pop().expect("a segment");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(b"half a li").expect("room");
    let verified = said(folder.path(), "verify events");
    assert!(verified.contains("9 B behind them of a write that was broken off"), "{verified}");
    assert_eq!(said(folder.path(), "cat events"), lines(0..3));
    let finished = append_by_command(folder.path(), "", b"next\n");
    assert!(finished.stderr.starts_with("wrote: note: the end of a write"), "{finished:?}");
    assert_eq!(said(folder.path(), "tail -n 1 --sequence events"), "3\tnext\n");
    let kept = names(&folder.path().join("events")).into_iter().find(|name| name.contains("torn"));
    let kept = folder.path().join("events").join(kept.expect("it is kept"));
    assert_eq!(fs::read(kept).expect("a file"), b"half a li");
}

#[test]
fn a_log_is_verified_while_it_is_written() {
    let folder = folder();
    let writer = open(folder.path(), Format::Framed);
    append(&writer, 0..100);
    let child = log(folder.path(), "verify events").stderr(Stdio::piped()).spawn();
    append(&writer, 100..1000);
    let output = child.expect("it starts").wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said_of_it = String::from_utf8(output.stdout).expect("text");
    assert!(said_of_it.lines().next().is_some_and(|line| line.ends_with("whole")), "{said_of_it}");
}
