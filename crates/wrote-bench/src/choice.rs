//! Chooses the best row, and explains the choice.

use crate::names::is_below;
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Answer, Blocks, Flush, Ioengine, Row, Settings, View, fastest};
use wrote_result::units::{self, block_size, rate, seconds};

/// The factor below which a difference between CPU costs is ignored.
const SAME_COST: f64 = 1.1;

/// Answers each question with the fastest of the rows at or below the question's name. Questions
/// without such a row are left out.
pub(crate) fn best(evidence: &Evidence, asked: &[(&str, &str)]) -> Vec<Answer> {
    let answer = |(question, below): &(&str, &str)| {
        let rows = evidence.rows.iter().filter(|row| is_below(&row.name, below));
        let row = fastest(rows)?;
        let (question, how) = ((*question).into(), row.way.clone());
        Some(Answer { question, row: row.name.clone(), how, ..Answer::default() })
    };
    asked.iter().filter_map(answer).collect()
}

/// The chosen row, and its alternatives.
pub(crate) struct Choice<'a> {
    pub row: &'a Row,
    fastest: &'a Row,
    /// The rows that show no measurable difference from the fastest row.
    tied: Vec<&'a Row>,
    /// The fastest row that is measurably slower than `fastest`. With single runs, whose variation
    /// is unknown, it is the second-fastest row.
    next: Option<&'a Row>,
}

impl<'a> Choice<'a> {
    /// Chooses among `rows`: of the fastest row and the rows with no measurable difference from it,
    /// the least complex one, or the one of these that takes the least CPU time. `None` if no row
    /// has a throughput.
    pub(crate) fn of(rows: impl Iterator<Item = &'a Row>) -> Option<Choice<'a>> {
        let rows: Vec<&Row> = rows.filter(|row| row.throughput() > 0.0).collect();
        let fastest = fastest(rows.iter().copied())?;
        let others = || rows.iter().copied().filter(|row| row.name != fastest.name);
        let tied: Vec<&Row> = others().filter(|row| row.is_tied_with(fastest)).collect();
        let next = self::fastest(others().filter(|row| !row.is_tied_with(fastest)));
        let equals: Vec<&Row> = std::iter::once(fastest).chain(tied.iter().copied()).collect();
        let least = equals.iter().map(|row| complexity(row)).min()?;
        let row = equals
            .into_iter()
            .filter(|row| complexity(row) == least)
            .min_by(|one, other| one.cpu_s_per_gb().total_cmp(&other.cpu_s_per_gb()))?;
        Some(Choice { row, fastest, tied, next })
    }

    /// Explains the choice by its speed, its cost, the rows tied with it, and its lead over the
    /// next row.
    pub(crate) fn reason(&self, speed: fn(&Row) -> String) -> String {
        let row = self.row;
        let cost = seconds(row.cpu_s_per_gb());
        let mut reason = format!("{} at {cost} of CPU per GB", speed(row));
        if row.name != self.fastest.name {
            reason += &format!(
                ", with no difference found from {} ({} at {} of CPU per GB), and is {}",
                self.fastest.name,
                speed(self.fastest),
                seconds(self.fastest.cpu_s_per_gb()),
                match (complexity(row) < complexity(self.fastest), self.is_cheaper()) {
                    (true, _) => "simpler",
                    (false, true) => "cheaper",
                    (false, false) => "no slower",
                },
            );
        } else if !self.tied.is_empty() {
            let names: Vec<&str> = self.tied.iter().map(|row| row.name.as_str()).collect();
            reason += &format!(", with no difference found from {}", names.join(", "));
        }
        if let Some(next) = self.next {
            let times = row.times(next);
            reason += &format!("; {times} times {} ({})", next.name, speed(next));
        }
        if row.runs.len() < 2 {
            reason += "; one run, so nothing is known of how much it varies";
        }
        reason
    }

    fn is_cheaper(&self) -> bool {
        self.fastest.cpu_s_per_gb() > self.row.cpu_s_per_gb() * SAME_COST
    }
}

/// Returns the effort that a method demands of a programmer, for sorting: first its pitfalls, then
/// its flushes. `write()` with one flush at the end sorts first.
pub(crate) fn effort(row: &Row) -> (u32, u32) {
    let flushes = match settings(row).sync {
        sync if sync.is_seldom() => 0,
        Flush::FdatasyncEach | Flush::FsyncEach => 1,
        _ => 2,
    };
    (complexity(row), flushes)
}

/// Returns the number of details that a program must get right; 0 for whole files.
pub(crate) fn complexity(row: &Row) -> u32 {
    let settings = settings(row);
    if row.view() == View::Files {
        return 0;
    }
    let queue = if settings.ioengine == Ioengine::Psync { 0 } else { 2 };
    queue
        + u32::from(settings.direct)
        + u32::from(settings.blocks == Blocks::Written)
        + u32::from(settings.numjobs > 1)
}

/// Returns whether the row uses `O_DIRECT` on a file system in memory, which accepts the flag but
/// has no cache to bypass.
pub(crate) fn is_void(evidence: &Evidence, row: &Row) -> bool {
    evidence.in_memory && settings(row).direct
}

pub(crate) fn settings(row: &Row) -> &Settings {
    &row.settings.effective
}

pub(crate) fn ratio(row: &Row, other: &Row) -> f64 {
    row.throughput() / other.throughput()
}

pub(crate) fn speed(row: &Row) -> String {
    rate(row.throughput())
}

pub(crate) fn records(row: &Row) -> String {
    format!("{} records/s of {}", per_s(row), block_size(settings(row).bs_bytes))
}

/// Returns the operations per second, the median over the runs, as text.
pub(crate) fn per_s(row: &Row) -> String {
    let (numbers, unit) = units::alike(&[row.iops()], &units::COUNTS);
    format!("{} {}", numbers[0], unit.trim_end_matches("/s")).trim_end().into()
}

/// Returns the body of a function in the text of an example.
pub(crate) fn body_of(examples: &str, function: &str) -> String {
    let begins = [format!("pub fn {function}("), format!("pub async fn {function}(")];
    let is_begin = |line: &str| begins.iter().any(|begin| line.starts_with(begin));
    let lines = examples.lines().skip_while(|line| !is_begin(line)).skip(1);
    let lines = lines.take_while(|line| *line != "}").filter(|line| *line != "    Ok(())");
    lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The number of columns that remain for code, after its label, on a terminal of 80 columns.
#[cfg(test)]
pub(crate) const CODE_COLUMNS_MAX: usize = 69;

#[cfg(test)]
mod tests {
    use super::{CODE_COLUMNS_MAX, body_of};

    #[test]
    fn the_code_of_an_advice_fits_a_terminal_of_80_columns() {
        for file in [
            include_str!("scenarios/append/advice/examples.rs"),
            include_str!("scenarios/latency/advice/examples.rs"),
            include_str!("scenarios/ways/advice/examples.rs"),
        ] {
            let functions = file.split("pub ").skip(1).map(|of| of.trim_start_matches("async "));
            for function in functions.filter_map(|of| of.strip_prefix("fn ")?.split('(').next()) {
                let body = body_of(file, function);
                let is_narrow = |line: &str| line.chars().count() <= CODE_COLUMNS_MAX;
                assert!(!body.is_empty() && body.lines().all(is_narrow), "{function}:\n{body}");
            }
        }
    }
}
