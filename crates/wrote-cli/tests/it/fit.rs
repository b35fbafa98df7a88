//! Tests of `wrote fit`: its exit codes for verdicts, its lists and refusals, and what it leaves
//! behind.

use crate::support::{until_it_writes, wrote};
use crate::text::screen::assert_lines_fit;
use fixtures::{Finished, Running, finish, folder, names};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use wrote_result::document::Document;

/// Runs `wrote fit` in `folder` with a program that the user defines: a log with a rule about
/// flushes.
fn own(folder: &Path, rule: &str, more: &[&str]) -> Finished {
    let file = folder.join("mine.toml");
    let text = format!(
        r#"
        name = "mine"
        version = "1"
        about = "a log"
        [[pattern]]
        name = "wal"
        label = "WAL"
        source = ["mine.c: append"]
        [pattern.job]
        files = [{{ name = "wal", bytes = "64KiB" }}]
        each = [
            {{ call = "write", file = "wal", bytes = 100 }},
            {{ call = "fdatasync", file = "wal" }},
        ]
        {rule}
        "#
    );
    fs::write(&file, text).unwrap();
    let place = folder.join("data");
    let mut command = wrote(&["fit"]);
    command.arg(&file).arg(&place).args(["--time", "1s", "--runs", "3"]).args(more);
    finish(&mut command)
}

fn rule(limit: &str) -> String {
    format!(
        "[[rule]]\npattern = \"wal\"\nname = \"flush P99\"\nof = \"flush_p99_ns\"\n{limit}\n\
         says = \"a test\"\nsource = \"none\""
    )
}

#[test]
fn the_exit_code_is_the_verdict_and_a_live_folder_stays_as_it_is() {
    let place = folder();
    // W7
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("wal"), "theirs").unwrap();
    let fits = own(place.path(), &rule("most = 3.6e12"), &["--quiet"]);
    assert_eq!((fits.code(), fits.stderr.as_str()), (Some(0), ""), "{fits:?}");
    assert!(fits.stdout.contains("\nmine 1 on "), "{}", fits.stdout);
    // Under background load, a disk is judged even if other programs use it.
    let fails = own(place.path(), &rule("most = 1.0"), &["--quiet", "--beside", "sync"]);
    let line = format!("wrote: mine on {}: DOES NOT FIT (", data.display());
    assert!(fails.code() == Some(1) && fails.stderr.starts_with(&line), "{fails:?}");
    let figures = own(place.path(), "", &["--quiet", "--format", "json"]);
    assert_eq!(
        (figures.code(), figures.stderr.as_str()),
        (Some(4), &*format!("wrote: mine on {}: no rule is published\n", data.display()))
    );
    let document: Document = serde_json::from_str(&figures.stdout).unwrap();
    let fit = &document.fit.as_ref().unwrap()[0];
    assert_eq!((fit.verdict, fit.rules.len()), (None, 3));
    assert!(fit.rules.iter().all(|rule| rule.here.median > 0.0), "{fit:?}");
    assert_eq!(names(&data), ["wal"]);
    assert_eq!(fs::read_to_string(data.join("wal")).unwrap(), "theirs");
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing_and_has_no_verdict() {
    let place = folder();
    let mut command = wrote(&["fit", "etcd"]);
    command.arg(place.path()).args(["--time", "10min"]);
    let mut run = Running::start(&mut command);
    until_it_writes(&mut run, place.path());
    run.send(Signal::TERM);
    let finished = run.finish();
    assert_eq!(finished.code(), Some(143), "{finished:?}");
    assert!(finished.stderr.ends_with("wrote: interrupted\n"), "{finished:?}");
    assert!(names(place.path()).is_empty());
}

#[test]
fn a_program_is_printed_as_a_file_that_can_be_changed_and_run() {
    let shown = finish(&mut wrote(&["fit", "--show", "sqlite"]));
    assert_eq!((shown.code(), shown.stderr.as_str()), (Some(0), ""));
    let place = folder();
    let file = place.path().join("mine.toml");
    fs::write(&file, shown.stdout.replace("name = \"sqlite\"", "name = \"mine\"")).unwrap();
    let again = finish(wrote(&["fit", "--show"]).arg(&file));
    assert!(again.stdout.contains("rollback journal, FULL"), "{again:?}");
    let list = finish(&mut wrote(&["fit", "--list"])).stdout;
    for program in wrote_bench::fit::all() {
        assert!(list.lines().any(|line| line.starts_with(&program.name)), "{list}");
    }
    for command in ["fit", "bench"] {
        let list = finish(wrote(&[command, "--list"]).env("COLUMNS", "80")).stdout;
        assert_lines_fit(&list, 80);
    }
}

#[test]
fn bad_input_gets_one_line() {
    let refused = |arguments: &[&str]| {
        let finished = finish(wrote(&["fit"]).args(arguments));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        finished.complaint().to_owned()
    };
    assert!(refused(&["ectd"]).ends_with("no such program; did you mean 'etcd'?"));
    assert!(refused(&["zzz"]).ends_with("'wrote fit --list' lists what there is"));
    assert!(refused(&["./none.toml"]).contains("./none.toml: No such file"));
    assert!(refused(&["etcd", "/no/such/folder"]).contains("does not exist"));
    assert!(refused(&["etcd", "--neighbour", "/tmp"]).contains("--beside"));
    let elsewhere = ["etcd", "--beside", "copy", "--neighbour", "/no/such/folder"];
    assert!(refused(&elsewhere).ends_with("/no/such/folder: does not exist"));
    assert!(refused(&["etcd", "--runs", "0"]).contains("--runs"));
    assert!(refused(&["etcd", "--runs", "2"]).ends_with("a verdict needs 3 or more"));
    assert!(refused(&["etcd", "--beside", "copi"]).contains("'copy'"));
    assert!(refused(&[]).contains("a program: bench, "));
    assert!(refused(&["etcd", "--list"]).contains("--list"));
    assert!(refused(&["--all", "/no/such/folder"]).contains("/no/such/folder"));
    assert!(refused(&["etcd", "--sustained=soon"]).contains("--sustained"));
}

#[test]
fn a_time_too_short_for_all_runs_is_refused_with_the_least() {
    let place = folder();
    let mut command = wrote(&["fit", "etcd", "--time", "100ms", "--beside", "copy", "--quiet"]);
    let finished = finish(command.arg(place.path()));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    let line = finished.complaint();
    assert!(line.contains("--time 0.1s is too short for 3 runs of 6 rows"), "{line}");
    assert!(line.ends_with(" or more"), "{line}");
    assert!(names(place.path()).is_empty());
}

#[test]
fn the_page_of_a_verdict_has_its_table() {
    let place = folder();
    fs::create_dir(place.path().join("data")).unwrap();
    let page = place.path().join("fit.html");
    let html = page.to_str().unwrap();
    own(place.path(), &rule("most = 3.6e12"), &["--quiet", "--html", html]);
    let text = fs::read_to_string(&page).unwrap();
    for said in ["suit mine?", "flush P99", "a test", ">fits<"] {
        assert!(text.contains(said), "{said:?} is not in the page");
    }
}
