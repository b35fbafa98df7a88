//! Kills processes of wrote at random moments while they write, and checks all promises.

use super::Moments;
use super::power_cut::WROTE;
use super::power_cut::subject::{Seen, Subject, check};
use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::{self, Program, cargo_tests};
use crate::tools::report::Report;
use crate::tools::repository::{fresh, release, target};
use crate::tools::run::check_interrupted;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;
use std::process::Command;
use std::thread;

/// The maximum delay of a kill after all subjects are ready.
const LATEST_MS: f64 = 200.0;

/// Kills every subject at each moment. Then runs the library's own test in which a log outlives
/// several killed processes.
pub fn lab(report: &mut Report, options: Moments) -> Result<(), Failure> {
    let (times, seed) = (options.moments, options.seed());
    report.step(&format!("lab kill: every subject {times} times, seed {seed}"), || {
        // A release build is used, because faster subjects do more before each moment.
        kill(&release("lab")?, times, seed)
    })?;
    report.step(&format!("lab kill: a log of several processes {times} times"), || {
        let tests = programs::build()?;
        let library = |one: &&Program| (&*one.package, &*one.target) == ("wrote", "it");
        let tests = tests.iter().find(library).ok_or(Failure::Failed("no tests".into()))?;
        let mut command = Command::new(&tests.file);
        command.args(["log_kill::", "--nocapture"]);
        command.env("WROTE_KILLS", times.to_string()).env("WROTE_SEED", seed.to_string());
        cargo_tests(&mut command)
    })
}

fn kill(program: &Path, times: u32, seed: u64) -> Result<(), Failure> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut promises = [0; WROTE.len()];
    let mut folder = tempfile::tempdir_in(target()).tried("the target folder")?;
    for number in 0..times {
        check_interrupted()?;
        let seen = one(program, folder.path(), &mut random)?;
        for (seen, promises) in seen.iter().zip(&mut promises) {
            *promises += seen.promises;
        }
        if let Some((name, seen)) =
            WROTE.iter().zip(&seen).find(|(_, seen)| !seen.faults.is_empty())
        {
            folder.disable_cleanup(true);
            return Err(Failure::Failed(format!(
                "kill {number} of seed {seed}: {name}: {}; the files are kept: {}",
                seen.faults.join("; "),
                folder.path().display()
            )));
        }
    }
    for (name, promises) in WROTE.iter().zip(promises) {
        eprintln!("  {name}: {promises} promises kept over {times} kills");
    }
    Ok(())
}

/// Kills all subjects once, and checks their files.
fn one(
    program: &Path,
    folder: &Path,
    random: &mut Xoshiro256PlusPlus,
) -> Result<Vec<Seen>, Failure> {
    let (files, said) = (fresh(folder.join("files"))?, fresh(folder.join("said"))?);
    let (seed, delay) = (random.random(), super::draw_delay(random, LATEST_MS));
    let start = |name| Subject::write(program, name, (&files, &said), seed, None);
    let mut subjects = WROTE.iter().copied().map(start).collect::<Result<Vec<_>, _>>()?;
    subjects.iter_mut().try_for_each(Subject::wait_until_ready)?;
    thread::sleep(delay);
    for mut subject in subjects {
        subject.must_be_running()?;
        subject.kill()?;
    }
    check(program, WROTE, &files, &said)
}
