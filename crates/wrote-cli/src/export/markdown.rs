//! Tables and lists, to paste in an issue.

use super::{Export, Group, cpu_s_per_gb, plus_minus, writes_per_s};
use std::io::{self, Write};
use wrote_bench::result::{Advice, Document, Finding, Row, Severity};
use wrote_bench::units;

/// Markdown with the tables of GitHub Flavored Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Markdown;

impl Export for Markdown {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "## wrote bench {}", inline(&document.target.path))?;
        writeln!(out)?;
        for (name, facts) in super::table::facts(document) {
            writeln!(out, "- **{name}**: {}", inline(&facts.join(", ")))?;
        }
        for scenario in &document.scenarios {
            writeln!(out, "\n{}", inline(&scenario.question))?;
            for group in Group::all_of(scenario) {
                writeln!(out)?;
                writeln!(out, "### {}: {}", inline(group.workload), group.summary())?;
                writeln!(out)?;
                write_group(&group, out)?;
            }
        }
        write_findings(&document.findings, out)?;
        write_advice(&document.advice, out)
    }
}

fn write_group(group: &Group, out: &mut dyn Write) -> io::Result<()> {
    let mut names = vec!["way", "throughput", "±95 %"];
    if group.is_counted() {
        names.push("writes/s");
    }
    names.extend(["P50", "P99", "P99.9", "max", "CPU s/GB", "survives"]);
    writeln!(out, "| {} |", names.join(" | "))?;
    // The way and what it survives are words, the rest figures.
    let rules =
        names.iter().map(|name| if ["way", "survives"].contains(name) { "---" } else { "---:" });
    writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
    for row in &group.rows {
        writeln!(out, "| {} |", cells(group, row).join(" | "))?;
    }
    Ok(())
}

fn cells(group: &Group, row: &Row) -> Vec<String> {
    let mut cells =
        vec![inline(&row.way), units::rate(row.throughput_bytes_per_s.median), plus_minus(row)];
    if group.is_counted() {
        cells.push(writes_per_s(row));
    }
    let latency = &row.latency_ns;
    cells.extend([latency.p50, latency.p99, latency.p99_9, latency.max].map(units::nanoseconds));
    cells.extend([cpu_s_per_gb(row), inline(&row.survives)]);
    cells
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
fn inline(text: &str) -> String {
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
