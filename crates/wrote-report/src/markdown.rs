//! Tables and lists, to paste in an issue.

use crate::figures::{
    OPEN_LOOP_LEGEND, block_sizes, cpu_per_operation, cpu_s_per_gb, crash_leaves, held_to,
    iterations, knee_told, latency, load_percent, mean_latency, operations_per_s, peak_memory,
    plus_minus, run_time, survives, sync_cost_lines, within,
};
use crate::group::Group;
use crate::target;
use std::io::{self, Write};
use wrote_result::document::{Advice, Document, Finding, Knee, Row, Severity, Sustained};
use wrote_result::units;

/// Writes Markdown with the tables of GitHub Flavored Markdown.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## {}", inline(&title(document)))?;
    writeln!(out)?;
    for (name, facts) in target::facts(document) {
        writeln!(out, "- **{name}**: {}", inline(&facts.join(", ")))?;
    }
    for scenario in &document.scenarios {
        writeln!(out, "\n{}", inline(&scenario.question))?;
        for group in Group::all_of(scenario) {
            writeln!(out)?;
            writeln!(out, "### {}: {}", inline(group.workload), group.summary())?;
            writeln!(out)?;
            write_group(&group, scenario.knee.as_ref(), out)?;
        }
    }
    write_findings(&document.findings, out)?;
    write_advice(&document.advice, out)
}

/// `wrote bench /mnt/data`, `wrote run jobs.fio`.
fn title(document: &Document) -> String {
    if document.command.get(1).is_some_and(|verb| verb == "run") {
        let files = document.scenarios.iter().map(|scenario| scenario.name.as_str());
        return format!("wrote run {}", files.collect::<Vec<_>>().join(" "));
    }
    format!("wrote bench {}", document.target.path)
}

/// The columns of a group: a name, and what each row has under it.
type Column = (String, fn(&Row) -> String);

/// These hold words, the rest figures.
const WORDS: [&str; 5] = ["job", "way", "rw", "survives", "a crash leaves"];

fn write_group(group: &Group, knee: Option<&Knee>, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = columns(group);
    columns.retain(|(_, cell)| group.rows.iter().any(|row| !cell(row).is_empty()));
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    let rules = names.iter().map(|name| if WORDS.contains(name) { "---" } else { "---:" });
    writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
    for row in &group.rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(row)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    if let Some(best) = group.fastest_durable().filter(|_| group.is_of_whole_files()) {
        writeln!(out, "\nThe fastest that survives a power loss: {}", inline(&best.way))?;
    }
    if group.is_of_load() {
        writeln!(out, "\n{}", inline(&knee_told(group, knee)))?;
    }
    if group.mixes_loops() {
        writeln!(out, "\n{}", inline(OPEN_LOOP_LEGEND))?;
    }
    let costs = sync_cost_lines(group);
    if !costs.is_empty() {
        writeln!(out)?;
    }
    costs.iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))?;
    let mut long = group.rows.iter().filter_map(|row| row.sustained.as_ref());
    long.try_for_each(|sustained| write_sustained(sustained, out))
}

/// What a long run was like, as a list.
fn write_sustained(sustained: &Sustained, out: &mut dyn Write) -> io::Result<()> {
    use crate::table::sustained::{change, levels, verdict};
    let levels = levels(sustained).into_iter().map(|(name, interval, words)| {
        format!("{name}: {} {}, {words}", units::rate(interval.median), within(&interval))
    });
    let changes = sustained.changes.iter().map(|changed| format!("changed {}", change(changed)));
    let verdicts = sustained.steady_state.iter().map(verdict);
    writeln!(out)?;
    levels.chain(changes).chain(verdicts).try_for_each(|line| writeln!(out, "- {line}"))
}

fn columns(group: &Group) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let mut add = |name: &str, cell: fn(&Row) -> String| columns.push((name.into(), cell));
    if group.is_of_load() {
        add("load", load_percent);
        add("rate", held_to);
        add("achieved", operations_per_s);
        add("P50", |row| latency(row, |of| of.p50));
        add("P99", |row| latency(row, |of| of.p99));
        add("P99.9", |row| latency(row, |of| of.p99_9));
        return columns;
    }
    if group.has_names() {
        add("job", |row| inline(&row.name));
    }
    if group.mixes_loops() {
        add("@ rate", held_to);
    }
    add("way", |row| inline(&row.way));
    if group.is_of_saves() {
        add("min", |row| latency(row, |of| of.min));
        add("P50", |row| latency(row, |of| of.p50));
        add("P90", |row| latency(row, |of| of.p90));
        add("P95", |row| latency(row, |of| of.p95));
        add("P99", |row| latency(row, |of| of.p99));
        add("P99.9", |row| latency(row, |of| of.p99_9));
        add("max", |row| latency(row, |of| of.max));
        add("total", |row| latency(row, |of| of.total));
        add("iterations", iterations);
        add("survives", |row| inline(&survives(row)));
        add("a crash leaves", |row| inline(&crash_leaves(row)));
        return columns;
    }
    if group.is_of_messages() {
        add("writes/s", operations_per_s);
        add("±95 %", plus_minus);
        add("mean", mean_latency);
        add("P50", |row| latency(row, |of| of.p50));
        add("P90", |row| latency(row, |of| of.p90));
        add("P99", |row| latency(row, |of| of.p99));
        add("P99.9", |row| latency(row, |of| of.p99_9));
        add("CPU/op", cpu_per_operation);
        add("bytes", |row| units::bytes(row.bytes_per_run));
        add("time", run_time);
        add("survives", |row| inline(&survives(row)));
        return columns;
    }
    if group.common(|row| row.settings.effective.rw.clone()).is_none() {
        add("rw", |row| inline(&row.settings.effective.rw));
    }
    if group.common(block_sizes).is_none() && !group.is_of_whole_files() {
        add("bs", block_sizes);
    }
    add("throughput", |row| units::rate(row.throughput_bytes_per_s.median));
    add("±95 %", plus_minus);
    if group.is_counted() {
        let counted = group.counted();
        let lower = counted.to_ascii_lowercase();
        add(if counted == "IOPS" { counted } else { &lower }, operations_per_s);
    }
    add("P50", |row| latency(row, |of| of.p50));
    add("P99", |row| latency(row, |of| of.p99));
    add("P99.9", |row| latency(row, |of| of.p99_9));
    add("max", |row| latency(row, |of| of.max));
    if group.costs_by_operation() {
        add("CPU/op", cpu_per_operation);
    } else {
        add("CPU s/GB", cpu_s_per_gb);
    }
    if group.is_of_whole_files() {
        add("peak memory", peak_memory);
    }
    add("survives", |row| inline(&survives(row)));
    columns
}

fn write_findings(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Findings\n")?;
    for finding in findings {
        let weight = match finding.severity {
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
        if !advice.code.is_empty() {
            writeln!(out, "\n  ```rust")?;
            for line in advice.code.lines() {
                writeln!(out, "{}", format!("  {line}").trim_end())?;
            }
            writeln!(out, "  ```")?;
        }
    }
    Ok(())
}

/// Text with what Markdown or HTML would take for markup made harmless, on one line.
pub fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Inside a word an underscore is one: O_DSYNC.
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
