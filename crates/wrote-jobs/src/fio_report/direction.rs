//! The figures of one direction of a job, with fio's names and units, and the percentages of
//! histograms.

use crate::jobs::{DirectionReport, JobReport, merged, span};
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};
use std::time::Duration;
use wrote_result::document as result;

const KIB: u64 = 1 << 10;

/// fio's `read`, `write` and `trim`.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Direction {
    pub io_bytes: u64,
    pub io_kbytes: u64,
    pub bw_bytes: u64,
    /// The rate in KiB/s.
    pub bw: u64,
    pub iops: f64,
    /// Milliseconds; 0 if nothing was transferred.
    pub runtime: u64,
    pub total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    pub slat_ns: Latency,
    pub clat_ns: Latency,
    pub lat_ns: Latency,
    pub bw_min: u64,
    pub bw_max: u64,
    /// The share of the group's transfer, in percent.
    pub bw_agg: f64,
    pub bw_mean: f64,
    pub bw_dev: f64,
    pub bw_samples: u64,
    pub iops_min: u64,
    pub iops_max: u64,
    pub iops_mean: f64,
    pub iops_stddev: f64,
    pub iops_samples: u64,
}

/// fio's latency figures, without percentiles if there are no samples.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Latency {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    #[serde(rename = "N")]
    pub count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Pairs<u64>>,
    /// The number of operations by latency in nanoseconds (`json+`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bins: Option<Pairs<u64>>,
}

impl Latency {
    pub(super) fn of(histogram: &Histogram<u64>, percentiles: &[f64], bins: bool) -> Latency {
        let at = |percentile: &f64| {
            (format!("{percentile:.6}"), histogram.value_at_quantile(percentile / 100.0))
        };
        let filled = histogram.iter_recorded();
        let filled = filled.map(|bin| (bin.value_iterated_to().to_string(), bin.count_at_value()));
        Latency {
            min: histogram.min(),
            max: histogram.max(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            count: histogram.len(),
            percentile: (!histogram.is_empty() && !percentiles.is_empty())
                .then(|| Pairs(percentiles.iter().map(at).collect())),
            bins: (bins && !histogram.is_empty()).then(|| Pairs(filled.collect())),
        }
    }
}

impl Direction {
    /// Returns the figures of an entry in one direction. `group_bytes_per_s` is the rate of the
    /// whole group in this direction.
    pub(super) fn of(
        entry: &[JobReport],
        direction: result::Direction,
        group_bytes_per_s: f64,
        bins: bool,
    ) -> Direction {
        let (parts, elapsed) = parts(entry, direction);
        let parts = || parts.iter();
        let io_bytes: u64 = parts().map(|part| part.bytes).sum();
        let total_ios: u64 = parts().map(|part| part.operations).sum();
        if total_ios == 0 {
            return Direction::default();
        }
        let bytes_per_s = io_bytes as f64 / elapsed.as_secs_f64().max(1e-9);
        let (latencies, spec) = (merged(parts().map(|part| &part.latency_ns)), &entry[0].spec);
        let latency = |disabled: &str, is_shown: bool| match spec.is_on(disabled) {
            true => Latency::default(),
            false => Latency::of(&latencies, spec.percentiles_if(is_shown), bins && is_shown),
        };
        let bandwidth =
            Samples::of(entry, |job| &job.direction(direction).bandwidth_samples_bytes_per_s);
        let iops = Samples::of(entry, |job| &job.direction(direction).iops_samples);
        Direction {
            io_bytes,
            io_kbytes: io_bytes / KIB,
            bw_bytes: bytes_per_s as u64,
            bw: bytes_per_s as u64 / KIB,
            iops: total_ios as f64 / elapsed.as_secs_f64().max(1e-9),
            // 0 would mean that nothing was transferred.
            runtime: (elapsed.as_millis() as u64).max(1),
            total_ios,
            clat_ns: latency("disable_clat", !spec.is_off("clat_percentiles")),
            lat_ns: latency("disable_lat", spec.is_on("lat_percentiles")),
            bw_min: (bandwidth.min / KIB as f64) as u64,
            bw_max: (bandwidth.max / KIB as f64) as u64,
            bw_agg: percent(bytes_per_s, group_bytes_per_s),
            bw_mean: bandwidth.mean / KIB as f64,
            bw_dev: bandwidth.deviation() / KIB as f64,
            bw_samples: bandwidth.count,
            iops_min: iops.min as u64,
            iops_max: iops.max as u64,
            iops_mean: iops.mean,
            iops_stddev: iops.deviation(),
            iops_samples: iops.count,
            ..Direction::default()
        }
    }
}

/// Returns the reports of one direction, and the time that they cover. As in fio, the reads of
/// `do_verify` are included in the reads.
pub(super) fn parts(
    entry: &[JobReport],
    direction: result::Direction,
) -> (Vec<&DirectionReport>, Duration) {
    let is_read = direction == result::Direction::Read;
    let backs = || entry.iter().filter_map(|job| job.read_back.as_ref()).filter(|_| is_read);
    let own: Vec<_> = entry.iter().map(|job| job.direction(direction)).collect();
    let is_used = own.iter().any(|own| own.operations > 0);
    let verified = backs().map(|(_, elapsed)| *elapsed).max().unwrap_or_default();
    let elapsed = if is_used { span(entry) + verified } else { verified };
    (own.into_iter().chain(backs().map(|(reads, _)| reads)).collect(), elapsed)
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part * 100.0 / whole).min(100.0) } else { 0.0 }
}

/// The rates sampled during a run. As in fio, the figures of an entry's jobs are added up.
#[derive(Default)]
struct Samples {
    min: f64,
    max: f64,
    mean: f64,
    /// The sum of the squared deviations from each job's mean.
    squares: f64,
    count: u64,
}

impl Samples {
    fn of(entry: &[JobReport], samples: impl Fn(&JobReport) -> &Vec<f64>) -> Samples {
        let mut all = Samples::default();
        for samples in entry.iter().map(samples).filter(|samples| !samples.is_empty()) {
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            all.min += samples.iter().copied().fold(f64::INFINITY, f64::min);
            all.max += samples.iter().copied().fold(0.0, f64::max);
            all.mean += mean;
            all.squares += samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
            all.count += samples.len() as u64;
        }
        all
    }

    /// Returns the standard deviation of a sample; 0 for fewer than two values.
    fn deviation(&self) -> f64 {
        (self.squares / self.count.saturating_sub(1).max(1) as f64).sqrt()
    }
}

/// A JSON object whose keys are data and keep their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The bounds of a histogram: labels, each with the largest value that belongs to it. The last
/// label covers all remaining values.
type Bounds = [(&'static str, u64)];

/// Bounds for operations in flight, with fio's labels: `2` means 2 and 3.
pub(super) const DEPTHS: [(&str, u64); 7] =
    [("1", 1), ("2", 3), ("4", 7), ("8", 15), ("16", 31), ("32", 63), (">=64", u64::MAX)];

/// Bounds for operations submitted or completed together, with fio's labels: `4` means 1 to 4.
pub(super) const BATCHES: [(&str, u64); 7] =
    [("0", 0), ("4", 4), ("8", 8), ("16", 16), ("32", 32), ("64", 64), (">=64", u64::MAX)];

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Bounds for latencies in nanoseconds. The first ten are for fio's `latency_ns`, the next ten for
/// `latency_us`, and the rest for `latency_ms`. A label is the first value, in its unit, that no
/// longer belongs to it.
#[rustfmt::skip]
const LATENCIES: [(&str, u64); 32] = [
    ("2", 1), ("4", 3), ("10", 9), ("20", 19), ("50", 49), ("100", 99), ("250", 249),
    ("500", 499), ("750", 749), ("1000", 999),
    ("2", 2 * US - 1), ("4", 4 * US - 1), ("10", 10 * US - 1), ("20", 20 * US - 1),
    ("50", 50 * US - 1), ("100", 100 * US - 1), ("250", 250 * US - 1), ("500", 500 * US - 1),
    ("750", 750 * US - 1), ("1000", 1000 * US - 1),
    ("2", 2 * MS - 1), ("4", 4 * MS - 1), ("10", 10 * MS - 1), ("20", 20 * MS - 1),
    ("50", 50 * MS - 1), ("100", 100 * MS - 1), ("250", 250 * MS - 1), ("500", 500 * MS - 1),
    ("750", 750 * MS - 1), ("1000", 1000 * MS - 1), ("2000", 2000 * MS - 1), (">=2000", u64::MAX),
];

/// Returns the latencies' percentages for fio's `latency_ns`, `latency_us` and `latency_ms`.
pub(super) fn latencies(histogram: &Histogram<u64>) -> [Pairs<f64>; 3] {
    let Pairs(mut ns) = shares(histogram, &LATENCIES);
    let ms = ns.split_off(20);
    let us = ns.split_off(10);
    [ns, us, ms].map(Pairs)
}

/// Returns the percentage of the counted values within each bound; 0 for all if there are no
/// values.
///
/// A value belongs to the bound that contains the upper end of its histogram bucket.
pub(super) fn shares(histogram: &Histogram<u64>, bounds: &Bounds) -> Pairs<f64> {
    let mut counts = vec![0; bounds.len()];
    for bucket in histogram.iter_recorded() {
        let value = bucket.value_iterated_to();
        let place = bounds.iter().position(|(_, last)| value <= *last);
        counts[place.expect("the last bound is the greatest number")] += bucket.count_at_value();
    }
    let percent = |count: u64| match histogram.len() {
        0 => 0.0,
        all => count as f64 * 100.0 / all as f64,
    };
    let labels = bounds.iter().map(|(label, _)| (*label).to_owned());
    Pairs(labels.zip(counts.into_iter().map(percent)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    /// Returns the labels with a share above 0.
    fn filled(Pairs(pairs): &Pairs<f64>) -> Vec<(&str, f64)> {
        pairs.iter().filter(|(_, part)| *part > 0.0).map(|(key, part)| (&**key, *part)).collect()
    }

    #[test]
    fn depths_are_counted_from_their_label_up_and_batches_up_to_it() {
        let values = histogram(&[1, 3, 4, 63, 64, 4096, 1, 1, 1, 1]);
        let depths = shares(&values, &DEPTHS);
        assert_eq!(
            filled(&depths),
            [("1", 50.0), ("2", 10.0), ("4", 10.0), ("32", 10.0), (">=64", 20.0)]
        );
        let batches = shares(&values, &BATCHES);
        assert_eq!(filled(&batches), [("4", 70.0), ("64", 20.0), (">=64", 10.0)]);
    }

    #[test]
    fn latencies_are_below_their_label_in_the_unit_that_fits() {
        let [ns, us, ms] =
            latencies(&histogram(&[999, 1000, 1999, 2000, 3_000_000, 2_000_000_000]));
        let near = |pairs: &Pairs<f64>| -> Vec<(String, i32)> {
            filled(pairs).iter().map(|(key, part)| ((*key).into(), part.round() as i32)).collect()
        };
        assert_eq!(near(&ns), [("1000".into(), 17)]);
        assert_eq!(near(&us), [("2".into(), 33), ("4".into(), 17)]);
        assert_eq!(near(&ms), [("4".into(), 17), (">=2000".into(), 17)]);
    }

    #[test]
    fn of_nothing_every_share_is_0() {
        let [ns, us, ms] = latencies(&histogram(&[]));
        assert_eq!((ns.0.len(), us.0.len(), ms.0.len()), (10, 10, 12));
        for pairs in [ns, us, ms] {
            assert!(pairs.0.iter().all(|(_, share)| *share == 0.0));
        }
    }
}
