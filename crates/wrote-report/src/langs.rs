//! A comparison of languages as text: the lines of all formats, and one file per format.

mod chart;
pub mod csv;
mod figures;
mod picture;

use chart::{Cell, Chart, Line, Who};

use crate::Screen;
use crate::figures::spread;
use crate::paint::{Mark, Tone};
use crate::ranks;
use crate::table::Table;
use crate::table::{Column, Keep};
use crate::target;
use crate::text::gathered;
use crate::text::{Page, made};
use crate::tree::{Block, Note, On, Role, Section, Style};
use itertools::Itertools;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Interval;
use wrote_result::langs::{Document, Drive, Language, Place, State};
use wrote_result::units;

/// The title over the languages without a toolchain.
const MISSING: &str = "Not installed";
/// The title over the languages whose programs could not be built.
const NOT_BUILT: &str = "Not built";

/// The title of Markdown.
pub fn title(document: &Document) -> String {
    format!("wrote langs {}", document.places.iter().map(|place| &place.target.path).join(" "))
}

/// Returns the sections of a comparison of languages.
pub fn sections(document: &Document) -> Vec<Section<'_>> {
    let titles = place_titles(document);
    let charts = Chart::all_of(document);
    let mut foot = marks(&charts);
    foot.push(legend(document).into());
    let made = made(&document.wrote, &document.started_at, document.elapsed_s);
    foot.push(Note { on: On::Screen, ..made.into() });
    let mut sections = vec![Section::facts("Disk and machine", facts(document))];
    sections.extend(charts.into_iter().map(|chart| of_chart(chart, document, titles.clone())));
    sections.extend(Section::list(NOT_BUILT, not_built(document)));
    sections.extend(Section::list(MISSING, missing(document)));
    sections.push(Section::new(Role::Foot, "", "", vec![Block::notes(Style::Foot, foot)]));
    sections
}

fn of_chart<'a>(chart: Chart<'a>, document: &Document, titles: Vec<String>) -> Section<'a> {
    let is_of_several = is_of_several(document);
    let (name, summary) = (chart.name, chart.summary.clone());
    let table = figures::table(&chart, is_of_several.then_some(&titles));
    let failure = |text: &String| Note {
        mark: Some(Mark::Warning),
        tone: Tone::Red,
        ..format!("failed: {text}").into()
    };
    let notes = chart.notes.iter().map(|text| text.clone().into());
    let nothing = chart.lines.is_empty().then(|| "no language did it".into());
    let notes = nothing.into_iter().chain(notes).chain(chart.failures.iter().map(failure));
    let notes: Vec<Note> = notes.collect();
    let mut blocks = vec![Block::Table(table), Block::notes(Style::Close, notes)];
    if chart.lines.is_empty() {
        blocks.remove(0);
    }
    let figures = Block::figures(move || {
        let titles = titles.iter().map(|title| if is_of_several { title.as_str() } else { "" });
        titles
            .enumerate()
            .filter_map(|(place, title)| picture::picture(&chart, place, title))
            .collect()
    });
    blocks.insert(0, figures);
    Section::new(Role::Part, name, &summary, blocks)
}

/// Explains the marks that stand in any of the tables.
fn marks(charts: &[Chart]) -> Vec<Note> {
    let lines = || charts.iter().flat_map(|chart| &chart.lines);
    let has = |who| lines().any(|line| line.who == who);
    let first = if lines().any(|line| line.cells.len() > 1) { " in the first path" } else { "" };
    let level =
        format!("no measurable difference from the line above{first}: the 95 % intervals touch");
    let drive = "is what the drive takes or gives by itself, past the page cache";
    let marks =
        [(has(Who::Drive), format!("- {drive}")), (has(Who::Wrote), "> is this library".into())];
    let marks = marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, means)| means);
    let marks = marks.map(|means| Note { on: On::Screen, ..means.into() });
    let has_level = lines().any(|line| line.is_level);
    marks.chain(has_level.then(|| Note::of_mark(Mark::Level, &level))).collect()
}

/// Returns whether each path is a column, and a workload one table for all paths.
fn is_of_several(document: &Document) -> bool {
    document.places.len() > 1
}

/// The title of each path's column.
fn place_titles(document: &Document) -> Vec<String> {
    let paths: Vec<&str> = document.places.iter().map(|place| &*place.target.path).collect();
    titles(&paths)
}

/// The facts about the machine and each path, each group under a label. Several paths are labelled
/// as their columns are.
fn facts(document: &Document) -> Vec<(String, Vec<String>)> {
    let ranks = document.ranks.as_ref().map(|ranks| ("Ranks", ranks::facts(ranks)));
    let of = |place: &Place| {
        let facts = target::facts(&place.target, &document.host).into_iter();
        facts.chain(ranks.clone()).collect::<Vec<_>>()
    };
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

/// The reason why there is no rate of the drive, if the result has it.
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
fn missing(document: &Document) -> Vec<String> {
    together(document, State::Missing, |language| match (&language.install, &language.because) {
        (Some(install), Some(because)) => format!("{install}; {because}"),
        (Some(told), None) | (None, Some(told)) => told.clone(),
        (None, None) => "not found".into(),
    })
}

/// Languages whose programs could not be built, with the compiler's words.
fn not_built(document: &Document) -> Vec<String> {
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
        "MB/s (10^6 bytes) is the median of the runs, ± how far its 95 % interval reaches, by each \
         program's own clock, from the opening of the file to its closing.",
    );
    let is_whole = has_rates && !is_of_several(document);
    let others = is_whole.then_some(
        "MEAN is all their bytes over all their time. CPU and MEMORY are of the whole process, \
         with what it takes to start; MEMORY is blank where the process ended too soon to be \
         sampled.",
    );
    let has_drive = document.places.iter().any(|place| place.drive.is_some());
    let drive = (is_whole && has_drive).then_some("x DRIVE is MB/s over the drive's own.");
    let saves = rows().any(|row| row.latency_ns.is_some()).then_some(
        "A save takes, by each program's own clock, from the opening of the file to its closing.",
    );
    let debug = document.wrote.debug_build.then_some(
        "This wrote is a debug build: its own rows, and the drive's, are slower than they would \
         be.",
    );
    [rates, drive, others, saves, debug].into_iter().flatten().join(" ")
}

/// Wider titles make the columns too wide.
const TITLE_WIDTH_MAX: usize = 14;

/// Returns a unique name for each path: as many of its last components as needed; `path 2` where
/// that is too long.
fn titles(paths: &[&str]) -> Vec<String> {
    let title = |(number, path): (usize, &&str)| match unique_end(path, paths) {
        Some(end) if end.width() <= TITLE_WIDTH_MAX => end,
        _ => format!("path {}", number + 1),
    };
    paths.iter().enumerate().map(title).collect()
}

/// Returns the shortest end of a path, in whole components, that no other path has; `None` where
/// even the whole path is the end of another one.
fn unique_end(path: &str, paths: &[&str]) -> Option<String> {
    let components = path.split('/').filter(|component| !component.is_empty()).count();
    (1..=components.max(1)).map(|count| end(path, count)).find(|title| {
        let count = title.split('/').count();
        paths.iter().filter(|other| end(other, count) == *title).count() == 1
    })
}

/// The last `count` components; of the root, which has none, itself.
fn end(path: &str, count: usize) -> String {
    let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match components.len() {
        0 => path.to_owned(),
        all => components[all.saturating_sub(count)..].join("/"),
    }
}

/// The version is broken into lines. A screen that leaves it less room than this has no HOW.
const VERSION_WIDTH_MIN: usize = 30;

/// Writes a table of every language, with its version or the way to install it.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_languages(
    languages: &[Language],
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let always = Keep::Always;
    let columns = [
        Column::words("ID", always, |of: &Language| of.id.clone()).kept(),
        Column::words("LANGUAGE", always, |of: &Language| of.name.clone()).kept(),
        Column::words("HOW", Keep::If(0), |of: &Language| of.way.clone()).kept(),
        Column::words("VERSION", always, |of: &Language| told(of).1)
            .kept()
            .toned(|of| told(of).0)
            .flexible(1, VERSION_WIDTH_MIN),
    ];
    let table = Table::of("Languages", &columns, &languages.iter().collect::<Vec<_>>());
    table.write(Page { screen }, out).map(drop)
}

fn told(language: &Language) -> (Tone, String) {
    let because = language.because.as_deref().unwrap_or_default();
    match language.state {
        State::Ready => (Tone::Plain, language.version.clone().unwrap_or_default()),
        State::Missing => {
            let install = language.install.as_deref().unwrap_or_default();
            let mut told = [install, because].into_iter().filter(|text| !text.is_empty());
            (Tone::Yellow, format!("missing: {}", told.join("; ")))
        }
        State::BuildFailed => (Tone::Red, format!("not built: {because}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_called_by_its_last_component() {
        assert_eq!(titles(&["/mnt/ssd", "/mnt/usb/", "/dev/shm"]), ["ssd", "usb", "shm"]);
        assert_eq!(titles(&["/", "."]), ["/", "."]);
    }

    #[test]
    fn as_many_components_are_told_as_tell_two_paths_apart() {
        assert_eq!(titles(&["/a/x/t", "/a/y/t", "/z"]), ["x/t", "y/t", "z"]);
        assert_eq!(titles(&["/t", "/a/t"]), ["path 1", "a/t"]);
        assert_eq!(titles(&["/t", "t"]), ["path 1", "path 2"]);
    }

    #[test]
    fn a_long_name_gives_way_to_a_number() {
        assert_eq!(titles(&["/a", "/a-name-that-is-very-long"]), ["a", "path 2"]);
    }

    fn language(id: &str, name: &str, state: State) -> Language {
        Language {
            id: id.into(),
            name: name.into(),
            way: "its own writer, 8 KiB".into(),
            reads: None,
            lines: None,
            state,
            version: (state == State::Ready).then(|| format!("{id} 1.2.3 (Debian 1.2.3-4)")),
            because: (state == State::Missing).then(|| format!("{id}: not found in PATH")),
            install: (state == State::Missing).then(|| format!("apt install {id}")),
        }
    }

    fn list(width: usize) -> String {
        let languages = [
            language("cpp", "C++ read/write", State::Ready),
            language("cpp-get-put", "C++ get/put", State::Ready),
            language("zig", "Zig", State::Missing),
        ];
        let mut text = Vec::new();
        let screen = Screen { width, colour: false, unicode: false };
        write_languages(&languages, screen, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_list_has_a_line_for_each_language_with_its_version_or_how_it_is_installed() {
        assert_eq!(
            list(100),
            "ID           LANGUAGE        HOW                    VERSION\n\
             cpp          C++ read/write  its own writer, 8 KiB  cpp 1.2.3 (Debian 1.2.3-4)\n\
             cpp-get-put  C++ get/put     its own writer, 8 KiB  cpp-get-put 1.2.3 (Debian \
             1.2.3-4)\n\
             zig          Zig             its own writer, 8 KiB  missing: apt install zig; zig: \
             not found in PATH\n"
        );
    }

    #[test]
    fn a_narrow_screen_does_without_how_and_breaks_versions() {
        assert_eq!(
            list(60),
            "ID           LANGUAGE        VERSION\n\
             cpp          C++ read/write  cpp 1.2.3 (Debian 1.2.3-4)\n\
             cpp-get-put  C++ get/put     cpp-get-put 1.2.3 (Debian\n\
             \x20                            1.2.3-4)\n\
             zig          Zig             missing: apt install zig; zig:\n\
             \x20                            not found in PATH\n"
        );
    }
}
