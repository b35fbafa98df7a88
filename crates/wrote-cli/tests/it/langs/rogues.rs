//! Programs that crash, lie or write elsewhere, one of each kind. Each is named with a reason and
//! has no row; the honest one beside them has all its rows.
//!
//! One run has all of them, and the tests examine its outcome.

use crate::langs::scene::{Scene, assert_says, document, failures, row, text, workload, workloads};
use fixtures::{finish, names};
use std::fs;
use std::sync::LazyLock;
use wrote_result::langs::Document;

/// A rogue: its id, its tasks, and the functions that differ from the honest program's.
type Rogue = (&'static str, &'static str, &'static str);

/// The rogues. `ASIDE` is a folder of the test, beside the run's.
const ROGUES: [Rogue; 7] = [
    ("crash", "lines", "on_lines() { echo 'out of cheese' >&2; exit 3; }"),
    ("garbage", "lines", "on_answer() { echo 'all is well'; }"),
    ("wrong-byte", "bytes-write bytes-read", "on_write() { write_bytes; put x 2500; }"),
    ("links", "bytes-write bytes-read", "on_write() { ln -s -f ASIDE/victim \"$path\"; }"),
    ("wrong-sum", "bytes-write bytes-read", "on_read() { sum=1; }"),
    ("few-timings", "save", "on_answer() { timings=${timings%%,*}; answer; }"),
    ("wrong-text", "save", "on_save() { text=${text#a}b; save_text; }"),
];

/// Overwrites the byte at an offset.
const PUT: &str =
    r#"put() { printf "$1" | dd of="$path" bs=1 seek="$2" conv=notrunc status=none; }"#;

/// The outcome of the run of all of them.
struct Lineup {
    document: Document,
    /// The notes beside the result.
    stderr: String,
    /// The entries left in their folder, and their living processes.
    left: (Vec<String>, Vec<String>),
    /// The target of the symbolic link that a rogue made in place of its file.
    victim: Vec<u8>,
}

static LINEUP: LazyLock<Lineup> = LazyLock::new(lineup);

fn lineup() -> Lineup {
    let scene = Scene::new();
    scene.honest();
    let aside = scene.beside("aside");
    fs::create_dir(&aside).expect("a folder");
    // The exact bytes that the rogue must write.
    fs::write(aside.join("victim"), values(5000)).expect("a file");
    for (id, tasks, otherwise) in ROGUES {
        let otherwise = otherwise.replace("ASIDE", text(&aside));
        scene.rogue(id, &format!("{PUT}\n{otherwise}"), tasks);
    }
    let ids: Vec<&str> = ROGUES.iter().map(|rogue| rogue.0).chain(["honest"]).collect();
    let little = "--size 5000 --runs 2 --saves 3 --lines 20 --format json";
    let finished = finish(&mut scene.langs(&ids, little));
    Lineup {
        document: document(&finished),
        stderr: finished.stderr,
        left: (names(&scene.target()), scene.processes()),
        victim: fs::read(aside.join("victim")).expect("the victim"),
    }
}

/// Returns the bytes that `bytes-write` writes.
fn values(size: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(size).collect()
}

/// Asserts that a rogue has failures in a table, and that each is one line with these words.
fn caught(id: &str, workload: &str, words: &[&str]) {
    let table = self::workload(&LINEUP.document, workload);
    let of = table.failures.iter().filter(|failure| failure.language == id);
    let lines: Vec<&str> = of.map(|failure| failure.because.as_str()).collect();
    let [line] = lines[..] else { panic!("{id} in {workload}: {lines:?}") };
    assert_says(line, words);
}

#[test]
fn every_rogue_has_a_failure_and_no_row_where_it_failed() {
    for (id, ..) in ROGUES {
        assert!(!failures(&LINEUP.document, id).is_empty(), "{id}: {:?}", LINEUP.document);
        for workload in workloads(&LINEUP.document) {
            let failed = workload.failures.iter().filter(|failure| failure.language == id).count();
            let measured = workload.rows.iter().filter(|row| row.language == id).count();
            assert!(failed + measured <= 1, "{id}: {workload:?}");
        }
    }
}

#[test]
fn the_honest_one_beside_them_has_a_row_in_every_table() {
    let mut tables = vec!["bytes/write", "bytes/read"];
    tables.extend(["save/500", "save/1000", "save/2000", "save/10000"]);
    tables.extend(["save-sync/500", "save-sync/1000", "save-sync/2000", "save-sync/10000"]);
    tables.push("lines");
    let found: Vec<&str> =
        workloads(&LINEUP.document).iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(found, tables);
    for name in tables {
        let row = row(workload(&LINEUP.document, name), "honest");
        assert!(row.throughput_bytes_per_s.median > 0.0, "{row:?}");
    }
    assert!(failures(&LINEUP.document, "honest").is_empty(), "{:?}", LINEUP.document);
}

#[test]
fn a_task_that_a_language_does_not_do_is_no_failure_of_its() {
    for (id, tasks, _) in ROGUES {
        let wanted: Vec<&str> =
            tasks.split(' ').map(|task| task.split("-w").next().unwrap_or(task)).collect();
        for workload in workloads(&LINEUP.document) {
            let table = workload.name.split('/').next().unwrap_or_default();
            let named = workload.failures.iter().any(|failure| failure.language == id)
                || workload.rows.iter().any(|row| row.language == id);
            assert!(!named || wanted.contains(&table), "{id}: {workload:?}");
        }
    }
}

#[test]
fn failures_are_told_beside_the_result_as_well() {
    for (id, ..) in ROGUES {
        assert!(LINEUP.stderr.contains(&format!("The {id} one")), "{id}: {}", LINEUP.stderr);
    }
    assert!(!LINEUP.stderr.contains("The honest one"), "{}", LINEUP.stderr);
}

#[test]
fn nothing_is_left_of_rogues() {
    assert_eq!(LINEUP.left, (vec![], vec![]));
}

#[test]
fn a_failure_is_named_with_what_the_program_did() {
    caught("crash", "lines", &["ended with exit code 3: out of cheese"]);
    caught("garbage", "lines", &["all is well"]);
    caught("wrong-byte", "bytes/write", &["byte 2500", "120", "196"]);
    caught("wrong-sum", "bytes/read", &["says that the sum of the bytes is 1, and it is 629340"]);
    caught("few-timings", "save/500", &["1", "3"]);
    caught("wrong-text", "save/500", &["byte 0"]);
}

#[test]
fn a_symbolic_link_in_place_of_the_file_is_no_file_and_what_it_leads_to_is_let_alone() {
    // W7
    caught("links", "bytes/write", &["symbolic link"]);
    assert_eq!(LINEUP.victim, values(5000));
}

#[test]
fn files_that_a_program_makes_beside_its_own_are_left_and_told() {
    let beside = "on_lines() { append_lines; echo theirs > \"${path%/*}/theirs\"; }";
    let (document, left) = littered(beside);
    assert_eq!(left, "theirs");
    // The rogue wrote its own file correctly.
    row(workload(&document, "lines"), "litter");
}

#[test]
fn a_folder_in_place_of_the_file_is_left_and_told_and_the_others_write_elsewhere() {
    let (document, left) =
        littered("on_lines() { rm \"$path\"; mkdir \"$path\"; echo theirs > \"$path/theirs\"; }");
    assert!(left.ends_with(".data/theirs"), "{left}");
    let [failure] = failures(&document, "litter")[..] else { panic!("{document:?}") };
    assert_says(&failure.because, &["folder in place of the file"]);
}

/// Runs a rogue before and after an honest one. Returns the result, and the one remaining file
/// `theirs`.
fn littered(otherwise: &str) -> (Document, String) {
    let scene = Scene::new();
    scene.honest();
    scene.rogue("litter", otherwise, "lines");
    let little = "--workloads lines --lines 20 --runs 2 --format json";
    let finished = finish(&mut scene.langs(&["litter", "honest"], little));
    let document = document(&finished);
    row(workload(&document, "lines"), "honest");
    let run = names(&scene.target());
    let [run] = &run[..] else { panic!("{run:?}: {finished:?}") };
    assert!(finished.stderr.contains(run.as_str()), "{finished:?}");
    let folder = scene.target().join(run);
    let [left] = &names(&folder)[..] else { panic!("{:?}", names(&folder)) };
    let left = if folder.join(left).is_dir() { format!("{left}/theirs") } else { left.clone() };
    assert_eq!(fs::read_to_string(folder.join(&left)).expect("it is left"), "theirs\n");
    (document, left)
}
