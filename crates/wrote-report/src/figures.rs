//! The figures of a row as text.

use crate::group::Group;
use wrote_result::document::{Interval, Knee, Latency, Reached, Row, Survives};
use wrote_result::{saves, stats, units};

/// Stands at rows at a rate among others that are not.
pub const OPEN_LOOP_MARK: &str = "@ ";
/// What that says.
pub const OPEN_LOOP_LEGEND: &str = "@ at a rate (an open loop): latency counts from when each operation was due; that of the others \
     from when it was handed on, and while the disk stands still they hand nothing on";

/// The rate that a row is held to, over all of its jobs: `5000/s`, `20.0 MB/s`; empty where it is held
/// to none.
pub fn held_to(row: &Row) -> String {
    match Reached::of(row) {
        None => String::new(),
        Some(rate) if rate.is_of_operations => per_second(rate.asked_per_s),
        Some(rate) => units::rate(rate.asked_per_s),
    }
}

/// Whether a row came to the rate that it is held to, if it is.
pub fn is_reached(row: &Row) -> bool {
    Reached::of(row).is_none_or(|rate| rate.is_reached)
}

/// The part of what a closed loop reaches: `70 %`.
pub fn load_percent(row: &Row) -> String {
    let share = row.settings.asked.load_share;
    share.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default()
}

/// Where a curve bends: `the knee: 41.0 k/s (70 % of the closed loop's 58.1 k/s): P99 310 us`.
pub fn knee_told(group: &Group, knee: Option<&Knee>) -> String {
    let row = |knee: &Knee| group.rows.iter().find(|row| row.name == knee.row).copied();
    let Some((knee, row)) = knee.and_then(|knee| Some((knee, row(knee)?))) else {
        return "no knee: the latency does not bend within these rates".into();
    };
    let asked = Reached::of(row).map_or(0.0, |rate| rate.asked_per_s);
    let whole = asked / row.settings.asked.load_share.unwrap_or(1.0);
    format!(
        "the knee: {} ({} of the closed loop's {}): P99 {}",
        per_second(knee.iops),
        load_percent(row),
        per_second(whole),
        units::nanoseconds(knee.p99_ns)
    )
}

/// How far the interval of the throughput reaches from the median, in percent; empty where a single
/// run says nothing about it.
pub fn plus_minus(row: &Row) -> String {
    if row.runs.len() < 2 { String::new() } else { within(&row.throughput_bytes_per_s) }
}

/// How far an interval reaches from its median, in percent.
pub fn within(interval: &Interval) -> String {
    let percent = stats::relative_width(interval) * 100.0;
    match percent {
        // The interval is then wider than the number: how much so is of no use.
        p if p > 999.0 => "±>999%".into(),
        p if p > 0.0 && p < 0.95 => "±<1%".into(),
        p => format!("±{p:.0}%"),
    }
}

pub fn bs_bytes(row: &Row) -> u64 {
    row.settings.effective.bs_bytes
}

pub fn is_random(row: &Row) -> bool {
    row.settings.effective.rw.starts_with("rand")
}

/// The block size, or the sizes: `4 KiB`, `4 KiB..64 KiB`.
pub fn block_sizes(row: &Row) -> String {
    let effective = &row.settings.effective;
    let split = effective.bssplit.iter().flatten().map(|share| share.bytes);
    let least = split.chain(effective.message_bytes_min).min();
    match least.filter(|least| *least < bs_bytes(row)) {
        Some(least) => {
            format!("{}..{}", units::block_size(least), units::block_size(bs_bytes(row)))
        }
        None => units::block_size(bs_bytes(row)),
    }
}

/// A figure of the latencies; empty where no operation was timed.
pub fn latency(row: &Row, figure: fn(&Latency) -> u64) -> String {
    row.latency_ns.as_ref().map(figure).map(units::nanoseconds).unwrap_or_default()
}

/// The mean of the latencies; empty where no operation was timed.
pub fn mean_latency(row: &Row) -> String {
    let mean = row.latency_ns.as_ref().map(|of| of.mean.round() as u64);
    mean.map(units::nanoseconds).unwrap_or_default()
}

/// How many operations were timed; empty where none was.
pub fn iterations(row: &Row) -> String {
    row.latency_ns.as_ref().map(|of| of.count.to_string()).unwrap_or_default()
}

/// What a crash may leave of the file; empty where no file was saved whole.
pub fn crash_leaves(row: &Row) -> String {
    text(row.crash_leaves)
}

/// What sync costs in a workload of saves: `52.1 times as long by P50: fs::write, fsync (1.20 ms)
/// against fs::write (23.0 us)`.
pub fn sync_cost_lines(group: &Group) -> Vec<String> {
    let p50 = |row: &Row| latency(row, |of| of.p50);
    let costs = saves::sync_costs(&group.rows);
    let line = |cost: &saves::SyncCost| {
        format!(
            "{} times as long by P50: {} ({}) against {} ({})",
            times(cost.times),
            cost.with.way,
            p50(cost.with),
            cost.without.way,
            p50(cost.without),
        )
    };
    costs.iter().map(line).collect()
}

/// A factor, with three significant digits or all before the point.
pub fn times(factor: f64) -> String {
    match factor {
        f if f >= 99.95 => format!("{f:.0}"),
        f if f >= 9.995 => format!("{f:.1}"),
        f => format!("{f:.2}"),
    }
}

/// How long a run took: the median.
pub fn run_time(row: &Row) -> String {
    let times: Vec<f64> = row.runs.iter().map(|run| run.elapsed_s).collect();
    units::seconds(stats::median(&times))
}

/// The peak of memory of one run: the median. Empty where it is not known.
pub fn peak_memory(row: &Row) -> String {
    let peaks: Vec<f64> =
        row.runs.iter().filter_map(|run| run.max_rss_bytes).map(|bytes| bytes as f64).collect();
    if peaks.is_empty() { String::new() } else { units::bytes(stats::median(&peaks) as u64) }
}

/// Whether random bytes survive a power loss: what a drive can compress says little of others.
pub fn is_durable(row: &Row) -> bool {
    row.survives == Some(Survives::PowerLoss) && row.settings.effective.data.is_none()
}

/// Whether two rows can't be told apart.
pub fn are_level(row: &Row, other: &Row) -> bool {
    !stats::distinguishable(&row.throughput_bytes_per_s, &other.throughput_bytes_per_s)
}

/// What a write survives; empty of reads.
pub fn survives(row: &Row) -> String {
    text(row.survives)
}

/// Returns the text of a value; empty where there is none.
pub fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// CPU time of one operation: `1.85 us`.
pub fn cpu_per_operation(row: &Row) -> String {
    units::nanoseconds((row.cpu_s_per_operation() * 1e9).round() as u64)
}

/// Operations per second: the median over the runs, with three significant digits and thousands apart.
pub fn operations_per_s(row: &Row) -> String {
    let iops: Vec<f64> = row.runs.iter().map(|run| run.iops).collect();
    per_second(stats::median(&iops))
}

/// So many a second, with three significant digits and thousands apart.
pub fn per_second(iops: f64) -> String {
    match iops {
        i if i >= 1e6 => format!("{:.2} M/s", i / 1e6),
        i if i >= 99_950.0 => format!("{:.0} k/s", i / 1e3),
        i if i >= 9_995.0 => format!("{:.1} k/s", i / 1e3),
        i if i >= 999.5 => format!("{:.2} k/s", i / 1e3),
        i => format!("{i:.0} /s"),
    }
}

/// CPU seconds a gigabyte.
pub fn cpu_s_per_gb(row: &Row) -> String {
    cpu_seconds(row.cpu_s_per_gb())
}

/// CPU seconds, with two or three significant digits.
pub fn cpu_seconds(cpu_s: f64) -> String {
    match cpu_s {
        cost if cost >= 99.5 => format!("{cost:.0}"),
        cost if cost >= 9.95 => format!("{cost:.1}"),
        cost => format!("{cost:.2}"),
    }
}

/// Whether this row is something else than what was asked: by a fallback, or by messages that are not
/// there.
pub fn fell_back(row: &Row) -> bool {
    !row.settings.fallbacks.is_empty() || !row.has_all_records()
}
