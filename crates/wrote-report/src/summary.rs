//! The answers on one screen: the figures that a reader looks for, and the warnings about them.

use crate::Screen;
use crate::figures::{
    asked_rate, disturbed, operations_per_s, per_second, ranged, text, throughput,
};
use crate::fit;
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{self, Column, Keep, Table};
use crate::text::Page;
use crate::tree::{Block, Note, On, Role, Section, Style};
use itertools::Itertools;
use std::ops::RangeInclusive;
use wrote_result::document::{
    Answer, Blocks, Direction, Document, Finding, Flush, Interval, Latency, Row, Severity, View,
    fastest,
};
use wrote_result::units::{self, nanoseconds};

/// The titles of the columns: on a screen, and in other formats.
const HEADINGS: [(&str, &str); 4] = [
    ("", "Purpose"),
    ("MEDIAN", "Median"),
    ("RANGE OR LATENCY", "Likely range, or latency"),
    ("SIMPLEST METHOD", "Simplest method"),
];
/// The maximum number of warnings. Further warnings are shown only among the findings.
const WARNINGS_MAX: usize = 3;
/// The finding that a row without a flush was as fast as memory. The row's line says so instead.
const MEMORY: &str = "ram-not-disk";

/// The maximum number of figures in the headline.
const HEADLINE_MAX: usize = 2;

/// Returns the answers that have a row, each with its row.
fn found(document: &Document) -> Vec<(&Answer, &Row)> {
    let answers = document.answers.iter().flatten();
    answers.filter_map(|answer| Some((answer, document.row(&answer.row)?))).collect()
}

/// Returns whether a row was as fast as memory.
fn is_memory(document: &Document, row: &Row) -> bool {
    document.findings.iter().any(|of| of.id == MEMORY && of.text.contains(&row.name))
}

/// Returns the answer as one sentence: the first figures of the safest level, and the class of
/// disks that the last figure is consistent with; `None` if the result answers no question.
pub fn headline(document: &Document) -> Option<String> {
    let mut found = found(document);
    let of = |row: &Row| (row.view() == View::Saves, row.survives);
    let first = of(found.first()?.1);
    // Reads are shown next to writes of any level.
    found.retain(|(_, row)| of(row) == first || of(row) == (first.0, None));
    found.truncate(HEADLINE_MAX);
    let figures = found.iter().map(|(answer, row)| {
        let memory = if is_memory(document, row) { ", at memory's speed" } else { "" };
        clause(answer, row) + memory
    });
    let figures = figures.dedup().join(" and ");
    let stands = found.last().and_then(|(answer, _)| answer.yardstick.as_ref());
    let stands = stands.and_then(|of| of.text.split(';').next());
    let of = if found.len() > 1 { "; the latter is" } else { ", which is" };
    let stands = stands.map_or(String::new(), |text| format!("{of} {text}"));
    let verb = if first.0 { "needs" } else { "reaches" };
    let path = &document.target.path;
    let rows: Vec<&Row> = found.iter().map(|(_, row)| *row).collect();
    let is_unsafe = document.findings.iter().any(|of| of.id == "no-journal");
    let is_unsafe = is_unsafe && found.iter().any(|(_, row)| row.is_durable());
    let loses =
        if is_unsafe { " Without a journal, a power loss may lose flushed files." } else { "" };
    let beside = format!("{loses}{}", disturbed(document, &rows));
    Some(match found.iter().all(|(_, row)| row.is_open_loop()) {
        // The rate was requested, so the result does not show whether the disk could do more.
        true => {
            format!("{path} was asked for {} and did {figures}.{beside}", asked_rate(found[0].1))
        }
        false => format!("{path} {verb} {figures}{stands}.{beside}"),
    })
}

/// Returns an answer as a part of a sentence: `6.12 k durable writes of 4 KiB per second`.
fn clause(answer: &Answer, row: &Row) -> String {
    let [question, figure, ..] = line(answer, row, false);
    let settings = &row.settings.effective;
    let is_read = row.direction == Direction::Read;
    let safety = match row.is_durable() {
        _ if is_read => "",
        true => "durable ",
        false => "unflushed ",
    };
    let sized = |what| format!("{safety}{what} of {}", units::block_size(settings.bs_bytes));
    let what = match row.view() {
        View::Saves => {
            let name = question.split(',').next().unwrap_or_default().to_lowercase();
            let name = name.replacen("saves", "save", 1);
            let size = units::block_size(settings.bs_bytes);
            return format!("{figure} for a {name} of {size}");
        }
        View::Messages => format!("{safety}messages"),
        View::Metadata => question.to_lowercase(),
        _ if row.torn.is_some() => {
            let clients = units::counted(settings.numjobs.into(), "client");
            let size = units::block_size(settings.bs_bytes);
            let number = figure.strip_suffix("/s").unwrap_or(&figure).trim_end();
            return format!("{number} never-torn pages of {size} per second by {clients}");
        }
        _ if row.workload.starts_with("langs/") => {
            format!("{} by {}", question.to_lowercase(), row.short_name())
        }
        View::Files if settings.source_cache.is_some() => format!("{safety}copies"),
        View::Files => format!("{safety}writes of a file"),
        _ if answer.bytes_per_s.is_some() => "long writes".into(),
        _ if matches!(settings.sync, Flush::FdatasyncAtEnd | Flush::FsyncAtEnd) => {
            "a stream with one flush at its end".into()
        }
        _ => sized(if is_read { "reads" } else { "writes" }),
    };
    match figure.strip_suffix("/s").filter(|number| !number.ends_with('B')) {
        Some(number) => format!("{} {what} per second", number.trim_end()),
        None => format!("{figure} in {what}"),
    }
}

/// Returns the section with the answer in one sentence, which comes first; `None` without an
/// answer.
pub fn head(document: &Document) -> Option<Section<'_>> {
    let lead =
        headline(document).or_else(|| fit::headline(document)).or_else(|| fastest_of(document));
    let blocks = vec![Block::notes(Style::Lead, lead)];
    (!blocks[0].is_empty()).then(|| Section::new(Role::Headline, "", "", blocks))
}

/// The maximum number of jobs that a sentence names.
const JOBS_MAX: usize = 3;

/// Returns the answer for a result that contains no answers: its jobs, the knee of its curve, or
/// its fastest row, which survives a power loss if any row does. `None` without rows.
pub fn fastest_of(document: &Document) -> Option<String> {
    let groups: Vec<Group> = document.scenarios.iter().flat_map(Group::all_of).collect();
    let group = groups.first()?;
    let told = |row: &&Row| {
        let rate = if group.is_counted() { operations_per_s(row) } else { throughput(row) };
        format!("{}: {rate}", group.name(row))
    };
    if group.is_of_jobs() {
        let jobs = groups.iter().flat_map(|group| &group.rows).take(JOBS_MAX);
        return Some(jobs.map(told).join("; "));
    }
    let answer = match group.view() {
        View::Curve => group.knee_line(),
        _ => {
            let rows = || group.rows.iter().copied().filter(|row| row.short_name() != "drive");
            let durable = fastest(rows().filter(|row| row.is_durable()));
            let of = if durable.is_some() { " that survives a power loss" } else { "" };
            format!("the fastest{of}: {}", told(&durable.or_else(|| fastest(rows()))?))
        }
    };
    Some(format!("{}: {answer}", group.workload))
}

/// Returns the section with the answers; `None` if the result answers no question.
pub fn section(document: &Document) -> Option<Section<'_>> {
    let found = found(document);
    if found.is_empty() {
        return None;
    }
    let line = |(answer, row): &(&Answer, &Row)| line(answer, row, is_memory(document, row));
    let written: u64 = document
        .rows()
        .filter(|row| row.direction == Direction::Write)
        .flat_map(|row| row.runs.iter().map(|run| run.bytes))
        .sum();
    let device = document.target.device.as_ref().map(|of| format!(" on {}", of.name));
    let (path, filesystem) = (&document.target.path, &document.target.filesystem);
    let place = format!("{path}: {filesystem}{}", device.unwrap_or_default());
    let elapsed = units::seconds(document.elapsed_s);
    let done = format!("{} written in {elapsed}", units::bytes(written));
    let answers: Vec<[String; 4]> = found.iter().map(line).collect();
    let warning = |text| Note { mark: Some(Mark::Warning), tone: Tone::Yellow, ..Note::from(text) };
    let faster = |(answer, row): &(&Answer, &Row)| {
        let faster = answer.faster.as_ref()?;
        let times = document.row(&faster.row)?.times(row);
        let (how, price) = (&faster.how, price(document.row(&faster.row)?, row));
        Some(format!("Faster: {}: {times} times as fast with {how}{price}", answer.question))
    };
    let faster = found.iter().filter_map(faster).map(Note::from);
    let standing = found.iter().filter_map(|(answer, _)| {
        let standing = answer.yardstick.as_ref()?;
        Some(Note::from(format!("{}: {}.", answer.question, standing.text)))
    });
    let notes = found.iter().filter_map(|(answer, _)| {
        Some(Note::from(format!("{}: {}.", answer.question, answer.note.as_ref()?)))
    });
    let warnings = warnings(&document.findings).into_iter().map(warning);
    let last = headline(document);
    let last = last.map(|text| Note { tone: Tone::Strong, on: On::Screen, ..text.into() });
    let blocks = vec![
        Block::Banner(place, done),
        Block::Table(table(&answers)),
        Block::notes(Style::Apart, notes.chain(standing).chain(warnings).chain(faster)),
        // The headline is repeated at the end, so that it is right above the prompt.
        Block::notes(Style::Apart, last),
    ];
    Some(Section::new(Role::Answer, "The answer", "", blocks))
}

/// Names what the faster method requires and the simpler one does not.
fn price(faster: &Row, simpler: &Row) -> String {
    let [faster, simpler] = [faster, simpler].map(|row| &row.settings.effective);
    let blocks = (faster.blocks != simpler.blocks).then_some(faster.blocks);
    let needs = [
        (faster.direct && !simpler.direct, "aligned buffers"),
        (faster.iodepth > simpler.iodepth, "many writes in flight"),
        (blocks == Some(Blocks::Written), "a file that was written before"),
        (blocks == Some(Blocks::Allocated), "a file that is allocated beforehand"),
    ];
    let needs = needs.iter().filter(|of| of.0).map(|of| of.1).join(", ");
    if needs.is_empty() { needs } else { format!(" (needs {needs})") }
}

/// Returns the answers so far in the form of the last screen: the headings, and a line for each
/// answer.
pub fn so_far(answers: &[Answer], rows: &[Row], screen: Screen) -> String {
    let row_of = |answer: &Answer| rows.iter().find(|row| row.name == answer.row);
    let lines = answers.iter().filter_map(|answer| Some(line(answer, row_of(answer)?, false)));
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = table::write(&table(&lines.collect::<Vec<_>>()), Page { screen }, &mut text);
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

/// Returns the question, the figure, its range, and the method.
pub fn line(answer: &Answer, row: &Row, is_memory: bool) -> [String; 4] {
    let (figure, range) = match answer.bytes_per_s {
        Some(lasts) => (units::rate(lasts), "the lasting rate".into()),
        None => figures(row),
    };
    let memory = if is_memory { ": memory's speed" } else { "" };
    [answer.question.clone(), figure, range, format!("{}{memory}", answer.how)]
}

fn table(answers: &[[String; 4]]) -> Table {
    let column = |(number, (heading, title)): (usize, (&str, &str))| {
        let keep = if number == 3 { Keep::Below } else { Keep::Always };
        Column::words(heading, keep, answers, |line| &*line[number]).titled(title).kept()
    };
    Table::of("The answers", HEADINGS.into_iter().enumerate().map(column).collect())
}

/// Returns the figure of a row and its range: operations per second and their latency, if
/// operations are counted.
fn figures(row: &Row) -> (String, String) {
    if let (View::Saves, Some(latency)) = (row.view(), row.latency()) {
        let (name, high) = high(latency);
        return (nanoseconds(latency.p50), format!("{name} {}", nanoseconds(high)));
    }
    let interval = &row.throughput_bytes_per_s;
    let is_rough = row.is_rough();
    let is_counted = match row.view() {
        View::Operations => row.settings.effective.sync.is_each() || row.is_random(),
        View::Messages | View::Metadata => true,
        _ => false,
    };
    if is_counted {
        let figure = match is_rough {
            true => about(&per_second(rough(row.iops(), 0.0..=f64::INFINITY))),
            false => per_second(row.iops()),
        };
        return (figure, text(row.latency().map(percentiles)));
    }
    let median = match is_rough {
        true => rough(interval.median, interval.ci95_low..=interval.ci95_high),
        false => interval.median,
    };
    let ([figure, low, high], unit) = ranged(&Interval { median, ..*interval }, &units::RATES);
    let figure = format!("{figure} {unit}");
    let range = match row.runs.len() {
        0 | 1 => "one run".into(),
        _ => format!("{low} to {high} {unit}"),
    };
    (if is_rough { about(&figure) } else { figure }, range)
}

/// Returns the median and the P99 in one unit: `P50 0.39, P99 1.32 ms`.
fn percentiles(of: &Latency) -> String {
    let (name, high) = high(of);
    let (numbers, unit) = units::alike(&[of.p50 as f64, high as f64], &units::TIMES);
    format!("P50 {}, {name} {} {unit}", numbers[0], numbers[1])
}

/// Returns the P99, or the maximum if there are too few operations for a P99.
fn high(of: &Latency) -> (&'static str, u64) {
    of.known_p99().map_or(("max", of.max), |p99| ("P99", p99))
}

/// Rounds a value to one digit, or to as many digits as keep it `within` its interval.
fn rough(value: f64, within: RangeInclusive<f64>) -> f64 {
    let is_near = |of: &f64| within.contains(of) && (of / value - 1.0).abs() < 0.15;
    (1..=2).map(|digits| units::rounded(value, digits)).find(is_near).unwrap_or(value)
}

/// Marks a figure as rough, without the trailing zeros of its decimals: `~2 GB/s`.
fn about(figure: &str) -> String {
    match figure.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("~{number} {unit}")
        }
        _ => format!("~{figure}"),
    }
}

/// The maximum width of a warning. A longer warning is cut at the end of a clause, to fit on one
/// line.
const WARNING_COLUMNS_MAX: usize = 76;

/// Returns the clauses of a warning that fit on a line, followed by the id of the warning.
fn shortened(of: &Finding) -> String {
    let room = WARNING_COLUMNS_MAX.saturating_sub(of.id.len() + " []".len());
    let text = of.text.split(". ").next().unwrap_or_default();
    let text = text.split([';', '(']).next().unwrap_or(text).trim_end().trim_end_matches('.');
    let ends = text.match_indices([',', ':']).map(|(at, _)| at).chain([text.len()]);
    let longest = ends.clone().rfind(|at| text[..*at].chars().count() <= room);
    let end = longest.or(ends.clone().next()).unwrap_or(text.len());
    format!("{} [{}]", &text[..end], of.id)
}

/// Returns the first words of the first warnings.
fn warnings(findings: &[Finding]) -> Vec<String> {
    let warns = |of: &&Finding| of.severity >= Severity::Warning && of.id != MEMORY;
    // The warning that concerns the reliability of all figures comes first.
    let all = findings.iter().filter(warns).sorted_by_key(|of| of.id != "noisy");
    let all: Vec<&Finding> = all.collect();
    let mut lines: Vec<String> = all.iter().take(WARNINGS_MAX).map(|of| shortened(of)).collect();
    if all.len() > WARNINGS_MAX {
        lines.push(format!("and {} more: see Findings above", all.len() - WARNINGS_MAX));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wrote_result::document::Standing;
    use wrote_result::sample;

    #[test]
    fn a_warning_has_its_figure_where_a_line_has_room_for_it() {
        let short = |id: &str, text: &str| shortened(&Finding::warning(id, text));
        let limited = "Limited to 125 MB/s by a control group, not by the device: loop2 was \
                       written at 129 MB/s. Raise the limit (/sys/fs) to measure the device";
        let told = short("throttled", limited);
        assert_eq!(told, "Limited to 125 MB/s by a control group, not by the device [throttled]");
        let noisy = "Unreliable: 9 of 17 rows have 95 % intervals wider than \u{b1}25 % (worst \
                     \u{b1}338 %). Stop other disk work";
        let told = short("noisy", noisy);
        assert_eq!(
            told,
            "Unreliable: 9 of 17 rows have 95 % intervals wider than \u{b1}25 % [noisy]"
        );
        assert_eq!(short("other", "It is slow. Stop."), "It is slow [other]");
        let long = format!("{}: more", "word ".repeat(20));
        assert_eq!(short("other", &long), format!("{} [other]", "word ".repeat(20)));
    }

    #[test]
    fn the_headline_is_one_sentence_about_the_safest_figures() {
        let mut rows = vec![
            sample::row("stream/fdatasync-each", "power-loss", &[1.9e9, 2e9, 2.1e9]),
            sample::row("small/fdatasync-each", "power-loss", &[26e6, 27e6, 28e6]),
            sample::row("stream/cached", "process-crash", &[5e9, 5e9, 5e9]),
        ];
        rows[0].settings.effective.sync = wrote_result::document::Flush::FdatasyncAtEnd;
        let answer = |row: &Row, text: Option<&str>| Answer {
            row: row.name.clone(),
            yardstick: text.map(|text| Standing { text: text.into(), ..Standing::default() }),
            ..Answer::default()
        };
        let like = Some("consistent with enterprise SSDs (7 k to 40 k); 3.9 times others");
        let texts = [None, like, None];
        let answers = rows.iter().zip(texts).map(|(row, text)| answer(row, text)).collect();
        let mut document = Document { answers: Some(answers), ..Document::default() };
        document.target.path = "/data".into();
        assert_eq!(headline(&document), None);
        document.scenarios.push(wrote_result::document::Scenario {
            name: "ladder".into(),
            question: String::new(),
            rows,
            knee: None,
        });
        assert_eq!(
            headline(&document).unwrap(),
            "/data reaches 2.00 GB/s in a stream with one flush at its end and 6.59 k durable \
             writes of 4 KiB per second; the latter is consistent with enterprise SSDs (7 k to 40 k)."
        );
        document.findings.push(Finding::warning("no-journal", "A power loss may lose"));
        assert!(headline(&document).unwrap().ends_with("a power loss may lose flushed files."));
        let busy = Finding::warning("busy-neighbour", "Other programs used the disk");
        document.findings.push(busy.with("disturbed_runs", 1));
        for (disturbed, told) in [(1, "during some of the runs."), (2, "do not rely on")] {
            for run in &mut document.scenarios[0].rows[1].runs[..disturbed] {
                run.foreign_share = Some(0.9);
            }
            assert!(headline(&document).unwrap().contains(told), "{disturbed}");
        }
        for row in &mut document.scenarios[0].rows {
            row.settings.asked.rate_iops = Some(100.0);
        }
        let held = headline(&document).unwrap();
        assert!(held.starts_with("/data was asked for 100 /s and did 2.00 GB/s"), "{held}");
    }

    #[test]
    fn a_figure_of_runs_that_differ_much_is_told_roughly() {
        let row = |runs: &[f64]| sample::row("stream/a", "power-loss", runs);
        let told = |runs: &[f64]| figures(&row(runs));
        let told_as = |figure: &str, range: &str| (figure.to_owned(), range.to_owned());
        assert_eq!(told(&[5.8e9, 5.9e9, 6e9]), told_as("5.90 GB/s", "5.66 to 6.15 GB/s"));
        assert_eq!(told(&[2e9, 5.9e9, 9e9]), told_as("~6 GB/s", "0.69 to 32.5 GB/s"));
        assert_eq!(told(&[5.9e9]), told_as("5.90 GB/s", "one run"));
        assert_eq!(rough(0.0, 0.0..=1.0), 0.0);
        assert_eq!(about(&per_second(rough(6317.0, 0.0..=f64::INFINITY))), "~6 k/s");
        assert_eq!(about(&per_second(rough(280.0, 0.0..=f64::INFINITY))), "~300 /s");
    }

    proptest! {
        #[test]
        fn a_figure_stands_within_the_range_beside_it(
            runs in proptest::collection::vec(1e3_f64..1e11, 1..8),
            scatter in 0.0_f64..1.0,
        ) {
            // The runs range from nearly equal ones to ones that differ by magnitudes.
            let runs: Vec<f64> =
                runs.iter().map(|run| runs[0] * (run / runs[0]).powf(scatter)).collect();
            let row = sample::row("stream/a", "power-loss", &runs);
            let (figure, range) = figures(&row);
            if let Some((low, high)) = range.split_once(" to ") {
                let number = |text: &str| text.parse::<f64>().unwrap();
                let (figure, unit) = figure.trim_start_matches('~').split_once(' ').unwrap();
                let (high, of_range) = high.split_once(' ').unwrap();
                prop_assert_eq!(unit, of_range);
                let (low, high) = (number(low), number(high));
                prop_assert!((low..=high).contains(&number(figure)), "{figure}: {range}");
            }
        }
    }
}
