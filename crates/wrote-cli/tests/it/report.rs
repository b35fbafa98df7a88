//! Tests of `wrote report` and `--html`: pages of every kind of document, and refusals of anything
//! else.

use crate::support::{bench, document, wrote};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fixtures::{Finished, finish, folder, names, samples};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use wrote_jobs::import;
use wrote_report::{Content, Named, write_html};
use wrote_result::document::{Document, Finding, Row, SCHEMA, Severity};
use wrote_result::stats;

/// Returns the folder with results of every command and scenario, which were written before results
/// contained histograms.
fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/results")
}

fn report(files: &[&Path]) -> Finished {
    finish(wrote(&["report"]).args(files))
}

/// Returns the page for these results.
fn page(files: &[&Path]) -> String {
    let finished = report(files);
    assert_eq!((finished.code(), &*finished.stderr), (Some(0), ""), "{files:?}");
    finished.stdout
}

fn page_of(document: &Document) -> String {
    let content = Content::Result(Box::new(document.clone()));
    let mut page = Vec::new();
    write_html(&[Named { name: "a.json".into(), content }], &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Returns the documents that a page contains.
fn saved(page: &str) -> Vec<Value> {
    let begin = "href=\"data:application/json;base64,";
    let addresses = page.split(begin).skip(1).map(|rest| rest.split('"').next().unwrap());
    let read = |text: &str| serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
    addresses.map(read).collect()
}

#[test]
fn a_result_of_every_command_and_scenario_becomes_a_page_with_the_document_inside() {
    for name in names(&results()) {
        let path = results().join(&name);
        let page = page(&[&path]);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>"), "{name}");
        assert!(page.len() < 1_500_000, "{name}: {} bytes", page.len());
        let original: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let [mut saved] = saved(&page).try_into().expect("one document");
        leave_out_guesses(&mut saved, &original);
        assert_eq!(saved, original, "{name}");
    }
}

/// Removes the keys that were added when `original`, an older result, was read.
fn leave_out_guesses(saved: &mut Value, original: &Value) {
    match (saved, original) {
        (Value::Object(saved), Value::Object(original)) => {
            for key in ["source", "view", "cell"] {
                if !original.contains_key(key) {
                    saved.remove(key);
                }
            }
            for (key, value) in saved {
                leave_out_guesses(value, original.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(saved), Value::Array(original)) => {
            for (saved, original) in saved.iter_mut().zip(original) {
                leave_out_guesses(saved, original);
            }
        }
        _ => {}
    }
}

#[test]
fn every_figure_of_the_tables_is_in_the_page_as_text() {
    let page = page(&[&results().join("ladder.json")]);
    let text = fs::read_to_string(results().join("ladder.json")).unwrap();
    let document: Document = serde_json::from_str(&text).unwrap();
    for row in &document.scenarios[0].rows {
        let rate = wrote_result::units::rate(row.throughput());
        let name = row.short_name();
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th>")), "{name}");
        let cell = format!("<td class=\"n\" data-label=\"throughput\">{rate}</td>");
        assert!(page.contains(&cell), "{cell}");
    }
}

/// Returns the parts of a page between two marks.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    page.split(begin).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

#[test]
fn the_title_of_a_page_is_the_answer_and_a_chart_comes_before_any_table_or_code() {
    for (name, answer) in [
        ("ladder", "the fastest that survives a power loss: "),
        ("fit", "etcd 3.4.23 on /data ("),
        ("load", "the knee: "),
        ("langs", "the fastest: rust: "),
        ("compare", "No difference found in any of 9 rows"),
        ("doctor", ": 0 risks, 2 pieces of advice"),
        ("trace", "1 of 2 files survives a power loss"),
    ] {
        let page = page(&[&results().join(format!("{name}.json"))]);
        let titles = between(&page, "<h1", "</h1>");
        assert!(titles.len() == 1 && titles[0].contains(answer), "{name}: {titles:?}");
        let badge = between(&page, "<details class=\"fold badge\">", "</section>");
        let rest = badge.first().map_or(page.clone(), |badge| page.replace(badge, ""));
        let place = |of: &str| rest.find(of).unwrap_or(rest.len());
        for later in ["<table", "<pre", "<dl"] {
            assert!(name == "doctor" || place("<svg") < place(later), "{name}: {later}");
        }
    }
    let page = page_of(&samples::document());
    assert!(between(&page, "<h1", "</h1>")[0].contains("/s"), "{page}");
}

#[test]
fn evidence_is_words_and_figures_with_units() {
    for name in names(&results()) {
        let page = page(&[&results().join(&name)]);
        for evidence in between(&page, "<dl class=\"evidence\">", "</dl>") {
            assert!(!evidence.contains('{') && !evidence.contains("&#34;"), "{name}: {evidence}");
        }
    }
    let page = page(&[&results().join("ladder.json")]);
    assert!(page.contains("<dt>foreign share</dt><dd>35 %</dd>"), "{page}");
}

#[test]
fn the_caveats_are_a_badge_that_counts_them() {
    let ladder = document_of("ladder.json");
    let page = page_of(&ladder);
    let badge = between(&page, "<details class=\"fold badge\">", "</details>\n</section>");
    let title = format!("<h2>{} things to know</h2>", ladder.findings.len());
    assert!(badge.len() == 1 && badge[0].contains(&title), "{badge:?}");
    assert!(ladder.findings.iter().all(|of| badge[0].contains(&of.id)), "{badge:?}");
    let critical = Finding::new("ram-not-disk", Severity::Critical, "No byte reached the disk");
    let open = page_of(&Document { findings: vec![critical], ..ladder });
    assert!(open.contains("<h2>1 thing to know</h2>") && !open.contains("fold badge"), "{open}");
}

#[test]
fn the_risk_of_a_command_stands_before_it_and_a_fine_check_has_no_command() {
    let path = results().join("doctor.json");
    let examination: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let page = page(&[&path]);
    let (rest, fine) = page.split_once("<h2>Fine</h2>").unwrap();
    let fine = fine.split("</details>\n</section>").next().unwrap();
    assert!(!fine.contains("<pre"), "{fine}");
    let mut changes = 0;
    for check in examination["checks"].as_array().unwrap() {
        let Some(command) = check["change"]["commands"][0].as_str() else { continue };
        let place = rest.find(&command.replace('>', "&#62;"));
        assert_eq!(place.is_some(), check["state"] != "fine", "{command}");
        let Some(place) = place else { continue };
        let risk = rest[..place].rfind("<b>risk</b>").expect("a risk");
        assert!(!rest[risk..place].contains("</pre>"), "{command}");
        changes += 1;
    }
    assert_eq!(changes, 2);
}

#[test]
fn each_cell_of_a_table_has_the_name_of_its_column() {
    let page = page(&[&results().join("ladder.json")]);
    let tables = between(&page, "<div class=\"table\" tabindex=\"0\">", "</table>");
    assert!(tables.len() > 1, "{page}");
    for table in tables {
        let (head, body) = table.split_once("</thead>").unwrap();
        let head = between(head, "<th scope=\"col\"", "</th>");
        let heads: Vec<&str> = head.iter().map(|of| of.split_once('>').unwrap().1).collect();
        for row in between(body, "<tr", "</tr>") {
            assert_eq!(between(row, "data-label=\"", "\">"), heads[1..], "{row}");
        }
    }
}

#[test]
fn an_answer_shows_this_library_first_and_then_the_standard_one() {
    let page = page_of(&samples::document());
    let [ours, std] =
        ["With the library wrote", "With the standard library"].map(|of| page.find(of));
    assert!(ours.is_some() && ours < std, "{page}");
    assert!(page.contains("wrote::Writer::create"), "{page}");
}

#[test]
fn an_older_result_has_percentiles_and_no_histogram() {
    let page = page(&[&results().join("ladder.json")]);
    assert!(page.contains("How long do the slowest operations take?"));
    assert!(!page.contains("Latency distribution"));
}

#[test]
fn fios_json_becomes_a_page() {
    let samples = results().join("../../../../wrote-jobs/src/import/samples");
    for name in names(&samples) {
        let page = page(&[&samples.join(&name)]);
        assert!(page.contains("<table ") && page.contains("fio-"), "{name}");
    }
}

#[test]
fn an_empty_result_becomes_a_page_that_says_so() {
    let empty = Document { schema: SCHEMA.into(), ..Document::default() };
    assert!(page_of(&empty).contains("This result has no measured row."));
}

/// Returns a document of ten thousand rows, each changed according to its number.
fn ten_thousand_rows(change: fn(&mut Row, usize)) -> Document {
    let mut document = samples::document();
    let rows = &mut document.scenarios[0].rows;
    *rows = vec![rows[0].clone(); 10_000];
    rows.iter_mut().enumerate().for_each(|(number, row)| change(row, number));
    document
}

#[test]
fn ten_thousand_rows_become_a_page_with_all_of_them() {
    let document = ten_thousand_rows(|row, number| {
        row.name = format!("{}/way-{number}", row.workload);
        row.way = format!("way {number}");
    });
    let page = page_of(&document);
    assert_eq!(page.matches("<th scope=\"row\">way-").count(), 10_000);
    assert!(page.contains("the table has the other 9960."));
}

#[test]
fn ten_thousand_workloads_become_a_page_with_charts_of_the_first() {
    let document = ten_thousand_rows(|row, number| {
        row.workload = format!("group {number}");
        row.name = format!("job {number}");
    });
    let page = page_of(&document);
    assert_eq!(page.matches("<th scope=\"row\">job ").count(), 10_000);
    assert!(page.matches("<figure>").count() < 200);
}

#[test]
fn a_file_that_is_no_result_gets_one_clear_line() {
    let folder = folder();
    let cases: [(&str, &[u8], &str); 8] = [
        ("empty", b"", "empty: is empty"),
        ("text", b"hello", "is not JSON"),
        ("object", b"{}", "is neither"),
        ("binary", b"\x00\xff\xfe{", "is not JSON"),
        ("other", b"{\"schema\":\"other/9\"}", "has schema other/9"),
        ("languages", b"{\"schema\":\"wrote.langs/1\"}", "has schema wrote.langs/1; wrote "),
        (
            "part",
            b"{\"schema\":\"wrote.doctor/1\"}",
            "is not a whole wrote.doctor/1: missing field",
        ),
        ("result", b"{\"schema\":\"wrote.result/1\"}", "is not a whole wrote.result/1"),
    ];
    for (name, bytes, told) in cases {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let finished = report(&[&path]);
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        let line = finished.complaint();
        assert!(line.contains(told) && line.contains(name), "{name}: {line}");
        assert_eq!(finished.stdout, "");
    }
    let missing = report(&[&folder.path().join("missing.json")]);
    assert!(missing.complaint().contains("No such file"), "{missing:?}");
}

#[test]
fn several_results_stand_side_by_side_and_those_of_one_machine_and_path_over_time() {
    let [one, other, ladder] =
        ["small1.json", "small2.json", "ladder.json"].map(|name| results().join(name));
    let over_time = page(&[&other, &one]);
    assert!(over_time.contains("2 results of /data over time"));
    assert!(
        over_time.contains("<h2>Over time</h2>") && over_time.contains("<h2>Side by side</h2>")
    );
    assert_eq!(saved(&over_time).len(), 2);
    let mut moved: Value = serde_json::from_str(&fs::read_to_string(&ladder).unwrap()).unwrap();
    moved["target"]["path"] = json!("/elsewhere");
    let folder = folder();
    let elsewhere = folder.path().join("elsewhere.json");
    fs::write(&elsewhere, moved.to_string()).unwrap();
    let beside = page(&[&one, &elsewhere]);
    assert!(beside.contains("2 results side by side"));
    assert!(!beside.contains("<h2>Over time</h2>") && beside.contains("<h2>Side by side</h2>"));
}

#[test]
fn a_change_over_time_is_marked_by_the_rule_of_compare() {
    let before = document_of("small1.json");
    let mut after = before.clone();
    after.started_at = "2026-11-25T08:00:00Z".into();
    for row in &mut after.scenarios[0].rows {
        let factor = if row.name == "small/o_dsync-each" { 0.01 } else { 1.0 };
        row.runs.iter_mut().for_each(|run| run.throughput_bytes_per_s *= factor);
    }
    let compared = wrote_result::compare::compare(&before, &after).unwrap();
    let slower = |row: &&wrote_result::compare::RowComparison| {
        row.verdict == wrote_result::compare::Verdict::Slower
    };
    let slower: Vec<&str> = compared.rows.iter().filter(slower).map(|row| &*row.name).collect();
    assert_eq!(slower, ["small/o_dsync-each"]);
    let named = |name: &str, document: &Document| Named {
        name: name.into(),
        content: Content::Result(Box::new(document.clone())),
    };
    let mut page = Vec::new();
    write_html(&[named("a", &before), named("b", &after)], &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("1 difference found from one result to the next.").count(), 1);
    assert_eq!(page.matches(">▼</text>").count(), 1, "a small chart has one layout");
}

fn document_of(name: &str) -> Document {
    import::read(name, &fs::read_to_string(results().join(name)).unwrap()).unwrap()
}

#[test]
fn a_benchmark_makes_its_page_beside_its_result_with_histograms_of_every_operation() {
    let folder = folder();
    let html = folder.path().join("a.html");
    let mut command = bench(folder.path(), "--only small/cached --runs 2 --size 1MB --format json");
    let finished = finish(command.arg("--html").arg(&html));
    let document = document(&finished);
    let row = &document.scenarios[0].rows[0];
    let text = row.latency_histogram_ns.as_deref().expect("operations were timed");
    let counted = stats::decode(text).expect("a histogram");
    let latency = row.latency_ns.unwrap();
    assert_eq!((counted.len(), counted.max()), (latency.count, latency.max));
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("Latency distribution"));
    assert_eq!(saved(&page), [serde_json::to_value(&document).unwrap()]);
}

#[test]
fn one_file_cannot_be_the_result_and_the_page() {
    let folder = folder();
    let file = folder.path().join("a");
    let mut command = bench(folder.path(), "--only small/cached --runs 1 --size 1MB");
    let finished = finish(command.arg("--html").arg(&file).arg("-o").arg(&file));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert!(finished.complaint().contains("is the file of --output"), "{finished:?}");
}

#[test]
fn a_comparison_makes_its_page() {
    let folder = folder();
    let html = folder.path().join("a.html");
    let mut command = wrote(&["compare"]);
    command.args([results().join("small1.json"), results().join("small2.json")]);
    let finished = finish(command.arg("--html").arg(&html));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(fs::read_to_string(&html).unwrap().contains("Which rows became faster or slower?"));
}

/// Adds markup to every free text in a document, and returns the number of texts.
fn spoil<T: serde::de::DeserializeOwned>(document: &mut Value, markup: &str) -> usize {
    let mut paths = Vec::new();
    collect(document, String::new(), &mut paths);
    let mut spoiled = 0;
    for path in paths {
        let before = document.pointer(&path).unwrap().clone();
        *document.pointer_mut(&path).unwrap() =
            format!("{}{markup}", before.as_str().unwrap()).into();
        match serde_json::from_value::<T>(document.clone()) {
            Ok(_) => spoiled += 1,
            Err(_) => *document.pointer_mut(&path).unwrap() = before,
        }
    }
    spoiled
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    let key = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::String(_) => paths.push(path),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(number, value)| collect(value, format!("{path}/{number}"), paths)),
        Value::Object(values) => values
            .iter()
            .for_each(|(name, value)| collect(value, format!("{path}/{}", key(name)), paths)),
        _ => {}
    }
}

#[test]
fn markup_in_any_text_of_any_document_stays_text() {
    const MARKUP: &str = "\"'><img src=x onerror=alert(1)></title></style></script><script>1";
    let folder = folder();
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(results().join(name)).unwrap()).unwrap()
    };
    let mut ladder = read("ladder.json");
    let rows = ladder["scenarios"][0]["rows"].as_array_mut().unwrap();
    rows.truncate(3);
    let mut langs = read("langs.json");
    langs["scenarios"][0]["rows"].as_array_mut().unwrap().truncate(2);
    let mut compared = read("compare.json");
    let mut examined = read("doctor.json");
    let spoiled = [
        spoil::<Document>(&mut ladder, MARKUP),
        spoil::<Document>(&mut langs, MARKUP),
        spoil::<wrote_result::compare::Comparison>(&mut compared, MARKUP),
        spoil::<wrote_result::doctor::Examination>(&mut examined, MARKUP),
    ];
    assert!(spoiled.iter().all(|texts| *texts > 20), "{spoiled:?}");
    for (name, mut value, schema) in [
        ("ladder", ladder, SCHEMA),
        ("langs", langs, SCHEMA),
        ("compare", compared, wrote_result::compare::SCHEMA),
        ("doctor", examined, wrote_result::doctor::SCHEMA),
    ] {
        value["schema"] = schema.into();
        let path = folder.path().join(format!("{name}<img src=x>.json"));
        fs::write(&path, value.to_string()).unwrap();
        let page = page(&[&path]);
        assert!(page.contains("&#60;img"), "{name}: the markup is there as text");
        assert!(!page.contains("<img") && !page.contains("<script>1"), "{name}");
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert_eq!(page.matches("</style").count(), 1, "{name}");
    }
}
