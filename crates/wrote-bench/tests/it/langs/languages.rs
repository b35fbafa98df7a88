//! The embedded languages, and documents that the schema of a comparison accepts or rejects.

use crate::sample::{are_refused, are_taken, come_back, remove, replaced};
use fixtures::{HONEST_LANGUAGE, folder};
use serde_json::{Value, json};
use std::path::PathBuf;
use wrote_bench::langs::{Request, catalogue, langs};
use wrote_result::langs::{Document, SCHEMA, State, schema};
use wrote_result::{Error, Stop};

/// Returns a result with every possible key.
fn sample() -> Value {
    let interval = json!({ "median": 2e9, "ci95_low": 1e9, "ci95_high": 3e9 });
    json!({
        "schema": SCHEMA,
        "wrote": { "version": "0.1.0", "commit": "abc", "debug_build": false },
        "started_at": "2026-01-02T03:04:05Z",
        "elapsed_s": 41.5,
        "command": ["wrote", "langs"],
        "host": {
            "hostname": "h", "kernel": "6.1", "cpu_model": "c", "cpus": 2,
            "memory_bytes": 16000000000_u64, "virtualization": "none", "io_uring": "yes",
            "clocksource": "tsc", "clock_read_ns": 25.5,
        },
        "languages": [{
            "id": "go", "name": "Go", "way": "bufio, 4 KiB", "state": "missing",
            "version": "go version go1.26 linux/amd64", "because": "no go",
            "install": "apt install golang",
        }],
        "places": [{
            "target": {
                "path": "/data", "filesystem": "ext4", "mount_options": ["rw"],
                "capacity_bytes": 1, "free_bytes": 0,
            },
            "drive": {
                "write_row": "peak/write/512k-64-registered", "write_bytes_per_s": interval,
                "read_row": "peak/read/512k-64-registered", "read_bytes_per_s": interval,
            },
            "workloads": [{
                "name": "save/500", "words": "a text saved", "bytes": 500, "cache": "page cache",
                "survives": "process-crash",
                "rows": [{
                    "language": "go",
                    "runs": [{
                        "bytes": 500, "elapsed_s": 0.5, "process_s": 0.6, "cpu_user_s": 0.1,
                        "cpu_system_s": 0.2, "max_rss_bytes": 50000000,
                        "device_written_bytes": 4096,
                        "device_read_bytes": 0, "dropped": false,
                    }],
                    "throughput_bytes_per_s": interval,
                    "throughput_mean_bytes_per_s": 2e9,
                    "cpu_s_per_gb": 1.5,
                    "max_rss_bytes": 50000000,
                    "latency_ns": {
                        "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p95": 3, "p99": 4, "p99_9": 5,
                        "max": 6, "total": 18, "count": 7,
                    },
                }],
                "failures": [{ "language": "cpp", "because": "took longer than 15 min" }],
            }],
        }],
    })
}

/// Returns the sample without its optional keys.
fn least() -> Value {
    let mut document = sample();
    let mut remove = |pointer: &str, keys: &[&str]| remove(&mut document, pointer, keys);
    remove("/languages/0", &["version", "because", "install"]);
    remove("/places/0", &["drive"]);
    remove("/places/0/workloads/0", &["survives"]);
    let row = "/places/0/workloads/0/rows/0";
    remove(row, &["max_rss_bytes", "latency_ns"]);
    let seen = ["max_rss_bytes", "device_written_bytes", "device_read_bytes"];
    remove(&format!("{row}/runs/0"), &seen);
    document
}

fn with(pointer: &str, value: Value) -> Value {
    replaced(sample(), pointer, value)
}

#[test]
fn the_sample_is_what_wrote_reads_and_writes() {
    come_back::<Document>(&[sample(), least()]);
}

#[test]
fn the_schema_takes_what_wrote_writes() {
    are_taken("the_schema_takes_what_wrote_writes", schema(), &[sample(), least()]);
}

#[test]
fn the_schema_refuses_what_wrote_does_not_write() {
    let wrong = [
        with("/schema", json!("wrote.result/1")),
        with("/languages/0/state", json!("absent")),
        with("/languages/0/version", json!(1.26)),
        with("/places/0/drive/write_row", json!(7)),
        with("/places/0/workloads/0/bytes", json!(-1)),
        with("/places/0/workloads/0/failures/0", json!({ "language": "cpp" })),
        with("/places/0/workloads/0/rows/0/runs/0/process_s", json!("0.6")),
        with("/places/0/workloads/0/rows/0/runs/0/dropped", Value::Null),
        json!({}),
    ];
    are_refused("the_schema_refuses_what_wrote_does_not_write", schema(), &wrong);
}

/// The languages of the original comparison, and ours.
const IDS: [&str; 13] = [
    "c",
    "cpp",
    "cpp-get-put",
    "go",
    "java",
    "kotlin",
    "scala",
    "python",
    "ruby",
    "node",
    "zig",
    "rust",
    "wrote",
];

#[test]
fn every_language_is_told_whether_it_is_there_or_not_and_wrote_only_where_it_is_at_hand() {
    let found = catalogue(&[]).unwrap().find(None, &Stop::new()).unwrap();
    assert!(found.iter().all(|found| !found.id.starts_with("wrote")), "{found:?}");
    for id in IDS.into_iter().filter(|id| *id != "wrote") {
        let of = found.iter().find(|found| found.id == id);
        let language = of.unwrap_or_else(|| panic!("no {id}: {found:?}"));
        assert!(!language.name.is_empty() && !language.way.is_empty(), "{language:?}");
        let is_line = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| !text.trim().is_empty() && text.lines().count() == 1)
        };
        match language.state {
            State::Ready => assert!(is_line(&language.version), "{language:?}"),
            State::Missing => {
                assert!(is_line(&language.install) && is_line(&language.because), "{language:?}");
            }
            State::BuildFailed => panic!("nothing was built: {language:?}"),
        }
    }
}

/// Returns a request for the well-behaved sh language in `folder`.
fn request(folder: &tempfile::TempDir) -> Request {
    let language = folder.path().join("honest");
    std::fs::create_dir(&language).unwrap();
    let manifest = "name = 'Honest'
        way = 'printf'
        install = 'nothing'
        [[toolchain]]
        version = ['sh', '-c', 'echo 1.0']
        run = ['sh', '{source}/program.sh']";
    std::fs::write(language.join("manifest.toml"), manifest).unwrap();
    let program = format!("{HONEST_LANGUAGE}\nmain \"$@\"\n");
    std::fs::write(language.join("program.sh"), program).unwrap();
    let paths = vec![target(folder)];
    std::fs::create_dir(&paths[0]).unwrap();
    Request {
        only: vec!["honest".into()],
        add: vec![language],
        size_bytes: Some(5000),
        runs: 2,
        saves: Some(3),
        lines: Some(20),
        ..Request::new(paths, folder.path().join("cache"))
    }
}

fn target(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("target")
}

fn is_empty(folder: &tempfile::TempDir) -> bool {
    std::fs::read_dir(target(folder)).unwrap().next().is_none()
}

#[test]
fn a_comparison_that_is_stopped_before_it_begins_makes_nothing() {
    let folder = folder();
    let stop = Stop::new();
    stop.request();
    let stopped = langs(&request(&folder), &stop, &mut ());
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!(is_empty(&folder));
}

#[test]
fn nonsense_is_refused_and_nothing_is_made() {
    let folder = folder();
    let good = request(&folder);
    for wrong in [
        Request { paths: Vec::new(), ..good.clone() },
        Request { size_bytes: Some(0), ..good.clone() },
        Request { runs: 0, ..good.clone() },
        Request { saves: Some(0), ..good.clone() },
        Request { lines: Some(0), ..good.clone() },
        Request { only: vec!["no-such-language".into()], ..good.clone() },
    ] {
        let refused = langs(&wrong, &Stop::new(), &mut ());
        let Err(Error::Usage(line)) = refused else { panic!("{wrong:?}: {refused:?}") };
        assert!(!line.is_empty() && line.lines().count() == 1, "{line}");
        assert!(is_empty(&folder));
    }
}
