//! A workload whose rows are cells of a grid: block size and depth down, ways across, the best
//! marked.

use crate::Screen;
use crate::figures::{
    are_level, cpu_s_per_gb, fell_back, latency, peak_memory, plus_minus, survives,
};
use crate::group::Group;
use crate::paint::{Paint, Tone};
use crate::text::{Text, plain};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Row;
use wrote_result::units;

/// What stands between two columns.
const GAP: &str = "  ";
/// The workloads that are grids begin so, and what stands over their sides.
const GRIDS: [(&str, &str); 2] = [("peak/", "BS x IODEPTH"), ("ways/chunk", "CHUNK")];

/// A workload's cells in their places.
pub struct Grid<'a> {
    group: &'a Group<'a>,
    /// Over the sides.
    title: &'static str,
    /// `512 KiB x 64`, in the order of the rows.
    sides: Vec<&'a str>,
    /// `plain`, `registered`, in the order of the rows.
    heads: Vec<&'a str>,
    best: &'a Row,
}

/// A row's place: what stands before and after the last comma of its way.
fn place(row: &Row) -> Option<(&str, &str)> {
    row.way.rsplit_once(", ")
}

impl<'a> Grid<'a> {
    /// The grid of a group; `None` where its rows are no cells of one.
    pub fn of(group: &'a Group<'a>) -> Option<Grid<'a>> {
        if group.rows.iter().any(|row| row.is_open_loop()) {
            // At a rate all cells have the same throughput: what tells them apart is their latency.
            return None;
        }
        let (_, title) = GRIDS.iter().find(|(begin, _)| group.workload.starts_with(begin))?;
        let (mut sides, mut heads) = (Vec::new(), Vec::new());
        for row in &group.rows {
            let (side, head) = place(row)?;
            if !sides.contains(&side) {
                sides.push(side);
            }
            if !heads.contains(&head) {
                heads.push(head);
            }
        }
        let fastest = |a: &&&Row, b: &&&Row| {
            a.throughput_bytes_per_s.median.total_cmp(&b.throughput_bytes_per_s.median)
        };
        let best = group.rows.iter().max_by(fastest)?;
        Some(Grid { group, title, sides, heads, best })
    }

    fn row(&self, side: &str, head: &str) -> Option<&'a Row> {
        let mut rows = self.group.rows.iter();
        rows.find(|row| place(row) == Some((side, head))).copied()
    }

    /// Writes the grid, what its marks mean, and the best cell in full.
    pub fn write(&self, paint: Paint, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let marks = Marks::of(screen);
        let side_width = self.sides.iter().map(|side| side.width()).max().unwrap_or(0);
        let side_width = side_width.max(self.title.width());
        let cells: Vec<Vec<String>> =
            self.sides.iter().map(|side| self.cells(side, marks)).collect();
        let width = |column: usize| {
            let cells = cells.iter().map(|line| line[column].width());
            cells.max().unwrap_or(0).max(self.heads[column].width() + 2)
        };
        let line = |first: &str, cells: &[String]| {
            let mut line = format!("{first:<side_width$}");
            for (column, cell) in cells.iter().enumerate() {
                line = line + GAP + &" ".repeat(width(column) - cell.width()) + cell;
            }
            line.trim_end().to_owned()
        };
        // Two more columns for the mark, as in the cells.
        let heads: Vec<String> = self.heads.iter().map(|head| plain(head) + "  ").collect();
        writeln!(out, "{}", paint.paint(Tone::Faint, &line(self.title, &heads)))?;
        for (side, cells) in self.sides.iter().zip(&cells) {
            writeln!(out, "{}", line(&plain(side), cells))?;
        }
        self.foot(paint, marks, Text { width: screen.width }, out)
    }

    fn cells(&self, side: &str, marks: Marks) -> Vec<String> {
        let cell = |head: &&str| match self.row(side, head) {
            None => "  ".to_owned(),
            Some(row) => {
                let mark = if std::ptr::eq(row, self.best) {
                    marks.best
                } else if self.is_level(row) {
                    marks.level
                } else {
                    " "
                };
                let fell = if fell_back(row) { "* " } else { "" };
                format!("{fell}{} {mark}", units::rate(row.throughput_bytes_per_s.median))
            }
        };
        self.heads.iter().map(cell).collect()
    }

    /// Whether a row can't be told apart from the best.
    fn is_level(&self, row: &Row) -> bool {
        are_level(row, self.best)
    }

    fn foot(&self, paint: Paint, marks: Marks, text: Text, out: &mut dyn Write) -> io::Result<()> {
        let Marks { best, level, plus_minus: sign } = marks;
        let mut facts = vec![
            units::rate(self.best.throughput_bytes_per_s.median),
            plus_minus(self.best).replace('±', sign),
            labelled("P99 ", latency(self.best, |of| of.p99)),
            format!("{} CPU s/GB", cpu_s_per_gb(self.best)),
            survives(self.best),
        ];
        if self.group.is_of_whole_files() {
            facts.push(labelled("memory ", peak_memory(self.best)));
        }
        facts.retain(|fact| !fact.is_empty());
        let told = format!("the best: {}: {}", plain(&self.best.way), facts.join(", "));
        writeln!(out, "{best} {}", paint.paint(Tone::Strong, &text.wrapped(&told, 2)))?;
        if self.group.rows.iter().any(|row| !std::ptr::eq(*row, self.best) && self.is_level(row)) {
            writeln!(out, "{level} can't be told apart from it: the 95 % intervals touch")?;
        }
        if self.group.rows.iter().any(|row| fell_back(row)) {
            writeln!(out, "* not as asked: see the findings")?;
        }
        Ok(())
    }
}

/// A figure with a word before it; nothing of no figure.
fn labelled(label: &str, figure: String) -> String {
    if figure.is_empty() { figure } else { format!("{label}{figure}") }
}

/// What marks a cell.
#[derive(Clone, Copy)]
pub struct Marks {
    /// The best.
    pub best: &'static str,
    /// What can't be told apart from it.
    pub level: &'static str,
    plus_minus: &'static str,
}

impl Marks {
    pub fn of(screen: Screen) -> Marks {
        if screen.unicode {
            Marks { best: "◀", level: "≈", plus_minus: "±" }
        } else {
            Marks { best: "<", level: "=", plus_minus: "+-" }
        }
    }
}
