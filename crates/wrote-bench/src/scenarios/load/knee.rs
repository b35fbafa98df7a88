//! Finds the knee of a curve of latency over load with Kneedle (Satopää, Albrecht, Irwin, Raghavan,
//! "Finding a 'Kneedle' in a Haystack: Detecting Knee Points in System Behavior", ICDCSW 2011).
//!
//! The curve is scaled to the unit square and rotated by 180 degrees, so that an upward bend
//! becomes one that levels off. The point farthest above the diagonal is a knee if the curve then
//! falls by more than the points' mean distance (the paper's sensitivity `S`, here 1) before rising
//! again. The paper first smooths the curve by a spline; here each point is already a median of
//! several runs, and there are too few points for that.

const POINTS_MIN: usize = 5;
/// The paper's sensitivity: a knee stands out by this multiple of the points' mean distance.
const SENSITIVITY: f64 = 1.0;
/// A curve that rises by less than this factor is considered noise.
const RISE_MIN: f64 = 1.5;

/// Returns the index of the knee among points sorted by load; `None` if there is none.
pub(super) fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (width, height) = (last.0 - first.0, most - least);
    if points.len() < POINTS_MIN || width <= 0.0 || most < RISE_MIN * least {
        return None;
    }
    // After rotation, a point's depth below the diagonal is its height above it.
    let difference = |point: &(f64, f64)| (point.0 - first.0) / width - (point.1 - least) / height;
    let differences: Vec<f64> = points.iter().rev().map(difference).collect();
    let threshold_below = SENSITIVITY / (points.len() - 1) as f64;
    let mut best: Option<(usize, f64)> = None;
    for place in local_maxima(&differences) {
        let threshold = differences[place] - threshold_below;
        let is_next_maximum = |&next: &usize| is_local_maximum(&differences, next);
        let end = (place + 1..differences.len()).find(is_next_maximum).unwrap_or(differences.len());
        let is_knee = differences[place + 1..end].iter().any(|later| *later < threshold);
        if is_knee && best.is_none_or(|(_, most)| differences[place] > most) {
            best = Some((place, differences[place]));
        }
    }
    best.map(|(place, _)| points.len() - 1 - place)
}

fn local_maxima(values: &[f64]) -> impl Iterator<Item = usize> {
    (0..values.len()).filter(|place| is_local_maximum(values, *place))
}

/// Returns whether a value is greater than its neighbours; never true at the ends.
fn is_local_maximum(values: &[f64], place: usize) -> bool {
    place > 0
        && place + 1 < values.len()
        && values[place] > values[place - 1]
        && values[place] >= values[place + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the curve of an M/M/1 queue with mean service time 1. Response times are
    /// exponentially distributed with mean 1 / (1 - load), so P99 is ln(100) times that (Kleinrock,
    /// *Queueing Systems*, 1975, 3.2).
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
            // d/dx 1 / (1 - x) = 1 / (1 - x)^2 is the slope from end to end.
            let slope = (last.1 - first.1) / (last.0 - first.0) / 100_f64.ln();
            let exact = 1.0 - 1.0 / slope.sqrt();
            let found = points[knee(&points).unwrap()].0;
            assert!((found - exact).abs() <= 0.05, "{found} for {exact}");
        }
    }

    #[test]
    fn what_does_not_bend_has_no_knee() {
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
