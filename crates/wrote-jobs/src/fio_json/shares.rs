//! JSON objects whose keys are data, and the percents of operations within each of fio's fixed
//! bounds.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// An object whose keys are data, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Bounds: a label, and the last value that belongs to it. The last label takes all the rest.
type Bounds = [(&'static str, u64)];

/// Operations in flight, as fio labels them: `2` is 2 and 3.
pub(super) const DEPTHS: [(&str, u64); 7] =
    [("1", 1), ("2", 3), ("4", 7), ("8", 15), ("16", 31), ("32", 63), (">=64", u64::MAX)];

/// Operations submitted or completed together, as fio labels them: `4` is 1 to 4.
pub(super) const BATCHES: [(&str, u64); 7] =
    [("0", 0), ("4", 4), ("8", 8), ("16", 16), ("32", 32), ("64", 64), (">=64", u64::MAX)];

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Latencies in nanoseconds: `latency_ns` is the first ten, `latency_us` the next, `latency_ms` the
/// rest. A label is the first value, in its unit, that no longer belongs to it.
#[rustfmt::skip]
const LATENCIES: [(&str, u64); 32] = [
    ("2", 1), ("4", 3), ("10", 9), ("20", 19), ("50", 49), ("100", 99), ("250", 249),
    ("500", 499), ("750", 749), ("1000", 999),
    ("2", 2 * US - 1), ("4", 4 * US - 1), ("10", 10 * US - 1), ("20", 20 * US - 1),
    ("50", 50 * US - 1), ("100", 100 * US - 1), ("250", 250 * US - 1), ("500", 500 * US - 1),
    ("750", 750 * US - 1), ("1000", 1000 * US - 1),
    ("2", 2 * MS - 1), ("4", 4 * MS - 1), ("10", 10 * MS - 1), ("20", 20 * MS - 1),
    ("50", 50 * MS - 1), ("100", 100 * MS - 1), ("250", 250 * MS - 1), ("500", 500 * MS - 1),
    ("750", 750 * MS - 1), ("1000", 1000 * MS - 1), ("2000", 2000 * MS - 1), (">=2000", u64::MAX),
];

/// Returns latencies as fio's `latency_ns`, `latency_us` and `latency_ms`.
pub(super) fn latencies(histogram: &Histogram<u64>) -> [Pairs<f64>; 3] {
    let Pairs(mut ns) = shares(histogram, &LATENCIES);
    let ms = ns.split_off(20);
    let us = ns.split_off(10);
    [ns, us, ms].map(Pairs)
}

/// Returns the percent of the counted values within each bound; all 0 without values.
///
/// A value counts where the upper end of its bucket of the histogram does.
pub(super) fn shares(histogram: &Histogram<u64>, bounds: &Bounds) -> Pairs<f64> {
    let mut counts = vec![0; bounds.len()];
    for bucket in histogram.iter_recorded() {
        let value = bucket.value_iterated_to();
        let place = bounds.iter().position(|(_, last)| value <= *last);
        counts[place.expect("the last bound is the greatest number")] += bucket.count_at_value();
    }
    let percent = |count: u64| match histogram.len() {
        0 => 0.0,
        all => count as f64 * 100.0 / all as f64,
    };
    let labels = bounds.iter().map(|(label, _)| (*label).to_owned());
    Pairs(labels.zip(counts.into_iter().map(percent)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    /// The labels with a share above 0.
    fn filled(Pairs(pairs): &Pairs<f64>) -> Vec<(&str, f64)> {
        pairs.iter().filter(|(_, part)| *part > 0.0).map(|(key, part)| (&**key, *part)).collect()
    }

    #[test]
    fn depths_are_counted_from_their_label_up_and_batches_up_to_it() {
        let values = histogram(&[1, 3, 4, 63, 64, 4096, 1, 1, 1, 1]);
        let depths = shares(&values, &DEPTHS);
        assert_eq!(
            filled(&depths),
            [("1", 50.0), ("2", 10.0), ("4", 10.0), ("32", 10.0), (">=64", 20.0)]
        );
        let batches = shares(&values, &BATCHES);
        assert_eq!(filled(&batches), [("4", 70.0), ("64", 20.0), (">=64", 10.0)]);
    }

    #[test]
    fn latencies_are_below_their_label_in_the_unit_that_fits() {
        let [ns, us, ms] =
            latencies(&histogram(&[999, 1000, 1999, 2000, 3_000_000, 2_000_000_000]));
        let near = |pairs: &Pairs<f64>| -> Vec<(String, i32)> {
            filled(pairs).iter().map(|(key, part)| ((*key).into(), part.round() as i32)).collect()
        };
        assert_eq!(near(&ns), [("1000".into(), 17)]);
        assert_eq!(near(&us), [("2".into(), 33), ("4".into(), 17)]);
        assert_eq!(near(&ms), [("4".into(), 17), (">=2000".into(), 17)]);
    }

    #[test]
    fn of_nothing_every_share_is_0() {
        let [ns, us, ms] = latencies(&histogram(&[]));
        assert_eq!((ns.0.len(), us.0.len(), ms.0.len()), (10, 10, 12));
        for pairs in [ns, us, ms] {
            assert!(pairs.0.iter().all(|(_, share)| *share == 0.0));
        }
    }
}
