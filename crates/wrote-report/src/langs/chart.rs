//! One workload over all paths: its languages in order, with the drive and `wrote` among them.

use super::{is_of_several, place_titles};
use crate::figures::has_spread;
use crate::text::gathered;
use itertools::Itertools;
use wrote_result::document::{Interval, Survives};
use wrote_result::langs::{Cache, Document, Language, Place, Row, Workload};
use wrote_result::stats;

/// A path, and the workload there if it was done.
type InPlace<'a> = (&'a Place, Option<&'a Workload>);

/// A table.
#[derive(Debug)]
pub struct Chart<'a> {
    /// `bytes/write`.
    pub name: &'a str,
    /// The work of each language, and the number of runs.
    pub summary: String,
    /// The time of a save counts, not a rate.
    pub is_of_saves: bool,
    /// The fastest first, in the first path.
    pub lines: Vec<Line<'a>>,
    /// The level that the bytes survive, and the drive's part in it.
    pub notes: Vec<String>,
    /// The languages that failed, and how.
    pub failures: Vec<String>,
}

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A language's own I/O.
    Language,
    /// Ours.
    Wrote,
    /// Direct I/O, as fast as the scenario `peak` could make it.
    Drive,
}

/// A line of the table: a cell for each path.
#[derive(Debug)]
pub struct Line<'a> {
    pub who: Who,
    /// The displayed name.
    pub name: String,
    pub how: String,
    /// `None` where it did not do this.
    pub cells: Vec<Option<Cell<'a>>>,
    /// In the first path there is no measurable difference from the line above.
    pub is_level: bool,
}

/// The figures of one language, or of the drive, in one path.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// In bytes per second.
    pub throughput: &'a Interval,
    /// `None` for the drive.
    pub row: Option<&'a Row>,
    /// The drive's own rate there.
    pub drive: Option<&'a Interval>,
}

impl<'a> Chart<'a> {
    /// All workloads, in the order they were done.
    pub fn all_of(document: &'a Document) -> Vec<Chart<'a>> {
        let workloads = document.places.iter().flat_map(|place| &place.workloads);
        let names = workloads.map(|workload| workload.name.as_str()).unique();
        names.map(|name| Chart::of(document, name)).collect()
    }

    fn of(document: &'a Document, name: &'a str) -> Chart<'a> {
        let done: Vec<InPlace> = document
            .places
            .iter()
            .map(|place| (place, place.workloads.iter().find(|workload| workload.name == name)))
            .collect();
        let workloads = || done.iter().filter_map(|(_, workload)| *workload);
        let rows = || workloads().flat_map(|workload| &workload.rows);
        let is_of_saves = rows().any(|row| row.latency_ns.is_some());
        let lines = ranked(lines(document, name, &done), is_of_saves);
        let unit = match (is_of_several(document), is_of_saves) {
            (false, _) => "",
            (true, false) => "; MB/s",
            (true, true) => "; P50 of each",
        };
        Chart {
            name,
            summary: workloads().next().map(summary).unwrap_or_default() + unit,
            is_of_saves,
            lines,
            notes: notes(document, &done),
            failures: failures(document, &done),
        }
    }
}

impl Chart<'_> {
    /// Returns whether the languages moved different amounts, each as much as its time allowed.
    pub fn has_amounts(&self) -> bool {
        let rows = self.lines.iter().filter_map(|line| line.first()?.row);
        rows.filter_map(Row::run_bytes).unique().nth(1).is_some()
    }
}

/// Returns the unsorted lines: every language with a result in any path, then the drive.
fn lines<'a>(document: &'a Document, name: &str, done: &[InPlace<'a>]) -> Vec<Line<'a>> {
    let rows = done.iter().filter_map(|(_, workload)| *workload).flat_map(|of| &of.rows);
    let ids = rows.map(|row| row.language.as_str()).unique();
    let of_language = |id: &'a str| {
        let cell = |(place, workload): &InPlace<'a>| {
            let row = (*workload)?.rows.iter().find(|row| row.language == id)?;
            let drive = drive(place, workload.as_ref()?);
            Some(Cell { throughput: &row.throughput_bytes_per_s, row: Some(row), drive })
        };
        let language = language(document, id);
        Line {
            who: if is_wrote(id) { Who::Wrote } else { Who::Language },
            name: language.map_or(id, |language| &language.name).to_owned(),
            how: language.map(|language| language.way_of(name)).unwrap_or_default().to_owned(),
            cells: done.iter().map(cell).collect(),
            is_level: false,
        }
    };
    let languages = ids.map(of_language);
    let rates: Vec<Option<&Interval>> =
        done.iter().map(|(place, workload)| drive(place, (*workload)?)).collect();
    let of_drive = rates.iter().any(Option::is_some).then(|| Line {
        who: Who::Drive,
        name: "the drive itself".into(),
        how: "direct I/O".into(),
        cells: rates.iter().map(|rate| rate.map(Cell::of_drive)).collect(),
        is_level: false,
    });
    languages.chain(of_drive).collect()
}

/// Returns the drive's rate to compare a workload with; none for saves, which are not a stream.
fn drive<'a>(place: &'a Place, workload: &Workload) -> Option<&'a Interval> {
    let drive = place.drive.as_ref()?;
    match workload.name.split('/').next()? {
        "bytes" if workload.name.starts_with("bytes/read") => Some(&drive.read_bytes_per_s),
        "bytes" | "lines" => Some(&drive.write_bytes_per_s),
        _ => None,
    }
}

/// Sorts the lines by the first path, the fastest first; lines without a result there come last.
fn ranked(mut lines: Vec<Line>, is_of_saves: bool) -> Vec<Line> {
    let slowness =
        |line: &Line| line.first().map_or(f64::INFINITY, |cell| cell.slowness(is_of_saves));
    lines.sort_by(|one, other| slowness(one).total_cmp(&slowness(other)));
    for index in 1..lines.len() {
        lines[index].is_level = match (lines[index - 1].first(), lines[index].first()) {
            (Some(above), Some(cell)) => !is_of_saves && are_level(above, cell),
            _ => false,
        };
    }
    lines
}

impl<'a> Line<'a> {
    /// The figures in the first path.
    pub fn first(&self) -> Option<Cell<'a>> {
        self.at(0)
    }

    /// The figures in a path, by its number from 0.
    pub fn at(&self, place: usize) -> Option<Cell<'a>> {
        self.cells.get(place).copied().flatten()
    }
}

impl<'a> Cell<'a> {
    fn of_drive(rate: &'a Interval) -> Cell<'a> {
        Cell { throughput: rate, row: None, drive: Some(rate) }
    }

    /// Returns a figure that is less where the line is faster.
    fn slowness(self, is_of_saves: bool) -> f64 {
        match self.row.and_then(|row| row.latency_ns).filter(|_| is_of_saves) {
            Some(latency) => latency.p50 as f64,
            None => -self.throughput.median,
        }
    }
}

fn language<'a>(document: &'a Document, id: &str) -> Option<&'a Language> {
    document.languages.iter().find(|language| language.id == id)
}

/// Returns whether it is `wrote` or its variant, and not a user's language of that name.
fn is_wrote(id: &str) -> bool {
    ["wrote", "wrote-cached"].contains(&id)
}

/// `256 MB written one byte at a time; 6 runs of each, the first dropped`.
fn summary(workload: &Workload) -> String {
    let most = |count: fn(&Row) -> usize| workload.rows.iter().map(count).max().unwrap_or(0);
    let runs = most(|row| row.runs.len());
    let dropped = most(|row| row.runs.iter().filter(|run| run.dropped).count());
    match (runs, dropped) {
        (0 | 1, _) => workload.words.clone(),
        (_, 0) => format!("{}; {runs} runs of each", workload.words),
        (_, 1) => format!("{}; {runs} runs of each, the first dropped", workload.words),
        (_, more) => format!("{}; {runs} runs of each, {more} of them dropped", workload.words),
    }
}

/// The level that the bytes survive (M3) and their place; printed for each path where they differ.
fn notes(document: &Document, done: &[InPlace]) -> Vec<String> {
    let told = done.iter().zip(place_titles(document));
    let told = told.filter_map(|((place, of), title)| Some((note((*of)?, place), title)));
    let told = gathered(told);
    if let [(_, _)] = told[..] {
        return told.into_iter().map(|(note, _)| note).collect();
    }
    told.into_iter().map(|(note, titles)| format!("{}: {note}", titles.join(", "))).collect()
}

/// Added where bytes go through the page cache, which `wrote::Writer` passes by default.
const BUT_WROTE: &str = " (by wrote past it, unless it says cached)";

fn note(workload: &Workload, place: &Place) -> String {
    let survives = workload.survives.map(survives);
    let survives = survives.map(|what| format!("; what is written survives {what}"));
    let survives = survives.unwrap_or_default();
    match (workload.cache, workload.survives.is_some()) {
        (Cache::PageCache, true) => {
            let is_stream = !workload.name.starts_with("save");
            let has_wrote = is_stream && workload.rows.iter().any(|row| row.language == "wrote");
            // Memory has nothing beyond the page cache, and without direct I/O there is no way
            // around it (W6).
            let target = &place.target;
            let has_past = target.device.is_some() && target.dio_offset_align_bytes.is_some();
            let but = if has_wrote && has_past { BUT_WROTE } else { "" };
            format!("through the page cache{but}: no byte of it had to reach the drive{survives}")
        }
        (Cache::PageCache, false) => {
            "from the page cache: no byte of it had to come from the drive".into()
        }
        (Cache::PartlyPageCache, _) => {
            "from the page cache, which was too small for the file, and the rest from the drive"
                .into()
        }
        (Cache::Dropped, _) => "from the drive: the page cache held nothing of the file".into(),
        (Cache::Synced, _) => {
            format!("flushed by the language's own sync call, inside the clock{survives}")
        }
    }
}

/// Returns whether two cells have no measurable difference. A single run cannot show that.
fn are_level(one: Cell, other: Cell) -> bool {
    let (one, other) = (one.throughput, other.throughput);
    has_spread(one) && has_spread(other) && !stats::distinguishable(one, other)
}

/// A word of the result, and its meaning.
fn survives(word: Survives) -> String {
    let meaning = match word {
        Survives::ProcessCrash => "a crash of the process, and none of the system",
        Survives::OsCrash => "a crash of the system, and no power loss",
        Survives::PowerLoss => "a power loss",
        Survives::Nothing => return word.to_string(),
    };
    format!("{meaning} ({word})")
}

/// `Ruby: the file's byte 12345 is 7, not 57`; with the path where there are several.
fn failures(document: &Document, done: &[InPlace]) -> Vec<String> {
    let mut lines = Vec::new();
    for ((_, workload), title) in done.iter().zip(place_titles(document)) {
        for failure in workload.iter().flat_map(|workload| &workload.failures) {
            let name = language(document, &failure.language);
            let name = name.map_or(&failure.language, |language| &language.name);
            let place =
                if is_of_several(document) { format!(" in {title}") } else { String::new() };
            lines.push(format!("{name}{place}: {}", failure.because));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_whose_intervals_touch_are_level_and_a_single_run_is_not() {
        let around = |median: f64, reach: f64| Interval {
            median,
            ci95_low: median - reach,
            ci95_high: median + reach,
        };
        let (point, wide, near) = (around(100.0, 0.0), around(100.0, 5.0), around(104.0, 5.0));
        let cell = |throughput| Cell { throughput, row: None, drive: None };
        assert!(are_level(cell(&wide), cell(&near)));
        assert!(!are_level(cell(&wide), cell(&point)));
    }
}
