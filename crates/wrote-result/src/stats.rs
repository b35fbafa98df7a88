//! Statistics of several measurements of one thing.

use crate::figures::{Interval, Latency};
use distrs::StudentsT;
use hdrhistogram::Histogram;

/// The probability below the upper end of a two-sided 95 % interval.
const UPPER: f64 = 0.975;

/// Returns the median of `values`; 0 without any.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        // Halved first: the sum of two large values may overflow.
        n => sorted[n / 2 - 1] / 2.0 + sorted[n / 2] / 2.0,
    }
}

/// Returns the median of `values` and a 95 % confidence interval, in the unit of `values`.
///
/// The interval is Student's t on the logarithms of the values: throughputs are positive and err by
/// a factor. With a value of zero or below, the interval is computed on the values themselves.
/// Values that are not finite are left out. The interval always contains the median; of one value
/// it is that value; of none it is 0.
pub fn interval(values: &[f64]) -> Interval {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let median = median(&values);
    if values.len() < 2 {
        return Interval { median, ci95_low: median, ci95_high: median };
    }
    let (low, high) = if values.iter().all(|value| *value > 0.0) {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let (low, high) = t_interval(&logarithms);
        (low.exp(), high.exp())
    } else {
        t_interval(&values)
    };
    // JSON has no infinity, and the mean may lie away from the median.
    Interval {
        median,
        ci95_low: low.clamp(f64::MIN, median),
        ci95_high: high.clamp(median, f64::MAX),
    }
}

/// Returns the 95 % confidence interval of the mean of two values or more, by Student's t.
fn t_interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let standard_error = (squares / (count - 1.0)).sqrt() / count.sqrt();
    let half_width = StudentsT::ppf(UPPER, count - 1.0) * standard_error;
    (mean - half_width, mean + half_width)
}

/// Returns the larger distance of the interval's ends from the median, as a share of the median:
/// 0.25 is ±25 %. Infinite where the median is 0 and the interval is not.
pub fn relative_width(interval: &Interval) -> f64 {
    let reach =
        (interval.ci95_high - interval.median).max(interval.median - interval.ci95_low).abs();
    if reach == 0.0 { 0.0 } else { reach / interval.median.abs() }
}

/// An interval that reaches farther than this share of its median is noisy: the figure is rough.
pub const ROUGH_WIDTH: f64 = 0.25;

/// Returns whether two intervals have no common value, so that the measurements differ.
///
/// The interval of a single run is a point without information on the variation: use intervals over
/// two runs or more.
pub fn distinguishable(a: &Interval, b: &Interval) -> bool {
    a.ci95_high < b.ci95_low || b.ci95_high < a.ci95_low
}

/// Returns the figures of a histogram of nanoseconds; all 0 if it is empty.
pub fn latency(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile);
    Latency {
        min: histogram.min(),
        mean: histogram.mean(),
        p50: at(0.50),
        p90: at(0.90),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        max: histogram.max(),
        total: (histogram.mean() * histogram.len() as f64).round() as u64,
        count: histogram.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-3 * b.abs()
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!(median(&[f64::MAX, f64::MAX]), f64::MAX);
    }

    #[test]
    fn the_interval_is_students_t_on_the_logarithms() {
        // Logarithms 0, 1, 2: mean 1, standard deviation 1; t(0.975, 2) = 4.30265 in the tables.
        let e = std::f64::consts::E;
        let interval = interval(&[1.0, e, e * e]);
        let half_width = 4.302_65 / 3.0_f64.sqrt();
        assert!(near(interval.median, e));
        assert!(near(interval.ci95_low, (1.0 - half_width).exp()), "{interval:?}");
        assert!(near(interval.ci95_high, (1.0 + half_width).exp()), "{interval:?}");
    }

    #[test]
    fn the_t_quantiles_are_those_of_the_tables() {
        for (degrees, quantile) in
            [(1, 12.7062), (2, 4.3027), (4, 2.7764), (6, 2.4469), (9, 2.2622), (30, 2.0423)]
        {
            let found = StudentsT::ppf(UPPER, f64::from(degrees));
            assert!(near(found, quantile), "{degrees}: {found}");
        }
    }

    #[test]
    fn one_value_has_no_width_and_none_is_zero() {
        let one = interval(&[5.0]);
        assert_eq!((one.median, one.ci95_low, one.ci95_high), (5.0, 5.0, 5.0));
        assert_eq!(relative_width(&one), 0.0);
        assert_eq!(interval(&[]), Interval::default());
        assert_eq!(interval(&[f64::NAN, f64::INFINITY]), Interval::default());
    }

    #[test]
    fn a_zero_among_the_values_widens_the_interval_and_breaks_nothing() {
        let interval = interval(&[0.0, 10.0, 20.0]);
        assert_eq!(interval.median, 10.0);
        assert!(near(interval.ci95_high - interval.median, 4.3027 * 10.0 / 3.0_f64.sqrt()));
    }

    #[test]
    fn the_relative_width_is_that_of_the_longer_side() {
        let interval = Interval { median: 100.0, ci95_low: 90.0, ci95_high: 130.0 };
        assert_eq!(relative_width(&interval), 0.3);
        let from_zero = Interval { median: 0.0, ci95_low: 0.0, ci95_high: 1.0 };
        assert_eq!(relative_width(&from_zero), f64::INFINITY);
    }

    #[test]
    fn intervals_that_touch_cannot_be_told_apart() {
        let at = |low: f64, high: f64| Interval { median: low, ci95_low: low, ci95_high: high };
        assert!(!distinguishable(&at(1.0, 2.0), &at(2.0, 3.0)));
        assert!(!distinguishable(&at(1.0, 9.0), &at(2.0, 3.0)));
        assert!(distinguishable(&at(1.0, 2.0), &at(2.1, 3.0)));
        assert!(distinguishable(&at(2.1, 3.0), &at(1.0, 2.0)));
    }

    #[test]
    fn an_empty_histogram_has_no_latency() {
        assert_eq!(latency(&Histogram::new(3).unwrap()), Latency::default());
    }

    #[test]
    fn the_percentiles_of_one_to_a_thousand_are_themselves() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in 1..=1000 {
            histogram.record(value).unwrap();
        }
        let latency = latency(&histogram);
        assert_eq!((latency.min, latency.max, latency.count), (1, 1000, 1000));
        assert_eq!((latency.p50, latency.p90, latency.p95), (500, 900, 950));
        assert_eq!((latency.p99, latency.p99_9), (990, 999));
        assert!(near(latency.mean, 500.5));
    }

    proptest! {
        #[test]
        fn the_interval_always_contains_the_median(
            values in prop::collection::vec(any::<f64>(), 0..12),
        ) {
            let interval = interval(&values);
            prop_assert!(interval.ci95_low <= interval.median);
            prop_assert!(interval.median <= interval.ci95_high);
            prop_assert!(interval.ci95_low.is_finite() && interval.ci95_high.is_finite());
        }

        #[test]
        fn the_interval_of_positive_values_is_positive_and_scales_with_them(
            values in prop::collection::vec(1e3..1e10_f64, 2..12),
            factor in 1e-3..1e3_f64,
        ) {
            let plain = interval(&values);
            prop_assert!(plain.ci95_low >= 0.0);
            let scaled = interval(&values.iter().map(|v| v * factor).collect::<Vec<_>>());
            prop_assert!(near(scaled.ci95_low, plain.ci95_low * factor));
            prop_assert!(near(scaled.ci95_high, plain.ci95_high * factor));
        }

        #[test]
        fn nothing_can_be_told_apart_from_itself(
            values in prop::collection::vec(0.0..1e10_f64, 1..12),
        ) {
            let interval = interval(&values);
            prop_assert!(!distinguishable(&interval, &interval));
        }

        #[test]
        fn percentiles_never_fall(values in prop::collection::vec(1..10_000_000_000_u64, 1..200)) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            for value in &values {
                histogram.record(*value).unwrap();
            }
            let found = latency(&histogram);
            let climb = [
                found.min, found.p50, found.p90, found.p95, found.p99, found.p99_9, found.max,
            ];
            prop_assert!(climb.is_sorted(), "{:?}", climb);
            prop_assert_eq!(found.count, values.len() as u64);
        }
    }
}
