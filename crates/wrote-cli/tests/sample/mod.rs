//! A made-up result with everything in it that the exports show.

use std::collections::BTreeMap;
use wrote_result::document::*;
use wrote_result::stats;

const KIB: u64 = 1 << 10;
const STREAM_BYTES: u64 = 1 << 30;

/// A way of writing: name, words, what it survives, MB/s of each run, P50 of a write in us.
type Way = (&'static str, &'static str, &'static str, [f64; 3], u64);

const STREAM: [Way; 7] = [
    ("cached", "cached", "process-crash", [2410.0, 2380.0, 2502.0], 98),
    (
        "cached-fdatasync",
        "cached, fdatasync at the end",
        "power-loss",
        [1690.0, 1702.0, 1655.0],
        101,
    ),
    (
        "direct-psync",
        "direct, one at a time (psync)",
        "process-crash",
        [1904.0, 1911.0, 1899.0],
        268,
    ),
    (
        "direct-io_uring",
        "direct through io_uring",
        "process-crash",
        [3310.0, 3290.0, 3342.0],
        9_870,
    ),
    (
        "direct-io_uring-fdatasync",
        "direct through io_uring, fdatasync at the end",
        "power-loss",
        [3215.0, 3202.0, 3230.0],
        9_905,
    ),
    ("dsync-each", "O_DSYNC each write", "power-loss", [412.0, 398.0, 431.0], 1_190),
    (
        "fdatasync-each",
        "cached, fdatasync after each write",
        "power-loss",
        [296.0, 181.0, 305.0],
        1_702,
    ),
];

const SMALL: [Way; 4] = [
    ("cached", "cached", "process-crash", [1490.0, 1512.0, 1475.0], 2),
    ("direct-psync", "direct over written blocks", "os-crash", [62.1, 60.8, 63.0], 64),
    ("dsync-each", "O_DSYNC each write", "power-loss", [4.91, 4.85, 4.97], 810),
    ("fdatasync-each", "fdatasync after each write", "power-loss", [3.62, 3.60, 3.71], 1_104),
];

/// The document.
pub fn document() -> Document {
    Document {
        schema: SCHEMA.into(),
        wrote: Program {
            version: "0.1.0".into(),
            commit: Some("0b621bf".into()),
            debug_build: false,
        },
        started_at: "2026-03-21T09:30:00Z".into(),
        elapsed_s: 48.2,
        command: ["wrote", "bench", "/mnt/data"].map(String::from).to_vec(),
        host: host(),
        target: target(),
        scenarios: vec![scenario()],
        findings: findings(),
        advice: advice(),
    }
}

fn host() -> Host {
    Host {
        hostname: "workbench".into(),
        kernel: "6.18.5-arch1-1".into(),
        cpu_model: "AMD Ryzen 9 7950X 16-Core Processor".into(),
        cpus: 32,
        memory_bytes: 67_108_864_000,
        virtualization: "none".into(),
        io_uring: "yes".into(),
        clocksource: None,
        clock_read_ns: None,
    }
}

fn target() -> Target {
    Target {
        path: "/mnt/data".into(),
        filesystem: "ext4".into(),
        mount_options: ["rw", "noatime", "data=ordered", "errors=remount-ro"]
            .map(String::from)
            .to_vec(),
        capacity_bytes: 983_349_346_304,
        free_bytes: 118_001_921_556,
        dio_offset_align_bytes: Some(512),
        dio_memory_align_bytes: Some(4),
        device: Some(Device {
            name: "nvme0n1p2".into(),
            disks: vec!["nvme0n1".into()],
            model: Some("Samsung SSD 990 PRO 1TB".into()),
            capacity_bytes: 999_126_892_544,
            rotational: false,
            scheduler: "none".into(),
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            write_cache: "write back".into(),
            fua: true,
            io_poll: false,
            nr_requests: 1023,
        }),
        no_device_because: None,
        limits: Vec::new(),
    }
}

fn scenario() -> Scenario {
    let stream = STREAM.iter().map(|way| row("stream", way, 512 * KIB));
    let small = SMALL.iter().map(|way| row("small", way, 4 * KIB));
    Scenario {
        name: "ladder".into(),
        question: "How fast is a sequential write at each level of safety?".into(),
        rows: stream.chain(small).collect(),
        knee: None,
    }
}

fn row(workload: &str, way: &Way, bs_bytes: u64) -> Row {
    let (name, words, survives, mb_per_s, p50_us) = *way;
    let runs: Vec<Run> = mb_per_s.iter().map(|rate| run(workload, *rate, bs_bytes)).collect();
    let rates: Vec<f64> = runs.iter().map(|run| run.throughput_bytes_per_s).collect();
    let effective = settings(name, bs_bytes);
    let mut asked = effective.clone();
    let mut fallbacks = Vec::new();
    if name == "direct-psync" && workload == "stream" {
        asked.registered_buffers = Some(true);
        fallbacks.push(Fallback {
            wanted: "registered buffers".into(),
            got: "plain buffers".into(),
            because: "io_uring_register: Cannot allocate memory (os error 12)".into(),
        });
    }
    Row {
        name: format!("{workload}/{name}"),
        workload: workload.into(),
        way: words.into(),
        direction: Direction::Write,
        survives: Some(survives.into()),
        bytes_per_run: runs[0].bytes,
        settings: SettingsPair { asked, effective, fallbacks },
        throughput_bytes_per_s: stats::interval(&rates),
        latency_ns: Some(latency(p50_us * 1000)),
        crash_leaves: None,
        sustained: None,
        runs,
    }
}

fn settings(name: &str, bs_bytes: u64) -> Settings {
    Settings {
        rw: "write".into(),
        ioengine: if name.contains("io_uring") { "io_uring" } else { "psync" }.into(),
        bs_bytes,
        size_bytes: STREAM_BYTES,
        iodepth: if name.contains("io_uring") { 64 } else { 1 },
        numjobs: 1,
        direct: name.starts_with("direct"),
        sync: if name.starts_with("dsync") { "o_dsync-each" } else { "none" }.into(),
        blocks: "written".into(),
        ..Settings::default()
    }
}

fn run(workload: &str, mb_per_s: f64, bs_bytes: u64) -> Run {
    let throughput_bytes_per_s = mb_per_s * 1e6;
    let bytes = match workload {
        "stream" => STREAM_BYTES,
        _ => throughput_bytes_per_s as u64 / bs_bytes * bs_bytes,
    };
    Run {
        bytes,
        elapsed_s: bytes as f64 / throughput_bytes_per_s,
        throughput_bytes_per_s,
        iops: throughput_bytes_per_s / bs_bytes as f64,
        cpu_user_s: 0.02,
        cpu_system_s: 0.125,
        context_switches: 2048,
        device_written_bytes: Some(bytes),
        device_read_bytes: Some(0),
        max_rss_bytes: Some(50_331_648),
        iodepth_reached: 1,
        ..Run::default()
    }
}

fn latency(p50: u64) -> Latency {
    Latency {
        min: p50 / 2,
        mean: p50 as f64 * 1.1,
        p50,
        p90: p50 * 2,
        p95: p50 * 3,
        p99: p50 * 5,
        p99_9: p50 * 12,
        max: p50 * 90,
        total: p50 * 1100 / 1000 * 6144,
        count: 6144,
    }
}

fn findings() -> Vec<Finding> {
    let finding = |id: &str, severity, text: &str| Finding {
        id: id.into(),
        severity,
        text: text.into(),
        evidence: BTreeMap::from([("used_percent".to_owned(), 88.into())]),
    };
    vec![
        finding(
            "ram-not-disk",
            Severity::Warning,
            "'cached' wrote 1.07 GB of which the device saw 12.6 MB while the clock ran: that number \
             is your memory's, not the disk's.",
        ),
        finding(
            "disk-nearly-full",
            Severity::Warning,
            "The file system is 88 % full. Many SSDs and file systems write slower from 85 % on.",
        ),
        finding(
            "within-drive-cache",
            Severity::Info,
            "No run wrote more than 1.07 GB, which a drive's fast cache may hold: a longer write may \
             be slower. Try --size 64G.",
        ),
    ]
}

fn advice() -> Vec<Advice> {
    let advice = |purpose: &str, action: &str, because: &str, code: &str| Advice {
        purpose: purpose.into(),
        action: action.into(),
        because: because.into(),
        code: code.into(),
    };
    vec![
        advice(
            "streaming",
            "Write 512 KiB at a time through io_uring, direct, 64 in flight, and fdatasync once at \
             the end.",
            "It reached 3.21 GB/s and survives a power loss; cached with fdatasync at the end \
             reached 1.69 GB/s.",
            "let mut writer = wrote::Writer::create(path)?;\nwriter.write_all(&bytes)?;\n\
             writer.finish()?;",
        ),
        advice(
            "small durable records",
            "Open the file with O_DSYNC and preallocate it.",
            "1199 writes/s against 884 with fdatasync after each.",
            "",
        ),
    ]
}
