//! The figures of a row as text. The text is empty if the row lacks the figure.

use wrote_result::document::{Document, Interval, Latency, Reached, Row, Run};
use wrote_result::{stats, units};

pub fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns the requested rate of a row, over all its jobs: `5.00 k/s`, `20.0 MB/s`.
pub fn asked_rate(row: &Row) -> String {
    match Reached::of(row) {
        None => String::new(),
        Some(rate) if rate.is_of_operations => per_second(rate.asked_per_s),
        Some(rate) => units::rate(rate.asked_per_s),
    }
}

/// Returns whether a row reached its requested rate; true if it has none.
pub fn is_reached(row: &Row) -> bool {
    Reached::of(row).is_none_or(|rate| rate.is_reached)
}

/// Returns the load as a share of the closed loop's rate: `70 %`.
pub fn load_percent(row: &Row) -> String {
    text(row.settings.asked.load_share.map(|share| format!("{:.0} %", share * 100.0)))
}

/// Returns a row's speed in operations or in bytes, its interval if there are several runs, and the
/// speed as text.
pub fn figure(row: &Row, is_counted: bool) -> (f64, Option<(f64, f64)>, String) {
    let of = &row.throughput_bytes_per_s;
    let interval = (row.runs.len() > 1).then_some((of.ci95_low, of.ci95_high));
    if !is_counted {
        return (row.throughput(), interval, throughput(row));
    }
    let scale = row.iops() / row.throughput().max(f64::MIN_POSITIVE);
    let interval = interval.map(|(low, high)| (low * scale, high * scale));
    (row.iops(), interval, operations_per_s(row))
}

/// Returns the throughput: `2.41 GB/s`.
pub fn throughput(row: &Row) -> String {
    units::rate(row.throughput())
}

/// Returns the ends of the throughput's interval. A single run has no interval.
pub fn range(row: &Row) -> String {
    if row.runs.len() < 2 { "".into() } else { ends(&row.throughput_bytes_per_s, &units::RATES) }
}

/// Returns the ends of the interval of the operations per second.
pub fn operations_range(row: &Row) -> String {
    let iops: Vec<f64> = row.runs.iter().map(|run| run.iops).collect();
    if iops.len() < 2 { "".into() } else { ends(&stats::interval(&iops), &units::COUNTS) }
}

/// Returns both ends of an interval in the unit of its median: `2.28-2.59`; `too wide` if they are
/// orders of magnitude apart.
pub fn ends(of: &Interval, units: &[&'static str]) -> String {
    let (_, unit) = units::alike(&[of.median], units);
    let scale = 1000_f64.powi(units.iter().take_while(|of| **of != unit).count() as i32);
    let [low, high] =
        [of.ci95_low, of.ci95_high].map(|end| units::significant(end.max(0.0) / scale));
    if stats::relative_width(of) > 9.99 { "too wide".into() } else { format!("{low}-{high}") }
}

/// Returns a median and both ends of its interval in one unit, so that their texts can be compared.
/// In different units, `998 MB/s` would look larger than `1.03 GB/s`.
pub fn ranged(of: &Interval, units: &[&'static str]) -> ([String; 3], &'static str) {
    let values = [of.median, of.ci95_low, of.ci95_high].map(|value| value.max(0.0));
    let (numbers, unit) = units::alike(&values, units);
    (numbers.try_into().expect("three values have three texts"), unit)
}

/// Returns whether an interval comes from several runs.
pub fn has_spread(interval: &Interval) -> bool {
    interval.ci95_low < interval.ci95_high
}

/// Returns the block size, or the range from the smallest to the largest: `4 KiB`, `4 KiB..64 KiB`.
pub fn block_sizes(row: &Row) -> String {
    let effective = &row.settings.effective;
    let largest = effective.bs_bytes;
    let split = effective.bssplit.iter().flatten().map(|share| share.bytes);
    let smallest = split.chain(effective.message_bytes_min).chain(effective.bs_bytes_min).min();
    match smallest.filter(|smallest| *smallest < largest) {
        Some(least) => format!("{}..{}", units::block_size(least), units::block_size(largest)),
        None => units::block_size(largest),
    }
}

/// Returns a figure of the latencies: `1.20 ms`.
pub fn latency(latency: Option<&Latency>, figure: fn(&Latency) -> Option<u64>) -> String {
    text(latency.and_then(figure).map(units::nanoseconds))
}

/// Returns the 99th percentile; empty if there are too few operations.
pub fn p99(latency: Option<&Latency>) -> String {
    self::latency(latency, Latency::known_p99)
}

/// Returns the median, and the 99th percentile if there are enough operations:
/// `P50 1.20 ms, P99 3.40 ms`.
pub fn p50_p99(latency: &Latency) -> String {
    let p50 = format!("P50 {}", units::nanoseconds(latency.p50));
    match latency.known_p99() {
        Some(p99) => format!("{p50}, P99 {}", units::nanoseconds(p99)),
        None => p50,
    }
}

/// Returns the number of timed operations.
pub fn iterations(row: &Row) -> String {
    text(row.latency().map(|latency| latency.count))
}

/// Returns the median time of a run.
pub fn run_time(row: &Row) -> String {
    units::seconds(row.median_of(|run| Some(run.elapsed_s)))
}

/// Returns the median memory peak of a run.
pub fn peak_memory(row: &Row) -> String {
    let peak = |run: &Run| run.max_rss_bytes.map(|bytes| bytes as f64);
    let is_known = row.runs.iter().any(|run| run.max_rss_bytes.is_some());
    text(is_known.then(|| units::bytes(row.median_of(peak) as u64)))
}

/// Returns the CPU time of one operation: `1.85 us`.
pub fn cpu_per_operation(row: &Row) -> String {
    units::nanoseconds((row.cpu_s_per_operation() * 1e9).round() as u64)
}

/// Returns the CPU seconds per gigabyte.
pub fn cpu_s_per_gb(row: &Row) -> String {
    cpu_seconds(row.cpu_s_per_gb())
}

/// Returns CPU seconds with two or three significant digits.
pub fn cpu_seconds(cpu_s: f64) -> String {
    match cpu_s {
        cost if cost >= 99.5 => format!("{cost:.0}"),
        cost if cost >= 9.95 => format!("{cost:.1}"),
        cost => format!("{cost:.2}"),
    }
}

/// Returns the operations per second: the median over the runs.
pub fn operations_per_s(row: &Row) -> String {
    per_second(row.iops())
}

/// Returns operations per second with three significant digits: `12.3 k/s`.
pub fn per_second(iops: f64) -> String {
    match iops {
        i if i >= 1e6 => format!("{:.2} M/s", i / 1e6),
        i if i >= 99_950.0 => format!("{:.0} k/s", i / 1e3),
        i if i >= 9_995.0 => format!("{:.1} k/s", i / 1e3),
        i if i >= 999.5 => format!("{:.2} k/s", i / 1e3),
        i if i >= 9.995 || i == 0.0 => format!("{i:.0} /s"),
        i => format!("{i:.2} /s"),
    }
}

/// Returns whether a row did not run as requested, because of a fallback or of lost messages.
pub fn fell_back(row: &Row) -> bool {
    !row.settings.fallbacks.is_empty() || !row.has_all_records()
}

/// Returns a sentence about other programs that used the disk or the CPUs: it warns of the figures
/// where most runs of one of the rows were disturbed.
pub fn disturbed(document: &Document, rows: &[&Row]) -> &'static str {
    let disturbed = |row: &Row| row.runs.iter().filter(|run| run.is_disturbed()).count();
    let is_mostly_quiet = rows.iter().all(|row| 2 * disturbed(row) <= row.runs.len());
    match document.findings.iter().find(|of| of.id == "busy-neighbour") {
        Some(of) if is_mostly_quiet && of.evidence.contains_key("disturbed_runs") => {
            " Other programs used the disk or the CPUs during some of the runs."
        }
        Some(_) => " Other programs used the disk or the CPUs: do not rely on these figures.",
        None => "",
    }
}
