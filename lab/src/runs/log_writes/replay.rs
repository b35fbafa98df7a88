//! The replay of a log. At each moment, mounts an image of the disk, and checks the promises made
//! before that moment.

use super::entries::Entries;
use super::steps::{Step, add, each_step};
use crate::runs::power_cut::disk::{Disk, FileSystem};
use crate::runs::power_cut::subject::{Seen, check};
use crate::runs::power_cut::{CONTROLS, describe, sees_something};
use crate::tools::failure::{Failure, Tried};
use crate::tools::repository::{fresh, target};
use crate::tools::run::{check_interrupted, output};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The interval, in moments, at which the file system's own program also examines the disk.
const EXAMINED: usize = 50;
/// The minimum number of moments for judging controls. With fewer, their promises may hold by
/// chance.
const MANY: usize = 100;

/// Replays a log on the image of the disk before the recording. Fails if a promise is broken.
pub fn replay(
    program: &Path,
    file_system: FileSystem,
    (before, log): (PathBuf, PathBuf),
    (seed, most): (u64, Option<usize>),
    subjects: &[&str],
) -> Result<(), Failure> {
    let (mut all, mut steps) = (0, 0);
    each_step(Entries::open(&log)?, |step| {
        (all, steps) = (all + step.moments(), steps + 1);
        Ok(())
    })?;
    let mut replay = Replay::new(program, file_system, &before, subjects)?;
    let chosen = chosen(all, seed, most);
    eprintln!("{} of {all} moments, {steps} of them at a flush or FUA", chosen.len());
    let mut number = 0;
    let done = each_step(Entries::open(&log)?, |step| {
        for is_before in [true, false] {
            if is_before && step.volatile.is_empty() {
                continue;
            }
            let is_chosen = chosen.contains(&number);
            let seed = seed ^ number as u64;
            let words = |because| format!("moment {number}: {because}");
            let result = if is_before {
                if is_chosen { replay.cut(Some((&step, seed))) } else { Ok(()) }
            } else {
                replay.pass(&step)?;
                if is_chosen { replay.cut(None) } else { Ok(()) }
            };
            result.map_err(|failure| failure.in_words(words))?;
            number += 1;
        }
        Ok(())
    });
    for (name, tally) in subjects.iter().zip(&replay.tallies) {
        eprintln!("{}", describe(name, tally));
    }
    done?;
    if chosen.len() >= MANY { sees_something(subjects, &replay.tallies) } else { Ok(()) }
}

/// Returns the numbers of `most` random moments out of `all`, or of all moments if `most` is
/// `None`.
pub fn chosen(all: usize, seed: u64, most: Option<usize>) -> BTreeSet<usize> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut numbers: Vec<usize> = (0..all).collect();
    let (chosen, _) = numbers.partial_shuffle(&mut random, most.unwrap_or(all));
    chosen.iter().copied().collect()
}

/// Returns the folder for images. It is in memory if possible, because each moment flushes its
/// image many times and no image outlives its moment.
fn place() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { target() }
}

/// Copies the image of the disk before a recording. Returns the copy's folder, path and file.
pub fn copied(before: &Path) -> Result<(TempDir, PathBuf, File), Failure> {
    let folder = TempDir::with_prefix_in("lab-log-writes-", place()).tried("a folder")?;
    let image = folder.path().join("image");
    let mut copy = Command::new("cp");
    output(copy.args(["--sparse=always"]).args([before, &image]), "cp")?;
    let changed = File::options().write(true).open(&image).tried(image.display())?;
    Ok((folder, image, changed))
}

/// The state of a replay after some step.
struct Replay<'a> {
    program: &'a Path,
    file_system: FileSystem,
    /// The folder of the images and of the subjects' lines.
    folder: TempDir,
    /// The image of the disk with all changes so far.
    image: PathBuf,
    changed: File,
    lines: BTreeMap<String, String>,
    subjects: &'a [&'a str],
    tallies: Vec<Vec<Seen>>,
    cuts: usize,
}

impl<'a> Replay<'a> {
    fn new(
        program: &'a Path,
        file_system: FileSystem,
        before: &Path,
        subjects: &'a [&'a str],
    ) -> Result<Self, Failure> {
        let (folder, image, changed) = copied(before)?;
        let (lines, tallies) = (BTreeMap::new(), subjects.iter().map(|_| Vec::new()).collect());
        let cuts = 0;
        Ok(Replay { program, file_system, folder, image, changed, lines, subjects, tallies, cuts })
    }

    /// Applies a complete step.
    fn pass(&mut self, step: &Step) -> Result<(), Failure> {
        step.apply(&self.changed)?;
        step.marks.iter().try_for_each(|mark| add(&mut self.lines, mark))
    }

    /// Simulates a power loss now, or while the changes of a step are in the cache. Fails if a
    /// promise is broken.
    fn cut(&mut self, cached: Option<(&Step, u64)>) -> Result<(), Failure> {
        check_interrupted()?;
        let mut disk = Disk::copied(self.folder.path(), self.file_system, &self.image, |copy| {
            let Some((step, seed)) = cached else { return Ok(()) };
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            step.apply_some(copy, self.file_system.superblock, &mut random)
        })?;
        let said = fresh(self.folder.path().join("said"))?;
        let subjects: Vec<&str> =
            self.subjects.iter().copied().filter(|name| self.lines.contains_key(*name)).collect();
        for name in &subjects {
            let path = said.join(name);
            std::fs::write(&path, &self.lines[*name]).tried(path.display())?;
        }
        let seen = check(self.program, &subjects, &disk.point().join("moment"), &said)?;
        if self.cuts.is_multiple_of(EXAMINED) {
            disk.examine()?;
        }
        self.cuts += 1;
        let mut broken = None;
        for (name, seen) in subjects.into_iter().zip(seen) {
            if !seen.faults.is_empty() && !CONTROLS.contains(&name) {
                broken = Some(format!("{name}: {}", seen.faults.join("; ")));
            }
            if let Some(place) = self.subjects.iter().position(|known| *known == name) {
                self.tallies[place].push(seen);
            }
        }
        broken.map_or(Ok(()), |because| Err(Failure::Failed(because)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_moments_again_and_without_a_limit_all_are_tried() {
        let chosen = |all, most| chosen(all, 7, most);
        assert_eq!(chosen(100, Some(9)), chosen(100, Some(9)));
        assert_eq!(chosen(100, Some(9)).len(), 9);
        assert_eq!(chosen(5, Some(9)), (0..5).collect());
        assert_eq!(chosen(5, None), (0..5).collect());
    }
}
