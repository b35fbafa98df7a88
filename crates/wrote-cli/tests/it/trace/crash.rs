//! Tests of `wrote trace crash`: the states that a power loss could have left.

use super::{NAMES, installed, is_one_line};
use crate::support::wrote;
use fixtures::{Finished, finish, folder, or_skip};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wrote_result::trace::Trace;

/// Records a script in a folder with a file `a`. The record is next to the folder.
fn recorded(place: &Path, script: &str) -> PathBuf {
    let folder = place.join("data");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), "old").unwrap();
    let record = place.join("record");
    let mut command = wrote(&["trace", "--force", "--record"]);
    command.arg(&record).args(["--", "sh", "-c", script]).current_dir(&folder);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    record
}

pub(super) fn crash(record: &Path, more: &[&str]) -> Finished {
    finish(wrote(&["trace", "crash"]).arg(record).args(more))
}

/// A check: `a` has the old or the new content, and only the new content once the program has given
/// an answer.
const OLD_OR_NEW: &str = "sh -c 'case $(cat \"$0/a\") in new) ;; old) test $WROTE_ANSWERS = 0 ;; \
    *) echo torn >&2; exit 1 ;; esac'";

#[test]
fn a_power_cut_is_made_that_shows_a_missing_flush() {
    let place = folder();
    let bad = recorded(place.path(), "printf new > t; mv t a");
    let finished = crash(&bad, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let told = "
    result   a is empty
    lost     a write of 3 bytes to a
    kept     creating t, the rename to a
    check    ended with exit code 1: torn
    fix      flush the file (fsync) after a write of 3 bytes to a, before a
             rename or reporting success
    command  wrote trace crash ";
    assert!(finished.stdout.contains(told), "{finished:?}");
    assert!(finished.stderr.contains("wrote: the check fails in crash state "), "{finished:?}");
    // The number of a state reproduces it.
    let line = finished.stdout.lines().find(|line| line.contains("Crash state ")).unwrap();
    let number = line.split_once("Crash state ").and_then(|of| of.1.split_once(':')).unwrap().0;
    let keep = place.path().join("kept");
    let kept = crash(&bad, &["--state", number, "--keep", keep.to_str().unwrap()]);
    assert_eq!(kept.code(), Some(0), "{kept:?}");
    assert!(kept.stdout.contains(line), "{kept:?}");
    assert_eq!(fs::read(keep.join("a")).unwrap(), b"", "{kept:?}");
    let again = crash(&bad, &["--state", number, "--keep", keep.to_str().unwrap()]);
    is_one_line(&again, 2, "already exists");
}

#[test]
fn a_replacement_done_right_passes_in_every_state_and_one_without_the_folder_at_its_end_fails() {
    let place = folder();
    let good = recorded(place.path(), "printf new > t; sync t; mv t a; sync .");
    let finished = crash(&good, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.starts_with("\nThe check passes in all of "), "{finished:?}");
    let late = recorded(place.path(), "printf new > t; sync t; mv t a");
    let finished = crash(&late, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stdout.contains("power lost after the program ended; "), "{finished:?}");
    let told = "
    lost     the rename to a
    check    ended with exit code 1
    fix      flush the folder (fsync) after the rename to a, before reporting
             success
";
    assert!(finished.stdout.contains(told), "{finished:?}");
}

#[test]
fn one_line_runs_a_program_and_checks_each_state_and_keeps_the_record_of_a_failure() {
    let place = folder();
    let (data, temporary) = (place.path().join("data"), place.path().join("tmp"));
    let run = |script: &str| {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&temporary).unwrap();
        fs::write(data.join("a"), "old").unwrap();
        let mut command = wrote(&["trace", "--check", OLD_OR_NEW, "--", "sh", "-c", script]);
        command.env("COLUMNS", "200");
        finish(command.current_dir(&data).env("TMPDIR", &temporary))
    };
    let good = run("printf new > t; sync t; mv t a; sync .");
    assert_eq!(good.code(), Some(0), "{good:?}");
    assert!(good.stderr.contains("\nThe check passes in all of "), "{good:?}");
    assert_eq!(fixtures::names(&temporary), [""; 0]);
    let bad = run("printf new > t; mv t a");
    assert_eq!(bad.code(), Some(1), "{bad:?}");
    assert!(bad.stderr.contains("wrote: the check fails in "), "{bad:?}");
    let line =
        bad.stderr.lines().find_map(|line| line.strip_prefix("    command  wrote ")).unwrap();
    let words = shlex::split(line).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = finish(wrote(&words).current_dir(place.path()));
    assert_eq!(again.code(), Some(0), "{again:?}");
    let failed = run("exit 3");
    assert_eq!(failed.code(), Some(3), "{failed:?}");
}

#[test]
fn reports_for_build_machines_have_the_smallest_state_and_the_line_of_the_lost_call() {
    or_skip!(installed("python3"));
    let place = folder();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), "old").unwrap();
    let save = "import os\nfor text in '1', '2', '3':\n    with open('t', 'a') as file:\n        \
        file.write(text)\nos.rename('t', 'a')\n";
    fs::write(place.path().join("a save.py"), save).unwrap();
    let check = "sh -c 'case $(cat DIR/a) in old | 123) ;; *) echo \"<torn> & \\\"50 %\\\"\"; exit 1 ;; esac'";
    let run = |format: &str, more: &[&str]| {
        let mut command = wrote(&["trace", "--force", "--format", format, "--check", check]);
        command.args(more).args(["--", "python3", "-SE", "../a save.py"]).current_dir(&data);
        finish(&mut command)
    };
    let [junit, sarif] = ["junit.xml", "a.sarif"].map(|name| place.path().join(name));
    let files = ["--junit", junit.to_str().unwrap(), "--sarif", sarif.to_str().unwrap()];
    let github = run("github", &files);
    assert_eq!(github.code(), Some(1), "{github:?}");
    let error = github.stderr.lines().next().unwrap();
    // Python writes at the end of the block that begins in this line.
    let begins = "::error file=../a save.py,line=3,title=wrote check-failed::Crash state ";
    assert!(error.starts_with(begins), "{github:?}");
    let told = ": a is truncated; the check ended with exit code 1: <torn> & \"50 %25\".";
    assert!(error.contains(told), "{error}");
    assert!(
        error.contains(". Fix: flush the file (fsync) after a write of 1 byte to a"),
        "{error}"
    );
    assert!(github.stderr.contains("\n::warning file="), "{github:?}");
    let junit = fs::read_to_string(junit).unwrap();
    let told = "<testsuite name=\"wrote trace\" tests=\"1\" failures=\"1\" errors=\"0\"";
    assert!(
        junit.contains(told) && junit.contains("&lt;torn&gt; &amp; &quot;50 %&quot;"),
        "{junit}"
    );
    let sarif: serde_json::Value = serde_json::from_slice(&fs::read(sarif).unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run_of = &sarif["runs"][0];
    assert_eq!(run_of["tool"]["driver"]["name"], "wrote");
    assert!(
        run_of["results"].as_array().unwrap().iter().all(|of| of["message"]["text"].is_string())
    );
    let result = &run_of["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"check-failed".into(), &"error".into()));
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["region"]["startLine"], 3);
    assert_eq!(location["artifactLocation"]["uri"], "../a%20save.py");
    // One of the three writes is lost.
    let json = place.path().join("trace.json");
    run("json", &["-o", json.to_str().unwrap()]);
    let trace: Trace = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let state = trace.crash.unwrap().failed.unwrap();
    assert_eq!((state.lost_changes, state.lost.len()), (1, 1), "{state:?}");
}

#[test]
fn states_for_which_there_is_no_time_or_whose_calls_were_not_seen_do_not_pass() {
    let place = folder();
    let record = recorded(place.path(), "for name in b c d; do printf x > $name; mv $name a; done");
    let slow = crash(&record, &["--check", "sh -c 'sleep 1000' DIR", "--within", "300ms"]);
    assert_eq!(slow.code(), Some(3), "{slow:?}");
    assert!(slow.stderr.contains("wrote: no time for all states: raise --within"), "{slow:?}");
    assert!(slow.stdout.contains("No time for "), "{slow:?}");
    // It is not known what a standard stream's file contained before the program started.
    let stream = fs::File::create(place.path().join("stream")).unwrap();
    let mut command = wrote(&["trace", "--check", "true", "--", "echo", "out"]);
    let unseen = command.current_dir(place.path()).stdout(stream).output().unwrap();
    assert_eq!(unseen.status.code(), Some(3), "{unseen:?}");
    let said = String::from_utf8(unseen.stderr).unwrap();
    assert!(said.contains("wrote: the check passes, but some writes "), "{said}");
}

#[test]
fn a_check_has_the_folder_wherever_it_is_named_and_is_told_by_the_line_of_its_error() {
    let place = folder();
    let record = recorded(place.path(), "printf new > t; sync t; mv t a");
    let finished = crash(&record, &["--check", "grep -qE 'old|new' DIR/a"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    // The data that the program wrote may be private.
    assert_eq!(fs::metadata(&record).unwrap().mode() & 0o777, 0o600);
    let is_private = "sh -c 'test $(stat -c %a DIR) = 700'";
    let finished = crash(&record, &["--check", is_private]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let says = "sh -c 'echo error: it is torn; echo see the manual; exit 3' DIR";
    let finished = crash(&record, &["--check", says, "--moments", "1"]);
    // The check fails, whatever a power loss has left.
    let told = "the check fails even without a power loss, on the folder as the program left it: ended \
                with exit code 3: error: it is torn\n";
    assert!(finished.stderr.contains(told), "{finished:?}");
    let of_shells = crash(&record, &["--check", "test -s DIR/a || true"]);
    is_one_line(&of_shells, 2, "'|' has no meaning in it");
}

#[test]
fn states_have_what_was_appended_in_spite_of_an_offset_and_what_was_stored_before_a_flush() {
    or_skip!(installed("python3"));
    let place = folder();
    let script = "exec python3 -c 'import mmap, os
a = os.open(\"a\", os.O_RDWR | os.O_APPEND); os.pwrite(a, b\" new\", 0)
stored = mmap.mmap(a, 3); stored[0:3] = b\"one\"; stored.close(); os.fsync(a)'";
    let record = recorded(place.path(), script);
    let check = "sh -c 'test $WROTE_ANSWERS = 0 || grep -qx \"one new\" \"$0/a\"'";
    let finished = crash(&record, &["--check", check]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

#[test]
fn a_check_that_changes_a_large_file_meets_it_whole_in_the_next_state() {
    let place = folder();
    fs::create_dir(place.path().join("data")).unwrap();
    fs::write(place.path().join("data/large"), [1; 100_000]).unwrap();
    let record = recorded(place.path(), "for name in b c d; do printf x > $name; sync $name; done");
    let check = "sh -c 'test $(wc -c < DIR/large) = 100000 && printf y >> DIR/large'";
    let finished = crash(&record, &["--check", check]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

#[test]
fn a_check_that_hangs_or_is_not_there_is_told_and_leaves_nothing() {
    let place = folder();
    let record = recorded(place.path(), "printf new > t; mv t a");
    let temporary = place.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |check: &str, more: &[&str]| {
        let mut command = wrote(&["trace", "crash"]);
        command.arg(&record).args(["--check", check]).args(more).env("TMPDIR", &temporary);
        finish(&mut command)
    };
    let hangs = run("sh -c 'sleep 1000'", &["--timeout", "0.2s", "--moments", "1"]);
    assert_eq!(hangs.code(), Some(2), "{hangs:?}");
    assert!(hangs.stderr.contains("left it: did not end within 200 ms"), "{hangs:?}");
    is_one_line(&run("/no/such/check", &[]), 2, "/no/such/check");
    is_one_line(&run("'", &[]), 2, "--check");
    is_one_line(&run("true", &["--state", "100000"]), 2, "--state 100000: the record has only ");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_record_past_its_bound_and_a_foreign_file_are_one_line() {
    let place = folder();
    let record = place.path().join("record");
    let mut command = wrote(&["trace", "--record-max", "10kB", "--record"]);
    command.arg(&record).args(["sh", "-c", "head -c 20000 /dev/zero > b; exit 3"]);
    let finished = finish(command.current_dir(place.path()));
    // The program runs to its end, and its exit code is passed on.
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    let last = finished.stderr.lines().last().unwrap();
    assert!(last.contains("exceed 10.0 kB; record less"), "{finished:?}");
    assert!(!record.exists());
    is_one_line(&crash(&record, &["--check", "true"]), 2, "record: does not exist");
    fs::write(&record, "{}").unwrap();
    is_one_line(&crash(&record, &["--check", "true"]), 1, "record: not a record");
}

#[test]
fn a_link_that_is_switched_by_a_rename_leaves_either_link_and_no_file() {
    let place = folder();
    let record = recorded(place.path(), "ln -s b l; sync .; ln -s a t; mv -T t l");
    let check = "sh -c 'test ! -e \"$0/l\" -a ! -L \"$0/l\" || readlink \"$0/l\"'";
    let finished = crash(&record, &["--check", check]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

#[test]
fn a_name_that_is_called_durable_is_in_each_state_after_the_end_and_another_in_some_not() {
    // These are the scripts of `names_of_a_file_survive_each_for_itself`.
    for (script, name, is_durable) in NAMES {
        let place = folder();
        let record = recorded(place.path(), script);
        let check = format!("sh -c 'test $WROTE_ANSWERS = 0 || test -s \"$0/{name}\"'");
        let finished = crash(&record, &["--check", &check]);
        let code = if is_durable { 0 } else { 1 };
        assert_eq!(finished.code(), Some(code), "{script}: {name}: {finished:?}");
    }
}
