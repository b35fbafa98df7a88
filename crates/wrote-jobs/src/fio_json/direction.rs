//! An entry's work in one direction, in fio's units: KiB/s, milliseconds, nanoseconds.

use super::shares::Pairs;
use crate::jobs::{JobReport, merged};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;
use wrote_result::document as result;

const KIB: u64 = 1 << 10;
/// The length of one sample of a rate.
const SAMPLE_NS: i128 = 500_000_000;

/// fio's `read`, `write` and `trim`.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Direction {
    io_bytes: u64,
    pub io_kbytes: u64,
    bw_bytes: u64,
    /// KiB/s.
    pub bw: u64,
    pub iops: f64,
    /// Milliseconds; 0 without a transfer.
    pub runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    pub slat_ns: Latency,
    pub clat_ns: Latency,
    pub lat_ns: Latency,
    pub bw_min: u64,
    pub bw_max: u64,
    /// Percent of the group's transfer.
    pub bw_agg: f64,
    pub bw_mean: f64,
    pub bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

/// fio's latencies, without percentiles if there are no samples.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Latency {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Pairs<u64>>,
}

impl Latency {
    pub(super) fn of(histogram: &Histogram<u64>, percentiles: &[f64]) -> Latency {
        let at = |percentile: &f64| {
            (format!("{percentile:.6}"), histogram.value_at_quantile(percentile / 100.0))
        };
        Latency {
            min: histogram.min(),
            max: histogram.max(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            count: histogram.len(),
            percentile: (!histogram.is_empty() && !percentiles.is_empty())
                .then(|| Pairs(percentiles.iter().map(at).collect())),
        }
    }
}

impl Direction {
    /// `group_bytes_per_s` is the whole group's rate in this direction.
    pub(super) fn of(
        entry: &[JobReport],
        direction: result::Direction,
        elapsed: Duration,
        group_bytes_per_s: f64,
    ) -> Direction {
        let parts = || entry.iter().map(|job| job.direction(direction));
        let io_bytes: u64 = parts().map(|part| part.bytes).sum();
        let total_ios: u64 = parts().map(|part| part.operations).sum();
        if total_ios == 0 {
            return Direction::default();
        }
        let bytes_per_s = io_bytes as f64 / elapsed.as_secs_f64().max(1e-9);
        let latency = merged(parts().map(|part| &part.latency_ns));
        let latency_ns = Latency::of(&latency, &entry[0].spec.percentiles);
        let bandwidth =
            Samples::of(entry, |job| &job.direction(direction).bandwidth_samples_bytes_per_s);
        let iops = Samples::of(entry, |job| &job.direction(direction).iops_samples);
        Direction {
            io_bytes,
            io_kbytes: io_bytes / KIB,
            bw_bytes: bytes_per_s as u64,
            bw: bytes_per_s as u64 / KIB,
            iops: total_ios as f64 / elapsed.as_secs_f64().max(1e-9),
            // 0 means no transfer.
            runtime: (elapsed.as_millis() as u64).max(1),
            total_ios,
            clat_ns: latency_ns.clone(),
            lat_ns: latency_ns,
            bw_min: (bandwidth.min() / KIB as f64) as u64,
            bw_max: (bandwidth.max() / KIB as f64) as u64,
            bw_agg: percent(bytes_per_s, group_bytes_per_s),
            bw_mean: bandwidth.mean() / KIB as f64,
            bw_dev: bandwidth.deviation() / KIB as f64,
            bw_samples: bandwidth.count(),
            iops_min: iops.min() as u64,
            iops_max: iops.max() as u64,
            iops_mean: iops.mean(),
            iops_stddev: iops.deviation(),
            iops_samples: iops.count(),
            ..Direction::default()
        }
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part * 100.0 / whole).min(100.0) } else { 0.0 }
}

/// Sampled rates of an entry's jobs, added up for each half second.
struct Samples(Vec<f64>);

impl Samples {
    fn of(entry: &[JobReport], samples: impl Fn(&JobReport) -> &Vec<f64>) -> Samples {
        let start = |job: &JobReport| job.started_at.as_nanosecond();
        let began = entry.iter().map(start).min().unwrap_or_default();
        let mut sums: Vec<f64> = Vec::new();
        for job in entry {
            let offset = ((start(job) - began + SAMPLE_NS / 2) / SAMPLE_NS) as usize;
            let samples = samples(job);
            if !samples.is_empty() {
                sums.resize(sums.len().max(offset + samples.len()), 0.0);
            }
            for (index, sample) in samples.iter().enumerate() {
                sums[offset + index] += sample;
            }
        }
        Samples(sums)
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the least; 0 without samples, like the next two.
    fn min(&self) -> f64 {
        self.0.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }

    fn max(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// Returns the standard deviation of a sample, as fio computes it; 0 of less than two.
    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|sample| (sample - mean).powi(2)).sum();
        (squares / self.0.len().saturating_sub(1).max(1) as f64).sqrt()
    }
}
