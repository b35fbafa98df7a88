use super::*;
use crate::sample;
use wrote_result::document::{Blocks, Direction, Flush, Ioengine, Process, Row, Survives};

/// The result of fio 3.33 for jobs of a few MB.
const DIRECTIONS: &str = include_str!("samples/directions.json");
const FLUSHES: &str = include_str!("samples/flushes.json");
/// The result of the disk test that etcd recommends: `--rw=write --ioengine=sync --fdatasync=1
/// --size=220k --bs=2300`.
const ETCD: &str = include_str!("samples/etcd.json");
const COMMAND_LINE: &str = include_str!("samples/command-line.json");

fn document(text: &str) -> Document {
    read("result.json", text).unwrap()
}

fn row<'a>(document: &'a Document, name: &str) -> &'a Row {
    document.scenarios[0].rows.iter().find(|row| row.name == name).unwrap()
}

fn refusal(text: &str) -> String {
    let Err(Error::Usage(line)) = read("result.json", text) else { panic!("must be refused") };
    assert!(line.starts_with("result.json: ") && !line.contains('\n'), "{line}");
    line
}

#[test]
fn a_result_of_ours_is_read_as_it_was_written() {
    let ours = sample::document(vec![sample::row("stream/cached", "power-loss", &[1e9])]);
    let value = serde_json::to_value(&ours).unwrap();
    let read = document(&value.to_string());
    assert_eq!(serde_json::to_value(read).unwrap(), value);
    assert!(!ours.is_imported());
}

#[test]
fn of_several_documents_of_fio_the_last_whole_one_is_read() {
    // With `--status-interval`, fio prints a document at each interval.
    let early = DIRECTIONS.replace("\"jobname\":\"", "\"jobname\":\"early-");
    let names = |text: &str| -> Vec<String> {
        document(text).scenarios[0].rows.iter().map(|row| row.name.clone()).collect()
    };
    let wanted = names(DIRECTIONS);
    assert_ne!(names(&early), wanted);
    for text in [
        format!("{early}\n{early}\n{DIRECTIONS}"),
        format!("fio: a warning\n{early}\n{DIRECTIONS}\n"),
        format!("{early}\n{DIRECTIONS}\n{}", &early[..early.len() / 2]),
    ] {
        assert_eq!(names(&text), wanted);
    }
}

#[test]
fn the_latency_of_a_job_that_flushes_each_write_is_that_of_the_flush() {
    // M11: fio reports the times of writes and of flushes separately.
    let document = document(ETCD);
    let row = row(&document, "etcd");
    assert_eq!(row.settings.effective.sync, Flush::FdatasyncEach);
    assert_eq!(row.latency_ns.unwrap().p99, 33_024);
    let flush = row.flush_latency_ns.unwrap();
    assert_eq!((flush.p99, flush.count, row.durable_latency_ns), (577_536, 97, None));
    assert_eq!(row.latency(), Some(&flush));
}

#[test]
fn figures_of_fio_that_cannot_be_compared_are_named() {
    let failed = DIRECTIONS.replace("\"error\":0", "\"error\":5");
    assert!(
        refusal(&failed).contains(": all of its jobs failed, such as "),
        "{}",
        refusal(&failed)
    );
    let mixed = DIRECTIONS.replace("\"read\":{", "\"mixed\":{");
    assert!(refusal(&mixed).contains("unified_rw_reporting=mixed"), "{}", refusal(&mixed));
}

#[test]
fn keys_that_a_later_version_added_are_passed_over() {
    let ours = sample::document(vec![sample::row("stream/cached", "power-loss", &[1e9])]);
    let value = serde_json::to_value(&ours).unwrap();
    let mut later = value.clone();
    for place in
        ["", "/target/device", "/scenarios/0/rows/0/settings/asked", "/scenarios/0/rows/0/runs/0"]
    {
        later.pointer_mut(place).unwrap()["later"] = serde_json::json!({ "a": [1] });
    }
    assert_eq!(serde_json::to_value(document(&later.to_string())).unwrap(), value);
}

#[test]
fn figures_that_no_disk_can_have_are_read_as_the_largest_there_are() {
    let most = u64::MAX;
    let write = format!(r#"{{"io_bytes":{most},"total_ios":{most},"bw_bytes":1e308,"runtime":1}}"#);
    let options = r#"{"rw":"write","size":"16000000t","numjobs":"4000000000"}"#;
    let job = format!(
        r#"{{"jobname":"a","job options":{options},"read":{{"bw_bytes":0}},"write":{write}}}"#
    );
    for jobs in [job.clone(), format!("{job},{job}")] {
        let text = format!(r#"{{"fio version":"fio-3.33","jobs":[{jobs}]}}"#);
        let document = document(&text);
        let row = row(&document, "a");
        assert_eq!((row.runs[0].bytes, row.settings.asked.size_bytes), (most, most));
    }
}

#[test]
fn a_text_that_is_no_result_is_refused_in_one_line() {
    for (text, told) in [
        ("", "is empty"),
        ("no", "is not JSON (expected ident at line 1"),
        ("[1]", "is neither a result of wrote"),
        ("{}", "is neither a result of wrote"),
        (r#"{"schema":"wrote.result/2"}"#, "has schema wrote.result/2; wrote"),
        (r#"{"schema":"wrote.compare/1"}"#, "is a comparison, not a result"),
        (r#"{"schema":"wrote.result/1"}"#, "is not a whole wrote.result/1: missing field `wrote`"),
        (r#"{"fio version":"fio-3.33"}"#, "is neither a result of wrote"),
        (r#"{"fio version":"fio-3.33","client_stats":[]}"#, "of several machines"),
        (r#"{"fio version":"fio-2.1","jobs":[{"jobname":"a","read":{},"write":{}}]}"#, "fio 3"),
        (
            r#"{"fio version":"fio-3.33","jobs":[]}"#,
            "none of its jobs has read or written \
                                                     anything",
        ),
    ] {
        let line = refusal(text);
        assert!(line.contains(told), "{text}: {line}");
    }
}

#[test]
fn each_job_and_direction_of_fio_is_a_row_with_its_settings() {
    let document = document(DIRECTIONS);
    assert!(document.is_imported());
    assert_eq!(document.wrote.version, "fio-3.33");
    let names: Vec<&str> = document.scenarios[0].rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["cached", "flushed", "direct", "both/read", "both/write"]);
    let cached = row(&document, "cached");
    let asked = &cached.settings.asked;
    assert_eq!((asked.rw.as_str(), &asked.ioengine), ("write", &Ioengine::Psync));
    assert_eq!((asked.bs_bytes, asked.size_bytes, asked.direct), (4096, 2 << 20, false));
    assert_eq!(cached.runs[0].bytes, 2 << 20);
    let read = row(&document, "both/read");
    assert_eq!((read.direction, read.settings.asked.sync), (Direction::Read, Flush::None));
    assert_eq!(read.settings.asked.rwmixread_percent, Some(70));
    assert_eq!(row(&document, "both/write").settings.asked.sync, Flush::FdatasyncEvery(8));
    assert!(read.latency_ns.is_some_and(|latency| latency.p99 > latency.p50 && latency.count > 0));
}

#[test]
fn the_clones_of_a_job_are_one_row() {
    let document = document(DIRECTIONS);
    let direct = row(&document, "direct");
    let asked = &direct.settings.asked;
    assert_eq!((asked.numjobs, asked.iodepth, asked.direct), (2, 8, true));
    assert_eq!((asked.bs_bytes, asked.size_bytes), (8192, 4 << 20));
    // Each job wrote 2 MiB in 11 ms.
    assert_eq!((direct.runs[0].bytes, direct.runs[0].elapsed_s), (4 << 20, 0.011));
    assert!((direct.runs[0].throughput_bytes_per_s - 381_300_363.0).abs() < 1.0);
    assert_eq!(direct.latency_ns, None, "percentiles of two jobs are none of both");
}

#[test]
fn a_write_that_is_not_flushed_within_its_clock_is_found() {
    let document = document(DIRECTIONS);
    let ids: Vec<&str> = document.findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, ["flush-outside-clock"]);
    let finding = &document.findings[0];
    // Jobs that end with a flush, flush every few writes, are direct, or read are not listed.
    assert_eq!(finding.evidence["rows"], serde_json::json!(["cached"]));
    assert!(finding.text.contains("end_fsync=1") && finding.text.contains("direct=1"));
}

#[test]
fn a_flush_on_close_is_outside_of_the_clock_and_one_of_every_write_is_not() {
    let document = document(FLUSHES);
    let [no_io, finding] = &document.findings[..] else { panic!("{:?}", document.findings) };
    assert_eq!((&*no_io.id, &*finding.id), ("no-io", "flush-outside-clock"));
    let of_null = |row: &&Row| row.settings.asked.ioengine.to_string() == "null";
    let rows: Vec<&str> =
        document.scenarios[0].rows.iter().filter(of_null).map(|row| row.name.as_str()).collect();
    assert_eq!(no_io.evidence["rows"], serde_json::json!(rows));
    assert_eq!(finding.evidence["rows"], serde_json::json!(["closed", "paced"]));
    assert_eq!(finding.evidence["fsync_on_close"], serde_json::json!(["closed"]));
    assert!(finding.text.contains("after the clock"), "{}", finding.text);
    assert_eq!(row(&document, "log").settings.asked.sync, Flush::ODsyncEach);
    let tail = &row(&document, "tail").settings.asked;
    assert_eq!((tail.sync, tail.bs_bytes), (Flush::FsyncEvery(32), 64 << 10));
    assert_eq!(tail.bssplit.as_ref().map(Vec::len), Some(2));
    let paced = &row(&document, "paced").settings.asked;
    assert_eq!((paced.rate_iops, paced.rate_process), (Some(2000.0), Some(Process::Poisson)));
}

#[test]
fn a_job_of_the_command_line_is_read_and_what_fio_says_before_it_passed_over() {
    let text = format!("fio: a warning {{\n{COMMAND_LINE}fio: another\n");
    let document = document(&text);
    let asked = &row(&document, "one").settings.asked;
    assert_eq!((asked.bs_bytes, asked.direct, asked.numjobs), (1 << 20, false, 1));
    assert_eq!(document.findings[0].id, "flush-outside-clock");
}

#[test]
fn pauses_and_a_distribution_of_fios_job_are_settings_of_its_row() {
    let mut value: Value = serde_json::from_str(DIRECTIONS).unwrap();
    let options = &mut value["jobs"][0]["job options"];
    (options["thinktime"], options["random_distribution"]) = ("1500".into(), "zipf:1.2".into());
    let document = document(&value.to_string());
    let asked = &row(&document, "cached").settings.asked;
    assert_eq!((asked.thinktime_s, asked.thinktime_blocks), (Some(0.0015), Some(1)));
    assert_eq!(asked.random_distribution.as_deref(), Some("zipf:1.2"));
    assert_eq!(row(&document, "flushed").settings.asked.thinktime_s, None);
}

#[test]
fn a_job_that_failed_is_left_out_and_said_so() {
    let mut value: Value = serde_json::from_str(DIRECTIONS).unwrap();
    value["jobs"][0]["error"] = 28.into();
    let document = document(&value.to_string());
    let left_out = document.findings.iter().find(|finding| finding.id == "left-out").unwrap();
    assert_eq!(left_out.text, "Not measured: cached (fio: error 28)");
    assert!(document.scenarios[0].rows.iter().all(|row| row.name != "cached"));
}

#[test]
fn fios_result_is_held_against_ours_where_both_know() {
    let fios = document(DIRECTIONS);
    let mut ours = fios.clone();
    ours.wrote.version = "0.1.0".into();
    ours.host.kernel = "6.18".into();
    for row in &mut ours.scenarios[0].rows {
        row.settings.asked.blocks = Blocks::New;
        row.settings.asked.registered_buffers = Some(true);
        row.survives = Some(Survives::PowerLoss);
    }
    let comparison = compare::compare(&fios, &ours).unwrap();
    assert_eq!(comparison.rows.len(), 5);
    let keys: Vec<&str> = comparison.differences.iter().map(|of| of.key.as_str()).collect();
    assert_eq!(keys, ["wrote.version"]);
    ours.scenarios[0].rows.iter_mut().for_each(|row| row.settings.asked.bs_bytes = 1);
    assert!(compare::compare(&fios, &ours).is_err());
}
