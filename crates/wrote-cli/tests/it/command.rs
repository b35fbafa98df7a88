//! Tests of `wrote bench` and `wrote clean`: the result on standard output, messages on standard
//! error, and nothing left behind.

use crate::support::{
    bench, document, findings, job_files, row, run_folders, survived, terminal, until_it_writes,
    wrote,
};
use crate::text::screen::assert_lines_fit;
use fixtures::{Running, finish, folder, names, skip, skip_here};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wrote_bench::{Listed, catalogue};
use wrote_result::document::{Blocks, Direction, Document, Row, Settings};
use wrote_result::quoted;

const MIB: u64 = 1 << 20;

/// A run that finishes almost immediately.
const SHORT: &str = "--only small/cached --size 64KiB --runs 1 --iodepth 1";
/// A benchmark that continues until a test stops it: 50 runs of 50,000 flushed writes.
const LONG: &str = "--only small/fdatasync-each --size 200M --runs 50 --time 30s --iodepth 1";

#[test]
fn the_ladder_is_a_document_on_stdout_alone_and_leaves_nothing() {
    let folder = folder();
    let finished =
        finish(&mut bench(folder.path(), "--size 2MiB --time 60s --runs 2 --format json"));
    let document = document(&finished);
    let said: Vec<&str> = finished.stderr.lines().collect();
    // If the disk is slow, there are lines about the progress.
    let is_progress = |line: &&str| line.starts_with("run ");
    assert!(said[0].starts_with("Measuring ") && said[1..].iter().all(is_progress), "{said:?}");
    assert!(said[0].contains(&format!("{}/.wrote-", folder.path().display())), "{said:?}");
    assert_eq!(names(folder.path()), [""; 0]);

    assert_eq!(document.schema, "wrote.result/1");
    assert_eq!(document.target.path, folder.path().display().to_string());
    let rows = &document.scenarios[0].rows;
    assert_eq!((document.scenarios.len(), document.scenarios[0].name.as_str()), (1, "ladder"));
    let listed: Vec<&str> = ladder_rows().iter().map(|listed| listed.row).collect();
    let measured: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(measured, listed);
    for row in rows {
        assert_measured_as_asked(row);
    }
    for workload in ["stream", "small"] {
        let of_workload = rows.iter().filter(|row| row.workload == workload);
        assert!(of_workload.map(survived).is_sorted(), "{workload}");
    }
    device_saw_what_was_written_directly(&document);
}

/// Returns the rows measured by default.
fn ladder_rows() -> Vec<Listed> {
    catalogue().into_iter().filter(|listed| listed.scenario == "ladder").collect()
}

#[test]
fn grids_are_measured_when_they_are_asked_for_and_leave_nothing() {
    let folder = folder();
    let arguments = "--only peak/read,rand/mix --size 4MiB --time 60s --runs 2 --format json";
    let document = document(&finish(&mut bench(folder.path(), arguments)));
    let scenarios: Vec<&str> = document.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(scenarios, ["peak", "rand"]);
    for row in document.scenarios.iter().flat_map(|scenario| &scenario.rows) {
        assert!(row.name.starts_with("peak/read/") || row.name.starts_with("rand/mix/"));
        // M9, M3: reads are of written blocks, and only writes survive something.
        let is_read = row.direction == Direction::Read;
        assert_eq!(
            (row.settings.effective.blocks, row.survives.is_none()),
            (Blocks::Written, is_read)
        );
        assert_eq!(row.runs.len(), 2, "{}", row.name);
        assert!(row.runs.iter().all(|run| run.bytes > 0 && run.bytes <= 4 << 20), "{}", row.name);
        assert_eq!(row.latency_ns.unwrap().count, operations(row), "{}", row.name);
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn pages_are_measured_with_whether_they_may_be_torn_and_an_answer() {
    let folder = folder();
    let only = "pages/plain-16k-16,pages/doublewrite-16k-1,pages/doublewrite-16k-16,pages/atomic";
    let arguments = format!("--only {only} --time 50ms --runs 2");
    let finished = finish(bench(folder.path(), &arguments).env("COLUMNS", "80"));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    // A path is not wrapped, however long it is.
    let text = finished.stdout.replace(&folder.path().display().to_string(), "/data");
    assert_lines_fit(&text, 80);
    assert!(text.contains("\nTORN "), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["BS x CLIENTS", "possible", "never", "Never torn, 16 KiB, 16 clients"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // If atomic writes are not supported, one line reports that.
    let skipped = finished.stderr.lines().filter(|line| line.contains("skipped")).count();
    assert!(skipped <= 1, "{}", finished.stderr);
    assert_eq!(text.contains("no atomic writes here"), skipped == 1, "{text}");
    assert_eq!(names(folder.path()), [""; 0]);
    for (format, heading) in [("csv", ",survives,torn,"), ("markdown", "torn")] {
        let one = format!("--only pages/plain-4k-1 --time 20ms --runs 1 --format {format}");
        let text = finish(&mut bench(folder.path(), &one)).stdout;
        assert!(text.contains(heading) && text.contains("possible"), "{text}");
    }
    let list = finish(&mut wrote(&["bench", "--list", "--only", "pages"])).stdout;
    assert!(list.contains("pages/doublewrite") && list.contains("pages/atomic"), "{list}");
}

/// Returns the number of operations of all runs, computed from their bytes.
fn operations(row: &Row) -> u64 {
    row.runs.iter().map(|run| run.bytes / row.settings.asked.bs_bytes).sum()
}

/// Asserts that a row has two complete runs of 2 MiB, and reports its settings in effect (M6).
fn assert_measured_as_asked(row: &Row) {
    let listed = catalogue().into_iter().find(|listed| listed.row == row.name).expect("listed");
    assert!(survived(row) <= listed.survives.expect("a write"), "{row:?}");
    assert_eq!((row.runs.len(), row.bytes_per_run), (2, 2 * MIB), "{row:?}");
    let (asked, effective) = (&row.settings.asked, &row.settings.effective);
    assert_eq!(row.latency_ns.unwrap().count, 2 * 2 * MIB / effective.bs_bytes, "{row:?}");
    for run in &row.runs {
        assert_eq!(run.bytes, 2 * MIB, "{row:?}");
        assert!(run.elapsed_s > 0.0 && run.throughput_bytes_per_s > 0.0, "{row:?}");
        assert!((1..=asked.iodepth).contains(&run.iodepth_reached), "{row:?}");
    }
    let deepest = row.runs.iter().map(|run| run.iodepth_reached).max();
    assert_eq!(Some(effective.iodepth), deepest, "{row:?}");
    let latency = row.latency_ns.unwrap();
    let percentiles =
        [latency.min, latency.p50, latency.p90, latency.p95, latency.p99, latency.p99_9];
    assert!(percentiles.is_sorted() && latency.p99_9 <= latency.max, "{row:?}");
    // If a setting differs from the request, there is a reason; if it is equal, there is none.
    let iodepth = asked.iodepth;
    // No argument requests huge pages, or flags of a ring.
    let as_reached = Settings { iodepth, ring_flags: None, huge_pages: None, ..effective.clone() };
    assert_eq!(as_reached == *asked, row.settings.fallbacks.is_empty(), "{row:?}");
}

/// Asserts a lower bound (M7), because other processes may write at the same time.
fn device_saw_what_was_written_directly(document: &Document) {
    let rows = document.scenarios[0].rows.iter().filter(|row| row.settings.effective.direct);
    for row in rows {
        for run in &row.runs {
            let Some(device_bytes) = run.device_written_bytes else {
                let test = "the_ladder_is_a_document_on_stdout_alone_and_leaves_nothing";
                return skip(test, "the build is on no device that counts");
            };
            assert!(device_bytes as f64 >= 0.98 * run.bytes as f64, "{row:?}");
        }
    }
}

#[test]
fn an_output_file_holds_the_result_and_is_replaced_only_by_force() {
    // W7
    let (folder, results) = (folder(), folder());
    let file = results.path().join("result.json");
    let write = |more: &str| {
        let mut command = bench(folder.path(), &format!("{SHORT} --format json {more}"));
        finish(command.arg("--output").arg(&file))
    };
    let read = || serde_json::from_slice::<Document>(&fs::read(&file).unwrap()).unwrap();
    let finished = write("");
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    let document = read();
    assert_eq!(document.command.last().unwrap(), file.to_str().unwrap());
    assert_eq!(row(&document, "small/cached").bytes_per_run, 64 << 10);

    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().ino());
    let refused = write("");
    assert_eq!(refused.code(), Some(2));
    assert!(refused.complaint().contains("--force"), "{refused:?}");
    assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().ino()), before);

    assert_eq!(write("--force").code(), Some(0));
    assert!(read().command.contains(&"--force".to_owned()));
    assert_eq!(names(results.path()), ["result.json"]);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn colour_is_for_a_terminal_where_nobody_said_no() {
    let folder = folder();
    let shown = |no_color: Option<&str>| {
        let mut command = bench(folder.path(), SHORT);
        command.env("TERM", "xterm").envs(no_color.map(|value| ("NO_COLOR", value)));
        on_a_terminal(command)
    };
    let coloured = match shown(None) {
        Ok(text) => text,
        Err(reason) => return skip_here!(&reason.to_string()),
    };
    assert!(coloured.contains('\x1b') && coloured.contains("THROUGHPUT"), "{coloured}");
    let plain = shown(Some("1")).unwrap();
    assert!(!plain.contains('\x1b') && plain.contains("THROUGHPUT"), "{plain}");
    let piped = finish(bench(folder.path(), SHORT).env("TERM", "xterm"));
    assert_eq!(piped.code(), Some(0), "{piped:?}");
    assert!(!piped.stdout.contains('\x1b') && !piped.stderr.contains('\x1b'), "{piped:?}");
}

/// Returns the terminal output of a command, which must succeed.
fn on_a_terminal(mut command: Command) -> rustix::io::Result<String> {
    let (mut screen, end) = terminal()?;
    let run = Running::start(command.stdout(end));
    // This closes our copy of the other end, so that reading the screen ends when the run exits.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = screen.read_to_end(&mut text);
        String::from_utf8(text).expect("the screen shows text")
    });
    let finished = run.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    Ok(reader.join().expect("the screen was read"))
}

#[test]
fn a_quiet_run_prints_its_result_alone_and_a_verbose_one_its_progress() {
    let folder = folder();
    let quiet = finish(&mut bench(folder.path(), &format!("{SHORT} --quiet --json")));
    assert_eq!(quiet.stderr, "");
    document(&quiet);
    let rows = "--only small/fdatasync-each --size 200M --time 3s --runs 1 --iodepth 1";
    let verbose = finish(&mut bench(folder.path(), &format!("{rows} -v")));
    let is_progress = |line: &str| line.starts_with("run 1 of 1  small/fdatasync-each");
    assert!(verbose.stderr.lines().any(is_progress), "{verbose:?}");
}

#[test]
fn a_message_on_a_narrow_terminal_breaks_between_words() {
    let (mut screen, end) = match terminal() {
        Ok(terminal) => terminal,
        Err(error) => return skip_here!(&error.to_string()),
    };
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&screen, size).unwrap();
    let mut command = wrote(&["log", "cat", "none"]);
    let run = Running::start(command.stderr(end));
    drop(command);
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = screen.read(&mut piece) {
        said.extend_from_slice(&piece[..bytes]);
    }
    assert_eq!(run.finish().code(), Some(2));
    let said = String::from_utf8(said).unwrap();
    assert!(said.lines().count() > 2 && said.lines().all(|line| line.len() <= 40), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let waits = "and 'wrote log tail -F none' waits for one";
    assert!(words.ends_with(waits), "{said}");
}

#[test]
fn a_path_that_is_moved_while_it_is_measured_ends_the_run_and_keeps_nothing_of_it() {
    let folder = folder();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    fs::create_dir(&before).unwrap();
    let mut run = Running::start(&mut bench(&before, "--only ladder --size 8MiB --runs 1000"));
    until_it_writes(&mut run, &before);
    fs::rename(&before, &after).unwrap();
    let finished = run.finish();
    // Whether the folder or a file in it is missed first depends on timing.
    assert!(matches!(finished.code(), Some(1 | 2)), "{finished:?}");
    let said: Vec<&str> = finished.stderr.lines().collect();
    assert!(said.last().is_some_and(|line| line.contains(".wrote-")), "{said:?}");
    assert_eq!(names(&after), [""; 0]);
}

#[test]
fn a_run_that_may_open_few_files_ends_and_leaves_nothing() {
    // With the lowest limits, the run fails before it creates its folder; with the highest, it
    // fails while it measures.
    for descriptors in 4..16 {
        let folder = folder();
        let run = format!("ulimit -n {descriptors} && exec \"$0\" bench --only small --size 64K");
        let mut command = Command::new("sh");
        command.args(["-c", &run, env!("CARGO_BIN_EXE_wrote")]).current_dir(folder.path());
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_eq!(names(folder.path()), [""; 0], "with {descriptors} descriptors");
    }
}

#[test]
fn a_signal_at_any_moment_leaves_nothing() {
    let works = ["ladder --size 8MiB", "ways --size 64MiB --runs 200", "append --runs 1000"];
    for (moment_ms, work) in [0, 2, 8, 32, 128, 512].into_iter().zip(works.into_iter().cycle()) {
        let folder = folder();
        let mut run = Running::start(&mut bench(folder.path(), &format!("--only {work}")));
        std::thread::sleep(Duration::from_millis(moment_ms));
        run.send(Signal::TERM);
        let finished = run.finish();
        // Before the program has a handler, the signal itself ends it.
        let is_ended = finished.code() == Some(143) || finished.signal() == Some(15);
        assert!(is_ended && finished.stdout.is_empty(), "{finished:?}");
        assert_eq!(names(folder.path()), [""; 0], "{work} after {moment_ms} ms");
    }
}

#[test]
fn a_killed_run_leaves_one_folder_at_most_of_which_the_next_run_tells_and_which_clean_removes() {
    for moment_ms in [0, 5, 20, 100, 400] {
        let folder = folder();
        let precious = folder.path().join("precious");
        fs::write(&precious, "data").unwrap();
        let mut run = Running::start(&mut bench(folder.path(), "--only ladder --size 8MiB"));
        std::thread::sleep(Duration::from_millis(moment_ms));
        run.send(Signal::KILL);
        assert_eq!(run.finish().signal(), Some(9));
        let left = run_folders(folder.path());
        assert!(left.len() <= 1, "after {moment_ms} ms: {left:?}");
        next_run_tells(folder.path(), &left);
        let cleaned = finish(wrote(&["clean"]).arg(folder.path()));
        let told: Vec<&str> = cleaned.stdout.lines().collect();
        match left.first() {
            Some(left) => {
                let removed = format!("removed {} (", left.display());
                assert!(matches!(told[..], [line] if line.starts_with(&removed)), "{cleaned:?}");
            }
            None => assert_eq!(told, ["nothing to clean"]),
        }
        assert_eq!((cleaned.code(), cleaned.stderr.as_str()), (Some(0), ""));
        assert_eq!(names(folder.path()), ["precious"]);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
    }
}

/// Asserts that a new run measures, and that it names the leftovers of a killed run and the command
/// that removes them.
fn next_run_tells(parent: &Path, left: &[PathBuf]) {
    let next = finish(&mut bench(parent, &format!("{SHORT} --format json")));
    let document = document(&next);
    assert_eq!(findings(&document).contains(&"leftovers"), !left.is_empty(), "{document:?}");
    let notes: Vec<&str> =
        next.stderr.lines().filter(|line| line.starts_with("wrote: note: ")).collect();
    assert_eq!(notes.len(), left.len(), "{next:?}");
    for (note, left) in notes.iter().zip(left) {
        assert!(note.contains(left.to_str().unwrap()), "{note}");
        let clean = quoted(&["wrote", "clean", parent.to_str().unwrap()]);
        assert!(note.contains(&format!("`{clean}`")), "{note}");
    }
    assert_eq!(run_folders(parent), left);
}

#[test]
fn the_folder_of_a_living_run_is_neither_cleaned_nor_called_a_leftover() {
    let folder = folder();
    let mut run = Running::start(&mut bench(folder.path(), LONG));
    let its = until_it_writes(&mut run, folder.path());
    let cleaned = finish(wrote(&["clean"]).arg(folder.path()));
    assert_eq!(cleaned.stdout, format!("kept {}: its run is still going\n", its.display()));
    assert_eq!((cleaned.code(), cleaned.stderr.as_str()), (Some(0), ""));
    next_run_tells_of_nothing(folder.path());
    assert!(!run.is_over() && its.join("lock").exists());
    run.send(Signal::TERM);
    assert_eq!(run.finish().code(), Some(143));
    assert_eq!(names(folder.path()), [""; 0]);
}

fn next_run_tells_of_nothing(parent: &Path) {
    let next = finish(&mut bench(parent, &format!("{SHORT} --format json")));
    assert!(!findings(&document(&next)).contains(&"leftovers"), "{next:?}");
    assert!(!next.stderr.contains("note"), "{next:?}");
}

#[test]
fn kept_files_are_whole_and_their_place_is_printed() {
    for (rows, files) in [
        ("small/cached", vec!["ladder-new-0.data"]),
        (
            "small/cached,small/direct-io_uring-overwrite",
            vec!["ladder-new-0.data", "ladder-small_written-0.data"],
        ),
    ] {
        let folder = folder();
        let more = format!("--only {rows} --size 1MiB --time 60s --runs 2 --keep --format json");
        let finished = finish(&mut bench(folder.path(), &more));
        document(&finished);
        let kept = run_folders(folder.path());
        assert_eq!(kept.len(), 1, "{kept:?}");
        let note = format!("wrote: note: the test files are in {}", kept[0].display());
        assert!(finished.stderr.lines().any(|line| line == note), "{finished:?}");
        assert_eq!(names(&kept[0]), files, "{rows}");
        for file in job_files(&kept[0]) {
            assert_eq!(fs::metadata(&file).unwrap().len(), MIB, "{}", file.display());
        }
        // The folder now belongs to the user.
        next_run_tells_of_nothing(folder.path());
        assert_eq!(finish(wrote(&["clean"]).arg(folder.path())).stdout, "nothing to clean\n");
        assert_eq!(job_files(&kept[0]).len(), files.len());
    }
}

#[test]
fn kept_files_of_a_scenario_are_not_written_over_by_another() {
    // W7
    let folder = folder();
    let only = "--only ways/file/write_all,sustained --size 2MiB --runs 1 --idle 0";
    let finished = finish(&mut bench(folder.path(), &format!("{only} --keep --format json")));
    document(&finished);
    let [kept] = &run_folders(folder.path())[..] else { panic!("{finished:?}") };
    let files = ["sustained-data-0.data", "ways-output-0.data", "ways-source-0.data"];
    assert_eq!(names(kept), files);
    let [source, output] = ["source", "output"]
        .map(|part| fs::read(kept.join(format!("ways-{part}-0.data"))).unwrap());
    assert!(source == output && source.len() as u64 == 2 * MIB);
}

#[test]
fn a_rank_of_several_that_was_built_without_mpi_says_so_instead_of_measuring() {
    let folder = fixtures::folder();
    for (size, rank) in [
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
        ("PMI_SIZE", "PMI_RANK"),
        ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ] {
        for number in ["0", "1"] {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wrote"));
            command.arg("bench").arg(folder.path()).env(size, "3").env(rank, number);
            if cfg!(feature = "mpi") {
                return;
            }
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{size}");
            let told = String::from_utf8(output.stderr).unwrap();
            let lines = if number == "0" { 1 } else { 0 };
            assert_eq!(told.lines().count(), lines, "rank 0 tells for all: {told}");
            assert!(number != "0" || told.contains("one of 3 ranks"), "{told}");
        }
    }
    assert!(fixtures::names(folder.path()).is_empty());
}
