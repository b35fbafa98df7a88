//! Simulates power losses of file systems at random moments while wrote writes to them, and checks
//! all promises.

pub mod disk;
mod moment;
pub mod subject;

use super::Moments;
use crate::tools::failure::Failure;
use crate::tools::report::Report;
use crate::tools::repository::release;
use crate::tools::run::check_interrupted;
use disk::{Disk, FileSystem};
use moment::Moment;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use subject::Seen;

/// The minimum number of moments. With fewer, every unsynced write may survive by chance.
const MOMENTS: u32 = 200;

/// ext4 as Debian creates it.
pub const EXT4: FileSystem = FileSystem {
    name: "ext4",
    kind: "ext4",
    options: &["-F"],
    examine: &["e2fsck", "-f", "-n"],
    superblock: Some((1 << 10, 2 << 10)),
};

/// XFS as `mkfs.xfs` creates it.
pub const XFS: FileSystem = FileSystem {
    name: "XFS",
    kind: "xfs",
    options: &["-f"],
    examine: &["xfs_repair", "-f", "-n"],
    superblock: None,
};

/// The file systems that must recover completely. ext4 with `fast_commit` does not: see
/// `lab/README.md`.
pub const FILE_SYSTEMS: [FileSystem; 3] = [
    EXT4,
    XFS,
    FileSystem {
        name: "Btrfs",
        kind: "btrfs",
        options: &["-f"],
        examine: &["btrfs", "check"],
        superblock: Some((64 << 10, 68 << 10)),
    },
];

/// The subjects that write during a power loss. The library's own ([`WROTE`]) come first.
pub const SUBJECTS: [&str; 11] = [
    "save",
    "replace",
    "writer",
    "copy",
    "log",
    "log-sync",
    "log-served",
    "lines",
    "by-hand",
    CONTROLS[0],
    CONTROLS[1],
];

/// The subjects that write with wrote. Their promises survive a crash of their process.
pub const WROTE: &[&str] = SUBJECTS.split_at(9).0;

/// The subjects that must break some promises, because otherwise the lab would prove nothing. All
/// other subjects must keep all promises. The last one writes only in `lab log-writes --pages`.
pub const CONTROLS: [&str; 3] = ["unsynced-folder", "unsynced", "plain-pages"];

/// The subjects that recover their files when they open them, and could then lose data.
const REOPENED: [&str; 4] = ["log", "log-sync", "log-served", "lines"];

/// The error numbers of a file system without power: EIO, and in some calls of ext4 EROFS.
const REFUSALS: [i32; 2] = [5, 30];

/// Simulates power losses of each file system.
pub fn lab(report: &mut Report, options: Moments) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip("lab power-cut", because);
    }
    let (moments, seed) = (options.moments, options.seed());
    for file_system in FILE_SYSTEMS {
        let name = format!("lab power-cut: {}, {moments} moments", file_system.name);
        // A release build is used, because faster subjects do more before each moment.
        report.step(&name, || cut(&release("lab")?, file_system, seed, moments))?;
    }
    Ok(())
}

/// Returns the reason to skip the lab; `None` if it can run.
pub fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    let control = "/dev/loop-control";
    std::fs::File::open(control).err().map(|error| format!("{control}: {error}"))
}

/// Simulates a power loss of one file system at each moment, until a promise is broken.
fn cut(program: &Path, file_system: FileSystem, seed: u64, moments: u32) -> Result<(), Failure> {
    eprintln!("{moments} moments; --seed {seed} draws them again");
    let mut disk = Disk::unless_impossible(file_system)?;
    disk.try_switch()?;
    let mut tallies = SUBJECTS.map(|_| Vec::new());
    let done = (0..moments)
        .try_for_each(|number| {
            one(&mut disk, program, draw(seed, number), &mut tallies).map_err(|failure| {
                failure.in_words(|because| format!("moment {number}, {because}"))
            })
        })
        .and_then(|()| disk.examine());
    for (name, tally) in SUBJECTS.iter().zip(&tallies) {
        eprintln!("{}", describe(name, tally));
    }
    done.map_err(|failure| {
        failure.in_words(|because| {
            let image = disk.keep();
            format!("seed {seed}: {because}; the image is kept: {}", image.display())
        })
    })?;
    if moments >= MOMENTS {
        sees_something(&SUBJECTS, &tallies)?;
    }
    Ok(())
}

/// Runs one moment with all subjects, and adds the results to `tallies`.
fn one(
    disk: &mut Disk,
    program: &Path,
    moment: Moment,
    tallies: &mut [Vec<Seen>],
) -> Result<(), Failure> {
    check_interrupted()?;
    let ms = moment.delay.as_secs_f64() * 1e3;
    let words = |because| format!("{ms:.1} ms after the beginning: {because}");
    let seen = moment::live(disk, program, moment);
    let seen = seen.map_err(|failure| failure.in_words(words))?;
    let broken = SUBJECTS.iter().zip(&seen).find_map(|(name, seen)| {
        judge(name, seen).err().map(|because| format!("{name}: {because}"))
    });
    tallies.iter_mut().zip(seen).for_each(|(tally, seen)| tally.push(seen));
    broken.map_or(Ok(()), |because| Err(Failure::Failed(words(because))))
}

/// Draws moment `number`: a power loss 1 to 200 ms after the subjects begin. Every second moment
/// has a second power loss, 1 to 250 ms after the logs begin to be reopened.
fn draw(seed: u64, number: u32) -> Moment {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..number {
        random.jump();
    }
    let delay = super::draw_delay(&mut random, 200.0);
    let seed = random.random();
    let again = super::draw_delay(&mut random, 250.0);
    Moment { delay, seed, again: (number % 2 == 1).then_some(again) }
}

/// Fails if the result of the subject `name` is not as required.
fn judge(name: &str, seen: &Seen) -> Result<(), String> {
    let (action, errno) = &seen.refused;
    if !REFUSALS.contains(errno) {
        return Err(format!("{action} was refused with error {errno}, not for want of power"));
    }
    let holds = seen.faults.is_empty() || CONTROLS.contains(&name);
    if holds { Ok(()) } else { Err(seen.faults.join("; ")) }
}

/// Fails if one of the [`CONTROLS`] kept all promises.
pub fn sees_something(subjects: &[&str], tallies: &[Vec<Seen>]) -> Result<(), Failure> {
    let mut subjects = subjects.iter().zip(tallies);
    let blind = subjects.find(|(name, tally)| CONTROLS.contains(name) && broken(tally) == 0);
    blind.map_or(Ok(()), |(name, _)| {
        Err(Failure::Failed(format!("the lab sees nothing: every promise of {name} held")))
    })
}

/// Returns the number of moments with a broken promise.
fn broken(all: &[Seen]) -> usize {
    count(all, |seen| !seen.faults.is_empty())
}

/// Returns some lines with a subject's name and totals.
pub fn describe(name: &str, all: &[Seen]) -> String {
    let promises: usize = all.iter().map(|seen| seen.promises).sum();
    let (moments, early) = (all.len(), count(all, |seen| seen.promises == 0));
    let mut text = format!(
        "  {name}: {promises} promises in {moments} moments, {early} moments before the first"
    );
    // A replay does not refuse any calls.
    if all.iter().any(|seen| !seen.refused.0.is_empty()) {
        let refused = counts(all.iter().map(|seen| &seen.refused.0));
        let _ = write!(text, "\n    hit in the middle of: {refused}");
    }
    if let times @ 1.. = all.iter().map(|seen| seen.reopened).sum::<usize>() {
        let moments = count(all, |seen| seen.reopened > 0);
        let _ =
            write!(text, "\n    opened again {times} times in {moments} moments with a second cut");
    }
    if let late @ 1.. = all.iter().map(|seen| seen.late).sum::<usize>() {
        let _ = write!(text, "\n    promises made when the power was gone: {late}");
    }
    if let Some(fault) = all.iter().find_map(|seen| seen.faults.first()) {
        let _ = write!(text, "\n    promises broken in {} moments, first: {fault}", broken(all));
    }
    text
}

fn count(all: &[Seen], is_meant: impl Fn(&Seen) -> bool) -> usize {
    all.iter().filter(|seen| is_meant(seen)).count()
}

/// Returns counts in words, such as "fdatasync 12, write 30".
fn counts<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_insert(0) += 1);
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seen(errno: i32, faults: &[&str]) -> Seen {
        let faults = faults.iter().map(|&fault| fault.into()).collect();
        Seen { refused: ("write".into(), errno), faults, ..Seen::default() }
    }

    #[test]
    fn a_seed_draws_the_same_moments_again_and_each_another() {
        let moments = |seed| (0..20).map(|number| draw(seed, number)).collect::<Vec<_>>();
        assert_eq!(moments(7), moments(7));
        assert_ne!(moments(7), moments(8));
        assert_ne!(draw(7, 0), draw(7, 1));
        let (least, most) = (Duration::from_millis(1), Duration::from_millis(200));
        assert!(moments(7).iter().all(|moment| (least..=most).contains(&moment.delay)));
        assert_eq!(moments(7).iter().filter(|moment| moment.again.is_some()).count(), 10);
    }

    #[test]
    fn a_broken_promise_is_a_failure_only_of_those_whose_promises_can_hold() {
        assert!(judge("save", &seen(5, &[])).is_ok());
        assert_eq!(judge("save", &seen(5, &["lost", "mixed"])), Err("lost; mixed".into()));
        assert!(judge("unsynced", &seen(5, &["lost"])).is_ok());
    }

    #[test]
    fn an_error_that_is_not_the_cuts_is_a_failure() {
        assert!(judge("save", &seen(28, &[])).is_err());
        assert!(judge("unsynced", &seen(28, &[])).is_err());
    }

    #[test]
    fn a_lab_in_which_every_promise_holds_fails() {
        let mut tallies = SUBJECTS.map(|_| Vec::new());
        assert!(sees_something(&SUBJECTS, &tallies).is_err());
        for (name, tally) in SUBJECTS.iter().zip(&mut tallies) {
            if CONTROLS.contains(name) {
                tally.push(seen(5, &["lost"]));
            }
        }
        assert!(sees_something(&SUBJECTS, &tallies).is_ok());
    }

    #[test]
    fn moments_are_added_up() {
        let seen = |promises, action: &str, faults: &[&str]| Seen {
            promises,
            late: 0,
            refused: (action.into(), 5),
            reopened: 2,
            faults: faults.iter().map(|&fault| fault.into()).collect(),
        };
        let all = [
            seen(0, "write", &[]),
            seen(3, "rename", &["lost", "mixed"]),
            seen(4, "write", &["empty"]),
        ];
        assert_eq!(broken(&all), 2);
        assert_eq!(
            describe("save", &all),
            "  save: 7 promises in 3 moments, 1 moments before the first
    hit in the middle of: rename 1, write 2
    opened again 6 times in 3 moments with a second cut
    promises broken in 2 moments, first: lost"
        );
    }
}
