//! The sizes that grow, and the work measured at each: `peers/growth.toml`.

use crate::contests::outcome::Unit;
use crate::contests::rows::{Words, filled};
use serde::Deserialize;
use std::sync::LazyLock;

/// A size that grows, and the lines of its chart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthAxis {
    /// Its name.
    pub name: String,
    /// One line of `--help`.
    pub help: String,
    /// The question that the chart answers.
    pub question: String,
    /// The work.
    pub work: String,
    /// The size in words.
    pub at: String,
    /// The unit of the rate.
    pub unit: Unit,
    pub lines: Vec<Line>,
}

/// One kind of work at several sizes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub name: String,
    /// The shell line before the work; may be empty.
    #[serde(default)]
    prepare: String,
    /// The shell line that does the work.
    run: String,
    pub at: Vec<u64>,
    /// The number of records at each point.
    #[serde(default)]
    records: Vec<u64>,
}

#[derive(Deserialize)]
struct Book {
    job: String,
    job_end: String,
    axis: Vec<GrowthAxis>,
}

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    toml::from_str(include_str!("../../growth.toml")).expect("growth.toml, which a test reads")
});

/// Returns all sizes in their order.
pub fn all() -> &'static [GrowthAxis] {
    &BOOK.axis
}

impl GrowthAxis {
    /// The chart, from the repository's root.
    pub fn picture(&self) -> String {
        format!("docs/pictures/growth-{}.svg", self.name)
    }
}

impl Line {
    /// Whether `wrote run` does the work; `trial` otherwise.
    pub fn is_job(&self) -> bool {
        self.run.starts_with("{job}")
    }

    /// Returns the lines before the work and of the work at the point of that number.
    pub fn commands(&self, number: usize) -> [String; 2] {
        let records = self.records.get(number).map_or_else(String::new, u64::to_string);
        let words = [
            ("at", self.at[number].to_string()),
            ("records", records),
            ("job", BOOK.job.clone()),
            ("job_end", BOOK.job_end.clone()),
        ];
        let words: Words = words.map(|(name, word)| (name.to_owned(), word)).into();
        [&self.prepare, &self.run].map(|text| filled(text, &words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_its_commands() {
        for axis in all() {
            for line in &axis.lines {
                let numbered = line.prepare.contains("{records}") || line.run.contains("{records}");
                assert_eq!(line.records.len(), if numbered { line.at.len() } else { 0 });
                for number in 0..line.at.len() {
                    let [prepare, run] = line.commands(number);
                    assert!(!prepare.contains('{') && !run.contains('{'), "{prepare} {run}");
                }
            }
        }
        let [_, run] = all()[0].lines[0].commands(2);
        let work = "--messages 2097152 --producers 4 --shortest 256 --longest 256 appended";
        assert_eq!(run, format!("trial append --by log {work}"));
    }
}
