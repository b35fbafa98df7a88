//! The part of the time in which processors were idle during a run (`--idle-prof`).

use super::direction::Pairs;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Ticks of all processors and of each: idle, and in all (`proc(5)`, `/proc/stat`).
#[derive(Clone, Debug, Default)]
pub struct Idleness(Vec<(String, u64, u64)>);

impl Idleness {
    /// Begins to measure; nothing is measured where `/proc` is not there.
    pub fn begin() -> Idleness {
        Idleness::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Idleness {
        let of = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split(' ').filter(|word| !word.is_empty());
            let name = if line.starts_with("cpu ") {
                "system".to_owned()
            } else {
                format!("cpu-{}", words.next()?)
            };
            let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
            Some((name, *ticks.get(3)?, ticks.iter().sum()))
        };
        Idleness(text.lines().filter_map(of).collect())
    }

    /// Returns what passed since the beginning.
    pub fn end(&self) -> Idleness {
        let now = Idleness::begin().0;
        let since = |((name, idle, all), (_, idle_before, all_before)): (
            &(String, u64, u64),
            &(String, u64, u64),
        )| {
            (name.clone(), idle.saturating_sub(*idle_before), all.saturating_sub(*all_before))
        };
        Idleness(now.iter().zip(&self.0).map(since).collect())
    }

    fn percents(&self) -> Vec<(String, f64)> {
        let percent = |(name, idle, all): &(String, u64, u64)| {
            (name.clone(), *idle as f64 * 100.0 / (*all).max(1) as f64)
        };
        self.0.iter().map(percent).collect()
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let percents = self.percents();
        let mut each = String::new();
        for (index, (_, percent)) in percents.iter().skip(1).enumerate() {
            let _ = write!(each, "{}{percent:.2}%", if index > 0 { ", " } else { "" });
        }
        let system = percents.first().map_or(0.0, |(_, percent)| *percent);
        writeln!(out, "\nCPU idleness:\n  system: {system:.2}%\n  percpu: {each}")?;
        // fio weighs a loop of its own; the kernel's ticks need none.
        writeln!(out, "  unit work: mean=0.00us, stddev=0.00")
    }
}

impl Serialize for Idleness {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs = self.percents();
        pairs.extend(["unit_mean", "unit_stddev"].map(|name| (name.to_owned(), 0.0)));
        Pairs(pairs).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_of_all_processors_and_of_each() {
        let text = "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 5 0 5 40 0 0 0 0 0 0\nintr 5\n";
        let percents = Idleness::read(text).percents();
        assert_eq!(percents, [("system".into(), 70.0), ("cpu-0".into(), 80.0)]);
    }
}
