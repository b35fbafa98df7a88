//! Tests of the output of `--format fio-json`, which has the keys, types and units of fio's output.

use fixtures::samples::reports as sample;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use wrote_jobs::fio_report::{About, Form, document, logs};
use wrote_jobs::jobs::{GroupReport, Logged};

fn about<'a>(global: &'a [(String, String)]) -> About<'a> {
    let ended_at = "2026-03-01T09:30:02.5Z".parse().expect("a time");
    About { ended_at, global, device: Some("nvme0n1p2"), ..About::default() }
}

/// Returns the document of these groups, after writing and parsing it.
fn written(groups: &[GroupReport], global: &[(String, String)]) -> Value {
    let mut text = Vec::new();
    document(groups, &about(global)).write(&[Form::Json], &mut text).expect("memory");
    serde_json::from_slice(&text).expect("it is JSON")
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

/// Collects every key below `value`, with the type of its value. A list is represented by its first
/// element.
fn paths(value: &Value, path: String, found: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(object) => {
            for (key, value) in object {
                paths(value, format!("{path}/{key}"), found);
            }
            "object"
        }
        Value::Array(list) => {
            list.iter().take(1).for_each(|value| paths(value, format!("{path}[]"), found));
            "list"
        }
        Value::String(_) => "text",
        Value::Number(_) => "number",
        Value::Bool(_) => "true or false",
        Value::Null => "null",
    };
    found.insert(path, kind);
}

fn paths_of(value: &Value) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    paths(value, String::new(), &mut found);
    found
}

/// Returns fio's output for a tiny job that reads, writes and flushes. If fio is not installed,
/// skips the test and returns `None`.
fn fios_own(test: &str) -> Option<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let job = "[global]\nbs=4k\n[tiny]\nrw=randrw\nsize=1m\nfsync=8\niodepth=1\n";
    std::fs::write(folder.path().join("tiny.fio"), job).expect("a file");
    let fio = Command::new("fio")
        .args(["--output-format=json", "tiny.fio"])
        .current_dir(folder.path())
        .output();
    let Some(output) = fio.ok().filter(|output| output.status.success()) else {
        fixtures::skip(test, "fio is not installed");
        return None;
    };
    Some(serde_json::from_slice(&output.stdout).expect("fio writes JSON"))
}

#[test]
fn every_key_of_fios_own_output_is_there_with_its_type() {
    let test = "every_key_of_fios_own_output_is_there_with_its_type";
    let Some(fios) = fios_own(test) else { return };
    let mut job = sample::job("tiny", "randrw", 4096, 1 << 20);
    job.flush_ns = sample::latencies(&[100_000, 200_000]);
    job.spec.options =
        [("bs", "4k"), ("rw", "randrw"), ("size", "1m"), ("fsync", "8"), ("iodepth", "1")]
            .map(|(key, value)| pair(key, value))
            .into();
    let group = GroupReport { jobs: vec![job], ..sample::groups().remove(0) };
    let ours = written(&[group], &[pair("bs", "4k")]);
    let (ours, fios) = (paths_of(&ours), paths_of(&fios));
    // These keys exist only for a device on top of others.
    let left_out = |path: &str| path.starts_with("/disk_util[]/aggr");
    let missing: Vec<_> = fios
        .iter()
        .filter(|(path, kind)| !left_out(path) && ours.get(*path) != Some(kind))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(fios.len() > 150, "fio wrote little: {fios:?}");
}

#[test]
fn a_sequential_write_is_told_in_fios_units() {
    let document = written(&sample::groups(), &[]);
    assert_eq!(document["fio version"], "fio-3.42");
    assert_eq!(document["timestamp"], 1_772_357_402);
    assert_eq!(document["timestamp_ms"], 1_772_357_402_500_i64);
    assert_eq!(document["time"], "Sun Mar  1 09:30:02 2026");
    let job = &document["jobs"][0];
    assert_eq!(job["jobname"], "seq-write");
    let write = &job["write"];
    assert_eq!(write["io_bytes"], 1 << 30);
    assert_eq!((&write["io_kbytes"], &write["bw"]), (&json!(1 << 20), &json!(1 << 20)));
    assert_eq!((&write["runtime"], &write["total_ios"]), (&json!(1000), &json!(2048)));
    assert_eq!((&write["iops"], &write["bw_agg"]), (&json!(2048.0), &json!(100.0)));
    assert_eq!(write["bw_samples"], 2);
    assert_eq!(write["bw_min"], 943_718, "0.9 GiB/s in KiB/s");
    assert_eq!(write["iops_mean"], 2048.0);
    assert_eq!(write["slat_ns"]["N"], 0);
    assert_eq!(write["clat_ns"]["mean"], write["lat_ns"]["mean"]);
    assert_eq!(write["lat_ns"].get("percentile"), None, "without lat_percentiles=1");
    assert_eq!(write["clat_ns"]["N"], 2048);
    let median = write["clat_ns"]["percentile"]["50.000000"].as_u64().expect("nanoseconds");
    assert!((960_800..962_000).contains(&median), "{median}");
    assert_eq!((&job["usr_cpu"], &job["sys_cpu"]), (&json!(12.5), &json!(25.0)));
    assert_eq!(job["read"]["runtime"], 0);
    assert_eq!(job["read"]["clat_ns"].get("percentile"), None);
    assert_eq!(
        job["iodepth_level"],
        json!({
            "1": 50.0, "2": 0.0, "4": 0.0, "8": 0.0, "16": 0.0, "32": 0.0, ">=64": 50.0
        })
    );
    let below = |unit: &str| -> f64 {
        job[unit].as_object().expect("shares").values().filter_map(Value::as_f64).sum()
    };
    let all = below("latency_ns") + below("latency_us") + below("latency_ms");
    assert!((all - 100.0).abs() < 1e-6, "{all}");
    assert_eq!(document["disk_util"][0]["name"], "nvme0n1p2");
    assert_eq!(document["disk_util"][0]["write_sectors"], ((1 << 30) + (16 << 20)) / 512);
}

#[test]
fn clones_are_entries_of_their_own_unless_the_group_is_reported_as_one() {
    let mut groups = sample::groups();
    let names = |document: &Value| -> Vec<String> {
        let jobs = document["jobs"].as_array().expect("a list");
        jobs.iter().map(|job| job["jobname"].as_str().expect("a name").to_owned()).collect()
    };
    let apart = written(&groups, &[]);
    assert_eq!(names(&apart), ["seq-write", "reader", "reader", "mix"]);
    assert_eq!(apart["jobs"][1]["job options"]["numjobs"], "2");
    for job in &mut groups[1].jobs {
        job.spec.group_reporting = true;
    }
    groups[1].jobs[1].elapsed = Duration::from_millis(500);
    let together = written(&groups, &[]);
    assert_eq!(names(&together), ["seq-write", "reader"]);
    let group = &together["jobs"][1];
    assert_eq!(group["read"]["io_bytes"], (64 + 64 + 16) << 20);
    assert_eq!(group["write"]["io_bytes"], 16 << 20);
    assert_eq!(group["read"]["runtime"], 1000, "from the first start to the last end");
    assert_eq!(group["job_runtime"], 2500, "of all jobs, added up");
    assert_eq!(group["usr_cpu"], 15.0, "of the time that the jobs took");
    assert_eq!(group["sync"]["total_ios"], 3);
    // As in fio, the samples and the means of the jobs are added up.
    assert_eq!(group["read"]["bw_samples"], 6);
    assert_eq!(group["read"]["bw_mean"], f64::from((64 + 64 + 16) << 10));
}

#[test]
fn readers_find_rw_bs_iodepth_and_numjobs_whatever_the_file_calls_them() {
    let mut groups = sample::groups();
    groups[0].jobs[0].spec.options = [pair("readwrite", "write"), pair("size", "1g")].into();
    let options = &written(&groups, &[])["jobs"][0]["job options"];
    assert_eq!(
        *options,
        json!({
            "readwrite": "write", "size": "1g", "rw": "write", "bs": "512k", "iodepth": "64",
            "numjobs": "1"
        })
    );
}

#[test]
fn a_global_option_that_a_section_changes_is_the_jobs_own() {
    let global = [pair("ioengine", "io_uring"), pair("bs", "4k")];
    let document = written(&sample::groups(), &global);
    assert_eq!(document["global options"], json!({ "ioengine": "io_uring" }));
    assert_eq!(document["jobs"][0]["job options"]["bs"], "512k");
}

#[test]
fn without_counters_no_disk_is_told_of() {
    let mut groups = sample::groups();
    groups[1].device = None;
    assert_eq!(written(&groups, &[])["disk_util"], json!([]));
}

#[test]
fn reads_of_do_verify_are_reads_and_elapsed_has_the_delay_and_the_ramp() {
    let mut groups = sample::groups();
    groups.truncate(1);
    let job = &mut groups[0].jobs[0];
    let reads = job.write.clone();
    job.read_back = Some((reads, Duration::from_millis(500)));
    (job.ramp, job.spec.pace.startdelay) = (Duration::from_secs(3), Duration::from_secs(2));
    let start_ms = job.started_at.as_millisecond();
    let document = written(&groups, &[]);
    let job = &document["jobs"][0];
    assert_eq!(
        (&job["read"]["io_bytes"], &job["read"]["total_ios"]),
        (&json!(1 << 30), &json!(2048))
    );
    assert_eq!((&job["read"]["runtime"], &job["read"]["iops"]), (&json!(500), &json!(4096.0)));
    assert_eq!(
        (&job["read"]["bw_agg"], &job["read"]["clat_ns"]["N"]),
        (&json!(100.0), &json!(2048))
    );
    assert_eq!((&job["write"]["runtime"], &job["elapsed"]), (&json!(1000), &json!(7)));
    assert_eq!((&job["job_start"], &job["job_runtime"]), (&json!(start_ms - 3000), &json!(1500)));
}

#[test]
fn log_files_have_fios_names_and_lines() {
    let mut groups = sample::groups();
    groups.truncate(1);
    let job = &mut groups[0].jobs[0];
    let logged = |at_ms, latency_ns, operations| Logged {
        at_ms,
        write: true,
        latency_ns,
        bytes: operations * 4096,
        operations,
        span_ms: 500,
        offset: 8192,
    };
    let options = [pair("write_bw_log", "out"), pair("write_lat_log", "1"), pair("rw", "write")];
    job.spec.options = options.into();
    job.log = vec![logged(500, 90_000, 100), logged(1000, 110_000, 200)];
    job.spec.log = Some(Duration::from_millis(500));
    let files = logs(&groups, true);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "agg-read_bw.log",
            "agg-write_bw.log",
            "agg-trim_bw.log",
            "out_bw.1.log",
            "seq-write_slat.1.log",
            "seq-write_clat.1.log",
            "seq-write_lat.1.log"
        ]
    );
    assert_eq!(files[1].1, "500, 800, 1, 0, 0\n1000, 1600, 1, 0, 0\n");
    assert_eq!(files[3].1, files[1].1);
    assert_eq!(files[5].1, "500, 90000, 1, 0, 0\n1000, 110000, 1, 0, 0\n");
    let job = &mut groups[0].jobs[0];
    job.spec.log = Some(Duration::ZERO);
    let options =
        [pair("write_bw_log", "out"), pair("write_lat_log", "1"), pair("log_offset", "1")];
    job.spec.options = options.into();
    groups[0].jobs[0].log = vec![logged(3, 2_000_000, 1)];
    let files = logs(&groups, false);
    assert_eq!(files[0].1, "3, 2000, 1, 4096, 8192, 0\n");
    assert_eq!((files[1].1.as_str(), files[2].1.as_str()), ("", "3, 2000000, 1, 4096, 8192, 0\n"));
}
