//! `Writer` against the best that `wrote run` makes of direct writes: what a drop-in costs.

use super::super::job::Job;
use super::super::programs::{Setting, Side};
use super::super::ratio::Asked;
use super::super::trial::{self, Outcome};
use super::best::Cell;
use super::contest::{Asks, Contender, Contest};
use super::stream;
use super::table::Unit;
use super::{Measured, Ways};
use crate::failure::{Failure, Tried};
use std::io::ErrorKind;

/// The longest block of the grid `peak`, of which the others are parts: what shows a fallback, and
/// what the start-up is measured with.
const OPERATION_BYTES: u64 = 2 << 20;

/// Measures it.
pub fn measure(ways: &Ways) -> Result<Measured, Failure> {
    let best = Cell::measure(&ways.programs.wrote, ways.folder)?;
    eprintln!("peak writes best with {}", best.words());
    measure_against(ways, &best)
}

fn measure_against(ways: &Ways, best: &Cell) -> Result<Measured, Failure> {
    let usual = Cell::usual();
    let mut cells = vec![("writer-peak", usual.clone())];
    if *best != usual {
        cells.push(("writer-peak-best", best.clone()));
    }
    let under = ways.trials.under();
    let setting = Setting { folder: ways.folder, under: &under };
    let jobs: Vec<Job> = cells.iter().map(|(name, cell)| cell.job(name, ways.size)).collect();
    let peers = jobs.iter().zip(&cells).map(|(job, (_, cell))| peer(ways, setting, job, cell));
    let contest = Contest {
        what: format!("{} in pieces of 64 KiB, durable", ways.size),
        unit: Unit::Stream,
        ours: stream::ours(ways),
        peers: peers.collect::<Result<_, Failure>>()?,
        asks: Asks::OfBest(Asked::Level),
    };
    let measured = contest.measure(ways.rounds)?;
    drop(contest);
    Ok(Measured { jobs, ..measured })
}

/// `wrote run` of a job that writes as `cell` says.
pub fn peer<'a>(
    ways: &Ways<'a>,
    setting: Setting<'a>,
    job: &'a Job,
    cell: &Cell,
) -> Result<Contender<'a>, Failure> {
    let ways = *ways;
    remove(&ways)?;
    let plain = Setting { under: &[], ..setting };
    ways.programs.check_fallbacks(job, OPERATION_BYTES, plain)?;
    let start_up_cpu_s =
        ways.programs
            .start_up_cpu_s(Side::Wrote, job, OPERATION_BYTES, setting, || remove(&ways))?;
    remove(&ways)?;
    let run = move || -> Result<Outcome, Failure> {
        let ran = ways.programs.run(Side::Wrote, job, setting)?;
        remove(&ways)?;
        let measured = ran.measured(start_up_cpu_s);
        if measured.bytes != ways.size.bytes {
            let (bytes, wanted) = (measured.bytes, ways.size.bytes);
            return Err(Failure::Failed(format!("wrote run: {bytes} bytes, not {wanted}")));
        }
        Ok(Outcome { measured, ..trial::parse(&ran.stdout, "wrote run")? })
    };
    Ok(Contender {
        name: format!("`wrote run`, {}", cell.words()),
        command: Side::Wrote.describe(job, &[]),
        run: Box::new(run),
    })
}

/// Removes the job's file: a new one each time.
fn remove(ways: &Ways) -> Result<(), Failure> {
    let path = ways.folder.join("testfile");
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).tried(path.display()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::programs;
    use super::super::super::trial;
    use super::super::Line;
    use super::*;

    const BYTES: u64 = 4 << 20;

    #[test]
    fn the_usual_cell_and_the_best_are_both_run_and_the_better_counts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let programs = programs::fake::programs(folder, 2, BYTES / 2);
        let trials = trial::fake::trials(folder, BYTES, 1.0);
        let size = "4m".parse().expect("a size");
        let ways = Ways { trials: &trials, programs: &programs, folder, size: &size, rounds: 1 };
        let measured = measure_against(&ways, &Cell::usual()).expect("scripts");
        assert_eq!((measured.lines.len(), measured.jobs.len()), (1, 1));
        let row = measured.lines[0].row();
        let begin = "| 4m in pieces of 64 KiB, durable | `Writer` | `wrote run`, 512k x 64, registered \
                     | **1.00** (1.00–1.00) | 8.4 MB/s | 8.4 MB/s | ";
        assert!(row.starts_with(begin), "{row}");
        assert!(row.ends_with("| 2.0 MiB | 2.0 MiB | ≥ 0.95 and some ≥ 1.00, met |"), "{row}");

        let name = "peak/write/2m-8-plain";
        let best = Cell::parse(name).expect("a cell");
        let measured = measure_against(&ways, &best).expect("scripts");
        let rows: Vec<String> = measured.lines.iter().map(Line::row).collect();
        assert!(rows[1].contains("| `wrote run`, 2m x 8, plain |"), "{rows:?}");
        assert_eq!(measured.jobs[1].file_name(), "writer-peak-best.fio");
    }

    #[test]
    fn a_job_that_writes_too_little_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let programs = programs::fake::programs(folder, 1, BYTES / 2);
        let trials = trial::fake::trials(folder, BYTES, 1.0);
        let size = "4m".parse().expect("a size");
        let ways = Ways { trials: &trials, programs: &programs, folder, size: &size, rounds: 1 };
        let failed = measure_against(&ways, &Cell::usual()).expect_err("half of it");
        assert_eq!(failed.to_string(), "wrote run: 2097152 bytes, not 4194304");
    }
}
