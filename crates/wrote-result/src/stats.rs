//! Figures over several runs or operations: intervals, latencies, statistics and histograms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use distrs::StudentsT;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probability below the upper end of a two-sided 95 % interval.
const UPPER: f64 = 0.975;

/// Returns the median of `values`; 0 if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        // Both values are halved first, because the sum of two large values may overflow.
        n => sorted[n / 2 - 1] / 2.0 + sorted[n / 2] / 2.0,
    }
}

/// Returns the median of `values` and a 95 % confidence interval, in the unit of `values`.
///
/// The interval is Student's t on the logarithms of the values, because throughputs are positive
/// and deviate by a factor. If a value is zero or below, the interval is computed on the values
/// themselves. Values that are not finite are left out. The interval always contains the median.
/// For one value, the interval is that value; for none, it is 0.
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
    // JSON has no infinity, and the mean may differ from the median.
    Interval {
        median,
        ci95_low: low.clamp(f64::MIN, median),
        ci95_high: high.clamp(median, f64::MAX),
    }
}

/// Returns the 95 % confidence interval of the mean of `values`, by Student's t. There must be at
/// least two values.
fn t_interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let standard_error = (squares / (count - 1.0)).sqrt() / count.sqrt();
    let half_width = StudentsT::ppf(UPPER, count - 1.0) * standard_error;
    (mean - half_width, mean + half_width)
}

/// Returns the larger distance of the interval's ends from the median, as a share of the median
/// (0.25 is ±25 %); infinite if the median is 0 and the interval is wider.
pub fn relative_width(interval: &Interval) -> f64 {
    let reach =
        (interval.ci95_high - interval.median).max(interval.median - interval.ci95_low).abs();
    if reach == 0.0 { 0.0 } else { reach / interval.median.abs() }
}

/// The relative width of an interval above which its figure is rough.
pub const ROUGH_WIDTH: f64 = 0.25;

/// Returns whether two intervals have no common value, so that the measurements differ.
///
/// The interval of a single run is a point that says nothing about the variation, so intervals
/// should cover at least two runs.
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

/// The maximum length of a text. Deflated zeros grow a thousandfold when they are read.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A logarithmic bin: its lower and its upper end, in nanoseconds, and the number of operations in
/// it.
pub type Bin = (f64, f64, u64);

/// Returns a histogram of nanoseconds as text; `None` if it is empty or its text would be too long.
pub fn encode(histogram: &Histogram<u64>) -> Option<String> {
    if histogram.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes)).filter(|text| text.len() <= TEXT_BYTES_MAX)
}

/// Returns the histogram of a text; `None` if the text is not a histogram.
pub fn decode(text: &str) -> Option<Histogram<u64>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

/// Returns the text of two histograms combined; `None` if either text is not a histogram.
pub fn together(one: &str, other: &str) -> Option<String> {
    let mut all = decode(one)?;
    // A parsed histogram has space for its slowest operation, but not for a slower one.
    all.auto(true);
    all.add(decode(other)?).ok()?;
    encode(&all)
}

/// Returns quantiles with the latency at each, in nanoseconds, from the fastest operation to the
/// slowest. The last quantile is below 1 by the share of one operation.
pub fn quantiles(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let count = histogram.len();
    if count == 0 {
        return Vec::new();
    }
    let last = 1.0 - 1.0 / (count as f64).max(2.0);
    // There are ten steps for each power of ten of the share of slower operations.
    let steps = (0..).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
    let steps = steps.take_while(|quantile| *quantile < last);
    let at = |quantile: f64| (quantile, histogram.value_at_quantile(quantile));
    let ticks = [0.5, 0.95].into_iter().filter(|quantile| *quantile < last);
    let mut all: Vec<(f64, u64)> = steps.chain(ticks).map(at).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all.push((last, histogram.max()));
    all
}

/// Returns the bins that contain operations, with `per_decade` bins for each power of ten.
pub fn bins(histogram: &Histogram<u64>, per_decade: u32) -> Vec<Bin> {
    let per_decade = f64::from(per_decade.max(1));
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for value in histogram.iter_recorded() {
        let ns = value.value_iterated_to().max(1) as f64;
        let number = (ns.log10() * per_decade).floor() as i32;
        let count = value.count_at_value();
        match bins.last_mut() {
            Some((last, counted)) if *last == number => *counted += count,
            _ => bins.push((number, count)),
        }
    }
    let end = |number: i32| 10f64.powf(f64::from(number) / per_decade);
    bins.into_iter().map(|(number, count)| (end(number), end(number + 1), count)).collect()
}

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Interval {
    /// The median over the runs.
    pub median: f64,
    /// The lower end of the interval.
    pub ci95_low: f64,
    /// The upper end of the interval.
    pub ci95_high: f64,
}

/// The latencies of operations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Latency {
    /// The minimum.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p99_9: u64,
    /// The maximum.
    pub max: u64,
    /// The sum.
    #[serde(default)]
    pub total: u64,
    /// The number of operations.
    pub count: u64,
}

impl Latency {
    /// The minimum number of operations for a P99: one of them is slower.
    pub const P99_COUNT_MIN: u64 = 100;
    /// The minimum number of operations for a P99.9.
    pub const P99_9_COUNT_MIN: u64 = 1000;

    /// Returns the P99 for showing and judging; `None` below [`Latency::P99_COUNT_MIN`] operations,
    /// where the P99 is only the maximum.
    pub fn known_p99(&self) -> Option<u64> {
        (self.count >= Latency::P99_COUNT_MIN).then_some(self.p99)
    }

    /// Returns the P99.9 for showing; `None` below [`Latency::P99_9_COUNT_MIN`] operations.
    pub fn known_p99_9(&self) -> Option<u64> {
        (self.count >= Latency::P99_9_COUNT_MIN).then_some(self.p99_9)
    }

    /// Combines latencies without histograms. There must be at least one. The minimum, maximum,
    /// mean, sum and count are exact; `percentile` computes each percentile from the percentiles of
    /// the latencies.
    pub fn combined(all: &[Latency], percentile: impl Fn(Vec<u64>) -> u64) -> Latency {
        let of = |figure: fn(&Latency) -> u64| percentile(all.iter().map(figure).collect());
        let total = all.iter().map(|one| one.total).sum();
        let count = all.iter().map(|one| one.count).sum::<u64>();
        Latency {
            min: all.iter().map(|one| one.min).min().unwrap_or(0),
            mean: total as f64 / (count as f64).max(1.0),
            p50: of(|one| one.p50),
            p90: of(|one| one.p90),
            p95: of(|one| one.p95),
            p99: of(|one| one.p99),
            p99_9: of(|one| one.p99_9),
            max: all.iter().map(|one| one.max).max().unwrap_or(0),
            total,
            count,
        }
    }
}

#[cfg(test)]
mod stats_tests {
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
        // The logarithms are 0, 1 and 2, with a mean of 1 and a standard deviation of 1; t(0.975,
        // 2) is 4.30265 in the tables.
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

#[cfg(test)]
mod histogram_tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    #[test]
    fn a_histogram_comes_back_from_its_text_as_it_was() {
        let values: Vec<u64> = (1..2000).map(|number| number * number).collect();
        let before = histogram(&values);
        let text = encode(&before).unwrap();
        assert!(text.starts_with("HIST"), "{text}");
        assert_eq!(decode(&text).unwrap(), before);
    }

    #[test]
    fn an_empty_histogram_has_no_text_and_damaged_text_has_no_histogram() {
        assert_eq!(encode(&histogram(&[])), None);
        let text = encode(&histogram(&[1, 2, 3])).unwrap();
        for damaged in ["", "x", "HISTFAAA", &text[..text.len() / 2], &"A".repeat(100_000)] {
            assert!(decode(damaged).is_none(), "{damaged:.20}");
        }
    }

    #[test]
    fn two_histograms_together_have_the_operations_of_both() {
        let [one, other] =
            [&[1, 2, 3][..], &[3, 4_000_000]].map(|of| encode(&histogram(of)).unwrap());
        let all = decode(&together(&one, &other).unwrap()).unwrap();
        assert_eq!(all, histogram(&[1, 2, 3, 3, 4_000_000]));
        assert_eq!(together(&one, "no histogram"), None);
    }

    #[test]
    fn quantiles_rise_from_the_fastest_to_the_slowest() {
        let values: Vec<u64> = (1..=1000).collect();
        let quantiles = quantiles(&histogram(&values));
        assert_eq!(quantiles.first().unwrap(), &(0.0, 1));
        assert_eq!(quantiles.last().unwrap(), &(0.999, 1000));
        assert!(quantiles.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
        assert!(quantiles.contains(&(0.5, 500)), "{quantiles:?}");
        let single = super::quantiles(&histogram(&[7]));
        assert_eq!((single.first(), single.last()), (Some(&(0.0, 7)), Some(&(0.5, 7))));
    }

    #[test]
    fn bins_count_every_operation_once() {
        let bins = bins(&histogram(&[10, 11, 500, 100_000]), 10);
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), 4);
        assert_eq!(bins.len(), 3);
        assert!(bins.iter().all(|(from, to, _)| from < to));
        assert!((bins[0].0 - 10.0).abs() < 1e-9, "{bins:?}");
    }
}
