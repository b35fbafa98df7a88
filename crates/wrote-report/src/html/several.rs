//! Several results: the same rows side by side, and over time if the machine and the path are the
//! same.

use super::articles::last;
use super::{Article, Content, Named, moment};
use crate::chart::{Axis, Dot, Frame, Line, Lines, Picture, Spot, dots, lines};
use crate::comparison::answer;
use crate::comparison::class;
use crate::figures::{self, operations_range, range};
use crate::group::COUNTED_BYTES_MAX;
use crate::result::scale;
use crate::table::{Column, Keep, Table};
use crate::text::gathered;
use crate::tree::{Block, Figure, Section, Style, rest};
use itertools::Itertools;
use std::collections::HashMap;
use wrote_result::compare::{Verdict, compare};
use wrote_result::document::{Document, Row};

/// The maximum number of rows with a line over time. The table contains all rows.
const LINES_MAX: usize = 40;
/// The maximum number of rows in a chart.
const ROWS_MAX: usize = 40;

/// One of several results.
struct One<'a> {
    name: String,
    document: &'a Document,
}

/// A row name with its workload, and the row of that name in each result that has one.
struct Across<'a> {
    name: &'a str,
    workload: &'a str,
    rows: Vec<Option<&'a Row>>,
}

/// Returns the article about all results; `None` if there are fewer than two.
pub fn article(documents: &[Named]) -> Option<Article<'_>> {
    let results = documents.iter().filter_map(|named| match &named.content {
        Content::Result(document) => Some((named, document.as_ref())),
        _ => None,
    });
    let mut results: Vec<(&Named, &Document)> = results.collect();
    if results.len() < 2 {
        return None;
    }
    let is_over_time = results.iter().map(|(_, document)| place(document)).all_equal();
    if is_over_time {
        results.sort_by(|(_, one), (_, other)| one.started_at.cmp(&other.started_at));
    }
    let results: Vec<One> = named(&results);
    let across = across(&results);
    let over_time = is_over_time.then(|| over(&results, &across)).flatten();
    let sections = over_time.into_iter().chain(side_by_side(&results, &across));
    let count = results.len();
    let question = match is_over_time {
        true => format!("{count} results of {} over time", place(results[0].document).1),
        false => format!("{count} results side by side"),
    };
    let answer = if is_over_time || count == 2 { change(&results) } else { None };
    let mut article = Article {
        kicker: format!("wrote report: {question}"),
        title: answer.unwrap_or(question),
        lede: "The rows that two or more results have. Each whole result follows below.".into(),
        sections: sections.chain([about(&results)]).collect(),
        ..Article::default()
    };
    if !is_over_time {
        article.chart_first();
    }
    Some(article)
}

/// Describes how many rows changed from the first result to the last; `None` if the two results
/// can't be compared.
fn change(results: &[One]) -> Option<String> {
    let (first, last) = (results.first()?, results.last()?);
    let changed = answer(&compare(first.document, last.document).ok()?);
    Some(format!("{changed} ({} against {})", last.name, first.name))
}

/// Returns the machine and the path of a result.
fn place(document: &Document) -> (&str, &str) {
    (&document.host.hostname, &document.target.path)
}

/// Gives each result a unique name: the name of its file, with a number if several files have this
/// name.
fn named<'a>(results: &[(&Named, &'a Document)]) -> Vec<One<'a>> {
    let names: Vec<String> = results.iter().map(|(named, _)| last(&named.name).into()).collect();
    let name =
        |(number, name): (usize, &String)| match names.iter().filter(|of| *of == name).count() {
            1 => name.clone(),
            _ => format!("{name} ({})", number + 1),
        };
    let names = names.iter().enumerate().map(name).collect::<Vec<_>>();
    let one = |(name, (_, document)): (String, &(&Named, &'a Document))| One { name, document };
    names.into_iter().zip(results).map(one).collect()
}

fn across<'a>(results: &[One<'a>]) -> Vec<Across<'a>> {
    let mut all: Vec<Across> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (number, result) in results.iter().enumerate() {
        for row in result.document.rows() {
            let index = *places.entry(&row.name).or_insert_with(|| {
                let rows = vec![None; results.len()];
                all.push(Across { name: &row.name, workload: &row.workload, rows });
                all.len() - 1
            });
            all[index].rows[number] = Some(row);
        }
    }
    all.retain(|across| across.rows.iter().flatten().count() > 1);
    all
}

fn about<'a>(results: &[One]) -> Section<'a> {
    let heads = ["result", "machine", "path", "device", "started", "program"];
    let line = |result: &One| {
        let document = result.document;
        let device = document.target.device.as_ref();
        let device = device.map(|of| {
            of.model.as_ref().map_or(of.name.clone(), |model| format!("{} ({model})", of.name))
        });
        [
            result.name.clone(),
            document.host.hostname.clone(),
            document.target.path.clone(),
            device.unwrap_or_default(),
            moment(&document.started_at),
            crate::text::program(&document.wrote),
        ]
    };
    let lines: Vec<[String; 6]> = results.iter().map(line).collect();
    let column = |(number, head): (usize, &str)| {
        Column::words(head, Keep::Always, &lines, |line| &*line[number]).kept()
    };
    let table = Table::of("The results", heads.into_iter().enumerate().map(column).collect());
    Section { title: "The results".into(), blocks: vec![Block::Table(table)], ..Section::default() }
}

/// Returns whether the number of operations is more informative than their bytes.
fn is_counted(row: &Row) -> bool {
    (1..=COUNTED_BYTES_MAX).contains(&row.settings.effective.bs_bytes) && row.iops() > 0.0
}

/// Returns the speed of a row as a number, its interval, and both as text.
fn figure(row: &Row, is_counted: bool) -> (f64, Option<(f64, f64)>, String) {
    let (value, interval, words) = figures::figure(row, is_counted);
    let range = if is_counted { operations_range(row) } else { range(row) };
    (value, interval, format!("{words} {range}").trim_end().into())
}

fn side_by_side<'a>(results: &[One], across: &[Across]) -> Option<Section<'a>> {
    let mut blocks = Vec::new();
    for (workload, rows) in gathered(across.iter().map(|across| (across.workload, across))) {
        let is_counted =
            rows.iter().flat_map(|of| of.rows.iter().flatten()).all(|row| is_counted(row));
        blocks.push(Block::Heading(workload.into(), String::new()));
        if results.len() <= crate::result::LINES_MAX {
            let figure = picture(results, workload, &rows, is_counted);
            blocks.push(Block::figures(move || vec![figure.clone()]));
        }
        blocks.push(Block::Table(table(results, workload, &rows, is_counted)));
    }
    (!blocks.is_empty()).then(|| Section {
        title: "Side by side".into(),
        lede: "Each dot is the median of the runs, with its 95 % interval.".into(),
        blocks,
        ..Section::default()
    })
}

/// Returns the name of a row within its workload.
fn short<'a>(across: &Across<'a>) -> &'a str {
    let rest = across.name.strip_prefix(across.workload);
    rest.and_then(|rest| rest.strip_prefix('/')).unwrap_or(across.name)
}

/// Returns the class for a result's dots. It is a shape, because a colour would be taken for a
/// level of safety.
fn shape(number: usize) -> String {
    format!("shape-{}", number + 1)
}

fn picture(results: &[One], workload: &str, rows: &[&Across], is_counted: bool) -> Figure {
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let names: Vec<String> = shown.iter().map(|across| short(across).to_owned()).collect();
    let mut marks = Vec::new();
    for (lane, across) in shown.iter().enumerate() {
        for (number, row) in across.rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let (value, interval, words) = figure(row, is_counted);
            let name = &results[number].name;
            let title = format!("{name}: {}: {words}", short(across));
            let class = shape(number);
            let dot =
                Dot { row: lane, line: number, class, value, interval, title, ..Dot::default() };
            marks.push(dot);
        }
    }
    let (word, axis) = scale(is_counted);
    let label = format!("{workload} in each result");
    let frame = Frame { label: &label, names: &names, word, axis, reference: None };
    Figure {
        question: "Which result is faster in which row?".into(),
        picture: dots(&frame, &marks),
        legend: results
            .iter()
            .enumerate()
            .map(|(number, result)| (shape(number), result.name.clone()))
            .collect(),
        note: rest(shown.len(), rows.len()),
    }
}

fn table(results: &[One], workload: &str, rows: &[&Across], is_counted: bool) -> Table {
    let rows = || rows.iter().copied();
    let row = Column::words("row", Keep::Always, rows(), short);
    let column = |(number, result): (usize, &One)| {
        let cell = |across: &Across| {
            across.rows[number].map_or(String::new(), |row| figure(row, is_counted).2)
        };
        Column::figures(&*result.name, Keep::Always, rows(), cell).kept()
    };
    let columns = [row].into_iter().chain(results.iter().enumerate().map(column)).collect();
    Table::of(&format!("Figures of {workload} in each result"), columns)
}

/// Returns the section with the lines over time, and the changes according to `wrote compare`;
/// `None` if there is nothing to draw.
fn over<'a>(results: &[One], across: &[Across]) -> Option<Section<'a>> {
    let verdicts: Vec<HashMap<String, Verdict>> = results
        .windows(2)
        .map(|pair| {
            let rows = compare(pair[0].document, pair[1].document).map(|of| of.rows);
            rows.unwrap_or_default().into_iter().map(|row| (row.name, row.verdict)).collect()
        })
        .collect();
    let verdict = |number: usize, name: &str| {
        let before = number.checked_sub(1).and_then(|before| verdicts[before].get(name));
        before.copied().unwrap_or(Verdict::NoDetectableDifference)
    };
    let mut figures = Vec::new();
    for across in across.iter().take(LINES_MAX) {
        let is_counted = across.rows.iter().flatten().all(|row| is_counted(row));
        let moments = across.rows.iter().enumerate().filter_map(|(number, row)| {
            let row = (*row)?;
            let (value, interval, words) = figure(row, is_counted);
            let verdict = verdict(number, across.name);
            let started_at = &results[number].document.started_at;
            let (changed, change) = match verdict {
                Verdict::Faster => (", faster than the result before", Some(("faster", "▲"))),
                Verdict::Slower => (", slower than the result before", Some(("slower", "▼"))),
                _ => ("", None),
            };
            let at = (seconds(started_at).unwrap_or(number as f64), value);
            let title = format!("{}: {words}{changed}", moment(started_at));
            let word = started_at.get(5..16).unwrap_or(started_at).replace('T', " ");
            let class = class(verdict).into();
            Some((word, Spot { at, class, title, whisker: interval, change }))
        });
        let (words, spots): (Vec<String>, Vec<Spot>) = moments.unzip();
        let changes = spots.iter().filter(|spot| spot.change.is_some()).count();
        let (word, axis) = scale(is_counted);
        figures.push(Figure {
            question: across.name.into(),
            picture: over_time(&format!("{} over time", across.name), words, spots, word, axis),
            legend: Vec::new(),
            note: match changes {
                0 => String::new(),
                1 => "1 difference found from one result to the next.".into(),
                more => format!("{more} differences found from one result to the next."),
            },
        });
    }
    if figures.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::figures(move || figures.clone())];
    if let Some(more) = across.len().checked_sub(LINES_MAX + 1) {
        let more = more + 1;
        let note = format!("The tables below have {more} more rows.");
        blocks.push(Block::notes(Style::Close, [note]));
    }
    Some(Section {
        title: "Over time".into(),
        lede: "A line for each row with its 95 % intervals. ▲ and ▼ mark a difference found from \
               the result before, by the rule of wrote compare."
            .into(),
        blocks,
        ..Section::default()
    })
}

/// Draws a line through the figures of a row, from the oldest to the newest. Changes are marked.
fn over_time(
    label: &str,
    words: Vec<String>,
    dots: Vec<Spot>,
    word: fn(f64) -> String,
    axis: &str,
) -> Picture {
    let [first, last] = [dots.first(), dots.last()].map(|spot| spot.map_or(0.0, |of| of.at.0));
    let span = (last - first).max(1.0);
    let ticks = dots.iter().map(|spot| spot.at.0).zip(words).collect();
    let title = "measured at, UTC".into();
    let x = Axis { min: first - span * 0.08, max: last + span * 0.08, ticks, title };
    let most = dots.iter().map(|spot| spot.at.1).fold(0.0, f64::max);
    let high = |spot: &Spot| spot.whisker.map_or(spot.at.1, |(_, high)| high);
    let top = dots.iter().map(high).fold(most, f64::max).min(2.0 * most) * 1.12;
    let y = Axis::from_zero(top, 3, word, axis);
    let points = dots.iter().map(|spot| spot.at).collect();
    let line = Line { class: String::new(), title: label.into(), points, dots, radius: 5 };
    let drawn = Lines { is_small: true, lines: vec![line], ..Lines::default() };
    lines(label, |_| (x.clone(), y.clone()), &drawn)
}

/// Returns an RFC 3339 time in seconds since 1970; `None` if the text is not such a time.
fn seconds(started_at: &str) -> Option<f64> {
    let at: jiff::Timestamp = started_at.parse().ok()?;
    Some(at.as_second() as f64)
}
