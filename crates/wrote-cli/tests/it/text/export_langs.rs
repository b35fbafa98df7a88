//! Exports of a made-up comparison of languages, compared with the texts in `golden/`. Its schema
//! describes every key.

use crate::support::{assert_golden, wrote};
use crate::text::screen::{PLAIN, assert_lines_fit};
use fixtures::{finish, samples};
use serde_json::Value;
use wrote_report::{Content, Format, Screen, write_languages};
use wrote_result::document::{Interval, Latency, Survives};
use wrote_result::langs::{
    Cache, Document, Drive, Failure, Language, Place, Row, Run, SCHEMA, State, Workload, schema,
};
use wrote_result::stats;

/// A language: id, name, way, and MB/s of bytes written and read; the P50 of a save in us.
type Made = (&'static str, &'static str, &'static str, f64, f64, u64);

const MADE: [Made; 9] = [
    ("c", "C", "putc, 4 KiB", 365.0, 402.0, 21),
    ("cpp", "C++ read/write", "ofstream::write, 8 KiB", 172.0, 201.0, 25),
    ("cpp-get-put", "C++ get/put", "ofstream::put, 8 KiB", 359.0, 377.0, 0),
    ("go", "Go", "bufio.Writer, 4 KiB", 402.0, 455.0, 30),
    ("node", "Node.js", "createWriteStream, 16 KiB", 1.21, 2.43, 180),
    ("python", "Python", "open(.., 'wb'), 8 KiB", 13.4, 16.1, 48),
    ("rust", "Rust", "BufWriter, 8 KiB", 812.0, 611.0, 19),
    ("wrote", "wrote::Writer", "Writer, direct I/O", 1650.0, 890.0, 240),
    ("wrote-cached", "wrote::Writer, cached", "Writer, page cache", 1702.0, 0.0, 0),
];

fn languages() -> Vec<Language> {
    let made = MADE.map(|(id, name, way, ..)| Language {
        id: id.into(),
        name: name.into(),
        way: way.into(),
        reads: None,
        lines: None,
        state: State::Ready,
        version: Some(format!("{id} 1.2.3")),
        because: None,
        install: None,
    });
    let absent = |id: &str, name: &str, state, because: &str| Language {
        id: id.into(),
        name: name.into(),
        way: "its own".into(),
        reads: None,
        lines: None,
        state,
        version: (state == State::BuildFailed).then(|| "3.7.4".into()),
        because: Some(because.into()),
        install: (state == State::Missing).then(|| "apt install ruby".into()),
    };
    let absent = [
        absent("ruby", "Ruby", State::Missing, "ruby: not found in PATH nor in ~/.local/bin"),
        absent("scala", "Scala", State::BuildFailed, "program.scala:3: not found: value Filse"),
    ];
    made.into_iter().chain(absent).collect()
}

/// Makes six runs around a rate; the first is slow and dropped.
fn row(id: &str, mb_per_s: f64, bytes: u64) -> Row {
    let run = |(number, factor): (usize, f64)| Run {
        bytes,
        elapsed_s: bytes as f64 / (mb_per_s * factor * 1e6),
        process_s: bytes as f64 / (mb_per_s * factor * 1e6) + 0.01,
        cpu_user_s: 0.8,
        cpu_system_s: 0.1,
        max_rss_bytes: Some(3_145_728),
        device_written_bytes: Some(4096),
        device_read_bytes: Some(0),
        dropped: number == 0,
        ..Run::default()
    };
    let factors = [0.5, 1.0, 1.02, 0.97, 1.01, 0.99];
    let runs: Vec<Run> = factors.into_iter().enumerate().map(run).collect();
    let counted = || runs.iter().filter(|run| !run.dropped);
    let rates: Vec<f64> = counted().map(|run| run.bytes as f64 / run.elapsed_s).collect();
    Row {
        language: id.into(),
        throughput_bytes_per_s: stats::interval(&rates),
        throughput_mean_bytes_per_s: counted().map(|run| run.bytes as f64).sum::<f64>()
            / counted().map(|run| run.elapsed_s).sum::<f64>(),
        cpu_s_per_gb: 3.52,
        max_rss_bytes: Some(3_145_728 + (mb_per_s as u64) * 10_000),
        latency_ns: None,
        runs,
    }
}

/// Makes a run of a thousand saves by one process.
fn saves(id: &str, p50_us: u64, bytes: u64) -> Row {
    let at = |percent: u64| p50_us * 10 * percent;
    let run = Run {
        bytes: 1000 * bytes,
        elapsed_s: p50_us as f64 * 1.01e-3,
        process_s: p50_us as f64 * 1.1e-3,
        ..Run::default()
    };
    let rate = run.bytes as f64 / run.elapsed_s;
    Row {
        language: id.into(),
        runs: vec![run],
        throughput_bytes_per_s: Interval { median: rate, ci95_low: rate, ci95_high: rate },
        throughput_mean_bytes_per_s: rate,
        cpu_s_per_gb: 210.0,
        max_rss_bytes: None,
        latency_ns: Some(Latency {
            min: at(95),
            mean: at(101) as f64,
            p50: at(100),
            p90: at(103),
            p95: at(107),
            p99: at(112),
            p99_9: at(195),
            max: at(196),
            total: 1000 * at(101),
            count: 1000,
        }),
    }
}

fn workload(name: &str, words: &str, bytes: u64, mut rows: Vec<Row>) -> Workload {
    let speed = |row: &Row| row.throughput_bytes_per_s.median;
    rows.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
    let is_read = name.starts_with("bytes/read");
    let (cache, survives) = match name {
        _ if name.starts_with("save-sync/") => (Cache::Synced, Survives::PowerLoss),
        "bytes/read-cold" => (Cache::Dropped, Survives::Nothing),
        _ => (Cache::PageCache, Survives::ProcessCrash),
    };
    Workload {
        name: name.into(),
        words: words.into(),
        bytes,
        cache,
        survives: (!is_read).then_some(survives),
        rows,
        failures: Vec::new(),
    }
}

fn workloads() -> Vec<Workload> {
    let size = 256_000_000;
    let rows = |rate: fn(&Made) -> f64, bytes: u64| -> Vec<Row> {
        let made = MADE.iter().filter(|made| rate(made) > 0.0);
        made.map(|made| row(made.0, rate(made), bytes)).collect()
    };
    let saved = |times: u64, bytes: u64| -> Vec<Row> {
        let made = MADE.iter().filter(|made| made.5 > 0);
        made.map(|made| saves(made.0, made.5 * times, bytes)).collect()
    };
    let text = "a text of 500 characters saved 1000 times";
    let mut written = workload(
        "bytes/write",
        "256 MB written one byte at a time into a new file",
        size,
        rows(|made| made.3, size),
    );
    written.rows.retain(|row| row.language != "python");
    written.failures.push(Failure {
        language: "python".into(),
        because: "the file's byte 12345 is 7, not 57".into(),
    });
    let read = "256 MB read one byte at a time";
    vec![
        written,
        workload("bytes/read", read, size, rows(|made| made.4, size)),
        workload("bytes/read-cold", read, size, rows(|made| made.4 / 2.0, size)),
        workload("save/500", text, 500, saved(1, 500)),
        workload("save-sync/500", &format!("{text}, each time synced"), 500, saved(60, 500)),
        workload(
            "lines",
            "1000000 lines of 64 bytes appended to a file",
            64_000_000,
            rows(|made| made.3 * 1.5, 64_000_000),
        ),
    ]
}

fn around(median: f64) -> Interval {
    Interval { median, ci95_low: median * 0.97, ci95_high: median * 1.03 }
}

/// Makes a comparison on one path.
fn document() -> Document {
    let sample = samples::document();
    let drive = Drive {
        write_row: "peak/write/512k-64-registered".into(),
        write_bytes_per_s: around(1.7e9),
        read_row: "peak/read/512k-64-plain".into(),
        read_bytes_per_s: around(3.31e9),
    };
    let place = Place { target: sample.target, drive: Some(drive), workloads: workloads() };
    Document {
        schema: SCHEMA.into(),
        wrote: sample.wrote,
        started_at: sample.started_at,
        elapsed_s: 2312.0,
        command: ["wrote", "langs", "/mnt/data"].map(String::from).to_vec(),
        host: sample.host,
        ranks: None,
        languages: languages(),
        places: vec![place],
    }
}

/// Makes a comparison on three paths. One is slow; one has no device, one workload left out, and
/// one failed.
fn several() -> Document {
    let mut document = document();
    let place = |path: &str| {
        let mut place = document.places[0].clone();
        place.target.path = path.into();
        place
    };
    let (mut slow, mut memory) = (place("/mnt/usb"), place("/dev/shm"));
    for workload in &mut slow.workloads {
        for row in &mut workload.rows {
            row.throughput_bytes_per_s = around(row.throughput_bytes_per_s.median.min(35e6));
        }
    }
    if let Some(drive) = &mut slow.drive {
        (drive.write_bytes_per_s, drive.read_bytes_per_s) = (around(33e6), around(41e6));
    }
    memory.drive = None;
    memory.target.filesystem = "tmpfs".into();
    memory.target.device = None;
    memory.target.no_device_because = Some("tmpfs lies in memory".into());
    memory.workloads.retain(|workload| workload.name != "bytes/read-cold");
    for workload in &mut memory.workloads {
        if workload.cache == Cache::Synced {
            workload.survives = Some(Survives::ProcessCrash);
        }
    }
    memory.workloads[0].failures.clear();
    memory.workloads[0].rows.push(row("python", 14.9, 256_000_000));
    document.places.extend([slow, memory]);
    document
}

fn exported(document: &Document, format: Format, screen: Screen) -> String {
    let mut text = Vec::new();
    let content = Content::Langs(Box::new(document.clone()));
    content.write(format, screen, &mut text).expect("memory takes everything");
    String::from_utf8(text).expect("exports are UTF-8")
}

fn table(document: &Document, width: usize) -> String {
    exported(document, Format::Table, Screen { width, ..PLAIN })
}

#[test]
fn tables_of_one_path_are_the_golden_ones() {
    assert_golden("langs-80.txt", &table(&document(), 80));
    assert_golden("langs-120.txt", &table(&document(), 120));
    let colour = Screen { width: 120, colour: true, ..PLAIN };
    let coloured = exported(&document(), Format::Table, colour);
    assert!(coloured.contains("\u{1b}[32m> wrote::Writer\u{1b}[0m"), "{coloured}");
    assert!(coloured.contains("\u{1b}[36m- the drive itself\u{1b}[0m"), "{coloured}");
}

#[test]
fn tables_of_several_paths_are_the_golden_ones() {
    assert_golden("langs-paths-80.txt", &table(&several(), 80));
    assert_golden("langs-paths-120.txt", &table(&several(), 120));
}

#[test]
fn markdown_and_csv_are_the_golden_ones() {
    assert_golden("langs.md", &exported(&document(), Format::Markdown, PLAIN));
    assert_golden("langs-paths.md", &exported(&several(), Format::Markdown, PLAIN));
    assert_golden("langs.csv", &exported(&document(), Format::Csv, PLAIN));
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in 72..=200 {
        for document in [document(), several()] {
            assert_lines_fit(&table(&document, width), width);
        }
    }
}

#[test]
fn without_utf8_there_is_nothing_but_ascii_and_without_colour_no_escape_sequence() {
    for document in [document(), several()] {
        let screen = Screen { unicode: false, width: 120, ..PLAIN };
        let text = exported(&document, Format::Table, screen);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("+-3%"), "{text}");
        for format in [Format::Table, Format::Csv, Format::Markdown] {
            assert!(!exported(&document, format, PLAIN).contains('\u{1b}'));
        }
    }
}

#[test]
fn a_language_that_is_added_is_not_ours_whatever_its_name_begins_with() {
    let mut document = document();
    for language in document.languages.iter_mut().filter(|language| language.id == "c") {
        language.id = "wrote-in-c".into();
    }
    for workload in &mut document.places[0].workloads {
        for row in workload.rows.iter_mut().filter(|row| row.language == "c") {
            row.language = "wrote-in-c".into();
        }
    }
    assert_eq!(table(&document, 80), table(&self::document(), 80));
}

#[test]
fn nothing_that_a_compiler_says_gives_the_terminal_orders() {
    let mut document = document();
    let order = "\u{1b}]0;title\u{7}\n";
    document.places[0].target.path = order.into();
    document.places[0].workloads[0].failures[0].because = order.into();
    for language in &mut document.languages {
        language.name = order.into();
        language.way = order.into();
        language.because = Some(order.into());
        language.version = Some(order.into());
    }
    for format in [Format::Table, Format::Markdown] {
        let text = exported(&document, format, PLAIN);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    }
    let mut list = Vec::new();
    write_languages(&document.languages, PLAIN, &mut list).expect("memory takes everything");
    let list = String::from_utf8(list).expect("lists are UTF-8");
    assert!(!list.contains(['\u{1b}', '\u{7}']), "{list}");
}

#[test]
fn a_drive_that_is_not_known_is_no_line_and_no_column() {
    let mut document = document();
    document.places[0].drive = None;
    let text = table(&document, 120);
    assert!(text.contains("Drive    its own rate is not known"), "{text}");
    assert!(!text.contains("x DRIVE") && !text.contains("the drive itself"), "{text}");
    // Direct I/O works there: its lack is not the reason.
    assert!(!text.contains("no direct I/O"), "{text}");
    document.places[0].workloads.retain(|workload| workload.name.starts_with("save"));
    let text = table(&document, 120);
    assert!(
        text.contains("its own rate is not known: saves are not measured against it"),
        "{text}"
    );
    document.places[0].target.dio_offset_align_bytes = None;
    let text = table(&document, 120);
    assert!(text.contains("its own rate is not known: there is no direct I/O"), "{text}");
}

#[test]
fn a_workload_that_nobody_did_still_says_who_failed() {
    let mut document = document();
    document.places[0].drive = None;
    document.places[0].workloads.truncate(1);
    document.places[0].workloads[0].rows.clear();
    for format in [Format::Table, Format::Markdown] {
        let text = exported(&document, format, PLAIN);
        assert!(text.to_lowercase().contains("no language did it"), "{text}");
        assert!(text.contains("Python: the file's byte 12345 is 7, not 57"), "{text}");
    }
    let csv = exported(&document, Format::Csv, PLAIN);
    assert_eq!(csv.lines().count(), 2, "{csv}");
}

#[test]
fn a_csv_has_a_line_for_each_language_in_each_workload_and_path() {
    let document = several();
    let text = exported(&document, Format::Csv, PLAIN);
    let mut lines = csv::Reader::from_reader(text.as_bytes());
    let lines: Result<Vec<_>, _> = lines.records().collect();
    let workloads = document.places.iter().flat_map(|place| &place.workloads);
    let expected: usize =
        workloads.map(|workload| workload.rows.len() + workload.failures.len()).sum();
    assert_eq!(lines.expect("every line has all the fields").len(), expected);
}

#[test]
fn json_read_back_is_the_same_document() {
    let text = exported(&several(), Format::Json, PLAIN);
    let read: Document = serde_json::from_str(&text).expect("it is a comparison of languages");
    let written = serde_json::to_value(several()).expect("it can be JSON");
    assert_eq!(serde_json::to_value(read).expect("it can be JSON"), written);
    assert!(text.ends_with("}\n"));
}

#[test]
fn the_command_prints_the_schema_of_the_format() {
    let printed = finish(&mut wrote(&["langs", "--schema"]));
    let printed: Value = serde_json::from_str(&printed.stdout).expect("it is JSON");
    assert_eq!(printed["properties"]["schema"]["const"], "wrote.langs/1");
    assert_eq!(printed, schema());
}

#[test]
fn what_the_page_cache_did_not_hold_is_not_said_to_come_from_it() {
    let mut document = document();
    let reads = "no byte of it had to come from the drive";
    assert!(exported(&document, Format::Markdown, PLAIN).contains(reads));
    for workload in &mut document.places[0].workloads {
        if workload.survives.is_none() && workload.cache == Cache::PageCache {
            workload.cache = Cache::PartlyPageCache;
        }
    }
    let text = exported(&document, Format::Markdown, PLAIN);
    assert!(!text.contains(reads) && text.contains("the rest from the drive"), "{text}");
}

#[test]
fn only_where_wrote_is_there_is_it_told_what_goes_past_the_page_cache() {
    let but = "(by wrote past it, unless it says cached)";
    let mut document = document();
    assert!(exported(&document, Format::Markdown, PLAIN).contains(but));
    // W6
    let mut without = document.clone();
    without.places[0].target.dio_offset_align_bytes = None;
    assert!(!exported(&without, Format::Markdown, PLAIN).contains(but));
    for workload in &mut document.places[0].workloads {
        workload.rows.retain(|row| row.language != "wrote");
    }
    assert!(!exported(&document, Format::Markdown, PLAIN).contains(but));
}
