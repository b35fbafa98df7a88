//! Tests of the schema that `wrote bench --schema` prints, which accepts the documents of `wrote`,
//! and no others.

use crate::sample::{are_refused, are_taken, come_back, remove, replaced};
use fixtures::folder;
use serde_json::{Value, json};
use wrote_bench::{Bench, Common, Request};
use wrote_result::document::{Direction, Document, SCHEMA};
use wrote_result::{Stop, schema};

/// Returns a result with every possible key.
fn sample() -> Value {
    let settings = json!({
        "rw": "write", "ioengine": "io_uring", "bs_bytes": 524288, "size_bytes": 1000000000,
        "iodepth": 64, "numjobs": 1, "direct": true, "sync": "fdatasync-at-end", "blocks": "new",
        "registered_buffers": true, "registered_files": false, "ring_flags": ["SINGLE_ISSUER"],
        "sqpoll": false, "iopoll": true, "rwmixread_percent": 70,
        "bssplit": [{ "bytes": 4096, "percent": 60 }, { "bytes": 524288, "percent": 40 }],
        "runtime_s": 30.0, "time_based": true, "ramp_time_s": 2.5, "rate_bytes_per_s": 1000000.0,
        "rate_iops": 100.0, "rate_process": "poisson", "load_share": 0.7, "untimed": true,
        "nrfiles": 4, "loops": 2, "data": "zeros",
        "source_cache": "dropped", "verify": "crc32c", "message_bytes_min": 300, "messages": 100000,
        "producers": 4, "producers_are": "threads",
    });
    let records = json!({
        "sent": 5, "whole": 4, "lost": 1, "torn": 2, "doubled": 0, "out_of_order": 3,
    });
    let target = json!({
        "path": "/data", "filesystem": "ext4", "mount_options": ["rw"],
        "capacity_bytes": 1, "free_bytes": 0,
        "dio_offset_align_bytes": 512, "dio_memory_align_bytes": 4,
        "atomic_write_bytes_min": 4096, "atomic_write_bytes_max": 65536,
        "atomic_write_device_bytes_max": 0, "has_journal": true,
        "device": {
            "name": "sda1", "disks": ["sda"], "model": "M", "capacity_bytes": 1,
            "rotational": false, "scheduler": "none", "logical_block_bytes": 512,
            "physical_block_bytes": 4096, "optimal_io_bytes": 524288,
            "write_cache": "write back", "fua": true, "io_poll": false, "nr_requests": 64,
        },
        "no_device_because": "not with a device, but known to the schema",
        "limits": [{ "of": "cpus", "most": 1.5, "from": "/sys/fs/cgroup/cpu.max" }],
    });
    let sustained = json!({
        "file_bytes": 1000000000,
        "samples": [
            { "end_bytes": 1000000000, "end_s": 0.5, "throughput_bytes_per_s": 2e9 },
        ],
        "changes": [{
            "at_bytes": 500000000, "at_s": 0.25, "before_bytes_per_s": 2e9,
            "after_bytes_per_s": 2e8,
        }],
        "burst_bytes_per_s": { "median": 2e9, "ci95_low": 2e9, "ci95_high": 2e9 },
        "sustained_bytes_per_s": { "median": 2e8, "ci95_low": 2e8, "ci95_high": 2e8 },
        "recovered_bytes_per_s": { "median": 2e9, "ci95_low": 2e9, "ci95_high": 2e9 },
        "idle_s": 10.0,
        "steady_state": {
            "reached": true, "rounds_bytes_per_s": [2e8], "first_round": 1,
            "last_round": 5, "range_share": 0.1, "slope_share": 0.05,
        },
    });
    let row = json!({
        "name": "stream/direct-io_uring", "workload": "stream", "way": "direct",
        "view": "operations", "cell": { "title": "T", "side": "s", "head": "h" },
        "direction": "write",
        "survives": "process-crash", "bytes_per_run": 1000000000,
        "crash_leaves": "torn", "torn": "never",
        "settings": {
            "asked": settings, "effective": settings,
            "fallbacks": [{ "wanted": "a", "got": "b", "because": "c" }],
        },
        "runs": [{
            "bytes": 1000000000, "elapsed_s": 0.5, "throughput_bytes_per_s": 2e9,
            "iops": 3814.7, "cpu_user_s": 0.1, "cpu_system_s": 0.2,
            "context_switches": 9, "device_written_bytes": 1000000000,
            "device_read_bytes": 0, "max_rss_bytes": 50000000, "iodepth_reached": 64,
            "records": records, "cpu_busiest": { "cpu": 3, "busy_share": 0.5 },
            "cpu_waited_s": 0.1, "page_cache_bytes": 0, "unwritten_bytes": 4096,
        }],
        "throughput_bytes_per_s": { "median": 2e9, "ci95_low": 2e9, "ci95_high": 2e9 },
        "latency_ns": {
            "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p95": 3, "p99": 4, "p99_9": 5,
            "max": 6, "total": 18, "count": 7,
        },
        "sustained": sustained,
    });
    json!({
        "schema": SCHEMA,
        "wrote": { "version": "0.1.0", "commit": "abc", "debug_build": false },
        "started_at": "2026-01-02T03:04:05Z",
        "elapsed_s": 41.5,
        "source": "bench",
        "command": ["wrote", "bench"],
        "host": {
            "hostname": "h", "kernel": "6.1", "cpu_model": "c", "cpus": 2,
            "memory_bytes": 16000000000_u64, "virtualization": "none", "io_uring": "yes",
            "clocksource": "tsc", "clock_read_ns": 25.5,
        },
        "target": target,
        "scenarios": [{
            "name": "ladder", "question": "?",
            "rows": [row],
        }],
        "findings": [{
            "id": "debug-build", "severity": "warning", "text": "t", "evidence": { "rows": ["x"] },
        }],
        "advice": [{ "for": "streaming", "do": "d", "because": "b", "code": "c" }],
        "languages": [{
            "id": "go", "name": "Go", "way": "bufio, 4 KiB", "state": "missing",
            "version": "go version go1.26 linux/amd64", "because": "no go",
            "install": "apt install golang",
            "failures": { "langs/lines/go": "took longer than 15 min" },
        }],
    })
}

/// Returns the sample without its optional keys.
fn least() -> Value {
    let mut document = sample();
    let mut remove = |pointer: &str, keys: &[&str]| remove(&mut document, pointer, keys);
    remove("", &["languages"]);
    remove("/wrote", &["commit"]);
    remove("/host", &["clocksource", "clock_read_ns"]);
    let target = [
        "device",
        "dio_offset_align_bytes",
        "dio_memory_align_bytes",
        "atomic_write_bytes_min",
        "atomic_write_bytes_max",
        "atomic_write_device_bytes_max",
        "has_journal",
        "no_device_because",
        "limits",
    ];
    remove("/target", &target);
    let row = "/scenarios/0/rows/0";
    let optional = [
        "registered_buffers",
        "registered_files",
        "ring_flags",
        "sqpoll",
        "iopoll",
        "rwmixread_percent",
        "bssplit",
        "runtime_s",
        "time_based",
        "ramp_time_s",
        "rate_bytes_per_s",
        "rate_iops",
        "nrfiles",
        "loops",
        "data",
        "source_cache",
        "verify",
        "message_bytes_min",
        "messages",
        "producers",
        "producers_are",
    ];
    remove(&format!("{row}/settings/asked"), &optional);
    remove(&format!("{row}/settings/effective"), &optional);
    remove(row, &["survives", "crash_leaves", "torn", "latency_ns", "sustained"]);
    remove(
        &format!("{row}/runs/0"),
        &["device_written_bytes", "device_read_bytes", "max_rss_bytes", "records"],
    );
    let seen = ["cpu_busiest", "cpu_waited_s", "page_cache_bytes", "unwritten_bytes"];
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
    are_taken("the_schema_takes_what_wrote_writes", schema::<Document>(), &[sample(), least()]);
}

#[test]
fn the_schema_takes_a_result_of_whole_files() {
    let folder = folder();
    let request = Request {
        only: vec!["ways".into()],
        common: Common { size_bytes: Some(1 << 20), runs: Some(1), ..Common::default() },
        ..Request::new(folder.path().to_owned())
    };
    let document = Bench::new(&request).run(&Stop::new(), &mut ()).unwrap();
    assert!(document.scenarios[0].rows.iter().all(|row| row.latency_ns.is_none()));
    let document = serde_json::to_value(document).unwrap();
    are_taken("the_schema_takes_a_result_of_whole_files", schema::<Document>(), &[document]);
}

#[test]
fn the_schema_refuses_what_wrote_does_not_write() {
    let wrong = [
        with("/schema", json!("wrote.result/2")),
        with("/elapsed_s", json!("41.5")),
        with("/target/free_bytes", json!(-1)),
        with("/findings/0/severity", json!("grave")),
        with("/host", json!({ "hostname": "h" })),
        with("/languages/0/state", json!("absent")),
        with("/advice/0", json!({ "for": "a", "do": "b", "because": "c", "code": "d", "x": 1 })),
        json!({}),
    ];
    are_refused("the_schema_refuses_what_wrote_does_not_write", schema::<Document>(), &wrong);
}

#[test]
fn every_object_of_the_schema_says_what_its_keys_mean() {
    let schema = schema::<Document>();
    let definitions = schema["$defs"].as_object().unwrap().values();
    for object in definitions.chain([&schema]) {
        assert!(object["description"].is_string(), "{object}");
        let Some(properties) = object["properties"].as_object() else { continue };
        for (key, property) in properties {
            assert!(property["description"].is_string(), "{key}");
        }
    }
}

#[test]
fn every_key_of_the_schema_is_in_the_page_of_results() {
    const PAGE: &str = include_str!("../../../../docs/results.md");
    let schema = schema::<Document>();
    let definitions = schema["$defs"].as_object().expect("there are definitions").values();
    for object in definitions.chain([&schema]) {
        for (key, _) in object["properties"].as_object().into_iter().flatten() {
            assert!(PAGE.contains(&format!("`{key}`")), "{key} is not in docs/results.md");
        }
    }
}

#[test]
fn a_document_of_before_there_were_reads_has_writes_alone() {
    let mut document = sample();
    let row = document.pointer_mut("/scenarios/0/rows/0").unwrap().as_object_mut().unwrap();
    row.remove("direction").unwrap();
    let read: Document = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(read.scenarios[0].rows[0].direction, Direction::Write);
    are_taken(
        "a_document_of_before_there_were_reads_has_writes_alone",
        schema::<Document>(),
        &[document],
    );
}
