//! The figures of a language in a table: their titles, and their texts.

use super::Cell;
use crate::figures::{cpu_seconds, times, within};
use wrote_result::document::{Interval, Latency};
use wrote_result::langs::Row;
use wrote_result::{stats, units};

/// What stands over a column, and the text of a cell under it.
pub type Figure = (&'static str, fn(Cell) -> String);

/// Of bytes and lines.
pub const RATES: [Figure; 6] = [
    ("MB/s", |cell| megabytes(cell.throughput.median)),
    ("±95%", |cell| spread(cell.throughput)),
    ("MEAN", |cell| of_row(cell, |row| megabytes(row.throughput_mean_bytes_per_s))),
    ("x DRIVE", of_drive),
    ("CPU s/GB", |cell| of_row(cell, |row| cpu_seconds(row.cpu_s_per_gb))),
    ("MEMORY", |cell| of_row(cell, |row| row.max_rss_bytes.map(units::bytes).unwrap_or_default())),
];

/// Of saves.
pub const SAVES: [Figure; 8] = [
    ("MIN", |cell| latency(cell, |of| of.min)),
    ("P50", |cell| latency(cell, |of| of.p50)),
    ("P90", |cell| latency(cell, |of| of.p90)),
    ("P95", |cell| latency(cell, |of| of.p95)),
    ("P99", |cell| latency(cell, |of| of.p99)),
    ("P99.9", |cell| latency(cell, |of| of.p99_9)),
    ("MAX", |cell| latency(cell, |of| of.max)),
    ("TOTAL", |cell| latency(cell, |of| of.total)),
];

/// The one figure of a workload that stands under each of several paths: `812 ±3%`, of saves the P50.
pub fn of_path(cell: Cell, is_of_saves: bool) -> String {
    if is_of_saves {
        return latency(cell, |of| of.p50);
    }
    format!("{} {}", megabytes(cell.throughput.median), spread(cell.throughput)).trim_end().into()
}

/// A rate in MB/s, without its unit.
pub fn megabytes(bytes_per_s: f64) -> String {
    if bytes_per_s.is_finite() { times(bytes_per_s / 1e6) } else { "?".into() }
}

/// How far an interval reaches from its median; empty of one that a single run made.
pub fn spread(interval: &Interval) -> String {
    if is_spread(interval) { within(interval) } else { String::new() }
}

/// Whether two can't be told apart. Single runs say nothing of that.
pub fn are_level(one: Cell, other: Cell) -> bool {
    let (one, other) = (one.throughput, other.throughput);
    is_spread(one) && is_spread(other) && !stats::distinguishable(one, other)
}

/// Whether the interval says how the runs vary.
fn is_spread(interval: &Interval) -> bool {
    interval.ci95_low < interval.ci95_high
}

/// How many times the drive's own rate: `0.37`.
fn of_drive(cell: Cell) -> String {
    let rate = cell.drive.map(|drive| cell.throughput.median / drive.median);
    match rate.filter(|rate| rate.is_finite()) {
        None => String::new(),
        Some(rate) if rate < 0.0005 => "<0.001".into(),
        Some(rate) if rate < 0.0995 => format!("{rate:.3}"),
        Some(rate) => times(rate),
    }
}

fn of_row(cell: Cell, text: fn(&Row) -> String) -> String {
    cell.row.map(text).unwrap_or_default()
}

fn latency(cell: Cell, figure: fn(&Latency) -> u64) -> String {
    let latency = cell.row.and_then(|row| row.latency_ns.as_ref());
    latency.map(figure).map(units::nanoseconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(median: f64, reach: f64) -> Interval {
        Interval { median, ci95_low: median - reach, ci95_high: median + reach }
    }

    #[test]
    fn a_rate_has_three_digits_or_all_before_the_point() {
        for (bytes_per_s, text) in [
            (2.4104e9, "2410"),
            (81.23e6, "81.2"),
            (1.234e6, "1.23"),
            (1e3, "0.00"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(megabytes(bytes_per_s), text);
        }
    }

    #[test]
    fn a_part_of_the_drives_rate_is_told_however_small_and_none_where_there_is_none() {
        let (slow, fast, faster) = (around(1.2e6, 1e5), around(2e9, 1e8), around(4e9, 0.0));
        let none = around(0.0, 0.0);
        let cell = |drive| Cell { throughput: &slow, row: None, drive };
        assert_eq!(of_drive(cell(Some(&fast))), "0.001");
        assert_eq!(of_drive(cell(Some(&slow))), "1.00");
        assert_eq!(of_drive(cell(Some(&faster))), "<0.001");
        assert_eq!(of_drive(cell(None)), "");
        assert_eq!(of_drive(cell(Some(&none))), "");
    }

    #[test]
    fn single_runs_are_neither_level_nor_have_a_spread() {
        let (point, wide, near) = (around(100.0, 0.0), around(100.0, 5.0), around(104.0, 5.0));
        let cell = |throughput| Cell { throughput, row: None, drive: None };
        assert!(are_level(cell(&wide), cell(&near)));
        assert!(!are_level(cell(&wide), cell(&point)));
        assert_eq!((spread(&point).as_str(), spread(&wide).as_str()), ("", "±5%"));
    }
}
