//! A comparison of languages as text: the lines of all formats, and one file a format.

mod chart;
mod csv;
mod figures;
mod list;
mod markdown;
mod rows;
mod table;
mod titles;

pub use list::write_languages;

use chart::{Cell, Chart, Line, Who};

use crate::figures::spread;
use crate::target;
use crate::text::gathered;
use crate::{Format, Screen, write_json};
use itertools::Itertools;
use std::io::{self, Write};
use titles::titles;
use wrote_result::document::Interval;
use wrote_result::langs::{Document, Drive, Language, Place, State};
use wrote_result::units;

/// The title over the languages without a toolchain.
pub const MISSING: &str = "Not installed";
/// The title over the languages whose programs could not be built.
pub const NOT_BUILT: &str = "Not built";

/// Writes a comparison of languages, ending with a line feed.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_langs(
    document: &Document,
    format: Format,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => table::write(document, screen, out),
        Format::Json => write_json(document, out),
        Format::Csv => csv::write(document, out),
        Format::Markdown => markdown::write(document, out),
    }
}

/// Returns whether each path is a column, and a workload one table for all paths.
pub fn is_of_several(document: &Document) -> bool {
    document.places.len() > 1
}

/// The title of each path's column.
pub fn place_titles(document: &Document) -> Vec<String> {
    let paths: Vec<&str> = document.places.iter().map(|place| &*place.target.path).collect();
    titles(&paths)
}

/// The facts about the machine and each path, each group under a label. Several paths are labelled
/// as their columns are.
pub fn facts(document: &Document) -> Vec<(String, Vec<String>)> {
    let of = |place: &Place| target::facts(&place.target, &document.host);
    let named = |(name, facts): (&str, Vec<String>)| (name.to_owned(), facts);
    if let [place] = &document.places[..] {
        let facts = of(place).into_iter().map(named);
        return facts.chain([("Drive".into(), drive_facts(place, "writes"))]).collect();
    }
    let machine = |(name, _): &(&str, Vec<String>)| *name == "Machine";
    let machine = document.places.iter().flat_map(of).find(machine).map(named);
    let places = document.places.iter().zip(place_titles(document)).map(|(place, title)| {
        let told = of(place).into_iter().filter(|(name, _)| ["Path", "Device"].contains(name));
        (
            title,
            told.flat_map(|(_, facts)| facts).chain(drive_facts(place, "itself writes")).collect(),
        )
    });
    machine.into_iter().chain(places).collect()
}

/// The drive's own rates: `writes 2.21 GB/s ±3% (peak/write/512k-64-registered)`. `writes` is the
/// verb.
fn drive_facts(place: &Place, writes: &str) -> Vec<String> {
    let Some(drive) = &place.drive else {
        return vec![format!("its own rate is not known{}", why_not_known(place))];
    };
    let Drive { write_row, write_bytes_per_s, read_row, read_bytes_per_s } = drive;
    let told = |does: &str, rate: &Interval, row: &str| {
        let figures = [does.to_owned(), units::rate(rate.median), spread(rate)];
        format!("{} ({row})", figures.iter().filter(|text| !text.is_empty()).join(" "))
    };
    vec![told(writes, write_bytes_per_s, write_row), told("reads", read_bytes_per_s, read_row)]
}

/// The reason why there is no rate of the drive, as far as the result tells.
fn why_not_known(place: &Place) -> &'static str {
    let is_save = |name: &str| name.starts_with("save");
    if place.target.device.is_none() || place.target.dio_offset_align_bytes.is_none() {
        ": there is no direct I/O to a drive"
    } else if place.workloads.iter().all(|workload| is_save(&workload.name)) {
        ": saves are not measured against it"
    } else {
        ""
    }
}

/// Languages that are not installed: `Zig: pip install ziglang; zig: not found`.
pub fn missing(document: &Document) -> Vec<String> {
    together(document, State::Missing, |language| match (&language.install, &language.because) {
        (Some(install), Some(because)) => format!("{install}; {because}"),
        (Some(told), None) | (None, Some(told)) => told.clone(),
        (None, None) => "not found".into(),
    })
}

/// Languages whose programs could not be built, with the compiler's words.
pub fn not_built(document: &Document) -> Vec<String> {
    together(document, State::BuildFailed, |language| {
        language.because.clone().unwrap_or_else(|| "its compiler said nothing".into())
    })
}

/// The languages in a state; languages with the same text share a line.
fn together(document: &Document, state: State, told: fn(&Language) -> String) -> Vec<String> {
    let of_state = document.languages.iter().filter(|language| language.state == state);
    let lines = gathered(of_state.map(|language| (told(language), language.name.as_str())));
    lines.into_iter().map(|(told, names)| format!("{}: {told}", names.join(", "))).collect()
}

/// Explains the figures.
pub fn legend(document: &Document) -> String {
    let rows = || {
        let workloads = document.places.iter().flat_map(|place| &place.workloads);
        workloads.flat_map(|workload| &workload.rows)
    };
    let has_rates = rows().any(|row| row.latency_ns.is_none());
    let rates = has_rates.then_some(
        "MB/s (10^6 bytes) is the median of the runs, ± how far its 95 % interval reaches, by each program's \
         own clock, from the opening of the file to its closing.",
    );
    let is_whole = has_rates && !is_of_several(document);
    let others = is_whole.then_some(
        "MEAN is all their bytes over all their time. CPU and MEMORY are of the whole process, with what it \
         takes to start; MEMORY is blank where it was over too soon to be looked at.",
    );
    let has_drive = document.places.iter().any(|place| place.drive.is_some());
    let drive = (is_whole && has_drive).then_some("x DRIVE is MB/s over the drive's own.");
    let saves = rows().any(|row| row.latency_ns.is_some()).then_some(
        "A save takes, by each program's own clock, from the opening of the file to its closing.",
    );
    let debug = document.wrote.debug_build.then_some(
        "This wrote is a debug build: its own rows, and the drive's, are slower than they would be.",
    );
    [rates, drive, others, saves, debug].into_iter().flatten().join(" ")
}
