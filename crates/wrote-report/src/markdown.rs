//! Tables and lists in Markdown, to paste in an issue.

use crate::Format;
use crate::figures::within;
use crate::group::{Group, OPEN_LOOP_LEGEND};
use crate::ranks;
use crate::summary::Summary;
use crate::sustained::{change, levels, verdict};
use crate::table::{Table, Texts};
use crate::target;
use itertools::Itertools;
use std::io::{self, Write};
use wrote_result::document::{Advice, Document, Finding, Severity, Sustained, View};
use wrote_result::units;

/// Writes a result in Markdown, with the tables of GitHub Flavored Markdown.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    write_head(&title(document), &target::facts_of(document), out)?;
    if let Some(summary) = Summary::of(document) {
        writeln!(out, "\n{}:\n", inline(&summary.done))?;
        write_table(&summary.table(), out)?;
        writeln!(out)?;
        summary.notes().iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))?;
    }
    for scenario in &document.scenarios {
        writeln!(out, "\n{}", inline(&scenario.question))?;
        for group in Group::all_of(scenario) {
            writeln!(out, "\n### {}: {}\n", inline(group.workload), group.summary())?;
            write_group(&group, out)?;
        }
    }
    write_findings(&document.findings, out)?;
    write_advice(&document.advice, out)
}

/// The command that made the result: `wrote bench /mnt/data`, `wrote run jobs.fio`.
fn title(document: &Document) -> String {
    if document.command.get(1).is_some_and(|verb| verb == "run") {
        let mut files = document.scenarios.iter().map(|scenario| &scenario.name);
        return format!("wrote run {}", files.join(" "));
    }
    format!("wrote bench {}", document.target.path)
}

/// Writes a title, and a list of facts.
pub fn write_head<S: AsRef<str>>(
    title: &str,
    facts: &[(S, Vec<String>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "## {}\n", inline(title))?;
    facts.iter().try_for_each(|(name, facts)| {
        writeln!(out, "- **{}**: {}", inline(name.as_ref()), inline(&facts.join(", ")))
    })
}

pub fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<&Texts> = table.shown(Format::Markdown).collect();
    let mut line = |cells: Vec<String>| writeln!(out, "| {} |", cells.join(" | "));
    line(columns.iter().map(|column| inline(&column.title)).collect())?;
    let rule = |column: &&Texts| if column.is_of_figures() { "---:" } else { "---" }.to_owned();
    line(columns.iter().map(rule).collect())?;
    (0..table.height()).try_for_each(|row| {
        let cell = |column: &&Texts| match &column.cells[row] {
            figure if column.is_of_figures() => figure.text.clone(),
            words if words.is_bold => format!("**{}**", inline(&words.text)),
            words => inline(&words.text),
        };
        line(columns.iter().map(cell).collect())
    })
}

/// Writes a list under a title; an empty list has no title.
pub fn write_list(title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    if !lines.is_empty() {
        writeln!(out, "\n### {}\n", inline(title))?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))
}

fn write_group(group: &Group, out: &mut dyn Write) -> io::Result<()> {
    write_table(&group.table(), out)?;
    if let Some(best) = group.best() {
        writeln!(out, "\nThe fastest that survives a power loss: {}", inline(&best.way))?;
    }
    if group.view() == View::Curve {
        writeln!(out, "\n{}", inline(&group.knee_line()))?;
    }
    if group.mixes_loops() {
        writeln!(out, "\n{}", inline(OPEN_LOOP_LEGEND))?;
    }
    let costs = if group.view() == View::Saves { group.sync_costs() } else { Vec::new() };
    if !costs.is_empty() {
        writeln!(out)?;
    }
    costs.iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))?;
    for line in group.flushes().into_iter().chain(ranks::spread(group)) {
        writeln!(out, "\n{}", inline(&line))?;
    }
    let mut long = group.rows.iter().filter_map(|row| row.sustained.as_ref());
    long.try_for_each(|sustained| write_sustained(sustained, out))
}

fn write_sustained(sustained: &Sustained, out: &mut dyn Write) -> io::Result<()> {
    let levels = levels(sustained).into_iter().map(|(name, interval, words)| {
        format!("{name}: {} {}, {words}", units::rate(interval.median), within(&interval))
    });
    let changes = sustained.changes.iter().map(|changed| format!("changed {}", change(changed)));
    let verdicts = sustained.steady_state.iter().map(verdict);
    writeln!(out)?;
    levels.chain(changes).chain(verdicts).try_for_each(|line| writeln!(out, "- {line}"))
}

fn write_findings(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Findings\n")?;
    for finding in findings {
        let weight = match finding.severity {
            Severity::Critical => "**critical**",
            Severity::Warning => "**warning**",
            Severity::Info => "info",
        };
        writeln!(out, "- {weight} ({}): {}", inline(&finding.id), inline(&finding.text))?;
    }
    Ok(())
}

fn write_advice(advice: &[Advice], out: &mut dyn Write) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Advice\n")?;
    for advice in advice {
        let (purpose, action) = (inline(&advice.purpose), inline(&advice.action));
        writeln!(out, "- **{purpose}**: {action} Because: {}", inline(&advice.because))?;
        if let Some(with_wrote) = &advice.with_wrote {
            writeln!(out, "\n  With the library `wrote`:")?;
            write_code(with_wrote, out)?;
            writeln!(out, "\n  With the standard library:")?;
        }
        write_code(&advice.code, out)?;
    }
    Ok(())
}

fn write_code(code: &str, out: &mut dyn Write) -> io::Result<()> {
    if code.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  ```rust")?;
    for line in code.lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    writeln!(out, "  ```")
}

/// Returns text on one line, with the markup of Markdown and HTML escaped.
pub fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Inside a word an underscore is no markup: O_DSYNC.
            '_' if plain.ends_with(char::is_alphanumeric) => plain.push('_'),
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' => {
                plain.extend(['\\', character]);
            }
            control if control.is_control() => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_or_a_way_breaks_the_table() {
        assert_eq!(inline("a|b\nc*d"), "a\\|b c\\*d");
        assert_eq!(inline("/_mnt_/<b>"), "/\\_mnt_/\\<b\\>");
        assert_eq!(inline("O_DSYNC"), "O_DSYNC");
    }
}
