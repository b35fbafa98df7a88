//! The comparison of a figure with the typical figures of classes of disks, from `yardstick.toml`.

use crate::document::{Class, Device, Host, Standing};
use serde::Deserialize;
use std::sync::LazyLock;

/// A figure for which there are typical figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The number of durable writes of 4 KiB per second, one after another.
    Durable,
    /// The megabytes per second of a stream.
    Stream,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Yardstick {
    collected: String,
    grades: Vec<Grade>,
    class: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grade {
    word: String,
    durable: f64,
    stream: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(rename = "where")]
    kind: Kind,
    durable: Option<[f64; 2]>,
    stream: Option<[f64; 2]>,
    sources: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Rotating,
    Flash,
    Volume,
}

static YARDSTICK: LazyLock<Yardstick> =
    LazyLock::new(|| toml::from_str(include_str!("yardstick.toml")).expect("it is valid"));

/// The maximum number of classes that a comparison names.
const NAMED_MAX: usize = 2;

/// Compares a figure with the typical figures; `None` without a block device.
///
/// Names only classes that are possible for the device and the machine: the disk of a physical
/// machine belongs to no cloud, and flash does not rotate. A virtual machine may have any disk.
pub fn standing(
    figure: Figure,
    value: f64,
    host: &Host,
    device: Option<&Device>,
) -> Option<Standing> {
    let device = device?;
    let is_real = host.virtualization == "none";
    let may_be = |kind: Kind| match kind {
        Kind::Volume => !is_real,
        Kind::Rotating => !is_real || device.rotational,
        Kind::Flash => !is_real || !device.rotational,
    };
    let class = |entry: &Entry| {
        let range = match figure {
            Figure::Durable => entry.durable,
            Figure::Stream => entry.stream,
        };
        let [low, high] = range.filter(|_| may_be(entry.kind))?;
        Some(Class { name: entry.name.clone(), low, high, sources: entry.sources.clone() })
    };
    let classes: Vec<Class> = YARDSTICK.class.iter().filter_map(class).collect();
    let text = words(figure, value, &classes)?;
    Some(Standing { text, classes, collected: YARDSTICK.collected.clone() })
}

fn words(figure: Figure, value: f64, classes: &[Class]) -> Option<String> {
    let told = |class: &Class| {
        let (scale, unit) = match (figure, class.high >= 1000.0) {
            (Figure::Durable, true) => (1000.0, "k/s"),
            (Figure::Durable, false) => (1.0, "/s"),
            (Figure::Stream, true) => (1000.0, "GB/s"),
            (Figure::Stream, false) => (1.0, "MB/s"),
        };
        let [low, high] = [class.low, class.high].map(|bound| short(bound / scale));
        format!("{} ({low} to {high} {unit})", class.name)
    };
    let is_like = |class: &&Class| (class.low..=class.high).contains(&value);
    let like: Vec<String> = classes.iter().filter(is_like).take(NAMED_MAX).map(told).collect();
    let below = classes.iter().filter(|class| class.high < value);
    let below = below.max_by(|a, b| a.high.total_cmp(&b.high));
    let above = classes.iter().filter(|class| class.low > value);
    let above = above.min_by(|a, b| a.low.total_cmp(&b.low));
    let times = |class: &Class| {
        let times = value / class.high;
        format!("{times:.1} times the fastest {}", told(class))
    };
    let stands = match (like.is_empty(), below, above) {
        (false, Some(below), _) => {
            format!("consistent with {}; {}", like.join(" and "), times(below))
        }
        (false, None, _) => format!("consistent with {}", like.join(" and ")),
        (true, Some(below), Some(above)) => format!("between {} and {}", told(below), told(above)),
        // A figure above every class more likely shows a cache than a good disk.
        (true, Some(below), None) => return Some(times(below)),
        (true, None, Some(above)) => format!("below {}", told(above)),
        (true, None, None) => return None,
    };
    let is_reached =
        |of: &&Grade| value >= if figure == Figure::Stream { of.stream } else { of.durable };
    let grade = YARDSTICK.grades.iter().rfind(is_reached)?;
    Some(format!("{}, {stands}", grade.word))
}

/// Formats a bound with two significant digits, and one of at least 10 as a whole number: `0.14`,
/// `1.7`, `7`, `175`.
fn short(bound: f64) -> String {
    let text = match bound {
        10.0.. => format!("{bound:.0}"),
        1.0.. => format!("{bound:.1}"),
        _ => format!("{bound:.2}"),
    };
    text.trim_end_matches(".0").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(figure: Figure, value: f64, virtualization: &str, rotational: bool) -> String {
        let host = Host { virtualization: virtualization.into(), ..Host::default() };
        let device = Device { rotational, ..Device::default() };
        standing(figure, value, &host, Some(&device)).expect("a standing").text
    }

    #[test]
    fn a_figure_stands_among_classes_that_the_machine_does_not_contradict() {
        use Figure::{Durable, Stream};
        for (figure, value, virtualization, rotational, text) in [
            (
                Durable,
                8660.0,
                "none",
                false,
                "very good, consistent with enterprise SSDs (7 to 40 k/s); 5.1 times the fastest \
                 consumer NVMe SSDs (0.14 to 1.7 k/s)",
            ),
            (Durable, 60.0, "none", true, "slow, consistent with hard disks (20 to 120 /s)"),
            (Durable, 900.0, "none", true, "7.5 times the fastest hard disks (20 to 120 /s)"),
            (Durable, 60.0, "none", false, "slow, below consumer NVMe SSDs (0.14 to 1.7 k/s)"),
            (
                Durable,
                3000.0,
                "kvm",
                true,
                "good, between consumer NVMe SSDs (0.14 to 1.7 k/s) and enterprise SSDs (7 to 40 k/s)",
            ),
            (Stream, 120.0, "none", true, "slow, consistent with hard disks (83 to 175 MB/s)"),
            (
                Stream,
                600.0,
                "none",
                false,
                "good, between consumer SATA SSDs (323 to 515 MB/s) \
                and enterprise SSDs (1.1 to 1.7 GB/s)",
            ),
        ] {
            assert_eq!(told(figure, value, virtualization, rotational), text, "{value}");
        }
        assert!(told(Durable, 500.0, "kvm", false).contains("SSDs"));
        assert!(standing(Durable, 1.0, &Host::default(), None).is_none());
    }

    #[test]
    fn ranges_are_ordered_and_each_has_a_source() {
        for entry in &YARDSTICK.class {
            for [low, high] in entry.durable.into_iter().chain(entry.stream) {
                assert!(low < high, "{}", entry.name);
            }
            assert!(!entry.sources.is_empty(), "{}", entry.name);
        }
    }
}
