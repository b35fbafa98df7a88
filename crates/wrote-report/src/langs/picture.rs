//! The charts of a workload by language.

use super::{Cell, Chart, Line, Who};
use crate::chart::{Dot, Frame, READING, Reference, dots, rate, saved};
use crate::figures::{has_spread, p50_p99, ranged};
use crate::tree::Figure;
use itertools::Itertools;
use wrote_result::document::Interval;
use wrote_result::units;

fn class(line: &Line) -> String {
    let class = match line.who {
        Who::Language => "shape-3",
        Who::Wrote => "shape-1",
        Who::Drive => "shape-2",
    };
    class.into()
}

fn key(lines: &[(&Line, Cell)]) -> Vec<(String, String)> {
    let words = |line: &Line| match line.who {
        Who::Language => "a language's own I/O",
        Who::Wrote => "this library",
        Who::Drive => "the drive itself, past the page cache",
    };
    lines.iter().map(|(line, _)| (class(line), words(line).to_owned())).unique().collect()
}

/// Returns the chart of one path; `None` where no language has a figure there.
pub fn picture(chart: &Chart, place: usize, title: &str) -> Option<Figure> {
    let here = |line| Some((line, Line::at(line, place)?));
    let lines: Vec<(&Line, Cell)> = chart.lines.iter().filter_map(here).collect();
    if lines.is_empty() {
        return None;
    }
    let within = if title.is_empty() { String::new() } else { format!(" in {title}") };
    let names: Vec<String> = lines.iter().map(|(line, _)| line.name.clone()).collect();
    if chart.is_of_saves {
        let timed = |(row, (line, cell)): (usize, &(&Line, Cell))| {
            let of = cell.row?.latency_ns?;
            let title = format!("{}: {}", line.name, p50_p99(&of));
            Some(saved(row, of, class(line), title))
        };
        let drawn: Vec<Dot> = lines.iter().enumerate().filter_map(timed).collect();
        let label = format!("Time of a save, {}{within}", chart.name);
        return Some(Figure {
            question: format!("How long does a save take in each language{within}?"),
            picture: dots(&Frame::of_saves(&label, &names), &drawn),
            legend: key(&lines),
            note: READING.into(),
        });
    }
    let dot = |(row, (line, cell)): (usize, &(&Line, Cell))| {
        let of = cell.throughput;
        let ([median, low, high], unit) = ranged(of, &units::RATES);
        let figure = units::rate(of.median);
        let title = format!("{}: {median} ({low} to {high}) {unit}, {}", line.name, line.how);
        Dot {
            row,
            class: class(line),
            value: of.median,
            interval: has_spread(of).then_some((of.ci95_low, of.ci95_high)),
            figure,
            title,
            ..Dot::default()
        }
    };
    let drawn: Vec<Dot> = lines.iter().enumerate().map(dot).collect();
    let drive: Option<&Interval> = lines.iter().find_map(|(_, cell)| cell.drive);
    let reference = drive.map(|drive| Reference {
        value: drive.median,
        title: format!("the drive's own rate: {}", units::rate(drive.median)),
        word: "",
    });
    let note = reference.as_ref().map(|line| format!("The dashed line: {}.", line.title));
    let axis = "throughput, more is better";
    let label = format!("Throughput of {}{within}", chart.name);
    let reference = reference.as_ref();
    let frame = Frame { label: &label, names: &names, word: rate, axis, reference };
    Some(Figure {
        question: format!("How much of the drive's rate does each language reach{within}?"),
        picture: dots(&frame, &drawn),
        legend: key(&lines),
        note: note.unwrap_or_default(),
    })
}
