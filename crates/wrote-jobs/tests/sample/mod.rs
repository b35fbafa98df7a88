//! Made-up reports of jobs: a sequential write, two clones of a random read, and a mix.

#![allow(dead_code, reason = "each file of tests uses a part of this")]

use hdrhistogram::Histogram;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Effective;
use wrote::device::{Backing, BlockDevice, Target};
use wrote_jobs::jobs::{DirectionReport, GroupReport, JobReport};
use wrote_jobs::report::{About, Before};
use wrote_jobs::spec::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The percentiles that fio reports by default.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The groups of one job file: a group of one job, then one of three.
pub fn groups() -> Vec<GroupReport> {
    let write = job("seq-write", "write", 512 * KIB, 1 << 30);
    let mut reads = [job("reader", "randread", 4 * KIB, 64 * MIB), {
        let mut second = job("reader", "randread", 4 * KIB, 64 * MIB);
        second.spec.clone = 1;
        second
    }];
    let mut mix = job("mix", "randrw", 8 * KIB, 32 * MIB);
    mix.flush_ns = latencies(&[1_200_000, 1_400_000, 900_000]);
    for job in reads.iter_mut().chain([&mut mix]) {
        job.spec.group = 1;
    }
    let [first, second] = reads;
    vec![
        GroupReport {
            jobs: vec![write],
            elapsed: Duration::from_secs(1),
            device_written_bytes: Some(1 << 30),
            device_read_bytes: Some(4096),
            max_rss_bytes: 40 << 20,
            ..GroupReport::default()
        },
        GroupReport {
            jobs: vec![first, second, mix],
            elapsed: Duration::from_secs(1),
            device_written_bytes: Some(16 * MIB),
            device_read_bytes: Some(144 * MIB),
            max_rss_bytes: 48 << 20,
            ..GroupReport::default()
        },
    ]
}

/// A job that took a second over `bytes`, half of them reads where it is a mix.
pub fn job(name: &str, rw: &str, bs_bytes: u64, bytes: u64) -> JobReport {
    let spec = spec(name, rw, bs_bytes, bytes);
    let parts = u64::from(spec.rw.read) + u64::from(spec.rw.write);
    let part = |is_there: bool| direction(if is_there { bytes / parts } else { 0 }, bs_bytes);
    JobReport {
        effective: effective(&spec),
        fallbacks: Vec::new(),
        direct: spec.direct,
        started_at: "2026-03-21T09:30:00Z".parse().expect("a time"),
        elapsed: Duration::from_secs(1),
        read: part(spec.rw.read),
        write: part(spec.rw.write),
        flush_ns: latencies(&[]),
        unwritten_bytes: Some(0),
        issue_delay_ns: latencies(&[]),
        trail: Vec::new(),
        verified_bytes: 0,
        cpu_user_s: 0.125,
        cpu_system_s: 0.25,
        context_switches: 500,
        major_faults: 0,
        minor_faults: 24,
        depths: latencies(&[spec.iodepth.into(), 1]),
        submitted_together: latencies(&[1, 16]),
        completed_together: latencies(&[1, 4]),
        spec,
    }
}

/// What fio would be asked by `rw=.. bs=.. size=.. iodepth=64 ioengine=io_uring direct=1`.
pub fn spec(name: &str, rw: &str, bs_bytes: u64, size_bytes: u64) -> JobSpec {
    let option = |key: &str, value: String| (key.to_owned(), value);
    let rw_words = rw;
    let rw = Rw {
        read: rw.contains("read") || rw.ends_with("rw"),
        write: rw.contains("write") || rw.ends_with("rw"),
        random: rw.starts_with("rand"),
    };
    JobSpec {
        iodepth: 64,
        iodepth_batch_complete_min: 1,
        files: vec![PathBuf::from(format!("/mnt/data/{name}.0"))],
        file_bytes: Some(size_bytes),
        percentiles: PERCENTILES.to_vec(),
        options: vec![
            option("ioengine", "io_uring".into()),
            option("direct", "1".into()),
            option("rw", rw_words.into()),
            option("bs", format!("{}k", bs_bytes / KIB)),
            option("size", format!("{}m", size_bytes / MIB)),
            option("iodepth", "64".into()),
        ],
        ..JobSpec::new(name, rw, bs_bytes)
    }
}

fn effective(spec: &JobSpec) -> Effective {
    Effective {
        ioengine: spec.ioengine,
        iodepth: spec.iodepth,
        iodepth_reached: spec.iodepth,
        ring_flags: vec!["SINGLE_ISSUER", "DEFER_TASKRUN"],
        registered_buffers: true,
        registered_files: true,
        sqpoll: false,
        iopoll: false,
        huge_pages: false,
        fallbacks: Vec::new(),
    }
}

fn direction(bytes: u64, bs_bytes: u64) -> DirectionReport {
    let operations = bytes / bs_bytes;
    let mut latency_ns = latencies(&[]);
    for number in 0..operations {
        latency_ns.record(800 + number % 100 * 20_000).expect("it grows");
    }
    let sampled = if operations == 0 { vec![] } else { vec![0.9, 1.1] };
    let times = |whole: u64| sampled.iter().map(|part| part * whole as f64).collect();
    DirectionReport {
        bytes,
        operations,
        latency_ns,
        bandwidth_samples_bytes_per_s: times(bytes),
        iops_samples: times(operations),
    }
}

/// A histogram of these values.
pub fn latencies(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("3 digits are possible");
    values.iter().for_each(|value| histogram.record(*value).expect("it grows"));
    histogram
}

/// A half-full ext4 on an SSD, under files none of which were there.
pub fn before() -> Before {
    Before::new("/mnt/data/seq-write.0".into(), target(), HashSet::new(), true)
}

/// A half-full ext4 on an SSD.
pub fn target() -> Target {
    Target {
        path: "/mnt/data".into(),
        mount_point: "/mnt/data".into(),
        filesystem: "ext4".into(),
        mount_options: vec!["rw".into(), "noatime".into()],
        capacity_bytes: 983_349_346_304,
        free_bytes: 491_674_673_152,
        read_only: false,
        in_memory: false,
        backing: Backing::Block(BlockDevice {
            name: "nvme0n1p2".into(),
            major: 259,
            minor: 2,
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
            transfer_bytes_max: 1 << 20,
        }),
    }
}

/// A run of two seconds and a half.
pub fn about() -> About {
    About {
        command: ["wrote", "run", "demo.fio"].map(str::to_owned).to_vec(),
        commit: Some("0b621bf".into()),
        started_at: "2026-03-21T09:29:59Z".parse().expect("a time"),
        elapsed: Duration::from_millis(2500),
        read_unwritten: false,
    }
}
