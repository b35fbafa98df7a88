//! Axes: their ticks, and the labels of the ticks.

use super::canvas::text_width;
use wrote_result::units;

/// An axis, in the coordinates of its chart. The coordinates of a logarithmic axis are logarithms
/// to base 10.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The lower end.
    pub min: f64,
    /// The upper end.
    pub max: f64,
    /// The ticks, each with its position and its label.
    pub ticks: Vec<(f64, String)>,
    /// The quantity and its direction: `throughput, more is better`.
    pub title: String,
}

/// The minimum length of a logarithmic axis, in decades.
const DECADES_MIN: f64 = 0.4;

impl Axis {
    /// Returns a linear axis from 0 to `most`, with at most `ticks` ticks. The axis ends at 1 if
    /// `most` is not a positive number.
    pub fn from_zero(most: f64, ticks: usize, word: fn(f64) -> String, title: &str) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        Axis::between((0.0, most), ticks, word, title)
    }

    /// Returns a linear axis between two values, with at most `ticks` ticks at round values.
    pub fn between(
        (from, to): (f64, f64),
        ticks: usize,
        word: fn(f64) -> String,
        title: &str,
    ) -> Axis {
        let max = if to > from { to } else { from + 1.0 };
        let step = round_step((max - from) / ticks.max(1) as f64);
        let (first, last) = ((from / step).ceil() as i64, (max / step).floor() as i64);
        let ticks = (first..=last).map(|number| number as f64 * step);
        let ticks = ticks.map(|place| (place, word(place))).collect();
        Axis { min: from, max, ticks, title: title.into() }
    }

    /// Returns a logarithmic axis around the positive values, with ticks at powers of ten, and
    /// between them if there are few.
    pub fn log(
        values: impl IntoIterator<Item = f64>,
        word: fn(f64) -> String,
        title: &str,
    ) -> Axis {
        let logarithms = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for logarithm in logarithms.map(f64::log10) {
            (min, max) = (min.min(logarithm), max.max(logarithm));
        }
        if min > max {
            (min, max) = (0.0, 1.0);
        }
        let missing = (DECADES_MIN - (max - min)).max(0.0);
        let reach = missing / 2.0 + 0.06 * (max - min).max(DECADES_MIN);
        let (min, max) = (min - reach, max + reach);
        let within: &[f64] = match max - min {
            few if few < 1.2 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            few if few < 2.2 => &[1.0, 2.0, 5.0],
            few if few < 3.2 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let decades = (min.floor() as i32)..=(max.ceil() as i32);
        let every = if max - min > 8.0 { 2 } else { 1 };
        let ticks = decades.filter(|decade| decade.rem_euclid(every) == 0).flat_map(|decade| {
            let tick = move |factor: &f64| {
                (f64::from(decade) + factor.log10(), factor * 10f64.powi(decade))
            };
            within.iter().map(tick)
        });
        let ticks = ticks.filter(|(place, _)| (min..=max).contains(place));
        let ticks = ticks.map(|(place, value)| (place, word(value))).collect();
        Axis { min, max, ticks, title: title.into() }
    }

    /// Returns a vertical axis without the ticks whose labels would touch the horizontal axis.
    pub fn above_its_end(&self) -> Axis {
        let least = self.min + 0.04 * (self.max - self.min);
        let is_clear = |tick: &&(f64, String)| self.min == 0.0 || tick.0 > least;
        Axis { ticks: self.ticks.iter().filter(is_clear).cloned().collect(), ..self.clone() }
    }

    /// Returns the axis without the ticks whose labels would touch each other along `width_px`, or
    /// would exceed the space to its left and right.
    pub fn thinned(&self, width_px: i32, left_px: i32, right_px: i32) -> Axis {
        let [width_px, left_px, right_px] = [width_px, left_px, right_px].map(f64::from);
        let mut kept: Vec<(f64, String)> = Vec::new();
        let mut end_px = -left_px - 4.0;
        for (place, word) in &self.ticks {
            let at_px = (place - self.min) / (self.max - self.min) * width_px;
            let half_px = f64::from(text_width(word)) / 2.0;
            if at_px - half_px >= end_px + 4.0 && at_px + half_px <= width_px + right_px {
                end_px = at_px + half_px;
                kept.push((*place, word.clone()));
            }
        }
        Axis { ticks: kept, ..self.clone() }
    }

    /// Returns the pixel of a value on an axis between the pixels `from` and `to`.
    pub fn pixel(&self, value: f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.min) / (self.max - self.min);
        from + (part.clamp(-1.0, 2.0) * f64::from(to - from)).round() as i32
    }
}

/// Returns the smallest number of the form 1, 2, 2.5 or 5 times a power of ten that is at least
/// `value`.
fn round_step(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * power >= value * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Returns the label of a rate: `500 MB/s`, `2 GB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    if bytes_per_s == 0.0 { "0".into() } else { short(&units::rate(bytes_per_s)) }
}

/// Returns the label of a tick in bytes: `2 GB`.
pub fn bytes(size_bytes: f64) -> String {
    if size_bytes == 0.0 { "0".into() } else { short(&units::bytes(size_bytes.round() as u64)) }
}

/// Returns the label of a time in nanoseconds: `20 us`, `1 ms`.
pub fn nanoseconds(elapsed_ns: f64) -> String {
    short(&units::nanoseconds(elapsed_ns.round() as u64))
}

/// Returns the label of operations per second: `20 k/s`.
pub fn per_second(iops: f64) -> String {
    if iops == 0.0 { "0".into() } else { short(&crate::figures::per_second(iops)) }
}

/// Returns the label of a ratio: `0.5`, `2`.
pub fn ratio(ratio: f64) -> String {
    let text = format!("{ratio:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Returns a figure and its unit without trailing zeros after the decimal point.
fn short(text: &str) -> String {
    let (figure, unit) = text.split_once(' ').unwrap_or((text, ""));
    let figure = match figure.contains('.') {
        true => figure.trim_end_matches('0').trim_end_matches('.'),
        false => figure,
    };
    format!("{figure} {unit}").trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_would_touch_are_left_out() {
        let tick = |place: f64| (place, "100 us".to_owned());
        let axis = Axis {
            min: 0.0,
            max: 10.0,
            ticks: (0..=10).map(|place| tick(f64::from(place))).collect(),
            title: String::new(),
        };
        assert_eq!(axis.thinned(2000, 50, 50).ticks.len(), 11);
        let few = axis.thinned(200, 50, 50).ticks.len();
        assert!((2..=4).contains(&few), "{few}");
        // Without space at the ends of the axis, the first and the last label would be cut off.
        assert_eq!(axis.thinned(2000, 0, 0).ticks.len(), 9);
        // These are the columns of `peak` on a phone.
        let ticks = [(0.5, "plain"), (1.5, "registered"), (2.5, "sqpoll")];
        let ticks = ticks.map(|(at, word)| (at, word.to_owned())).to_vec();
        let columns = Axis { min: 0.0, max: 3.0, ticks, title: String::new() };
        assert_eq!(columns.thinned(209, 111, 30).ticks.len(), 3);
    }

    fn words(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, word)| word.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_has_round_ticks_from_zero() {
        let axis = Axis::from_zero(3.77e9, 5, rate, "throughput");
        assert_eq!(words(&axis), ["0", "1 GB/s", "2 GB/s", "3 GB/s"]);
        assert_eq!(axis.max, 3.77e9);
        assert_eq!(words(&Axis::from_zero(0.0, 2, ratio, "")), ["0", "0.5", "1"]);
    }

    #[test]
    fn a_linear_axis_between_two_values_has_round_ticks_within_them() {
        let axis = Axis::between((41.2e6, 44.9e6), 4, nanoseconds, "time");
        assert_eq!(words(&axis), ["42 ms", "43 ms", "44 ms"]);
        assert_eq!((axis.min, axis.max), (41.2e6, 44.9e6));
        let axis = Axis::between((5.0, 5.0), 3, ratio, "");
        assert!(axis.max > axis.min, "{axis:?}");
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_at_powers_of_ten_and_within_a_short_one() {
        let axis = Axis::log([20e3, 30e6], nanoseconds, "latency");
        assert_eq!(words(&axis), ["100 us", "1 ms", "10 ms"]);
        let axis = Axis::log([90e3, 300e3], nanoseconds, "latency");
        assert_eq!(words(&axis), ["100 us", "200 us", "300 us"]);
    }

    #[test]
    fn values_that_no_axis_has_leave_one_that_can_be_drawn() {
        for values in [vec![], vec![0.0], vec![f64::NAN, -1.0], vec![5.0]] {
            let axis = Axis::log(values, ratio, "");
            assert!(axis.max > axis.min && axis.min.is_finite(), "{axis:?}");
        }
        assert_eq!(Axis::from_zero(f64::INFINITY, 3, ratio, "").max, 1.0);
    }
}
