//! Rows and documents for tests: a plain run on a plain disk, without findings.

use crate::document::{
    Blocks, Device, Direction, Document, Host, Ioengine, Latency, Program, Records, Row, Run,
    SCHEMA, Scenario, Settings, SettingsPair, Source, Target, View,
};

/// Returns a disk of 1 TB that is half full.
pub fn target() -> Target {
    Target {
        path: "/data".into(),
        filesystem: "ext4".into(),
        capacity_bytes: 1_000_000_000_000,
        free_bytes: 500_000_000_000,
        dio_offset_align_bytes: Some(512),
        device: Some(Device { name: "sda".into(), ..Device::default() }),
        ..Target::default()
    }
}

/// Returns a machine with four CPUs and a fast clock.
pub fn host() -> Host {
    Host {
        cpus: 4,
        memory_bytes: 16_000_000_000,
        clocksource: Some("tsc".into()),
        clock_read_ns: Some(25.0),
        ..Host::default()
    }
}

/// Returns a row whose runs of 1 GB each reached these throughputs. All bytes reached the device.
///
/// `name` has the form that it has in results. Its words for direct I/O, the engine and flushes
/// determine the settings of the row.
pub fn row(name: &str, survives: &str, throughputs_bytes_per_s: &[f64]) -> Row {
    let (workload, way) = name.split_once('/').unwrap();
    let sync = ["fdatasync-at-end", "fdatasync-each", "o_dsync-each"];
    let sync = sync.into_iter().find(|sync| way.contains(sync)).unwrap_or("none");
    let io_uring = way.contains("io_uring");
    let settings = Settings {
        rw: "write".into(),
        ioengine: if io_uring { Ioengine::IoUring } else { Ioengine::Psync },
        bs_bytes: if workload == "small" { 4096 } else { 512 << 10 },
        size_bytes: 1_000_000_000,
        iodepth: if io_uring { 64 } else { 1 },
        numjobs: 1,
        direct: way.contains("direct"),
        sync: sync.parse().unwrap(),
        blocks: if way.contains("overwrite") { Blocks::Written } else { Blocks::New },
        ..Settings::default()
    };
    let runs = throughputs_bytes_per_s.iter().map(|rate| run(&settings, *rate)).collect();
    Row {
        name: name.into(),
        workload: workload.into(),
        way: way.into(),
        view: Some(View::Operations),
        direction: Direction::Write,
        survives: Some(survives.parse().unwrap()),
        bytes_per_run: settings.size_bytes,
        settings: SettingsPair {
            asked: settings.clone(),
            effective: settings,
            ..Default::default()
        },
        runs,
        throughput_bytes_per_s: crate::stats::interval(throughputs_bytes_per_s),
        latency_ns: Some(Latency::default()),
        ..Row::default()
    }
}

/// Returns a row of the scenario `append` with three runs, each at about this rate of messages per
/// second and with these `records`.
pub fn appended(name: &str, messages_per_s: f64, records: Records) -> Row {
    let mut row = row(name, "nothing", &[0.99e3, 1e3, 1.01e3].map(|bytes| bytes * messages_per_s));
    row.view = Some(View::Messages);
    for settings in [&mut row.settings.asked, &mut row.settings.effective] {
        settings.bs_bytes = 1000;
        settings.messages = Some(records.sent);
    }
    for run in &mut row.runs {
        run.iops = run.throughput_bytes_per_s / 1000.0;
        run.records = Some(records);
    }
    row
}

fn run(settings: &Settings, throughput_bytes_per_s: f64) -> Run {
    Run {
        bytes: settings.size_bytes,
        elapsed_s: settings.size_bytes as f64 / throughput_bytes_per_s,
        throughput_bytes_per_s,
        iops: throughput_bytes_per_s / settings.bs_bytes as f64,
        cpu_user_s: 0.05,
        cpu_system_s: 0.05,
        device_written_bytes: Some(settings.size_bytes),
        device_read_bytes: Some(0),
        iodepth_reached: settings.iodepth,
        ..Run::default()
    }
}

/// Returns the result of a benchmark that measured these rows as one scenario.
pub fn document(rows: Vec<Row>) -> Document {
    Document {
        schema: SCHEMA.into(),
        wrote: Program { version: "0.1.0".into(), commit: None, debug_build: false },
        started_at: "2026-03-21T09:30:00Z".into(),
        elapsed_s: 1.0,
        source: Some(Source::Bench),
        command: ["wrote", "bench"].map(String::from).to_vec(),
        target: target(),
        scenarios: vec![Scenario { name: "ladder".into(), question: "?".into(), rows, knee: None }],
        ..Document::default()
    }
}
