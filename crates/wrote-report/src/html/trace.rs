//! The article about a traced program.

use super::{Article, begun, moment};
use crate::chart::{Mark, Reference, timeline};
use crate::text::program;
use crate::trace::{path, sections, verdict};
use crate::tree::{Block, Figure, Role, Section};
use wrote_result::trace::{Ack, CallKind, Calls, Trace};
use wrote_result::units;

/// Returns the article of a traced program. It begins with what would survive.
pub fn article<'a>(trace: &'a Trace, name: &str) -> Article<'a> {
    let mut article = begun(trace, name, &trace.command);
    let command = trace.command.first().map_or("", String::as_str);
    article.kicker = format!("wrote trace: do the writes of {command} survive a power loss?");
    article.title = verdict(trace);
    let (at, took) = (moment(&trace.started_at), units::seconds(trace.elapsed_s));
    article.lede = format!("Run {at}, for {took}, traced by {}.", program(&trace.wrote));
    article.sections = sections(trace, usize::MAX);
    article.sections.retain(|section| section.role != Role::Answer);
    article.sections.rotate_left(1);
    if !trace.timeline.files.is_empty() {
        let figure = Block::figures(|| vec![times(trace)]);
        article.sections.insert(0, Section::new(Role::Page, "", "", vec![figure]));
    }
    article
}

/// The number of lines in a file's lane: writes, flushes and names.
const LINES: u32 = 3;

/// Draws when each file was written, flushed and named.
fn times(trace: &Trace) -> Figure {
    let of = &trace.timeline;
    let names: Vec<String> = of
        .files
        .iter()
        .map(|file| match file.is_removed {
            true => format!("{} (removed)", path(trace, &file.path)),
            false => path(trace, &file.path).into(),
        })
        .collect();
    let marks = of.files.iter().enumerate().flat_map(|(row, file)| {
        let name = &names[row];
        file.calls.iter().map(move |calls| mark(row, name, calls))
    });
    let marks: Vec<Mark> = marks.collect();
    let across = |value: f64, title: String| Reference { value: value * 1e9, title, word: "" };
    let mut answers: Vec<Reference> =
        of.answers.iter().map(|calls| across(calls.to_s, words(calls))).collect();
    let ends = trace.acknowledged_by == Ack::Exit;
    if ends {
        let title = format!("end, at {}", units::seconds(trace.elapsed_s));
        answers.push(across(trace.elapsed_s, title));
    }
    let legend = [
        ("process-crash", "written, resized (upper line)"),
        ("power-loss", "flushed (middle line), or its folder (lower line)"),
        ("read", "made, renamed, linked, unlinked (lower line)"),
        ("reference", if ends { "end of the program" } else { "answer" }),
    ];
    let legend = legend.map(|(class, text)| (class.into(), text.into())).into();
    let note = match of.more_files {
        0 => String::new(),
        more => format!("{} not shown.", units::counted(more, "more file")),
    };
    let question = "When was each file written, flushed and named?".to_owned();
    let picture = timeline(&question, &names, LINES, &marks, &answers);
    Figure { question, picture, legend, note }
}

fn mark(row: usize, name: &str, calls: &Calls) -> Mark {
    let (line, class) = match calls.kind {
        CallKind::Write | CallKind::Resize => (0, "process-crash"),
        CallKind::Flush => (1, "power-loss"),
        CallKind::FailedFlush => (1, "failed"),
        CallKind::FlushFolder => (2, "power-loss"),
        _ => (2, "read"),
    };
    let title = format!("{name}: {}", words(calls));
    Mark { row, line, class, from_ns: calls.from_s * 1e9, to_ns: calls.to_s * 1e9, title }
}

/// Returns a description of the calls: `3 writes (12.3 kB), from 1.20 ms to 3.40 ms`.
fn words(calls: &Calls) -> String {
    let [one, many] = match calls.kind {
        CallKind::Make => ["creation", "creations"],
        CallKind::Resize => ["change of size", "changes of size"],
        CallKind::Write => ["write", "writes"],
        CallKind::Flush => ["flush", "flushes"],
        CallKind::FailedFlush => ["failed flush", "failed flushes"],
        CallKind::Rename => ["rename", "renames"],
        CallKind::Link => ["link", "links"],
        CallKind::Unlink => ["unlink", "unlinks"],
        CallKind::FlushFolder => ["flush of its folder", "flushes of its folder"],
        CallKind::Answer => ["answer", "answers"],
    };
    let what = if calls.count == 1 { one } else { many };
    let bytes = match calls.kind {
        CallKind::Write => format!(" ({})", units::bytes(calls.bytes)),
        _ => String::new(),
    };
    let [from, to] = [calls.from_s, calls.to_s].map(units::seconds);
    format!("{} {what}{bytes}, from {from} to {to}", calls.count)
}
