//! The long run, the pause, and the second look; and what they add up to.

use super::change::changes;
use super::rates::{interval, until};
use super::steady::steady_state;
use super::{NAME, Plan, RECOVERED_TIME_MAX, ROW, WORDS};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_jobs::jobs::{self, GroupReport, Mark, Permissions, Watcher};
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::JobSpec;
use wrote_result::document::{Sample, Sustained};
use wrote_result::{Error, Stop};

const PART: &str = "data";
/// How often the pause looks around.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl scenario::Plan for Plan {
    fn scope(&self) -> scenario::Scope {
        let question = "How fast does this disk take writes for long, and after how many bytes does it slow down?".into();
        scenario::Scope { name: NAME, question, runs: 1 }
    }

    fn rows(&self) -> Vec<String> {
        vec![ROW.into()]
    }

    fn space_bytes_max(&self) -> u64 {
        self.file_bytes
    }

    fn written_bytes_max(&self) -> u64 {
        self.size_bytes + self.recovered_bytes_max()
    }

    fn estimate(&self) -> Duration {
        self.writing() + self.afterwards()
    }

    /// Writes without a break. Where that became slow, it lets the device rest and measures again.
    fn run(&mut self, _: Turn, site: &Site, ticker: &mut Ticker) -> Result<Repeated, Error> {
        let whole = self.writing() + self.afterwards();
        let share = |time: Duration| time.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        let (written, rested) = (share(self.writing()), share(self.writing() + self.idle));
        let spec = JobSpec { files: site.files(PART, 1), ..self.spec() };
        let report = write(&spec, site, &mut Part { ticker, of_whole: 0.0..written })?;
        let mut again_bytes = 0;
        let mut sustained = describe(&samples(&report.jobs[0].trail), self.file_bytes);
        if let Some(bytes) = burst_bytes(&sustained).filter(|_| !self.idle.is_zero()) {
            rest(self.idle, site.stop, &mut Part { ticker, of_whole: written..rested })?;
            let blocks = (bytes.min(self.recovered_bytes_max()) / self.bs_bytes).max(1);
            let again = JobSpec {
                io_bytes: Some(blocks * self.bs_bytes),
                runtime: Some(RECOVERED_TIME_MAX),
                ..spec
            };
            let again = write(&again, site, &mut Part { ticker, of_whole: rested..1.0 })?;
            again_bytes = again.written_bytes();
            let samples = samples(&again.jobs[0].trail);
            sustained.recovered_bytes_per_s = Some(interval(&samples, 0..samples.len()));
            sustained.idle_s = Some(self.idle.as_secs_f64());
        }
        let mut run = Repeated::of(&report, &site.before(&[], &site.files(PART, 1)));
        run.written_bytes += again_bytes;
        for row in &mut run.rows {
            (row.workload, row.way) = (NAME.into(), WORDS.into());
            row.sustained = Some(sustained.clone());
        }
        Ok(run)
    }

    fn shared_files(&self, site: &Site) -> Vec<PathBuf> {
        site.files(PART, 1)
    }
}

fn write(spec: &JobSpec, site: &Site, part: &mut Part) -> Result<GroupReport, Error> {
    // The run made the file, below a folder of its own.
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let mut reports = jobs::run(std::slice::from_ref(spec), permissions, site.stop, part)?;
    Ok(reports.remove(0))
}

/// Nothing is written for a while.
fn rest(idle: Duration, stop: &Stop, part: &mut Part) -> Result<(), Error> {
    let (begin, mut told) = (Instant::now(), Duration::ZERO);
    loop {
        stop.check()?;
        let elapsed = begin.elapsed();
        let Some(left) = idle.checked_sub(elapsed).filter(|left| !left.is_zero()) else {
            return Ok(());
        };
        if elapsed - told >= 5 * LOOK_EVERY {
            told = elapsed;
            part.is_at(elapsed.as_secs_f64() / idle.as_secs_f64());
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// A part of the whole, whose progress is told as the whole's.
struct Part<'a, 'b> {
    ticker: &'a mut Ticker<'b>,
    of_whole: Range<f64>,
}

impl Part<'_, '_> {
    fn is_at(&mut self, fraction: f64) {
        let Range { start, end } = self.of_whole;
        self.ticker.within(ROW, start + fraction * (end - start));
    }
}

impl Watcher for Part<'_, '_> {
    fn progress(&mut self, _read_bytes: u64, _written_bytes: u64, fraction: f64) {
        self.is_at(fraction);
    }

    fn note(&mut self, text: &str) {
        self.ticker.note(text);
    }
}

/// The pieces between the marks.
fn samples(marks: &[Mark]) -> Vec<Sample> {
    let before = std::iter::once(Mark::default()).chain(marks.iter().copied());
    let sample = |(from, to): (Mark, &Mark)| Sample {
        end_bytes: to.end_bytes,
        end_s: to.end_ns as f64 / 1e9,
        throughput_bytes_per_s: (to.end_bytes - from.end_bytes) as f64
            / ((to.end_ns - from.end_ns) as f64 / 1e9),
    };
    before.zip(marks).map(sample).collect()
}

fn describe(samples: &[Sample], file_bytes: u64) -> Sustained {
    let mut sustained = Sustained {
        file_bytes,
        samples: samples.to_vec(),
        changes: changes(samples),
        burst_bytes_per_s: Default::default(),
        sustained_bytes_per_s: Default::default(),
        recovered_bytes_per_s: None,
        idle_s: None,
        steady_state: None,
    };
    let burst = burst(&sustained);
    let last = sustained.changes.last().map_or((0, 0.0), |change| (change.at_bytes, change.at_s));
    sustained.burst_bytes_per_s = interval(samples, burst);
    sustained.sustained_bytes_per_s = interval(samples, until(samples, last.0)..samples.len());
    sustained.steady_state = steady_state(samples, last.1);
    sustained
}

/// The samples of the burst: up to the first cliff or change, from the change before on.
fn burst(sustained: &Sustained) -> Range<usize> {
    let samples = &sustained.samples;
    let end = sustained.cliffs().next().or(sustained.changes.first());
    let end_bytes = end.map_or(sustained.written_bytes(), |change| change.at_bytes);
    let before = sustained.changes.iter().rev().find(|change| change.at_bytes < end_bytes);
    until(samples, before.map_or(0, |change| change.at_bytes))..until(samples, end_bytes)
}

/// Bytes of the burst; none where there is no cliff and so nothing that could recover.
fn burst_bytes(sustained: &Sustained) -> Option<u64> {
    sustained.cliffs().next()?;
    let burst = burst(sustained);
    let end = |at: usize| sustained.samples[at - 1].end_bytes;
    Some(end(burst.end) - if burst.start == 0 { 0 } else { end(burst.start) })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Noise, samples as made, step};
    use super::*;

    fn described(levels: &[(usize, f64)]) -> Sustained {
        let count = levels.iter().map(|(length, _)| length).sum();
        let levels: Vec<(usize, f64)> =
            levels.iter().map(|(length, bytes_per_s)| (*length, bytes_per_s.ln())).collect();
        let noise = Noise { deviation: 0.02, ..Noise::default() };
        let noisy = noise.series(1, count).into_iter().zip(step(count, &levels));
        describe(&made(&noisy.map(|(noise, level)| noise + level).collect::<Vec<f64>>()), 1)
    }

    fn near(interval: &wrote_result::document::Interval, truth: f64) -> bool {
        (interval.median / truth - 1.0).abs() < 0.02
    }

    #[test]
    fn burst_and_sustained_are_the_levels_before_the_first_cliff_and_behind_the_last_change() {
        let found = described(&[(200, 4.5e9), (200, 2e9), (200, 0.5e9)]);
        assert!(near(&found.burst_bytes_per_s, 4.5e9), "{:?}", found.burst_bytes_per_s);
        assert!(near(&found.sustained_bytes_per_s, 0.5e9), "{:?}", found.sustained_bytes_per_s);
        assert_eq!(burst_bytes(&found), Some(200_000_000));
    }

    #[test]
    fn a_slow_start_is_no_part_of_the_burst() {
        let found = described(&[(100, 1e9), (300, 5e9), (200, 1.5e9)]);
        assert!(near(&found.burst_bytes_per_s, 5e9), "{:?}", found.burst_bytes_per_s);
        assert_eq!(burst_bytes(&found), Some(300_000_000));
    }

    #[test]
    fn without_a_cliff_all_is_burst_and_sustained_and_nothing_recovers() {
        let found = described(&[(500, 3e9)]);
        assert_eq!(found.burst_bytes_per_s, found.sustained_bytes_per_s);
        assert_eq!(burst_bytes(&found), None);
        assert!(found.steady_state.unwrap().reached);
    }

    #[test]
    fn pieces_of_a_trail_add_up() {
        let marks = [Mark { end_bytes: 100, end_ns: 50 }, Mark { end_bytes: 400, end_ns: 100 }];
        let samples = samples(&marks);
        assert_eq!(samples.iter().map(|sample| sample.end_bytes).collect::<Vec<_>>(), [100, 400]);
        assert!((samples[1].throughput_bytes_per_s - 300.0 / 50e-9).abs() < 1.0);
    }
}
