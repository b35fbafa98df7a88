//! Findings on a device that writes a long stream.

use wrote_jobs::findings::{Evidence, Longer, longer};
use wrote_result::document::{Change, Finding, Row, Sustained};
use wrote_result::units::{bytes, rate, seconds};

/// The maximum variation after a cliff, as a fraction of the mean, at which the throughput may look
/// limited.
const LIMITED_VARIATION_MAX: f64 = 0.02;
/// The minimum ratio of the variation before the cliff to the variation after it, which is also
/// required.
const EVENER_FACTOR: f64 = 3.0;
/// The minimum number of samples after a cliff for a known variation.
const LIMITED_SAMPLES_MIN: usize = 20;

pub(crate) fn find(evidence: &Evidence) -> Vec<Finding> {
    let rows = evidence.rows.iter();
    let long = rows.filter_map(|row| row.sustained.as_ref().map(|sustained| (row, sustained)));
    long.flat_map(|(row, sustained)| {
        let cache = cache_cliff(row, sustained).or_else(|| no_cliff(evidence, row, sustained));
        [cache, not_steady(row, sustained)].into_iter().flatten()
    })
    .collect()
}

fn cache_cliff(row: &Row, sustained: &Sustained) -> Option<Finding> {
    let cliffs: Vec<&Change> = sustained.cliffs().collect();
    let first = cliffs.first()?;
    let steps = cliffs.iter().map(|cliff| {
        format!(
            "after {} from {} to {}",
            bytes(cliff.at_bytes),
            rate(cliff.before_bytes_per_s),
            rate(cliff.after_bytes_per_s)
        )
    });
    let mut text = format!(
        "The device slows down {}. Plan with the lasting rate, {}",
        steps.collect::<Vec<_>>().join(", "),
        rate(sustained.sustained_bytes_per_s.median),
    );
    let limited = limited(sustained);
    let recovered = sustained.recovered_bytes_per_s.as_ref().map(|of| of.median);
    let recovered = recovered.zip(sustained.idle_s);
    if let Some((bytes_per_s, idle_s)) = recovered {
        text += &format!(". After a rest of {} it reached {}", seconds(idle_s), rate(bytes_per_s));
    }
    if let Some(variation) = limited {
        text += &format!(
            ". The slow rate varies by only {:.1} %, as under a limit: a burst credit may be used \
             up",
            variation * 100.0
        );
    }
    text += &format!(". Row: {}", row.name);
    Finding::warning("cache-cliff", text)
        .with("row", &row.name)
        .with("at_bytes", first.at_bytes)
        .with("at_s", first.at_s)
        .with("before_bytes_per_s", first.before_bytes_per_s)
        .with("after_bytes_per_s", first.after_bytes_per_s)
        .with("sustained_bytes_per_s", sustained.sustained_bytes_per_s.median)
        .with("cliffs", cliffs)
        .with("recovered_bytes_per_s", recovered.map(|(bytes_per_s, _)| bytes_per_s))
        .with("idle_s", recovered.map(|(_, idle_s)| idle_s))
        .with("variation_after", limited)
        .into()
}

/// Returns the variation after the last change, if it is small and much smaller than before the
/// change.
fn limited(sustained: &Sustained) -> Option<f64> {
    let last = sustained.changes.last()?;
    let before = sustained.changes.iter().rev().nth(1).map_or(0, |change| change.at_bytes);
    let of = |from: u64, to: u64| {
        let within =
            sustained.samples.iter().filter(|sample| (from + 1..=to).contains(&sample.end_bytes));
        within.map(|sample| sample.throughput_bytes_per_s).collect::<Vec<f64>>()
    };
    let after = of(last.at_bytes, u64::MAX);
    let now = variation(&after);
    let limited = after.len() >= LIMITED_SAMPLES_MIN
        && now < LIMITED_VARIATION_MAX
        && now * EVENER_FACTOR < variation(&of(before, last.at_bytes));
    limited.then_some(now)
}

/// Returns the standard deviation as a fraction of the mean.
fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / count).sqrt() / mean
}

fn no_cliff(evidence: &Evidence, row: &Row, sustained: &Sustained) -> Option<Finding> {
    let written_bytes = sustained.written_bytes();
    if written_bytes == 0 {
        return None;
    }
    let tells = sustained.tells_changes();
    let claim = if tells { "No slowdown" } else { "Too short to show a slowdown: none" };
    let mut text = format!("{claim} within {}", bytes(written_bytes));
    let may_slow_down = !evidence.in_memory && !row.is_open_loop();
    if row.is_open_loop() {
        text += " at the rate that was asked for. Higher rates were not measured";
    }
    let longer = longer(evidence.target, sustained.file_bytes);
    if sustained.file_bytes < written_bytes {
        text += &format!(
            ". The file of {} was overwritten again and again, which a drive may do in its cache. \
             Free space for a larger one",
            bytes(sustained.file_bytes)
        );
    } else if let Some(Longer { command, size_bytes }) = longer.filter(|_| may_slow_down) {
        let time = seconds(size_bytes as f64 / sustained.sustained_bytes_per_s.median);
        text += &format!(". `{command}` writes more, in about {time}");
    }
    text += &format!(". Row: {}", row.name);
    Finding::info("within-drive-cache", text)
        .with("row", &row.name)
        .with("written_bytes", written_bytes)
        .with("file_bytes", sustained.file_bytes)
        .into()
}

fn not_steady(row: &Row, sustained: &Sustained) -> Option<Finding> {
    let state = sustained.steady_state.as_ref().filter(|state| !state.reached)?;
    let text = format!(
        "No steady state: in the last five of {} rounds the throughput ranges over {:.0} % of its \
         mean (steady: 20 %), and its trend changes by {:.0} % (steady: 10 %). Measure longer (a \
         larger --size). Row: {}",
        state.rounds_bytes_per_s.len(),
        state.range_share * 100.0,
        state.slope_share * 100.0,
        row.name,
    );
    Finding::info("not-steady", text)
        .with("row", &row.name)
        .with("range_share", state.range_share)
        .with("slope_share", state.slope_share)
        .with("rounds_bytes_per_s", &state.rounds_bytes_per_s)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{evidence, row, target};
    use wrote_result::document::Severity;
    use wrote_result::document::{Interval, Sample, SteadyState, Target};

    /// Returns a row with samples of 1 GB each, which have these throughputs.
    fn long(throughputs_gb_per_s: &[f64], changes_at: &[usize]) -> Row {
        let mut end_s = 0.0;
        let sample = |(number, gb_per_s): (usize, &f64)| {
            end_s += 1.0 / gb_per_s;
            Sample {
                end_bytes: (number as u64 + 1) * 1_000_000_000,
                end_s,
                throughput_bytes_per_s: gb_per_s * 1e9,
            }
        };
        let samples: Vec<Sample> = throughputs_gb_per_s.iter().enumerate().map(sample).collect();
        let change = |at: &usize| Change {
            at_bytes: samples[*at - 1].end_bytes,
            at_s: samples[*at - 1].end_s,
            before_bytes_per_s: samples[*at - 1].throughput_bytes_per_s,
            after_bytes_per_s: samples[*at].throughput_bytes_per_s,
        };
        let interval = |sample: &Sample| Interval {
            median: sample.throughput_bytes_per_s,
            ci95_low: sample.throughput_bytes_per_s,
            ci95_high: sample.throughput_bytes_per_s,
        };
        let mut row = row("sustained/direct-io_uring", "process-crash", &[1e9]);
        row.sustained = Some(Sustained {
            file_bytes: samples[samples.len() - 1].end_bytes,
            changes: changes_at.iter().map(change).collect(),
            burst_bytes_per_s: interval(&samples[0]),
            sustained_bytes_per_s: interval(&samples[samples.len() - 1]),
            recovered_bytes_per_s: None,
            idle_s: None,
            steady_state: None,
            samples,
        });
        row
    }

    fn found(row: &Row) -> Vec<Finding> {
        find(&evidence(&target(), std::slice::from_ref(row)))
    }

    #[test]
    fn a_cliff_is_told_with_its_place_and_rates() {
        let mut row = long(&[4.0, 4.0, 0.4, 0.4], &[2]);
        let sustained = row.sustained.as_mut().unwrap();
        sustained.recovered_bytes_per_s = Some(sustained.burst_bytes_per_s);
        sustained.idle_s = Some(10.0);
        let found = found(&row);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), found[0].severity), ("cache-cliff", Severity::Warning));
        assert_eq!(
            found[0].text,
            "The device slows down after 2.00 GB from 4.00 GB/s to 400 MB/s. Plan with the lasting \
             rate, 400 MB/s. After a rest of 10.0 s it reached 4.00 GB/s. Row: \
             sustained/direct-io_uring"
        );
        assert_eq!(found[0].evidence["at_bytes"], 2_000_000_000_u64);
        assert_eq!(found[0].evidence["recovered_bytes_per_s"], 4e9);
    }

    #[test]
    fn without_a_cliff_it_is_said_within_how_much() {
        let found = found(&long(&[2.0; 100], &[]));
        assert_eq!(
            (found[0].id.as_str(), found[0].severity),
            ("within-drive-cache", Severity::Info)
        );
        assert_eq!(found[0].text, "No slowdown within 100 GB. Row: sustained/direct-io_uring");
        let mut small = long(&[2.0; 100], &[]);
        small.sustained.as_mut().unwrap().file_bytes = 10_000_000_000;
        assert!(super::find(&evidence(&target(), &[small]))[0].text.contains("again and again"));
    }

    #[test]
    fn a_short_run_names_the_command_and_the_time_of_a_longer_one() {
        let row = long(&[2.0; 2], &[]);
        let told = |target: &Target| find(&evidence(target, std::slice::from_ref(&row))).remove(0);
        let mut target = target();
        target.path = "/my data".into();
        let text = told(&target).text;
        let command = "`wrote bench '/my data' --only sustained --size 100G` writes more, in about \
                       50.0 s. Row: sustained/direct-io_uring";
        assert!(text.starts_with("Too short to show a slowdown: none within 2.00 GB"));
        assert!(text.ends_with(command), "{text}");
        // The suggested size is smaller if the file system has less free space. No size is
        // suggested if it has hardly more than was written.
        (target.capacity_bytes, target.free_bytes) = (40_000_000_000, 20_000_000_000);
        assert!(told(&target).text.contains("--size 15G` writes more, in about 7.50 s"));
        target.free_bytes = 6_000_000_000;
        assert!(!told(&target).text.contains("--size"));
        // The page cache never slows down as a drive does.
        let in_memory =
            Evidence { in_memory: true, ..evidence(&target, std::slice::from_ref(&row)) };
        assert!(!find(&in_memory)[0].text.contains("--size"));
    }

    #[test]
    fn of_too_few_samples_and_of_a_rate_no_more_is_said_than_is_known() {
        let short = &found(&long(&[2.0; 10], &[]))[0].text;
        assert!(short.contains("Too short to show a slowdown: none within 10"), "{short}");
        let mut held = long(&[2.0; 100], &[]);
        held.settings.asked.rate_bytes_per_s = Some(Default::default());
        assert!(found(&held)[0].text.contains("at the rate that was asked for"));
    }

    #[test]
    fn a_slow_while_is_no_cliff() {
        assert_eq!(found(&long(&[2.0, 0.5, 2.0, 2.0], &[1, 2]))[0].id, "within-drive-cache");
    }

    #[test]
    fn a_disk_that_was_written_for_long_is_not_said_to_be_measured_too_briefly() {
        let row = long(&[2.0; 3], &[]);
        let target = target();
        let evidence = Evidence {
            written_bytes_total: 3_000_000_000,
            ..evidence(&target, std::slice::from_ref(&row))
        };
        let all = crate::scenarios::findings(&crate::Scenarios::default().all(), &evidence);
        let of_cache = all.iter().filter(|finding| finding.id == "within-drive-cache");
        assert_eq!(of_cache.count(), 1);
    }

    #[test]
    fn an_even_rate_behind_a_cliff_looks_like_a_limit() {
        let uneven = (0..30).map(|at| if at % 2 == 0 { 3.0 } else { 4.0 });
        let even: Vec<f64> = uneven.clone().chain([0.5; 30]).collect();
        assert!(found(&long(&even, &[30]))[0].text.contains("burst credit"));
        let still_uneven: Vec<f64> =
            uneven.chain((0..30).map(|at| if at % 2 == 0 { 0.3 } else { 0.4 })).collect();
        assert!(!found(&long(&still_uneven, &[30]))[0].text.contains("burst credit"));
        let always_even: Vec<f64> = [4.0; 30].into_iter().chain([0.5; 30]).collect();
        assert!(!found(&long(&always_even, &[30]))[0].text.contains("burst credit"));
    }

    #[test]
    fn that_no_steady_state_was_reached_is_said_and_that_one_was_is_not() {
        let mut row = long(&[2.0; 3], &[]);
        let state = SteadyState {
            reached: false,
            rounds_bytes_per_s: vec![1e9; 25],
            first_round: 21,
            last_round: 25,
            range_share: 0.34,
            slope_share: 0.12,
        };
        row.sustained.as_mut().unwrap().steady_state = Some(state.clone());
        let all = found(&row);
        let not_steady = all.iter().find(|finding| finding.id == "not-steady").unwrap();
        assert_eq!(not_steady.severity, Severity::Info);
        assert!(not_steady.text.contains("last five of 25 rounds"), "{}", not_steady.text);
        assert!(not_steady.text.contains("34 %") && not_steady.text.contains("12 %"));
        row.sustained.as_mut().unwrap().steady_state = Some(SteadyState { reached: true, ..state });
        assert!(found(&row).iter().all(|finding| finding.id != "not-steady"));
    }

    #[test]
    fn a_run_without_a_long_stream_says_nothing_of_it() {
        assert!(found(&row("stream/cached", "process-crash", &[1e9])).is_empty());
    }
}
