//! Streams of 512 KiB x 64 in fixed buffers: one job file by `wrote run` and by fio.

use super::contest::{Comparison, Contest, Requirement};
use super::copy::drop_cache;
use super::figures::Condition;
use super::job::{Job, Runner, peak};
use super::outcome::Unit;
use super::rows::Row;
use super::site::Site;
use super::size::Size;
use crate::failure::Failure;

/// The length of the streams by default.
const STREAM_GIB: u64 = 2;

/// Makes the contest of a row.
pub fn contest(row: Row, site: &Site) -> Result<Contest, Failure> {
    let size = site.size(STREAM_GIB);
    let (job, words) = job(row, site.has_poll_queues, &size);
    let reads = reads(row);
    let prepare = if reads { "true" } else { "rm -f testfile" };
    if reads {
        let lay = peak("peak-lay", "write", false, false, &size.text);
        site.write(&lay)?;
        site.run(&Runner::Fio.command("", &lay))?;
        site.run(&drop_cache("testfile"))?;
    }
    let mut requirements = Requirement::of_best(Condition::AtLeast(1.0));
    if row == Row::PeakWrite {
        requirements.extend(Requirement::of_each(Comparison::Cpu, &[Condition::AtMost(0.7)]));
    }
    let contender =
        |runner: Runner| runner.contender(runner.program(), "", job.clone(), prepare, site);
    Ok(Contest::new(
        format!("job file, {words}"),
        Unit::Stream,
        vec![contender(Runner::Wrote)?, contender(Runner::Fio)?],
        requirements,
    ))
}

fn reads(row: Row) -> bool {
    matches!(row, Row::PeakRead | Row::PeakReadSqpoll)
}

/// Makes the job of a row, and its words. Without poll queues the kernel cannot poll for
/// completions, and it polls for submissions only in the rows named after that.
fn job(row: Row, has_poll_queues: bool, size: &Size) -> (Job, String) {
    let [name, _] = row.words();
    let rw = if reads(row) { "read" } else { "write" };
    let is_sqpoll = matches!(row, Row::PeakWriteSqpoll | Row::PeakReadSqpoll);
    let (hipri, sqthread_poll) = (has_poll_queues && !is_sqpoll, has_poll_queues || is_sqpoll);
    let polling = match (hipri, sqthread_poll) {
        (true, _) => ", polled",
        (false, true) => ", sqthread_poll",
        (false, false) => "",
    };
    let blocks = if rw == "read" { "written" } else { "allocated" };
    let size = &size.text;
    let words = format!("{rw}, {size}, direct 512 KiB x 64, fixedbufs{polling}; blocks {blocks}");
    (peak(&name, rw, hipri, sqthread_poll, size), words)
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn completions_are_polled_for_only_where_the_device_has_queues_for_it() {
        let text = |row, queues| job(row, queues, &Size::gib(2)).0.text();
        for row in [Row::PeakWrite, Row::PeakRead] {
            assert!(text(row, false).contains("\nhipri=0\n"));
            assert!(text(row, false).contains("\nsqthread_poll=0\n"));
            assert!(text(row, true).contains("\nhipri=1\n"));
            assert!(text(row, true).contains("\nsqthread_poll=1\n"));
        }
        for row in [Row::PeakWriteSqpoll, Row::PeakReadSqpoll] {
            assert!(text(row, true).contains("\nhipri=0\n"));
            assert!(text(row, false).contains("\nsqthread_poll=1\n"));
        }
    }

    #[test]
    fn both_write_a_new_file_each_time_and_the_line_compares_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let contest = contest(Row::PeakWrite, &site).expect("scripts");
        let table = contest.measure(&site).expect("scripts").table;
        let head =
            "| job file, write, 4m, direct 512 KiB x 64, fixedbufs; blocks allocated | MB/s |";
        assert!(table.starts_with(head), "{table}");
        assert!(table.contains("\n| `wrote run` | 8.39 (8.39–8.39) | "), "{table}");
        assert!(table.contains("\n| fio | 4.19 (4.19–4.19) | "), "{table}");
        assert!(table.contains("| **2.00** (2.00–2.00) | "), "{table}");
        assert!(table.contains("| ≥ 1.00, met; CPU ≤ 0.70, "), "{table}");
    }

    #[test]
    fn a_program_that_writes_too_little_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 7, 512 << 10);
        let contest = contest(Row::PeakWrite, &site).expect("scripts");
        let failed = contest.measure(&site).expect_err("too little");
        assert_eq!(failed.to_string(), "wrote: 3670016 bytes, not 4194304");
    }
}
