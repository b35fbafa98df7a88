//! Tables with bars, findings and advice, for a person at a screen.

mod grid;

use crate::Screen;
use crate::figures::{fell_back, is_reached};
use crate::group::{Group, OPEN_LOOP_LEGEND};
use crate::page::{Page, made};
use crate::paint::{Mark, Tone};
use crate::ranks;
use crate::summary::Summary;
use crate::sustained;
use crate::target::facts_of;
use crate::text::plain;
use grid::Grid;
use std::io::{self, Write};
use wrote_result::document::{Advice, Document, Finding, Row, Severity, Survives, View};

const CRASH_LEAVES_LEGEND: &str = "CRASH LEAVES is what a crash in the middle of a save, or before \
    it is flushed, may leave of the file. old-or-new: all of the one or all of the other. torn: \
    some of both. empty: nothing, or a part of the new. old-and-part: all of the old, and a part \
    of the new behind it. Where the words of a way end in folder, the folder is flushed too, for \
    the file's name.";

const FELL_BACK_LEGEND: &str = "* not as asked: see the findings";

pub fn write(document: &Document, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let page = Page { screen };
    page.facts(&facts_of(document), out)?;
    for scenario in &document.scenarios {
        let question = page.prose(&scenario.question, 0);
        writeln!(out, "\n{}", page.paint(Tone::Strong, &question))?;
        for group in Group::all_of(scenario) {
            write_group(&group, page, out)?;
        }
    }
    write_findings(&document.findings, page, out)?;
    write_advice(&document.advice, page, out)?;
    write_foot(document, page, out)?;
    // Last, where a terminal stands then.
    Summary::of(document).map_or(Ok(()), |summary| summary.write(page, out))
}

fn write_group(group: &Group, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let summary = page.wide(&format!("{}: {}", group.workload, group.summary()), 2);
    let summary = summary.strip_prefix(group.workload).unwrap_or(&summary);
    page.heading(group.workload, summary, out)?;
    match Grid::of(group).filter(|_| group.view() != View::Curve) {
        Some(grid) => {
            grid.table().write(page, out)?;
            grid.write_foot(page, out)?;
        }
        None => {
            group.table().write(page, out)?;
            write_legend(group, page, out)?;
        }
    }
    if group.view() == View::Saves {
        for line in group.sync_costs() {
            writeln!(out, "{}", page.prose(&line, 0))?;
        }
    }
    for line in group.flushes().into_iter().chain(ranks::spread(group)) {
        writeln!(out, "{}", page.prose(&line, 0))?;
    }
    let mut long = group.rows.iter().filter_map(|row| row.sustained.as_ref());
    long.try_for_each(|sustained| sustained::write(sustained, page, out))
}

/// Explains the marks of a group's table.
fn write_legend(group: &Group, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let rows = || group.rows.iter().copied();
    if group.view() == View::Curve {
        let knee = match group.knee {
            Some(_) => format!("{} {}", Mark::Best.on(page.screen), group.knee_line()),
            None => group.knee_line(),
        };
        writeln!(out, "{}", page.paint(Tone::Strong, &page.wide(&knee, 2)))?;
        if rows().any(|row| !is_reached(row)) {
            let missed = Mark::Missed.on(page.screen);
            let legend = format!(
                "{missed} its rate was not reached: the queue, and with it latency, grows as long \
                 as the run continues"
            );
            writeln!(out, "{}", page.wide(&legend, 2))?;
        }
    }
    if let Some(best) = group.best() {
        let mark = Mark::Best.on(page.screen);
        writeln!(out, "{mark} the fastest that survives a power loss")?;
        let is_level =
            |row: &Row| !std::ptr::eq(row, best) && row.is_durable() && row.is_tied_with(best);
        if rows().any(is_level) {
            writeln!(out, "{}", level_legend(page))?;
        }
    }
    if rows().any(fell_back) {
        writeln!(out, "{FELL_BACK_LEGEND}")?;
    }
    if group.mixes_loops() {
        writeln!(out, "{}", page.wide(OPEN_LOOP_LEGEND, 2))?;
    }
    Ok(())
}

/// Explains the mark of rows that are as fast as the best.
fn level_legend(page: Page) -> String {
    let mark = Mark::Level.on(page.screen);
    format!("{mark} no measurable difference from it: the 95 % intervals touch")
}

fn write_findings(findings: &[Finding], page: Page, out: &mut dyn Write) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    page.heading("Findings", "", out)?;
    for Finding { id, severity, text, .. } in findings {
        let mark = match severity {
            Severity::Critical => page.paint(Tone::Red, "X"),
            Severity::Warning => page.paint(Tone::Yellow, "!"),
            Severity::Info => page.paint(Tone::Cyan, "i"),
        };
        writeln!(out, "  {mark} {}", page.prose(&format!("{text} [{id}]"), 4))?;
    }
    Ok(())
}

fn write_advice(advice: &[Advice], page: Page, out: &mut dyn Write) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    page.heading("Advice", "", out)?;
    for (index, advice) in advice.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let purpose = format!("For {}", plain(&advice.purpose));
        writeln!(out, "  {}", page.paint(Tone::Strong, &purpose))?;
        writeln!(out, "  do       {}", page.prose(&advice.action, 11))?;
        writeln!(out, "  because  {}", page.prose(&advice.because, 11))?;
        let with_wrote = advice.with_wrote.as_ref().map(|lines| ("wrote", lines));
        let code = (if with_wrote.is_some() { "or std" } else { "code" }, &advice.code);
        for (label, lines) in with_wrote.into_iter().chain([code]) {
            write_code(label, lines, out)?;
        }
    }
    Ok(())
}

/// Writes lines of code. They are not wrapped: a reader copies them.
fn write_code(label: &str, lines: &str, out: &mut dyn Write) -> io::Result<()> {
    for (number, line) in lines.lines().enumerate() {
        let label = if number == 0 { label } else { "" };
        writeln!(out, "{}", format!("  {label:<7}  {}", plain(line)).trim_end())?;
    }
    Ok(())
}

/// Writes the meaning of the words in the tables, and the time that the measurement took.
fn write_foot(document: &Document, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let rows = || document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let in_process = rows().any(|row| row.survives == Some(Survives::Nothing));
    let nothing = if in_process { "nothing: it is in the program's memory. " } else { "" };
    let survives = format!(
        "SURVIVES is the worst event after which an acknowledged write is still there. {nothing}\
         process-crash: it is in the kernel's memory. os-crash: it is in the device. \
         power-loss: it is on stable storage. Bars compare the rows of one level."
    );
    let survives = rows().any(|row| row.survives.is_some()).then_some(survives.as_str());
    let has_saves = rows().any(|row| View::of(row) == View::Saves);
    let leaves = has_saves.then_some(CRASH_LEAVES_LEGEND);
    let made = made(&document.wrote, &document.started_at, document.elapsed_s);
    page.foot(survives.into_iter().chain(leaves).chain([made.as_str()]), out)
}
