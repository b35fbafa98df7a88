//! How long a producer waits until its message is durable, beside what a single flush takes.

use super::super::ratio::{Asked, Figures};
use super::super::trial::{Latency, Outcome};
use super::super::ways::Line;

/// The head of the table.
pub const HEAD: &str = "\
| messages | wrote's P50 | P99 | peer | peer's P50 | P99 | one flush, median | wrote's P99 / one flush (range) | asked |
|---|---:|---:|---|---:|---:|---:|---:|---|";

/// A line of the table.
#[derive(Debug)]
pub struct LatencyLine {
    what: String,
    peer: String,
    pairs: Vec<(Outcome, Outcome)>,
    asked: Option<Asked>,
}

impl LatencyLine {
    /// The latencies behind a line of rates; `asked` of it where something is asked of the rates.
    pub fn of(line: &Line, asked: Option<Asked>) -> LatencyLine {
        let Line { what, peer, pairs, asked: of_rates, .. } = line;
        LatencyLine {
            what: what.clone(),
            peer: peer.clone(),
            pairs: pairs.clone(),
            asked: of_rates.and(asked),
        }
    }

    /// The line of the table.
    pub fn row(&self) -> String {
        let LatencyLine { what, peer, .. } = self;
        let p50 = |latency: Latency| latency.p50_ns;
        let p99 = |latency: Latency| latency.p99_ns;
        let ours = |pair: &(Outcome, Outcome)| pair.0.latency;
        let theirs = |pair: &(Outcome, Outcome)| pair.1.latency;
        let ratios = self.pairs.iter().filter_map(|(ours, peer)| {
            Some(ours.latency?.p99_ns as f64 / peer.flush?.p50_ns as f64)
        });
        let ratios: Vec<f64> = ratios.collect();
        let (ratio, verdict) = match ratios.is_empty() {
            true => ("–".to_owned(), None),
            false => {
                let ratios = Figures::new(ratios);
                (ratios.to_string(), self.asked.map(|asked| asked.verdict(&ratios)))
            }
        };
        format!(
            "| {what} | {} | {} | {peer} | {} | {} | {} | {ratio} | {} |",
            self.median(|pair| ours(pair).map(p50)),
            self.median(|pair| ours(pair).map(p99)),
            self.median(|pair| theirs(pair).map(p50)),
            self.median(|pair| theirs(pair).map(p99)),
            self.median(|(_, peer)| peer.flush.map(p50)),
            verdict.as_deref().unwrap_or("–"),
        )
    }

    /// "350 µs", or a dash where nothing was timed.
    fn median(&self, ns: impl Fn(&(Outcome, Outcome)) -> Option<u64>) -> String {
        let all: Vec<f64> = self.pairs.iter().filter_map(ns).map(|ns| ns as f64).collect();
        if all.is_empty() {
            return "–".to_owned();
        }
        format!("{:.0} µs", Figures::new(all).median() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::measured::Measured;
    use super::super::super::ways::Unit;
    use super::*;

    fn outcome(latency_us: [u64; 2], flush_us: Option<u64>) -> Outcome {
        let latency = |[p50, p99]: [u64; 2]| Latency { p50_ns: p50 * 1000, p99_ns: p99 * 1000 };
        Outcome {
            latency: Some(latency(latency_us)),
            flush: flush_us.map(|us| latency([us, us])),
            ..Outcome::new(Measured { bytes: 1, elapsed_s: 1.0, cpu_s: 1.0 }, 0)
        }
    }

    fn line(flush_us: Option<u64>, asked: Option<Asked>) -> Line {
        Line {
            what: "each durable".into(),
            unit: Unit::Messages,
            ours: "`Log`".into(),
            peer: "`File`".into(),
            pairs: vec![(outcome([400, 900], None), outcome([9000, 20_000], flush_us))],
            asked,
        }
    }

    #[test]
    fn what_the_slowest_wait_is_set_against_one_flush_of_the_peer() {
        let line = line(Some(300), Some(Asked::AtLeast(20.0)));
        let row = LatencyLine::of(&line, Some(Asked::AtMost(2.5))).row();
        assert_eq!(
            row,
            "| each durable | 400 µs | 900 µs | `File` | 9000 µs | 20000 µs | 300 µs \
             | **3.00** (3.00–3.00) | ≤ 2.50, not met |"
        );
        let columns = |line: &str| line.matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(&row)));
    }

    #[test]
    fn nothing_is_asked_where_no_flush_was_timed_or_the_peer_is_not_the_best() {
        let asked = Some(Asked::AtMost(2.5));
        let without = LatencyLine::of(&line(None, Some(Asked::AtLeast(2.0))), asked).row();
        assert!(without.ends_with("| 20000 µs | – | – | – |"), "{without}");
        let other = LatencyLine::of(&line(Some(300), None), asked).row();
        assert!(other.ends_with("| **3.00** (3.00–3.00) | – |"), "{other}");
    }
}
