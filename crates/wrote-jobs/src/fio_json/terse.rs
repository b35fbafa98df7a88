//! fio's terse lines, version 3 (`--minimal`): a line for each entry, fields between semicolons.
//!
//! The fields follow fio(1), "TERSE OUTPUT", up to the latencies in milliseconds. In fio a known
//! disk's fields follow; its figures are not counted here.

use super::direction::{Direction, Latency};
use super::job::Job;
use super::{Document, shares::Pairs};
use std::io::{self, Write};

const VERSION: u32 = 3;
/// The number of percentile fields of a direction, filled or not.
const PERCENTILES: usize = 20;
const NS_PER_US: u64 = 1000;

impl Document {
    /// Writes the jobs as fio's terse lines.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_terse(&self, out: &mut dyn Write) -> io::Result<()> {
        for job in &self.jobs {
            writeln!(out, "{}", self.line(job).join(";"))?;
        }
        Ok(())
    }

    fn line(&self, job: &Job) -> Vec<String> {
        let mut fields = vec![VERSION.to_string(), self.fio_version.clone()];
        // A semicolon ends a field.
        fields.push(job.jobname.replace(';', "_"));
        fields.extend([job.groupid.to_string(), job.error.to_string()]);
        // A direction without operations has the labels of the other.
        let percentiles = [&job.read, &job.write].map(|direction| &direction.clat_ns.percentile);
        let labels = percentiles.into_iter().flatten().next();
        let labels = labels.map(|Pairs(pairs)| pairs.iter().map(|(label, _)| label.as_str()));
        let labels: Vec<&str> = labels.into_iter().flatten().collect();
        for direction in [&job.read, &job.write] {
            direction.push_terse(&labels, &mut fields);
        }
        fields.extend([job.usr_cpu, job.sys_cpu].map(|percent| format!("{percent:.6}%")));
        fields.extend([job.ctx, job.majf, job.minf].map(|count| count.to_string()));
        fields.extend(job.iodepth_level.0.iter().map(|(_, percent)| format!("{percent:.1}%")));
        let below_us: f64 = job.latency_ns.0.iter().map(|(_, percent)| percent).sum();
        let us = job.latency_us.0.iter().enumerate().map(|(place, (_, percent))| {
            // The shortest are below 2 us.
            if place == 0 { percent + below_us } else { *percent }
        });
        let ms = job.latency_ms.0.iter().map(|(_, percent)| *percent);
        fields.extend(us.chain(ms).map(|percent| format!("{percent:.2}%")));
        fields
    }
}

impl Direction {
    fn push_terse(&self, labels: &[&str], fields: &mut Vec<String>) {
        let counts = [self.io_kbytes, self.bw, self.iops as u64, self.runtime];
        fields.extend(counts.map(|count| count.to_string()));
        self.slat_ns.push_terse(fields);
        self.clat_ns.push_terse(fields);
        let at = |place: usize| match (labels.get(place), &self.clat_ns.percentile) {
            (None, _) => "0%=0".to_owned(),
            (Some(label), None) => format!("{label}%=0"),
            (Some(label), Some(Pairs(values))) => {
                format!("{label}%={}", values[place].1 / NS_PER_US)
            }
        };
        fields.extend((0..PERCENTILES).map(at));
        self.lat_ns.push_terse(fields);
        fields.extend([self.bw_min, self.bw_max].map(|rate| rate.to_string()));
        fields.push(format!("{:.6}%", self.bw_agg));
        fields.extend([self.bw_mean, self.bw_dev].map(|rate| format!("{rate:.6}")));
    }
}

impl Latency {
    fn push_terse(&self, fields: &mut Vec<String>) {
        let us = |ns: f64| format!("{:.6}", ns / NS_PER_US as f64);
        fields.extend([self.min, self.max].map(|ns| (ns / NS_PER_US).to_string()));
        fields.extend([self.mean, self.stddev].map(us));
    }
}
