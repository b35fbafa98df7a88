//! Random reads of 4 KiB x 64 by one core, from a device in memory: what is measured is the program
//! and the kernel, not a disk.

use super::both::JobTurns;
use super::cpu::pinned;
use super::job::{Job, RANDOM_BYTES, random_read};
use super::programs::{Programs, Setting};
use super::ratio::Asked;
use super::table::{Line, Subject, Unit};
use crate::failure::Failure;
use crate::zram::{DEVICE, SIZE_BYTES};
use std::path::Path;

const UNIT: Unit = Unit::Reads(RANDOM_BYTES);
const RUNTIME_S: u32 = 3;

/// The command that pins a program to one core.
pub fn pin() -> Result<Vec<String>, Failure> {
    Ok(vec!["taskset".into(), "-c".into(), pinned()?.to_string()])
}

/// The job file.
pub fn job() -> Job {
    random_read("random-read", DEVICE, &SIZE_BYTES.to_string()).for_seconds(RUNTIME_S)
}

/// The line where there is no such device.
pub fn missing(because: String) -> Line {
    Line::missing(UNIT, subject(), because)
}

/// Measures it on the device, `pairs` times in turn, with the current folder `folder`.
pub fn measure(programs: &Programs, folder: &Path, pairs: u32) -> Result<Line, Failure> {
    measure_job(programs, Setting { folder, under: &pin()? }, &job(), pairs)
}

fn measure_job(
    programs: &Programs,
    setting: Setting,
    job: &Job,
    pairs: u32,
) -> Result<Line, Failure> {
    let turns = JobTurns {
        programs,
        setting,
        job,
        operation_bytes: RANDOM_BYTES,
        total_bytes: None,
        prepare: &|| Ok(()),
    };
    turns.measure(Line::new(UNIT, subject()), pairs)
}

fn subject() -> Subject {
    Subject {
        what: format!("job file, random read, 4 KiB x 64, one core, {DEVICE}"),
        blocks: "written",
        peer: "fio",
        throughput: Some(Asked::AtLeast(1.5)),
        cpu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::{Side, fake};
    use super::*;

    #[test]
    fn both_run_on_one_core_and_the_line_compares_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 1000, RANDOM_BYTES);
        let under = pin().expect("a processor");
        let setting = Setting { folder: folder.path(), under: &under };
        let line = measure_job(&programs, setting, &job(), 1).expect("scripts");
        let row = line.row();
        let expected = "| written | fio | **2.00** (2.00–2.00) | 2.0 | 1.0 |";
        assert!(row.contains(expected), "{row}");
        assert!(row.ends_with("| ≥ 1.50, met |"), "{row}");
        let described = Side::Fio.describe(&job(), &under);
        let expected = format!("taskset -c {} fio ", under[2]);
        assert!(described.starts_with(&expected), "{described}");
    }

    #[test]
    fn the_job_is_bound_by_time_on_the_device() {
        let text = job().text();
        assert!(text.contains("\nfilename=/dev/zram0\n"), "{text}");
        assert!(text.contains("\nruntime=3\n"), "{text}");
    }

    #[test]
    fn without_the_device_the_line_says_so() {
        let row = missing("sizing /dev/zram0 needs root".into()).row();
        assert!(row.contains("| not run: sizing /dev/zram0 needs root |"), "{row}");
    }
}
