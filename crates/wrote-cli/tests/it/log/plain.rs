//! Tests of plain line files: appended to, printed and followed.

use super::place::{log, said};
use fixtures::{Finished, Mounted, Running, finish, folder, or_skip};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Runs `wrote log append` with this standard input.
fn append(folder: &Path, arguments: &str, input: &[u8]) -> Finished {
    let outside = fixtures::folder();
    fs::write(outside.path().join("input"), input).expect("a file");
    let input = File::open(outside.path().join("input")).expect("a file");
    finish(log(folder, &format!("append {arguments}")).stdin(input))
}

#[test]
fn a_new_name_with_an_extension_is_a_plain_file_and_a_path_that_is_there_stays_what_it_is() {
    let folder = folder();
    for (name, is_file) in [("session.jsonl", true), ("events", false)] {
        let finished = append(folder.path(), name, b"one\ntwo");
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let lines: Vec<&str> = finished.stderr.lines().collect();
        let begin = format!("wrote: note: {name} is new: a ");
        assert!(lines[0].starts_with(&begin), "{lines:?}");
        assert_eq!(lines[0].contains("is new: a plain file"), is_file);
        let begin =
            if is_file { "appended 2 lines, 6 B, in " } else { "appended 2 records (0 to 1)" };
        assert!(lines[1].starts_with(begin), "{lines:?}");
        assert_eq!(folder.path().join(name).is_file(), is_file);
    }
    fs::write(folder.path().join("plain"), "one\nto").expect("a file");
    let finished = append(folder.path(), "plain", b"three\n");
    assert!(finished.stderr.contains("is kept in ") && finished.stderr.contains("plain.torn-0"));
    for (path, text) in [("session.jsonl", "one\ntwo\n"), ("plain", "one\nthree\n")] {
        assert_eq!(fs::read_to_string(folder.path().join(path)).expect("a file"), text);
        assert_eq!(said(folder.path(), &format!("cat {path}")), text);
    }
    assert_eq!(fs::read_to_string(folder.path().join("plain.torn-0")).expect("a file"), "to");
}

#[test]
fn lines_of_a_plain_file_are_printed_by_their_numbers_and_not_by_times() {
    let folder = folder();
    let text: String = (0..30).map(|number| format!("line {number}\n")).collect();
    fs::write(folder.path().join("a.log"), text.clone() + "half").expect("a file");
    let note = "wrote: note: a.log: the last line is unfinished; its 4 B are left out\n";
    let last = "28\tline 28\n29\tline 29\n";
    for (arguments, lines, note) in
        [("cat", &*text, note), ("cat -n 30", &*text, ""), ("tail -n 2 -s", last, note)]
    {
        let finished = finish(&mut log(folder.path(), &format!("{arguments} a.log")));
        assert_eq!((&*finished.stdout, &*finished.stderr), (lines, note), "{arguments}");
    }
    assert_eq!(said(folder.path(), "cat --from 3 --to 4 a.log"), "line 3\nline 4\n");
    for arguments in ["cat --since 1h", "cat --until 1h", "tail --since 1h", "tail -f --since 1h"] {
        let finished = finish(&mut log(folder.path(), &format!("{arguments} a.log")));
        let because = "wrote: a.log: a plain file does not record when a line was written";
        assert_eq!((finished.code(), finished.complaint()), (Some(2), because), "{arguments}");
    }
}

#[test]
fn the_last_lines_of_a_plain_file_are_found_from_its_end() {
    let folder = folder();
    let lines: Vec<String> =
        (0..300).map(|number| format!("{number} {}\n", "x".repeat(4000))).collect();
    fs::write(folder.path().join("a.log"), lines.concat() + "half").expect("a file");
    let printed = |arguments: &str| finish(&mut log(folder.path(), arguments)).stdout;
    for count in [0, 1, 65, 66, 200, 300, 301] {
        let expected = lines[300 - count.min(300)..].concat();
        assert!(printed(&format!("tail -n {count} a.log")) == expected, "{count}");
    }
    assert!(printed("tail -n 1 --json a.log").starts_with("{\"sequence\":299,"));
    assert_eq!(printed("tail --from 299 a.log"), lines[299]);
}

#[test]
fn a_plain_file_has_no_checksums_to_verify_which_is_told_in_one_line() {
    let folder = folder();
    fs::write(folder.path().join("a.log"), "one\n").expect("a file");
    for verb in ["stat", "verify", "repair", "repair --dry-run"] {
        let finished = finish(&mut log(folder.path(), &format!("{verb} a.log")));
        let because = "wrote: a.log: a plain file of lines, which has no checksums to verify. To \
                       set an unfinished last line aside: wrote log append a.log < /dev/null";
        assert_eq!((finished.code(), finished.complaint()), (Some(2), because), "{verb}");
    }
}

#[test]
fn a_plain_file_is_followed_also_after_it_was_shortened_or_renamed() {
    let folder = folder();
    let path = folder.path().join("a.log");
    fs::write(&path, "one\ntwo\n").expect("a file");
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), "tail -F -n 1 a.log");
    let mut running = Running::start(command.stdout(output));
    drop(command);
    let mut read = |expected: &str| {
        let mut bytes = vec![0; expected.len()];
        reader.read_exact(&mut bytes).expect("as much comes");
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    };
    read("two\n");
    let mut file = File::options().append(true).open(&path).expect("a file");
    file.write_all(b"thr").expect("room");
    file.write_all(b"ee\n").expect("room");
    read("three\n");
    file.set_len(0).expect("shorter");
    file.write_all(b"four\n").expect("room");
    read("four\n");
    fs::rename(&path, folder.path().join("a.log.1")).expect("a name");
    fs::write(&path, "five\n").expect("a file");
    read("five\n");
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(130));
}

#[test]
fn a_full_disk_stops_an_append_to_a_plain_file_with_the_first_line_that_is_not_stored() {
    let mounted = or_skip!(Mounted::tmpfs(8 << 20));
    let input: String = (0..200_000).map(|number| format!("line {number:<94}\n")).collect();
    let finished = append(mounted.path(), "--sync no a.log", input.as_bytes());
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let there = said(mounted.path(), "cat a.log").lines().count();
    let told = finished.stderr.lines().last().expect("a line");
    let next = there + 1;
    let stopped = format!("; stopped: {there} lines stored, none from line {next} on");
    assert!(there > 0 && told.ends_with(&stopped), "{there}: {told}");
}
