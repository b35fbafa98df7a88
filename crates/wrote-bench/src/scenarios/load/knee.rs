//! The knee of a curve: the load at which latency rises. The module is separate because it works on
//! points alone.

use wrote_result::document::{Knee, Reached, Row};
use wrote_result::stats;

/// The minimum number of operations for a 99th percentile.
const OPERATIONS_MIN: u64 = 100;

/// Returns the knee of P99 over the load that was reached. Rows that missed their rate are
/// excluded, because their latency grows with the length of the run. If the curve has no knee but a
/// rate was missed, the highest rate that was reached is the knee; otherwise `None`.
pub(super) fn knee_of(rows: &[Row]) -> Option<Knee> {
    let is_reached = |row: &&Row| Reached::of(row).is_some_and(|reached| reached.is_reached);
    let is_known = |row: &&Row| row.latency().is_some_and(|of| of.count >= OPERATIONS_MIN);
    let mut curve: Vec<&Row> = rows.iter().filter(is_reached).filter(is_known).collect();
    curve.sort_by(|a, b| iops(a).total_cmp(&iops(b)));
    let points: Vec<(f64, f64)> = curve.iter().map(|row| (iops(row), p99_ns(row) as f64)).collect();
    let is_saturated = rows.iter().any(|row| !is_reached(&row));
    let last = curve.len().checked_sub(1).filter(|_| is_saturated);
    let row = curve[knee(&points).or(last)?];
    Some(Knee { row: row.name.clone(), iops: iops(row), p99_ns: p99_ns(row) })
}

fn iops(row: &Row) -> f64 {
    stats::median(&row.runs.iter().map(|run| run.iops).collect::<Vec<f64>>())
}

fn p99_ns(row: &Row) -> u64 {
    row.latency().map_or(0, |of| of.p99)
}

const POINTS_MIN: usize = 5;
/// The sensitivity of Kneedle: the minimum prominence of a knee, as a multiple of the points' mean
/// distance.
const SENSITIVITY: f64 = 1.0;
/// The minimum rise of a curve. A smaller rise is treated as noise.
const RISE_MIN: f64 = 1.5;

/// Finds the knee of a curve of latency over load with Kneedle (Satopää, Albrecht, Irwin, Raghavan,
/// "Finding a 'Kneedle' in a Haystack: Detecting Knee Points in System Behavior", ICDCSW 2011).
///
/// The curve is scaled to the unit square and rotated by 180 degrees, so that an upward bend
/// becomes one that levels off. The point farthest above the diagonal is a knee if the curve then
/// falls by more than the points' mean distance (a sensitivity `S` of 1) before it rises again. The
/// paper first smooths the curve with a spline. This function does not, because each point is
/// already a median of several runs, and there are too few points for a spline.
///
/// Returns the index of the knee among points sorted by load; `None` if there is none.
fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (width, height) = (last.0 - first.0, most - least);
    if points.len() < POINTS_MIN || width <= 0.0 || most < RISE_MIN * least {
        return None;
    }
    // After the rotation, a point's depth below the diagonal is its height above it.
    let difference = |point: &(f64, f64)| (point.0 - first.0) / width - (point.1 - least) / height;
    let differences: Vec<f64> = points.iter().rev().map(difference).collect();
    let threshold_below = SENSITIVITY / (points.len() - 1) as f64;
    let last = differences.len() - 1;
    // This closure is never called for the first or the last point.
    let is_maximum = |place: &usize| {
        let [before, at, after] = [place - 1, *place, place + 1].map(|near| differences[near]);
        at > before && at >= after
    };
    let is_knee = |place: &usize| {
        let threshold = differences[*place] - threshold_below;
        let end = (place + 1..last).find(is_maximum).unwrap_or(last + 1);
        differences[place + 1..end].iter().any(|later| *later < threshold)
    };
    let knees = (1..last).filter(is_maximum).filter(is_knee);
    let best = knees.rev().max_by(|a, b| differences[*a].total_cmp(&differences[*b]));
    best.map(|place| last - place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use wrote_result::document::Latency;

    /// Returns a row of a curve with the requested rate, the reached rate and the P99.
    fn point(asked: u32, reached: f64, p99_ns: u64) -> Row {
        let mut row = sample::row("load/rand", "os-crash", &[1e9]);
        row.name = format!("load/{asked}");
        row.settings.asked.rate_iops = Some(asked.into());
        row.settings.asked.numjobs = 1;
        row.latency_ns = Some(Latency { p99: p99_ns, count: 10_000, ..Latency::default() });
        for run in &mut row.runs {
            (run.iops, run.elapsed_s) = (reached, 1.0);
        }
        row
    }

    #[test]
    fn the_knee_is_a_rate_that_was_reached() {
        let p99_us = [100, 101, 103, 108, 120, 150, 260, 500];
        let mut rows: Vec<Row> = (1..)
            .zip(p99_us)
            .map(|(step, us)| point(step * 1000, f64::from(step) * 1000.0, us * 1000))
            .collect();
        rows.push(point(9000, 8200.0, 300_000_000));
        let knee = knee_of(&rows).unwrap();
        assert_eq!((knee.row.as_str(), knee.p99_ns), ("load/6000", 150_000));
    }

    #[test]
    fn a_level_curve_bends_at_the_last_rate_that_was_reached() {
        let mut rows: Vec<Row> =
            (1..=10).map(|step| point(step * 1000, f64::from(step) * 1000.0, 100_000)).collect();
        assert_eq!(knee_of(&rows), None);
        rows.push(point(11_000, 10_000.0, 500_000_000));
        assert_eq!(knee_of(&rows).unwrap().row, "load/10000");
    }
    /// Returns the curve of an M/M/1 queue with a mean service time of 1. Response times are
    /// exponentially distributed with a mean of 1 / (1 - load), so P99 is ln(100) times this mean
    /// (Kleinrock, *Queueing Systems*, 1975, 3.2).
    fn queue(loads: &[f64]) -> Vec<(f64, f64)> {
        loads.iter().map(|load| (*load, 100_f64.ln() / (1.0 - load))).collect()
    }

    fn loads(last_percent: u32) -> Vec<f64> {
        (10..=last_percent).step_by(5).map(|percent| f64::from(percent) / 100.0).collect()
    }

    #[test]
    fn the_knee_of_a_queue_is_where_its_curve_is_as_steep_as_the_diagonal() {
        for last_percent in [80, 90, 95] {
            let points = queue(&loads(last_percent));
            let (first, last) = (points[0], points[points.len() - 1]);
            // The slope from end to end equals d/dx 1 / (1 - x) = 1 / (1 - x)^2.
            let slope = (last.1 - first.1) / (last.0 - first.0) / 100_f64.ln();
            let exact = 1.0 - 1.0 / slope.sqrt();
            let found = points[knee(&points).unwrap()].0;
            assert!((found - exact).abs() <= 0.05, "{found} for {exact}");
        }
    }

    #[test]
    fn a_straight_curve_has_no_knee() {
        let line: Vec<(f64, f64)> = (1..=13).map(|x| (f64::from(x), f64::from(3 * x))).collect();
        assert_eq!(knee(&line), None);
        let level: Vec<(f64, f64)> =
            (1..=13).map(|x| (f64::from(x), 100.0 + f64::from(x % 3))).collect();
        assert_eq!(knee(&level), None);
        let levels_off: Vec<(f64, f64)> =
            (1..=13).map(|x| (f64::from(x), 1.0 + f64::from(x).sqrt())).collect();
        assert_eq!(knee(&levels_off), None);
    }

    #[test]
    fn a_corner_is_the_knee() {
        let points: Vec<(f64, f64)> =
            (0..=10).map(|x| (f64::from(x), 1.0 + 20.0 * f64::from((x - 7).max(0)))).collect();
        assert_eq!(knee(&points), Some(7));
    }

    #[test]
    fn a_little_noise_moves_the_knee_by_a_point_at_most() {
        let points = queue(&loads(95));
        let clean = knee(&points).unwrap();
        for noise in [0.05, -0.05] {
            let noisy = |(number, point): (usize, &(f64, f64))| {
                let sign = if number % 2 == 0 { noise } else { -noise };
                (point.0, point.1 * (1.0 + sign))
            };
            let noisy: Vec<(f64, f64)> = points.iter().enumerate().map(noisy).collect();
            assert!(knee(&noisy).unwrap().abs_diff(clean) <= 1);
        }
    }

    #[test]
    fn too_few_points_have_no_knee() {
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&queue(&[0.1, 0.5, 0.9, 0.95])), None);
        assert_eq!(knee(&[(1.0, 1.0); 7]), None);
    }
}
