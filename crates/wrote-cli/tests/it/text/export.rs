//! Exports of an artificial result, compared with the texts in `golden/`.

use crate::support::assert_golden;
use crate::text::screen::{PLAIN, exported};
use fixtures::samples::{self, reports};
use wrote_jobs::fio_report;
use wrote_jobs::peers::Peers;
use wrote_report::{Content, Format, Named, Screen, write_html};
use wrote_result::document::{
    Cell, Change, Direction, Document, Interval, Latency, Records, Row, Sample, State, SteadyState,
    Sustained, View,
};

/// Returns all documents of this module, which one test shows at various widths.
pub(super) fn documents() -> Vec<Document> {
    let made = [jobs(), peak(), ways(), appended(), saves(), sustained(), languages()];
    made.into_iter().chain([samples::document()]).collect()
}

/// Returns three workloads of a recorded comparison of languages, one of which failed.
fn languages() -> Document {
    let text = include_str!("../../pages/results/langs.json");
    let mut document: Document = serde_json::from_str(text).expect("a result");
    let kept = ["langs/bytes-write", "langs/bytes-read", "langs/save-500"];
    let rows = &mut document.scenarios[0].rows;
    rows.retain(|row| kept.contains(&row.workload.as_str()) && row.name != "langs/save-500/c");
    let languages = document.languages.as_mut().expect("it compares languages");
    let because = "the file's byte 0 is 65, not 97".into();
    languages[0].failures.insert("langs/save-500/c".into(), because);
    (languages[1].state, languages[1].because) = (State::BuildFailed, Some("exit code 1".into()));
    document
}

fn table(screen: Screen) -> String {
    exported(&samples::document(), Format::Table, screen)
}

/// Returns the document of three jobs on the sample's machine.
fn jobs() -> Document {
    let groups = reports::groups();
    let file = ("demo.fio", &groups[..]);
    let (before, about) = (reports::before(), reports::about());
    let document = wrote_jobs::report::document(&[file], &before, &about, Peers::ALONE, None);
    let mut document = document.unwrap();
    document.host = samples::document().host;
    document.findings.retain(|finding| finding.id != "debug-build");
    document
}

fn around(median: f64) -> Interval {
    Interval { median, ci95_low: median * 0.97, ci95_high: median * 1.03 }
}

/// Returns a grid of four cells. The fastest cell and one other are equally fast.
fn peak() -> Document {
    let mut document = samples::document();
    let scenario = &mut document.scenarios[0];
    scenario.name = "peak".into();
    scenario.rows.truncate(4);
    let cells =
        [("128 KiB x 8", 1.0), ("128 KiB x 8", 3.0), ("2 MiB x 64", 2.95), ("2 MiB x 64", 0.5)];
    for (number, (row, (side, gigabytes_per_s))) in scenario.rows.iter_mut().zip(cells).enumerate()
    {
        let head = if number % 2 == 0 { "plain" } else { "registered" };
        row.name = format!("peak/write/{number}");
        row.workload = "peak/write".into();
        row.way = format!("{side}, {head}");
        let title = "BS x IODEPTH".into();
        row.cell = Some(Cell { title, side: side.into(), head: head.into() });
        let median = gigabytes_per_s * 1e9;
        row.throughput_bytes_per_s = around(median);
    }
    document.findings.clear();
    document.advice.clear();
    document
}

/// Returns a result of whole files, in two sizes of chunks. Three methods survive a power loss.
fn ways() -> Document {
    let mut document = samples::document();
    let rows = &mut document.scenarios[0].rows;
    let template = rows[1].clone();
    let way = |workload: &str, way: &str, survives: &str, gigabytes_per_s: f64, peak_mib: u64| {
        let mut row = template.clone();
        row.name = format!("{workload}/{}", way.replace(' ', "-"));
        (row.workload, row.way) = (workload.into(), way.into());
        (row.survives, row.latency_ns) = (Some(survives.parse().unwrap()), None);
        row.view = Some(View::Files);
        row.cell = (workload == "ways/chunk").then(|| {
            let (side, head) = way.split_once(", ").expect("a chunk and a way");
            Cell { title: "CHUNK".into(), side: side.into(), head: head.into() }
        });
        let median = gigabytes_per_s * 1e9;
        row.throughput_bytes_per_s = around(median);
        row.runs.iter_mut().for_each(|run| run.max_rss_bytes = Some(peak_mib << 20));
        row.settings.effective.data = way.starts_with("dd").then(|| "zeros".into());
        row
    };
    let (file, chunk, durable) = ("ways/file", "ways/chunk", "power-loss");
    *rows = vec![
        way(file, "fs::write", "process-crash", 2.4, 1040),
        way(file, "write_all, sync_all", durable, 1.1, 1040),
        way(file, "dd conv=fdatasync, zeros", durable, 3.0, 3),
        way(file, "wrote::Writer", durable, 2.0, 1044),
        way(file, "wrote::copy", durable, 1.96, 28),
        way(chunk, "4 KiB, write_all", durable, 0.9, 270),
        way(chunk, "4 KiB, wrote::Writer", durable, 1.9, 274),
        way(chunk, "8 MiB, write_all", durable, 1.1, 270),
        way(chunk, "8 MiB, wrote::Writer", durable, 2.0, 274),
    ];
    document.scenarios[0].name = "ways".into();
    document.findings.clear();
    document.advice.clear();
    document
}

/// Returns a result of messages appended with several methods. One of them loses messages.
fn appended() -> Document {
    let mut document = samples::document();
    let rows = &mut document.scenarios[0].rows;
    let template = rows[1].clone();
    let way = |name: &str, way: &str, survives: &str, messages_per_s: f64, lost: u64| {
        let mut row = template.clone();
        (row.name, row.workload) = (format!("append/{name}"), "append".into());
        (row.way, row.survives) = (way.into(), Some(survives.parse().unwrap()));
        row.view = Some(View::Messages);
        for settings in [&mut row.settings.asked, &mut row.settings.effective] {
            (settings.bs_bytes, settings.message_bytes_min) = (2000, Some(300));
            settings.messages = Some(100_000);
        }
        let median = messages_per_s * 1150.0;
        row.throughput_bytes_per_s = around(median);
        row.bytes_per_run = 115_000_000;
        for run in &mut row.runs {
            (run.iops, run.elapsed_s) = (messages_per_s, 1e5 / messages_per_s);
            let whole = 100_000 - lost;
            run.records =
                Some(Records { sent: 100_000, whole, lost, torn: lost / 2, ..Records::default() });
        }
        row
    };
    *rows = vec![
        way("mutex", "tasks, Arc<Mutex<File>>", "nothing", 32_100.0, 0),
        way("flume-10-files", "10 writers, 10 handles", "process-crash", 92_000.0, 81_234),
        way("log-no/64", "Log, never synced, 64", "nothing", 1_950_000.0, 0),
        way("log-always/64", "Log, wait until durable, 64", "power-loss", 152_000.0, 0),
    ];
    document.scenarios[0].name = "append".into();
    document.findings.clear();
    document.advice.clear();
    document
}

/// Returns a result of a text saved with several methods, to new files and to an existing one.
fn saves() -> Document {
    let mut document = samples::document();
    let rows = &mut document.scenarios[0].rows;
    let template = rows[1].clone();
    let save = |name: &str, way: &str, survives: &str, leaves: &str, p50_us: u64| {
        let mut row = template.clone();
        row.name = format!("latency/{name}");
        row.workload = row.name.rsplit_once('/').expect("a workload and a way").0.into();
        (row.way, row.survives) = (way.into(), Some(survives.parse().unwrap()));
        row.crash_leaves = Some(leaves.parse().unwrap());
        row.view = Some(View::Saves);
        for settings in [&mut row.settings.asked, &mut row.settings.effective] {
            settings.bs_bytes = 500;
        }
        let at = |percent: u64| p50_us * 10 * percent;
        row.latency_ns = Some(Latency {
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
        });
        row
    };
    let (cached, durable) = ("process-crash", "power-loss");
    *rows = vec![
        save("new-500/fs-write", "fs::write", cached, "empty", 65),
        save("new-500/fs-write-fsync", "fs::write, fsync", cached, "empty", 5109),
        save("new-500/write-fdatasync", "write, fdatasync, folder", durable, "empty", 5210),
        save("new-500/wrote-write", "wrote::write", durable, "old-or-new", 6200),
        save("existing-500/fs-write-fsync", "fs::write, fsync", durable, "empty", 5109),
        save("existing-500/o_dsync", "overwrite, O_DSYNC", durable, "torn", 1200),
        save("existing-500/wrote-write", "wrote::write", durable, "old-or-new", 6200),
        save("existing-500/append", "append", cached, "old-and-part", 9),
        save("existing-500/append-fdatasync", "append, fdatasync", durable, "old-and-part", 2905),
    ];
    document.scenarios[0].name = "latency".into();
    document.findings.clear();
    document.advice.clear();
    document
}

/// Returns the result of a disk that slows down twice and recovers.
fn sustained() -> Document {
    let mut document = samples::document();
    let mut row = document.scenarios[0].rows[3].clone();
    (row.name, row.workload) = ("sustained/direct-io_uring".into(), "sustained".into());
    row.way = "direct io_uring, nonstop".into();
    row.runs.truncate(1);
    let (mut samples, mut end_s) = (Vec::new(), 0.0);
    for number in 1..=300_u64 {
        let level = match number {
            ..=120 => 4.5e9,
            121..=200 => 2e9,
            _ => 0.5e9,
        };
        let throughput_bytes_per_s = level * (1.0 + 0.02 * ((number % 7) as f64 - 3.0));
        end_s += 0.5e9 / throughput_bytes_per_s;
        samples.push(Sample { end_bytes: number * 500_000_000, end_s, throughput_bytes_per_s });
    }
    let change = |at: usize, before_bytes_per_s: f64, after_bytes_per_s: f64| Change {
        at_bytes: samples[at - 1].end_bytes,
        at_s: samples[at - 1].end_s,
        before_bytes_per_s,
        after_bytes_per_s,
    };
    let changes = vec![change(120, 4.5e9, 2e9), change(200, 2e9, 0.5e9)];
    let about =
        |rate: f64| Interval { median: rate, ci95_low: rate * 0.98, ci95_high: rate * 1.02 };
    row.bytes_per_run = 150_000_000_000;
    row.throughput_bytes_per_s = about(1.1e9);
    row.sustained = Some(Sustained {
        file_bytes: 150_000_000_000,
        samples,
        changes,
        burst_bytes_per_s: about(4.5e9),
        sustained_bytes_per_s: about(0.5e9),
        recovered_bytes_per_s: Some(about(4.3e9)),
        idle_s: Some(10.0),
        steady_state: Some(SteadyState {
            reached: true,
            rounds_bytes_per_s: vec![0.5e9; 25],
            first_round: 12,
            last_round: 16,
            range_share: 0.03,
            slope_share: 0.01,
        }),
    });
    document.scenarios[0].rows = vec![row];
    document.scenarios[0].name = "sustained".into();
    document.scenarios[0].question = "How fast does this disk take writes for long?".into();
    document.findings.clear();
    document.advice.clear();
    document
}

/// Grids mark the best cell and its equals, tables of whole files mark the best method that
/// survives a power loss, and tables of messages mark the method that loses messages. Saves show
/// the cost of a sync, and a long run shows its changes and a drawing.
#[test]
fn tables_of_80_columns_and_markdown_of_every_kind_of_row_are_the_golden_ones() {
    for (name, document, has_markdown) in [
        ("peak", peak(), false),
        ("ways", ways(), true),
        ("append", appended(), true),
        ("latency", saves(), true),
        ("sustained", sustained(), true),
        ("jobs", jobs(), true),
        ("langs", languages(), true),
    ] {
        assert_golden(&format!("{name}-80.txt"), &exported(&document, Format::Table, PLAIN));
        if has_markdown {
            let markdown = exported(&document, Format::Markdown, PLAIN);
            assert_golden(&format!("{name}.md"), &markdown);
        }
    }
    assert_golden("jobs.csv", &exported(&jobs(), Format::Csv, PLAIN));
    let wide = Screen { width: 140, ..PLAIN };
    assert_golden("latency-140.txt", &exported(&saves(), Format::Table, wide));
    let ascii = exported(&peak(), Format::Table, Screen { unicode: false, ..PLAIN });
    assert!(ascii.contains("3.00 GB/s <"), "{ascii}");
}

#[test]
fn a_ladder_is_the_golden_one_on_each_screen_and_in_each_format() {
    assert_golden("table-80.txt", &table(PLAIN));
    assert_golden("table-140.txt", &table(Screen { width: 140, ..PLAIN }));
    assert_golden("table-100-colour.txt", &table(Screen { width: 100, colour: true, ..PLAIN }));
    assert_golden("result.md", &exported(&samples::document(), Format::Markdown, PLAIN));
    assert_golden("result.csv", &exported(&samples::document(), Format::Csv, PLAIN));
}

#[test]
fn fios_json_of_jobs_is_the_golden_one() {
    let ended_at = "2026-03-21T09:30:02Z".parse().expect("a time");
    let before = reports::before();
    let device = before.device();
    let about = fio_report::About { ended_at, device, ..fio_report::About::default() };
    let mut text = Vec::new();
    let document = fio_report::document(&reports::groups(), &about);
    document.write(&[fio_report::Form::Json], &mut text).expect("memory takes everything");
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    assert_golden("jobs-fio.json", &text);
}

#[test]
fn a_table_of_reads_alone_says_nothing_of_surviving() {
    let mut document = jobs();
    let is_read = |row: &Row| row.direction == Direction::Read;
    document.scenarios[0].rows.retain(is_read);
    let text = exported(&document, Format::Table, Screen { width: 140, ..PLAIN });
    assert!(!text.contains("SURVIVES"), "{text}");
    assert!(text.contains("random reads") && text.contains("READS/s"), "{text}");
}

#[test]
fn a_single_run_claims_no_interval() {
    let mut document = samples::document();
    for row in &mut document.scenarios[0].rows {
        row.runs.truncate(1);
    }
    let text = exported(&document, Format::Table, PLAIN);
    assert!(!text.contains("95 %"), "{text}");
    assert!(text.contains("1 run"), "{text}");
}

#[test]
fn a_result_without_device_findings_or_advice_is_still_a_table() {
    let mut document = samples::document();
    document.target.device = None;
    document.target.no_device_because = Some("tmpfs lies in memory".into());
    document.findings.clear();
    document.advice.clear();
    let text = exported(&document, Format::Table, PLAIN);
    assert!(text.contains("no block device: tmpfs lies in memory"), "{text}");
    assert!(!text.contains("Findings") && !text.contains("Advice"), "{text}");
}

/// Returns the sample, but with this number of operations in each latency.
fn counted(count: u64) -> Document {
    let mut document = samples::document();
    for row in document.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows) {
        let latencies =
            [&mut row.latency_ns, &mut row.flush_latency_ns, &mut row.durable_latency_ns];
        latencies.into_iter().flatten().for_each(|of| of.count = count);
    }
    document
}

/// Returns a document on a screen, in Markdown and as a page.
fn surfaces(document: &Document) -> [String; 3] {
    let wide = Screen { width: 400, ..PLAIN };
    let content = Content::Result(Box::new(document.clone()));
    let mut page = Vec::new();
    write_html(&[Named { name: "a.json".into(), content }], &mut page).expect("memory");
    let page = String::from_utf8(page).expect("a page is UTF-8");
    // The document that can be saved from the page always has all figures, so it is removed.
    let (before, after) = page.split_once("data:application/json").expect("a page has it");
    let (_, after) = after.split_once('"').expect("an address ends");
    [
        exported(document, Format::Table, wide),
        exported(document, Format::Markdown, wide),
        format!("{before}{after}"),
    ]
}

#[test]
fn no_surface_shows_a_p99_below_100_operations_or_a_p99_9_below_1000() {
    let around = |text: &str, word: &str| {
        let rest = &text[text.find(word)?..];
        Some(rest.chars().take(80).collect::<String>())
    };
    for text in surfaces(&counted(99)) {
        assert_eq!(around(&text, "P99"), None);
    }
    for text in surfaces(&counted(999)) {
        assert_eq!((text.contains("P99"), around(&text, "P99.9")), (true, None));
    }
    for text in surfaces(&counted(1001)) {
        assert!(text.contains("P99.9"), "{text}");
    }
    let fields = |count, name: &str| -> Vec<String> {
        let text = exported(&counted(count), Format::Csv, PLAIN);
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let headers = lines.headers().expect("names").clone();
        let place = headers.iter().position(|known| known == name).expect("known");
        lines.records().map(|line| line.expect("whole")[place].to_owned()).collect()
    };
    for name in ["row_latency_ns_p99", "row_durable_ns_p99", "row_flush_ns_p99"] {
        assert!(fields(99, name).iter().all(String::is_empty), "{name}");
    }
    assert!(fields(999, "row_latency_ns_p99_9").iter().all(String::is_empty));
    assert!(!fields(100, "row_latency_ns_p99").concat().is_empty());
    assert!(!fields(1000, "row_latency_ns_p99_9").concat().is_empty());
}
