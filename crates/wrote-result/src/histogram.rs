//! Histograms of latencies as text: the encoding that the tools of HdrHistogram read.
//!
//! The text is Base64 of the payload "V2 deflate", as in HdrHistogram's interval logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The longest accepted text. Deflated zeros grow a thousandfold when read.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A logarithmic bin: its least latency and its end, in nanoseconds, and the operations in it.
pub type Bin = (f64, f64, u64);

/// Returns a histogram of nanoseconds as text; `None` for an empty one.
pub fn encode(histogram: &Histogram<u64>) -> Option<String> {
    if histogram.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes)).filter(|text| text.len() <= TEXT_BYTES_MAX)
}

/// Returns the histogram of a text; `None` where the text is not a histogram.
pub fn decode(text: &str) -> Option<Histogram<u64>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

/// Returns the text of two histograms together; `None` where either text is not a histogram.
pub fn together(one: &str, other: &str) -> Option<String> {
    let mut all = decode(one)?;
    // A parsed histogram has room for its own slowest operation, and not for a slower one.
    all.auto(true);
    all.add(decode(other)?).ok()?;
    encode(&all)
}

/// Returns quantiles and the latency at each, in nanoseconds, from the fastest operation to the
/// slowest. The last quantile is below 1 by one operation.
pub fn quantiles(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let count = histogram.len();
    if count == 0 {
        return Vec::new();
    }
    let last = 1.0 - 1.0 / (count as f64).max(2.0);
    // Ten steps to each power of ten of slower operations.
    let steps = (0..).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
    let steps = steps.take_while(|quantile| *quantile < last);
    let at = |quantile: f64| (quantile, histogram.value_at_quantile(quantile));
    let ticks = [0.5, 0.95].into_iter().filter(|quantile| *quantile < last);
    let mut all: Vec<(f64, u64)> = steps.chain(ticks).map(at).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all.push((last, histogram.max()));
    all
}

/// Returns the bins that hold an operation, `per_decade` of them to each power of ten.
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

#[cfg(test)]
mod tests {
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
