//! Tests of program files, and of the scenario on this machine's disk.

use super::{FitRequest, Neighbour, Program, all, find, fit};
use crate::scenario::Scenario as _;
use crate::scenarios::Ladder;
use fixtures::folder;
use std::path::Path;
use std::time::Duration;
use wrote_jobs::steps::{Counts, Running, Steps};
use wrote_result::document::{FitVerdict, Torn};
use wrote_result::{Error, Stop};

#[test]
fn every_embedded_program_is_found_by_its_name() {
    for program in all() {
        assert_eq!(find(&program.name).unwrap().version, program.version);
    }
}

#[test]
fn every_rule_has_its_kind_an_address_and_the_month_in_which_it_was_read() {
    for rule in all().into_iter().flat_map(|program| program.rules) {
        let kind = rule.kind.as_deref();
        assert!(matches!(kind, Some("official" | "operator")), "{rule:?}");
        assert!(rule.source.starts_with("https://"), "{rule:?}");
        assert!(rule.date.as_ref().is_some_and(|date| date.starts_with("20")), "{rule:?}");
    }
}

#[test]
fn pages_of_innodb_are_never_torn_by_a_double_write_or_by_atomic_writes() {
    let torn = |name: &str| {
        let pattern = find("mysql").unwrap().patterns.into_iter().find(|of| of.name == name);
        pattern.unwrap().torn
    };
    assert_eq!(["doublewrite", "no-doublewrite"].map(torn), [Some(Torn::Never); 2]);
    assert_eq!(torn("redo-1"), None);
}

#[test]
fn an_unknown_program_is_answered_with_the_near_one() {
    let refused = find("sqlit").unwrap_err().to_string();
    assert!(refused.ends_with("did you mean 'sqlite'?"), "{refused}");
}

/// A program with a single pattern: a log with flushed records.
const MINE: &str = r#"
    name = "mine"
    version = "1"
    about = "a log"
    [[pattern]]
    name = "wal"
    label = "WAL"
    source = ["mine.c: append"]
    [pattern.job]
    files = [{ name = "wal", bytes = 65536 }]
    each = [{ call = "write", file = "wal", bytes = 100 }, { call = "fdatasync", file = "wal" }]
    [[rule]]
    pattern = "wal"
    name = "flush P99 < 1 h"
    of = "flush_p99_ns"
    most = 3.6e12
    says = "a test"
    source = "none"
"#;

fn request(program: Program, path: &Path) -> FitRequest {
    FitRequest {
        programs: vec![program],
        path: path.into(),
        time: Some(Duration::from_millis(600)),
        runs: Some(3),
        sustained: None,
        neighbours: Vec::new(),
        neighbour_path: None,
        command: Vec::new(),
        commit: None,
    }
}

/// Writes a program's file into `folder`, and reads the program from it.
fn own(text: &str, folder: &Path) -> Result<Program, Error> {
    let file = folder.join("mine.toml");
    std::fs::write(&file, text).unwrap();
    find(file.to_str().unwrap())
}

#[test]
fn a_users_file_is_measured_and_judged_and_a_live_folder_stays_as_it_is() {
    let place = folder();
    let program = own(MINE, place.path()).unwrap();
    // W7: the folder is in use, and contains a file with the name of the pattern's file.
    std::fs::write(place.path().join("wal"), "theirs").unwrap();
    let document = fit(&request(program, place.path()), &Stop::new(), &mut ()).unwrap();
    let judged = &document.fit.as_ref().unwrap()[0];
    assert_eq!(judged.verdict, Some(FitVerdict::Fits));
    assert_eq!((judged.rules[0].row.as_str(), judged.rules.len()), ("mine/wal", 2));
    assert_eq!(document.scenarios[0].rows[0].runs.len(), 3);
    assert_eq!(fixtures::names(place.path()), ["mine.toml", "wal"]);
    assert_eq!(std::fs::read_to_string(place.path().join("wal")).unwrap(), "theirs");
}

#[test]
fn each_neighbour_has_a_row_in_the_same_rounds_and_leaves_nothing() {
    let (place, elsewhere) = (folder(), folder());
    let program = own(MINE, place.path()).unwrap();
    let neighbours = Neighbour::ALL.map(|(.., of)| of).to_vec();
    // RWF_DONTCACHE needs Linux 6.14.
    let neighbours = neighbours.into_iter().filter(|of| *of != Neighbour::Dontcache).collect();
    let neighbour_path = Some(elsewhere.path().into());
    let request = FitRequest { neighbours, neighbour_path, ..request(program, place.path()) };
    let document = fit(&request, &Stop::new(), &mut ()).unwrap();
    let rule = &document.fit.as_ref().unwrap()[0].rules[0];
    let beside: Vec<&str> = rule.beside.iter().map(|of| of.neighbour.as_str()).collect();
    assert_eq!(beside, ["copy", "copy-idle", "copy-paced", "sync", "direct", "unlink", "reads"]);
    let rate = &document.fit.as_ref().unwrap()[0].rules[1];
    assert!(rate.of == "iops" && rate.beside.iter().all(|of| of.ratio.median > 0.0), "{rate:?}");
    // On a slow disk, the runs have too few flushes for a P99.
    assert!(rule.beside.iter().all(|of| of.here.ci95_high > 0.0), "{rule:?}");
    // Under background load, the I/O of other programs is what the question is about.
    let is_sampled = |row: usize| document.scenarios[0].rows[row].runs[0].foreign_share.is_some();
    assert_eq!([is_sampled(0), is_sampled(1)], [true, false]);
    let rows = document.scenarios[0].rows.iter().map(|row| (row.name.as_str(), row.runs.len()));
    let rows: Vec<_> = rows.collect();
    assert_eq!((rows.len(), rows[0], rows[1]), (8, ("mine/wal", 3), ("mine/wal+copy", 3)));
    assert_eq!(fixtures::names(place.path()), ["mine.toml"]);
    assert!(fixtures::names(elsewhere.path()).is_empty());
}

#[test]
fn a_burst_is_used_up_first_and_the_result_has_its_course() {
    let place = folder();
    let program = own(MINE, place.path()).unwrap();
    let sustained = Some(Duration::from_millis(300));
    let request = FitRequest { sustained, ..request(program, place.path()) };
    let document = fit(&request, &Stop::new(), &mut ()).unwrap();
    let names = document.scenarios.iter().map(|scenario| scenario.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["sustained", "fit"]);
    assert!(document.scenarios[0].rows[0].sustained.is_some());
    assert_eq!(document.fit.as_ref().unwrap()[0].rules[0].row, "mine/wal");
    assert_eq!(fixtures::names(place.path()), ["mine.toml"]);
}

#[test]
fn several_programs_stand_in_one_table_and_a_rule_may_be_for_each_cpu() {
    let place = folder();
    let mine = own(MINE, place.path()).unwrap();
    let theirs = MINE.replace("name = \"mine\"", "name = \"theirs\"");
    let theirs = theirs.replace("most = 3.6e12", "most = 3.6e12\nper_cpu = true");
    let theirs = own(&theirs, place.path()).unwrap();
    let request =
        FitRequest { programs: vec![mine, theirs], ..request(all().remove(0), place.path()) };
    let document = fit(&request, &Stop::new(), &mut ()).unwrap();
    let rows =
        document.scenarios[0].rows.iter().map(|row| (row.workload.as_str(), row.way.as_str()));
    let expected = [("programs", "mine: WAL"), ("programs", "theirs: WAL")];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let fits = document.fit.unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    assert_eq!(fits[1].rules[0].most, Some(3.6e12 * cpus));
}

#[test]
fn a_file_that_makes_no_sense_is_refused_with_its_fault() {
    let place = folder();
    let refused = |from: &str, to: &str| {
        let error = own(&MINE.replacen(from, to, 1), place.path()).unwrap_err().to_string();
        assert!(error.starts_with(place.path().to_str().unwrap()), "{error}");
        error
    };
    assert!(refused("most = ", "mots = ").contains("line 16: unknown field `mots`"));
    assert!(refused("most = 3.6e12", "").ends_with("give a limit, most or least"));
    assert!(refused("of = \"flush_p99_ns\"", "of = \"p99\"").contains("must be one of"));
    assert!(refused("call = \"fdatasync\"", "call = \"close\"").ends_with("never flushes"));
    assert!(refused("pattern = \"wal\"", "pattern = \"log\"").contains("no pattern \"log\""));
}

/// Returns the numbers of calls in this many transactions of a pattern of a program.
fn counts(program: &str, pattern: &str, transactions: u64) -> Counts {
    let place = folder();
    let program = find(program).unwrap();
    let pattern = program.patterns.iter().find(|of| of.name == pattern).unwrap();
    // Concurrent threads are left out, because the number of their calls would depend on time.
    let job = Steps { beside: Vec::new(), ..pattern.job.clone() };
    let path = |name: &str, set: u32| place.path().join(format!("{name}{set}"));
    let running = Running::new(&job, &path, 1).unwrap();
    running.run(Duration::from_secs(600), transactions, &Stop::new()).unwrap().counts
}

#[test]
fn a_pattern_makes_as_many_calls_as_a_trace_of_the_program_has() {
    let near = |ours: u64, traced: u64| ours.abs_diff(traced) * 20 <= traced;
    // The traces are quoted in the file of each program.
    for (program, pattern, transactions, writes, flushes) in [
        ("sqlite", "rollback-full", 1000, 10_032, 4004),
        ("sqlite", "wal-full", 1000, 2160, 1012),
        ("etcd", "wal", 1000, 1000, 1000),
        ("postgresql", "wal-1", 1024, 1024, 1024),
        ("postgresql", "wal-1-dsync", 1024, 1030, 0),
        ("postgresql", "checkpoint", 146, 4665, 28),
        ("redis", "aof-always", 2000, 2000, 2000),
        ("redis", "aof-everysec", 2000, 2000, 0),
        ("mysql", "redo-1", 1000, 1002, 1002),
        ("mysql", "doublewrite", 10, 160, 20),
        ("rocksdb", "wal-sync", 2000, 2000, 2000),
        ("rocksdb", "wal", 2000, 2000, 0),
        ("nats", "jetstream", 1000, 1000, 1000),
        ("cockroachdb", "wal-1", 1000, 1012, 1000),
        ("prometheus", "wal", 38, 39, 0),
        ("git", "commit", 20, 180, 0),
        ("git", "commit-fsync", 20, 180, 60),
        ("wrote-log", "append", 200, 206, 0),
        ("bench", "fdatasync-each", 1000, 1000, 1000),
        ("bench", "o-dsync-each", 1000, 1000, 0),
    ] {
        let counts = counts(program, pattern, transactions);
        let is_near = near(counts.writes, writes) && near(counts.flushes, flushes);
        assert!(is_near, "{program} {pattern}: {counts:?}, traced {writes} and {flushes}");
    }
    assert!(near(counts("sqlite", "wal-normal", 1000).writes, 2160));
}

#[test]
fn the_patterns_of_bench_are_its_durable_rows_of_small_writes() {
    let rows = Ladder::default().catalogue().into_iter().filter(|listed| {
        listed.survives == Some(wrote::Survives::PowerLoss) && listed.row.starts_with("small/")
    });
    let each = rows.map(|listed| listed.row["small/".len()..].replace('_', "-"));
    let each: Vec<String> = each.filter(|row| row.contains("-each")).collect();
    let patterns: Vec<String> =
        find("bench").unwrap().patterns.into_iter().map(|pattern| pattern.name).collect();
    assert_eq!(patterns.len(), each.len(), "{each:?}");
    assert!(patterns.iter().all(|pattern| each.contains(pattern)), "{patterns:?}, {each:?}");
}

#[test]
fn every_program_has_a_row_and_the_example_of_the_page_is_a_program() {
    let page = include_str!("../../../../docs/fit-programs.md");
    for program in all() {
        let row = format!("| `{}`", program.name);
        assert!(page.lines().any(|line| line.starts_with(&row)), "{} has no row", program.name);
    }
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let program = own(example.expect("the page has an example"), folder().path()).unwrap();
    assert_eq!((program.patterns[0].job.clients, program.rules.len()), (4, 1));
}
