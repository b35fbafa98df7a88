//! Which cell of the grid `peak` writes best here.

use super::super::job::{Job, durable_write};
use super::super::size::Size;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10 * 60);
const GROUP: &str = "peak/write/";

/// A cell: block size, depth, and way of io_uring, as the grid names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    bs: String,
    iodepth: String,
    way: String,
}

impl Cell {
    /// The cell of these.
    pub fn new(bs: &str, iodepth: &str, way: &str) -> Cell {
        Cell { bs: bs.to_owned(), iodepth: iodepth.to_owned(), way: way.to_owned() }
    }

    /// 512 KiB x 64 with buffers and file registered: where a fast device usually is at its best.
    pub fn usual() -> Cell {
        Cell::new("512k", "64", "registered")
    }

    /// The best one by `wrote bench --only peak/write` in `folder`.
    pub fn measure(wrote: &Path, folder: &Path) -> Result<Cell, Failure> {
        let mut command = Command::new(wrote);
        command.arg("bench").arg(folder).args(["--only", "peak/write", "--format", "json"]);
        let finished = run(&mut command, LIMIT, Show::Quiet)?.success("wrote bench --only peak")?;
        Cell::best(&finished.stdout)
    }

    /// The cell with the best median of a result.
    fn best(stdout: &str) -> Result<Cell, Failure> {
        let document: Value = serde_json::from_str(stdout).tried("the result of wrote bench")?;
        let scenarios = document["scenarios"].as_array().into_iter().flatten();
        let rows = scenarios.filter_map(|scenario| scenario["rows"].as_array()).flatten();
        let cells = rows.filter_map(|row| {
            let median = row["throughput_bytes_per_s"]["median"].as_f64()?;
            Some((median, Cell::parse(row["name"].as_str()?)?))
        });
        let best = cells.max_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map(|(_, cell)| cell)
            .ok_or_else(|| Failure::Failed(format!("the result of wrote bench has no {GROUP}…")))
    }

    /// Reads "peak/write/512k-64-registered".
    pub fn parse(name: &str) -> Option<Cell> {
        let mut words = name.strip_prefix(GROUP)?.split('-').map(str::to_owned);
        Some(Cell { bs: words.next()?, iodepth: words.next()?, way: words.next()? })
    }

    /// "512k x 64, registered".
    pub fn words(&self) -> String {
        let Cell { bs, iodepth, way } = self;
        format!("{bs} x {iodepth}, {way}")
    }

    /// The job that writes a file of `size` this way and has it durable in the end.
    pub fn job(&self, name: &'static str, size: &Size) -> Job {
        let bit = |is_on| if is_on { "1" } else { "0" };
        let is_registered = bit(self.way != "plain");
        let keys = [
            ("bs", self.bs.as_str()),
            ("iodepth", &self.iodepth),
            ("fixedbufs", is_registered),
            ("registerfiles", is_registered),
            ("sqthread_poll", bit(self.way == "sqpoll")),
            ("hipri", bit(self.way == "polled")),
        ];
        durable_write(name, &keys, &size.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_one_with_the_best_median() {
        let row = |name: &str, median: u64| {
            format!(r#"{{"name": "{name}", "throughput_bytes_per_s": {{"median": {median}}}}}"#)
        };
        let rows = [
            row("peak/write/128k-8-plain", 100),
            row("peak/write/2m-64-sqpoll", 300),
            row("peak/write/512k-8-registered", 200),
            row("peak/read/512k-8-registered", 900),
        ];
        let result = format!(r#"{{"scenarios": [{{"rows": [{}]}}]}}"#, rows.join(","));
        assert_eq!(Cell::best(&result).expect("a best"), Cell::new("2m", "64", "sqpoll"));
        let message = Cell::best("{}").expect_err("no rows").to_string();
        assert_eq!(message, "the result of wrote bench has no peak/write/…");
    }

    #[test]
    fn the_job_does_what_the_cell_did() {
        let size = "4g".parse().expect("a size");
        let text = Cell::new("2m", "8", "sqpoll").job("writer-peak-best", &size).text();
        assert!(text.contains("\nbs=2m\niodepth=8\nfixedbufs=1\nregisterfiles=1\n"), "{text}");
        assert!(text.contains("\nsqthread_poll=1\nhipri=0\n"), "{text}");
        let text = Cell::new("128k", "8", "plain").job("writer-peak-best", &size).text();
        assert!(text.contains("\nfixedbufs=0\nregisterfiles=0\nsqthread_poll=0\nhipri=0\n"));
        assert_eq!(Cell::usual().words(), "512k x 64, registered");
    }
}
