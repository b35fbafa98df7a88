//! What a person sees: what lies under the path, a table for each workload, findings, advice.

pub mod columns;
pub mod grid;
mod load;
mod saves;
pub mod sustained;

use crate::Screen;
use crate::group::Group;
use crate::paint::{Paint, Tone};
use crate::target::facts;
use crate::text::{self, Text};
use columns::Columns;
use grid::Grid;
use load::Load;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::{Advice, Document, Finding, Knee, Program, Row, Severity, Survives};
use wrote_result::units;

/// Wider than this a line of prose is hard to read.
pub const PROSE_WIDTH_MAX: usize = 100;

/// Tables with bars, for a screen.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub screen: Screen,
    pub paint: Paint,
}

impl Table {
    /// A table for `screen`.
    pub fn new(screen: Screen) -> Table {
        Table { screen, paint: Paint::new(screen.colour) }
    }

    pub fn text(&self) -> Text {
        Text { width: self.screen.width.min(PROSE_WIDTH_MAX) }
    }

    /// Prose is kept from being too wide, but the facts in the head may be as wide as the screen.
    fn head(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        self.facts(facts(document), out)
    }

    pub fn facts(
        &self,
        facts: Vec<(impl AsRef<str>, Vec<String>)>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let width = |name: &str| text::plain(name).width();
        let indent = facts.iter().map(|(name, _)| width(name.as_ref())).max().unwrap_or(0) + 2;
        let text = Text { width: self.screen.width };
        for (name, facts) in facts {
            let name = text::plain(name.as_ref());
            let label = self.paint.paint(Tone::Strong, &name);
            let label = format!("{label}{}", " ".repeat(indent - width(&name)));
            writeln!(out, "{label}{}", text.listed(&facts, indent))?;
        }
        Ok(())
    }

    fn group(&self, group: &Group, knee: Option<&Knee>, out: &mut dyn Write) -> io::Result<()> {
        let text = Text { width: self.screen.width };
        let summary = text.wrapped(&format!("{}: {}", group.workload, group.summary()), 2);
        let summary = summary.strip_prefix(group.workload).unwrap_or(&summary);
        writeln!(out, "\n{}{summary}", self.paint.paint(Tone::Strong, group.workload))?;
        if let Some(load) = Load::of(group, knee) {
            return load.write(self.paint, self.screen, out);
        }
        match Grid::of(group) {
            Some(grid) => grid.write(self.paint, self.screen, out),
            None => {
                Columns::of(group, self.screen).write(self.paint, self.screen, out)?;
                saves::write_costs(group, self.text(), out)
            }
        }?;
        let mut rows = group.rows.iter();
        rows.try_for_each(|row| sustained::write(row, self.paint, self.screen, out))
    }

    fn findings(&self, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
        if findings.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.paint.paint(Tone::Strong, "Findings"))?;
        for finding in findings {
            let mark = match finding.severity {
                Severity::Warning => self.paint.paint(Tone::Yellow, "!"),
                Severity::Info => self.paint.paint(Tone::Cyan, "i"),
            };
            writeln!(out, "  {mark} {}", self.text().wrapped(&finding.text, 4))?;
        }
        Ok(())
    }

    fn advice(&self, advice: &[Advice], out: &mut dyn Write) -> io::Result<()> {
        if advice.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.paint.paint(Tone::Strong, "Advice"))?;
        for (index, advice) in advice.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let purpose = format!("For {}", text::plain(&advice.purpose));
            writeln!(out, "  {}", self.paint.paint(Tone::Strong, &purpose))?;
            writeln!(out, "  do       {}", self.text().wrapped(&advice.action, 11))?;
            writeln!(out, "  because  {}", self.text().wrapped(&advice.because, 11))?;
            // Code is not wrapped: it is there to be copied.
            for (number, line) in advice.code.lines().enumerate() {
                let label = if number == 0 { "code" } else { "" };
                writeln!(out, "  {label:<7}  {}", text::plain(line).trim_end())?;
            }
        }
        Ok(())
    }

    /// What the words under SURVIVES mean, and how long it took.
    fn foot(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        let rows = || document.scenarios.iter().flat_map(|scenario| &scenario.rows);
        let in_process = rows().any(|row| row.survives == Some(Survives::Nothing));
        let nothing = if in_process { "nothing: it is in the program's memory. " } else { "" };
        let legend = format!(
            "SURVIVES is the worst event after which an acknowledged write is still there. {nothing}\
             process-crash: it is in the kernel's memory. os-crash: it is in the device. \
             power-loss: it is on stable storage."
        );
        let made = made(&document.wrote, &document.started_at, document.elapsed_s);
        let legend = rows().any(|row| row.survives.is_some()).then_some(legend.as_str());
        let leaves = rows().any(Row::is_of_saves).then_some(saves::LEGEND);
        writeln!(out)?;
        for paragraph in legend.into_iter().chain(leaves).chain([made.as_str()]) {
            for line in self.text().wrapped(paragraph, 0).lines() {
                writeln!(out, "{}", self.paint.paint(Tone::Faint, line))?;
            }
        }
        Ok(())
    }
}

/// When something was measured, how long that took, and by which program.
pub fn made(wrote: &Program, started_at: &str, elapsed_s: f64) -> String {
    let commit = wrote.commit.as_ref().map(|commit| format!(" ({})", text::plain(commit)));
    format!(
        "Measured in {} from {} by wrote {}{}.",
        units::seconds(elapsed_s),
        text::plain(started_at),
        text::plain(&wrote.version),
        commit.unwrap_or_default(),
    )
}

/// Writes tables with bars.
pub fn write(document: &Document, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(screen);
    table.head(document, out)?;
    for scenario in &document.scenarios {
        let question = table.text().wrapped(&scenario.question, 0);
        writeln!(out, "\n{}", table.paint.paint(Tone::Strong, &question))?;
        for group in Group::all_of(scenario) {
            table.group(&group, scenario.knee.as_ref(), out)?;
        }
    }
    table.findings(&document.findings, out)?;
    table.advice(&document.advice, out)?;
    table.foot(document, out)
}
