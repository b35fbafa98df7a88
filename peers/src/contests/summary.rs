//! The summary of a run: each requirement with its figures, a line each, the disks side by side.

use super::contest::ContestResult;
use super::rows::Row;
use lab::tools::disks::DiskKind;
use std::collections::BTreeMap;
use std::fmt;

/// The figures of all measured rows with a requirement.
#[derive(Debug, Default)]
pub struct Summary {
    /// The lines, in the order they were measured: a row, its work and its peer.
    lines: Vec<[String; 3]>,
    /// The figures of a line on a disk.
    cells: BTreeMap<(usize, DiskKind), String>,
}

impl Summary {
    /// Adds the figures of a row on a disk.
    pub fn add(&mut self, row: &Row, disk: DiskKind, measured: &[ContestResult]) {
        for asked in measured.iter().flat_map(|one| &one.asked) {
            let line = [row.name.clone(), asked.what.clone(), asked.peer.clone()];
            let known = self.lines.iter().position(|one| *one == line);
            let number = known.unwrap_or(self.lines.len());
            if known.is_none() {
                self.lines.push(line);
            }
            let cell = self.cells.entry((number, disk)).or_default();
            if !cell.is_empty() {
                cell.push_str("; ");
            }
            cell.push_str(&asked.found);
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut disks: Vec<DiskKind> = self.cells.keys().map(|(_, disk)| *disk).collect();
        disks.sort_unstable();
        disks.dedup();
        write!(formatter, "| row | work | peer |")?;
        disks.iter().try_for_each(|disk| write!(formatter, " {disk} |"))?;
        writeln!(formatter, "\n|---|---|---|{}", "---|".repeat(disks.len()))?;
        for (number, line) in self.lines.iter().enumerate() {
            write!(formatter, "| {} |", line.join(" | "))?;
            for &disk in &disks {
                let cell = self.cells.get(&(number, disk)).map_or("", String::as_str);
                write!(formatter, " {cell} |")?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::Asked;
    use super::super::rows::named as row;
    use super::*;

    #[test]
    fn a_line_has_the_disks_side_by_side() {
        let measured = |found: &[&str]| {
            let asked = |found: &&str| Asked {
                what: "64 tasks".into(),
                peer: "gathered".into(),
                found: (*found).to_owned(),
            };
            [ContestResult {
                table: String::new(),
                asked: found.iter().map(asked).collect(),
                commands: Vec::new(),
                jobs: Vec::new(),
            }]
        };
        let mut summary = Summary::default();
        summary.add(
            row("save"),
            DiskKind::SlowSsd,
            &measured(&["**1.20** (1.00–1.30) ≥ 1.00, met"]),
        );
        let own = ["**0.90** (0.90–0.90) ≥ 1.00, not met", "P99 **1.00** (1.00–1.00) ≤ 1.00, met"];
        summary.add(row("save"), DiskKind::Own, &measured(&own));
        assert_eq!(
            summary.to_string(),
            "| row | work | peer | own | slow-ssd |\n|---|---|---|---|---|\n\
             | save | 64 tasks | gathered | **0.90** (0.90–0.90) ≥ 1.00, not met; \
             P99 **1.00** (1.00–1.00) ≤ 1.00, met | **1.20** (1.00–1.30) ≥ 1.00, met |\n"
        );
    }
}
