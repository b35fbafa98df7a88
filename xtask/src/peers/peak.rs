//! Streams of 512 KiB x 64 in fixed buffers: the same job file by `wrote run` and by fio.

use super::both::JobTurns;
use super::cache;
use super::job::{Direction, Job, PEAK_BYTES, Poll, peak};
use super::programs::{Programs, Setting, Side};
use super::ratio::Asked;
use super::rows::Row;
use super::size::Size;
use super::table::{Line, Subject, Unit};
use crate::failure::{Failure, Tried};
use std::io::ErrorKind;
use std::path::PathBuf;

/// One of the jobs: what it does and what is asked.
#[derive(Debug)]
pub struct Peak {
    /// The job file.
    pub job: Job,
    direction: Direction,
    subject: Subject,
}

/// The job of a row; `None` where the row is another's. `has_poll_queues` says whether the device
/// has any: without them polling for completions is not to be had, and submissions are polled for
/// only in the rows that are about that.
pub fn peak_of(row: Row, has_poll_queues: bool, size: &Size) -> Option<Peak> {
    let plain = Poll { hipri: has_poll_queues, sqthread: has_poll_queues };
    let sqpoll = Poll { hipri: false, sqthread: true };
    let (name, direction, poll, cpu) = match row {
        Row::PeakWrite => ("peak-write", Direction::Write, plain, Some(Asked::AtMost(0.7))),
        Row::PeakRead => ("peak-read", Direction::Read, plain, None),
        Row::PeakWriteSqpoll => ("peak-write-sqpoll", Direction::Write, sqpoll, None),
        Row::PeakReadSqpoll => ("peak-read-sqpoll", Direction::Read, sqpoll, None),
        _ => return None,
    };
    let (verb, blocks) = match direction {
        Direction::Write => ("write", "allocated"),
        Direction::Read => ("read", "written"),
    };
    let polling = match (poll.hipri, poll.sqthread) {
        (true, _) => ", polled",
        (false, true) => ", sqthread_poll",
        (false, false) => "",
    };
    let what = format!("job file, {verb}, {size}, direct 512 KiB x 64, fixedbufs{polling}");
    let throughput = Some(Asked::AtLeast(1.0));
    let subject = Subject { what, blocks, peer: "fio", throughput, cpu };
    Some(Peak { job: peak(name, direction, poll, &size.text), direction, subject })
}

impl Peak {
    /// Measures it, `pairs` times in turn.
    pub fn measure(
        &self,
        programs: &Programs,
        setting: Setting,
        size: &Size,
        pairs: u32,
    ) -> Result<Line, Failure> {
        let file = TestFile(setting.folder.join("testfile"));
        if self.direction == Direction::Read {
            let plain = Poll { hipri: false, sqthread: false };
            let lay = peak("peak-lay", Direction::Write, plain, &size.text);
            programs.run(Side::Fio, &lay, setting)?;
            cache::drop_file(&file.0)?;
        }
        let prepare = || match self.direction {
            Direction::Read => Ok(()),
            Direction::Write => file.remove(),
        };
        let turns = JobTurns {
            programs,
            setting,
            job: &self.job,
            operation_bytes: PEAK_BYTES,
            total_bytes: Some(size.bytes),
            prepare: &prepare,
        };
        turns.measure(Line::new(Unit::Stream, self.subject.clone()), pairs)
    }
}

/// The file that the job names; removed when dropped.
struct TestFile(PathBuf);

impl TestFile {
    fn remove(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).tried(self.0.display()),
            _ => Ok(()),
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // It is in a folder that is removed with all that is left in it.
        let _ = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::fake;
    use super::*;

    fn size(text: &str) -> Size {
        text.parse().expect("a size")
    }

    #[test]
    fn completions_are_polled_for_only_where_the_device_has_queues_for_it() {
        let text = |row, queues| peak_of(row, queues, &size("2g")).expect("a job").job.text();
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
        assert!(peak_of(Row::RandomRead, false, &size("2g")).is_none());
    }

    #[test]
    fn both_write_a_new_file_each_time_and_the_line_compares_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 128, PEAK_BYTES);
        let setting = Setting { folder: folder.path(), under: &[] };
        let peak = peak_of(Row::PeakWrite, false, &size("64m")).expect("a job");
        let line = peak.measure(&programs, setting, &size("64m"), 1).expect("scripts");
        let row = line.row();
        let begin = "| job file, write, 64m, direct 512 KiB x 64, fixedbufs | allocated | fio \
                     | **2.00** (2.00–2.00) | 134 | 67.1 | ";
        assert!(row.starts_with(begin), "{row}");
        assert!(row.contains("| ≥ 1.00, met; CPU ≤ 0.70, "), "{row}");
    }

    #[test]
    fn a_program_that_writes_too_little_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 127, PEAK_BYTES);
        let setting = Setting { folder: folder.path(), under: &[] };
        let peak = peak_of(Row::PeakWrite, false, &size("64m")).expect("a job");
        let failed = peak.measure(&programs, setting, &size("64m"), 1).expect_err("too little");
        assert_eq!(failed.to_string(), "wrote: 66584576 bytes, not 67108864");
    }
}
