//! Tests of each finding: when it is reported, and when it is not.

use super::*;
use crate::machine::watch::{CachedLoop, Drives, Watched};
use crate::sample::{evidence, row, target};
use serde_json::json;
use wrote_result::document::{
    Blocks, Device, Direction, Fallback, RankRun, Row, Run, Severity, SourceCache, Spread, Target,
};
use wrote_result::finding::IDS;

pub(super) const PLAIN: [f64; 3] = [1.0e9, 1.01e9, 1.02e9];

pub(super) fn direct() -> Row {
    row("stream/direct-psync", "process-crash", &PLAIN)
}

pub(super) fn cached() -> Row {
    row("stream/cached", "process-crash", &PLAIN)
}

fn ids(evidence: &Evidence) -> Vec<String> {
    find(evidence).into_iter().map(|finding| finding.id).collect()
}

/// Returns the finding with this id; `None` if it is not reported.
pub(super) fn found(evidence: &Evidence, id: &str) -> Option<Finding> {
    assert!(IDS.contains(&id));
    find(evidence).into_iter().find(|finding| finding.id == id)
}

pub(super) fn with_device_bytes(mut row: Row, written: u64, read: u64) -> Row {
    for run in &mut row.runs {
        run.device_written_bytes = Some(written);
        run.device_read_bytes = Some(read);
    }
    row
}

/// Returns `row` with a change in each of its runs.
pub(super) fn each_run(mut row: Row, change: impl FnMut(&mut Run)) -> Row {
    row.runs.iter_mut().for_each(change);
    row
}

#[test]
fn of_a_plain_run_on_a_plain_disk_there_is_nothing_to_say() {
    let (target, rows) = (target(), [cached(), direct()]);
    assert_eq!(ids(&evidence(&target, &rows)), [""; 0]);
    assert_eq!(ids(&evidence(&target, &[])), [""; 0]);
}

#[test]
fn bytes_that_the_device_never_saw_are_called_ram() {
    // M7
    let target = target();
    let rows = [with_device_bytes(cached(), 100_000_000, 0), direct()];
    let finding = found(&evidence(&target, &rows), "ram-not-disk").unwrap();
    assert!(
        finding
            .text
            .starts_with("Memory speed, not disk speed: only 300 MB of 3.00 GB had reached"),
        "{}",
        finding.text
    );
    assert!(finding.text.ends_with(". Row: stream/cached"), "{}", finding.text);
    assert_eq!(finding.evidence["rows"], json!(["stream/cached"]));
    assert_eq!(finding.evidence["device_written_bytes"], json!(300_000_000));
    let nearly_all = [with_device_bytes(cached(), 950_000_000, 0)];
    assert!(found(&evidence(&target, &nearly_all), "ram-not-disk").is_none());
}

#[test]
fn reads_that_the_device_never_saw_are_called_ram_and_those_that_it_saw_are_not() {
    // M7
    let target = target();
    let read = |device_bytes| Row {
        direction: Direction::Read,
        survives: None,
        ..with_device_bytes(cached(), 0, device_bytes)
    };
    let rows = [read(100_000_000)];
    let finding = found(&evidence(&target, &rows), "ram-not-disk").unwrap();
    assert!(
        finding.text.starts_with("Memory speed, not disk speed: only 300 MB of 3.00 GB came from"),
        "{}",
        finding.text
    );
    assert_eq!(finding.evidence["device_read_bytes"], json!(300_000_000));
    assert!(found(&evidence(&target, &[read(1_000_000_000)]), "ram-not-disk").is_none());
}

#[test]
fn rows_that_were_not_measured_are_named_with_the_reason() {
    let target = target();
    assert!(found(&evidence(&target, &[]), "left-out").is_none());
    let left_out = vec![("ways/file/dd-direct".into(), "dd is not installed".into())];
    let finding = found(&Evidence { left_out, ..evidence(&target, &[]) }, "left-out").unwrap();
    assert_eq!(finding.text, "Not measured: ways/file/dd-direct (dd is not installed)");
    assert_eq!(finding.evidence["rows"]["ways/file/dd-direct"], json!("dd is not installed"));
}

#[test]
fn fewer_rounds_are_reported_with_the_time_that_was_short() {
    let target = target();
    assert!(found(&evidence(&target, &[]), "shortened").is_none());
    let within = std::time::Duration::from_secs(20);
    let fewer = Shortened { runs_asked: 5, runs_min: 3, within };
    let text = |shortened: Shortened| {
        let evidence = Evidence { shortened: Some(shortened), ..evidence(&target, &[]) };
        found(&evidence, "shortened").unwrap().text
    };
    assert_eq!(
        text(fewer),
        "Time was short: to end within 20.0 s, some rows have only 3 of 5 runs, so their intervals \
         are wider. Give it more time (--time or --within), or --runs 5"
    );
}

#[test]
fn reads_of_a_copys_own_source_are_no_neighbours() {
    let target = target();
    let mut copy = with_device_bytes(direct(), 1_000_000_000, 1_000_000_000);
    assert!(found(&evidence(&target, &[copy.clone()]), "busy-neighbour").is_some());
    copy.settings.effective.source_cache = Some(SourceCache::Dropped);
    assert!(found(&evidence(&target, &[copy]), "busy-neighbour").is_none());
}

#[test]
fn without_counters_nothing_is_called_ram() {
    let mut target = target();
    let rows = [with_device_bytes(cached(), 0, 0)];
    let off = Evidence { device_counts: false, ..evidence(&target, &rows) };
    assert!(found(&off, "ram-not-disk").is_none());
    let mut unread = [cached()];
    unread[0].runs.iter_mut().for_each(|run| run.device_written_bytes = None);
    assert!(found(&evidence(&target, &unread), "ram-not-disk").is_none());
    target.device = None;
    assert!(found(&evidence(&target, &rows), "ram-not-disk").is_none());
}

#[test]
fn a_file_system_without_a_block_device_is_told_and_one_in_memory_is_a_warning() {
    let mut target = target();
    assert!(found(&evidence(&target, &[]), "no-block-device").is_none());
    target.device = None;
    target.filesystem = "tmpfs".into();
    target.no_device_because = Some("tmpfs has none".into());
    let info = found(&evidence(&target, &[]), "no-block-device").unwrap();
    assert_eq!(info.severity, Severity::Info);
    assert!(info.text.contains("(tmpfs has none)"), "{}", info.text);
    let in_memory = Evidence { in_memory: true, ..evidence(&target, &[]) };
    let warning = found(&in_memory, "no-block-device").unwrap();
    assert_eq!(warning.severity, Severity::Warning);
    assert!(warning.text.starts_with("tmpfs is in memory"), "{}", warning.text);
    // A disk in memory causes the same finding.
    target.device = Some(Device { name: "zram0".into(), ..Device::default() });
    let in_memory = Evidence { in_memory: true, ..evidence(&target, &[]) };
    let warning = found(&in_memory, "no-block-device").unwrap();
    assert!(warning.text.contains("zram0 is in memory"), "{}", warning.text);
}

#[test]
fn a_device_that_keeps_no_statistics_is_told() {
    let mut target = target();
    let off = Evidence { device_counts: false, ..evidence(&target, &[]) };
    assert!(found(&off, "counters-off").unwrap().text.starts_with("sda keeps no statistics"));
    assert!(found(&evidence(&target, &[]), "counters-off").is_none());
    target.device = None;
    let none = Evidence { device_counts: false, ..evidence(&target, &[]) };
    assert!(found(&none, "counters-off").is_none());
}

#[test]
fn a_file_system_more_than_85_percent_full_is_nearly_full() {
    let mut target = target();
    target.free_bytes = 140_000_000_000;
    let finding = found(&evidence(&target, &[]), "nearly-full").unwrap();
    assert!(finding.text.contains("86 % full (140 GB free of 1.00 TB)"), "{}", finding.text);
    target.free_bytes = 160_000_000_000;
    assert!(found(&evidence(&target, &[]), "nearly-full").is_none());
    // A device's node is on a file system that has nothing to do with the device.
    (target.filesystem, target.free_bytes) = ("none".into(), 0);
    assert!(found(&evidence(&target, &[]), "nearly-full").is_none());
    (target.capacity_bytes, target.free_bytes) = (0, 0);
    assert!(found(&evidence(&target, &[]), "nearly-full").is_none());
}

#[test]
fn a_direct_row_whose_bytes_stay_in_the_page_cache_or_never_reach_the_device_was_not_direct() {
    let target = target();
    let held = |row: Row, page_cache_bytes| {
        each_run(row, |run| run.page_cache_bytes = Some(page_cache_bytes))
    };
    let rows = [held(direct(), 900_000_000), held(cached(), 900_000_000)];
    let finding = found(&evidence(&target, &rows), "direct-not-honoured").unwrap();
    assert_eq!(finding.evidence["rows"], json!(["stream/direct-psync"]));
    assert_eq!(finding.evidence["page_cache_bytes"], json!(2_700_000_000_u64));
    assert!(
        finding.text.contains("the page cache held 2.70 of 3.00 GB afterwards"),
        "{}",
        finding.text
    );
    let unseen = [with_device_bytes(direct(), 0, 0)];
    let found_all = ids(&evidence(&target, &unseen));
    assert_eq!(found_all, ["direct-not-honoured"], "one finding says it: it is no `ram-not-disk`");
    let finding = found(&evidence(&target, &unseen), "direct-not-honoured").unwrap();
    assert!(
        finding.text.contains("effect: all 3.00 GB stayed in memory during"),
        "{}",
        finding.text
    );
}

#[test]
fn a_direct_read_of_what_was_never_written_was_direct() {
    let target = target();
    let mut read = with_device_bytes(direct(), 0, 0);
    read.direction = Direction::Read;
    read.settings.effective.blocks = Blocks::Unknown;
    let unwritten = each_run(read, |run| run.unwritten_bytes = Some(run.bytes));
    assert_eq!(ids(&evidence(&target, &[unwritten])), ["unwritten-read"]);
}

#[test]
fn a_direct_row_that_leaves_little_in_the_page_cache_was_direct() {
    let target = target();
    for page_cache_bytes in [None, Some(0), Some(65_536), Some(400_000_000)] {
        let row = each_run(direct(), |run| run.page_cache_bytes = page_cache_bytes);
        assert!(found(&evidence(&target, &[row]), "direct-not-honoured").is_none());
    }
    // The last page is a large part of a short file.
    let row = each_run(direct(), |run| (run.bytes, run.page_cache_bytes) = (10_000, Some(8192)));
    let rows = [row];
    let off = Evidence { device_counts: false, ..evidence(&target, &rows) };
    assert!(found(&off, "direct-not-honoured").is_none());
}

#[test]
fn a_loop_device_that_goes_through_the_page_cache_does_not_honour_what_is_not_flushed() {
    let target = target();
    let rows = [direct(), row("stream/direct-psync-fdatasync-at-end", "power-loss", &PLAIN)];
    let cached_loops = vec![CachedLoop { disk: "loop0".into(), file: "/data/image".into() }];
    let before = Drives { cached_loops, ..Drives::default() };
    let watched = Watched { before, ..Watched::default() };
    let on_loop = Evidence { watched, ..evidence(&target, &rows) };
    let finding = found(&on_loop, "direct-not-honoured").unwrap();
    assert_eq!(finding.evidence["rows"], json!(["stream/direct-psync"]));
    assert!(finding.text.contains("loop0 puts unflushed writes into the page cache of /data"));
    // A device in memory has a separate finding.
    let in_memory = Evidence { in_memory: true, ..on_loop.clone() };
    assert!(found(&in_memory, "direct-not-honoured").is_none());
    let flushed = Evidence { rows: &rows[1..], ..on_loop };
    assert!(found(&flushed, "direct-not-honoured").is_none());
}

#[test]
fn bytes_that_a_place_compresses_did_not_stay_in_memory() {
    let squeezing = Target { mount_options: vec!["compress=zstd:3".into()], ..target() };
    let mut row = with_device_bytes(cached(), 50_000_000, 0);
    assert!(found(&evidence(&squeezing, &[row.clone()]), "ram-not-disk").is_some());
    row.settings.effective.data = Some("zeros".into());
    assert!(found(&evidence(&squeezing, &[row.clone()]), "ram-not-disk").is_none());
    assert!(found(&evidence(&target(), &[row]), "ram-not-disk").is_some());
}

#[test]
fn rows_that_flush_each_write_and_make_the_device_write_much_more_wear_it_out() {
    let target = target();
    let journal = |device_bytes| {
        with_device_bytes(row("small/o_dsync-each", "power-loss", &PLAIN), device_bytes, 0)
    };
    let finding = found(&evidence(&target, &[journal(3_200_000_000)]), "write-amplification");
    let finding = finding.unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.text.contains("up to 3.2 bytes on the device"), "{}", finding.text);
    assert!(
        finding.text.contains("Caution: if another program was writing, its bytes are included")
    );
    // The second row moves only its own bytes, and would have shown foreign traffic.
    let beside = [journal(3_200_000_000), with_device_bytes(direct(), 1_010_000_000, 0)];
    let finding_beside = found(&evidence(&target, &beside), "write-amplification").unwrap();
    assert!(finding_beside.text.contains("Put more records into each flush. Row: small/"));
    assert_eq!(
        finding.evidence["device_bytes_per_file_byte"],
        json!({ "small/o_dsync-each": 3.2 })
    );
    let few = each_run(journal(3_000_000), |run| run.bytes = 2_000_000);
    for row in [journal(1_400_000_000), few, with_device_bytes(cached(), 3_000_000_000, 0)] {
        assert!(found(&evidence(&target, &[row]), "write-amplification").is_none());
    }
    let off = [journal(3_200_000_000)];
    let off = Evidence { device_counts: false, ..evidence(&target, &off) };
    assert!(found(&off, "write-amplification").is_none());
    // It is unknown which program wrote the foreign bytes.
    let shared = [journal(3_200_000_000), with_device_bytes(direct(), 1_500_000_000, 0)];
    assert!(found(&evidence(&target, &shared), "write-amplification").is_none());
}

#[test]
fn a_run_that_a_drives_cache_may_have_held_is_called_a_burst() {
    let mut target = target();
    fn small(target: &Target) -> Evidence<'_> {
        Evidence { written_bytes_total: 12_300_000_000, ..evidence(target, &[]) }
    }
    let finding = found(&small(&target), "within-drive-cache").unwrap();
    assert!(finding.text.starts_with("This may be a burst: the run wrote 12.3 GB"));
    let command = "`wrote bench /data --only sustained --size 100G` shows the lasting rate";
    assert!(finding.text.contains(command), "{}", finding.text);
    target.free_bytes = 20_000_000_000;
    let full = found(&small(&target), "within-drive-cache").unwrap();
    assert!(full.text.ends_with("Free space to measure the lasting rate"));
    assert_eq!(finding.severity, Severity::Info);
    assert!(found(&evidence(&target, &[]), "within-drive-cache").is_none());
    let nothing = Evidence { written_bytes_total: 0, ..evidence(&target, &[]) };
    assert!(found(&nothing, "within-drive-cache").is_none());
    target.device = Some(Device { rotational: true, ..Device::default() });
    assert!(found(&small(&target), "within-drive-cache").is_none());
    target.device = None;
    assert!(found(&small(&target), "within-drive-cache").is_none());
}

#[test]
fn a_device_that_moves_more_than_our_bytes_has_a_neighbour() {
    let target = target();
    let written = [with_device_bytes(direct(), 1_380_000_000, 0)];
    let finding = found(&evidence(&target, &written), "busy-neighbour").unwrap();
    assert!(
        finding.text.contains("384 MB/s of its traffic was not ours, which is 38 %"),
        "{}",
        finding.text
    );
    let read = [with_device_bytes(direct(), 1_000_000_000, 300_000_000)];
    assert!(found(&evidence(&target, &read), "busy-neighbour").is_some());
}

#[test]
fn a_row_that_flushes_has_a_neighbour_where_others_requests_were_queued_beside_its_runs() {
    let target = target();
    let mut row = row("small/fdatasync-each", "power-loss", &PLAIN);
    let runs = row.runs.len();
    row.runs.iter_mut().for_each(|run| run.foreign_share = Some(0.1));
    assert!(found(&evidence(&target, &[row.clone()]), "busy-neighbour").is_none());
    row.runs[0].foreign_share = Some(0.62);
    let finding = found(&evidence(&target, &[row]), "busy-neighbour").unwrap();
    let said = format!("during 1 of {runs} runs, up to 62 % of the time. Find them");
    assert!(finding.text.contains(&said), "{}", finding.text);
}

#[test]
fn a_moment_of_other_programs_beside_a_tenth_of_the_runs_is_no_finding() {
    let mut row = row("small/fdatasync-each", "power-loss", &[1e6; 10]);
    row.runs[3].foreign_share = Some(0.62);
    assert!(found(&evidence(&target(), &[row.clone()]), "busy-neighbour").is_none());
    row.runs[4].foreign_share = Some(0.2);
    assert!(found(&evidence(&target(), &[row]), "busy-neighbour").is_some());
}

#[test]
fn a_journal_or_a_little_traffic_is_no_neighbour() {
    let target = target();
    let journal = row("small/o_dsync-each", "power-loss", &PLAIN);
    let commits = row("small/direct-o_dsync-each-overwrite", "power-loss", &PLAIN);
    for row in [
        with_device_bytes(journal, 3_000_000_000, 0),
        with_device_bytes(commits, 3_000_000_000, 0),
        with_device_bytes(cached(), 3_000_000_000, 0),
        with_device_bytes(direct(), 1_090_000_000, 0),
    ] {
        assert!(found(&evidence(&target, &[row]), "busy-neighbour").is_none());
    }
    let mut short = with_device_bytes(direct(), 20_000_000, 0);
    short.runs.iter_mut().for_each(|run| run.bytes = 1_000_000);
    assert!(found(&evidence(&target, &[short]), "busy-neighbour").is_none(), "57 MB are few");
}

#[test]
fn rows_whose_runs_differ_much_are_listed() {
    // M8
    let target = target();
    let wild = row("stream/cached", "process-crash", &[1.0e9, 2.0e9, 0.5e9]);
    let rows = [wild, direct()];
    let finding = found(&evidence(&target, &rows), "noisy").unwrap();
    assert_eq!(finding.evidence["rows"], json!(["stream/cached"]));
    let two = [direct(), row("stream/cached", "process-crash", &[1.0e9, 4.0e9])];
    let finding = found(&evidence(&target, &two), "noisy").unwrap();
    assert!(finding.text.contains("(the worst: more than \u{b1}999 %). Stop"), "{}", finding.text);
    let calm = [direct(), row("stream/cached", "process-crash", &[5.0e8])];
    assert!(found(&evidence(&target, &calm), "noisy").is_none());
}

#[test]
fn each_distinct_fallback_is_told_once_with_the_kernels_reason() {
    // W6
    let target = target();
    let step = |wanted: &str, because: &str| Fallback {
        wanted: wanted.into(),
        got: "threads".into(),
        because: because.into(),
    };
    let refused = "io_uring_setup: Operation not permitted (os error 1)";
    let mut rows = [direct(), cached(), row("small/direct-psync", "process-crash", &PLAIN)];
    rows[0].settings.fallbacks = vec![step("io_uring", refused), step("io_uring", refused)];
    rows[1].settings.fallbacks = vec![step("io_uring", refused)];
    rows[2].settings.fallbacks = vec![step("io_uring", "another reason")];
    let findings: Vec<Finding> =
        find(&evidence(&target, &rows)).into_iter().filter(|f| f.id == "fallback").collect();
    assert_eq!(findings.len(), 2);
    let told = findings.iter().find(|f| f.evidence["because"] == json!(refused)).unwrap();
    assert_eq!(
        told.text,
        format!(
            "Fallback: threads was used instead of io_uring, because {refused}. Rows: \
             stream/direct-psync, stream/cached"
        )
    );
    assert!(found(&evidence(&target, &[direct()]), "fallback").is_none());
}

#[test]
fn a_depth_that_was_not_reached_is_told() {
    // M6
    let target = target();
    let mut rows = [row("stream/direct-io_uring", "process-crash", &PLAIN), direct()];
    assert!(found(&evidence(&target, &rows), "depth-not-reached").is_none());
    rows[0].settings.effective.iodepth = 32;
    let finding = found(&evidence(&target, &rows), "depth-not-reached").unwrap();
    assert!(finding.text.ends_with("stream/direct-io_uring (asked 64, reached 32)"));
    assert_eq!(
        finding.evidence["iodepth"],
        json!({ "stream/direct-io_uring": { "asked": 64, "reached": 32 } })
    );
}

#[test]
fn a_row_that_the_generator_limits_says_so() {
    // M2
    let (target, rows) = (target(), [direct()]);
    let with =
        |generator_bytes_per_s| Evidence { generator_bytes_per_s, ..evidence(&target, &rows) };
    let finding = found(&with(1.5e9), "generator-limited").unwrap();
    assert!(finding.text.contains("makes 1.50 GB/s, less than twice the throughput. The disk"));
    assert!(found(&with(3.0e9), "generator-limited").is_none());
    assert!(found(&with(0.0), "generator-limited").is_none(), "it was not measured");
}

#[test]
fn a_debug_build_is_told() {
    let target = target();
    let debug = Evidence { debug_build: true, ..evidence(&target, &[]) };
    assert!(found(&debug, "debug-build").unwrap().text.contains("--release"));
    assert!(found(&evidence(&target, &[]), "debug-build").is_none());
}

#[test]
fn leftovers_of_an_earlier_run_are_named_with_the_command_that_removes_them() {
    let target = target();
    let left = vec!["/data/.wrote-abc123".to_owned()];
    let with = Evidence { leftovers: left, ..evidence(&target, &[]) };
    let text = found(&with, "leftovers").unwrap().text;
    assert!(text.contains("/data/.wrote-abc123") && text.contains("`wrote clean /data`"), "{text}");
    assert!(found(&evidence(&target, &[]), "leftovers").is_none());
}

#[test]
fn warnings_come_before_what_is_good_to_know() {
    let target = target();
    let both = Evidence {
        debug_build: true,
        leftovers: vec!["x".into()],
        device_counts: false,
        written_bytes_total: 1,
        ..evidence(&target, &[])
    };
    assert_eq!(ids(&both), ["debug-build", "counters-off", "within-drive-cache", "leftovers"]);
}

#[test]
fn a_new_ext4_that_is_still_initialised_is_named_and_another_file_system_is_not() {
    let mut target = target();
    let said = |target: &Target, is_running| {
        let mut evidence = evidence(target, &[]);
        evidence.watched.initialises_ext4 = is_running;
        find(&evidence).iter().any(|finding| finding.id == "lazy-init")
    };
    assert!(said(&target, true) && !said(&target, false));
    target.mount_options.push("noinit_itable".into());
    assert!(!said(&target, true), "these tables stay as they are");
    (target.filesystem, target.mount_options) = ("xfs".into(), Vec::new());
    assert!(!said(&target, true));
}

#[test]
fn operations_in_flight_are_told_from_those_one_at_a_time() {
    let target = target();
    let said = |deep_bytes_per_s: f64| {
        let of = |iodepth: u32, bytes_per_s: f64| {
            let mut row = row("small/direct-io_uring", "os-crash", &[bytes_per_s]);
            row.workload = "rand/write".into();
            row.settings.effective.iodepth = iodepth;
            row
        };
        let rows = [of(1, 4.096e6), of(64, deep_bytes_per_s)];
        find(&evidence(&target, &rows)).into_iter().find(|of| of.id == "concurrent-iops")
    };
    let finding = said(40.96e6).unwrap();
    assert!(finding.text.contains("10.0 k/s with 64, 1.00 k/s with one at a time (10.0 times)"));
    assert!(said(6e6).is_none());
}

#[test]
fn a_burst_is_named_with_what_lasts_and_whether_it_is_in_the_figures() {
    let target = target();
    let text = |is_left_out| {
        let burst = Burst { bytes: 25_000_000, bytes_per_s: 125e6, is_left_out };
        let evidence = Evidence { burst: Some(burst), ..evidence(&target, &[]) };
        find(&evidence).into_iter().find(|of| of.id == "burst").unwrap().text
    };
    assert!(
        text(true).starts_with("The burst is not in the figures: the lasting rate is 125 MB/s, "),
        "{}",
        text(true)
    );
    assert!(text(false).starts_with("The burst is in the figures"), "{}", text(false));
}

/// Returns a row of two runs. Rank 3 does `slowest_iops` operations per second, and the median rank
/// 1000.
fn spread(slowest_iops: f64, elapsed_s: f64) -> Row {
    let rank = |rank, iops| RankRun { rank, node: "node1".into(), bytes: 1, elapsed_s, iops };
    let mut row = row("stream/direct-psync", "os-crash", &[1e9, 1e9]);
    for run in &mut row.runs {
        run.elapsed_s = elapsed_s;
        run.ranks = Some(Spread {
            slowest: rank(3, slowest_iops),
            fastest: rank(0, 1100.0),
            median_iops: 1000.0,
            started_within_s: 0.0,
            stonewalled_bytes_per_s: 1e9,
        });
    }
    row
}

#[test]
fn a_rank_that_others_wait_for_is_named_with_its_node_and_nearly_alike_ranks_are_not() {
    let target = target();
    let of = |row: Row| found(&Evidence { rows: &[row], ..evidence(&target, &[]) }, "stragglers");
    let straggling = of(spread(700.0, 1.0)).unwrap();
    assert!(
        straggling.text.contains("rank 3 on node1: it was slowest 2 of 2 times"),
        "{}",
        straggling.text
    );
    assert_eq!(straggling.evidence["rank"], 3);
    for row in [spread(850.0, 1.0), spread(100.0, 0.05), direct()] {
        assert!(of(row).is_none());
    }
}
