//! The replay of traced programs. Each name that is reported to survive must exist with the content
//! that its program left, at each moment after the program's end. Some of the names that are
//! reported as lost must be missing, or else the replay would prove nothing.

use super::entries::{Entries, Entry};
use super::replay::{chosen, copied};
use super::steps::Step;
use crate::runs::power_cut::disk::{Disk, FileSystem};
use crate::runs::trace::steps::{content, drawn};
use crate::tools::failure::Failure;
use crate::tools::run::check_interrupted;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A name below the folder of its program's seed, the file's size and checksum, and whether the
/// name is reported to survive.
type Named = (String, String, bool);

/// Replays a log on the image of the disk before the recording. Simulates a power loss at the end
/// of each program, and at `most` of the moments at which something was in the device's cache.
/// Fails if a name was lost.
pub fn replay(
    file_system: FileSystem,
    (before, log): (PathBuf, PathBuf),
    (seed, most): (u64, Option<usize>),
) -> Result<(), Failure> {
    let (folder, image, changed) = copied(&before)?;
    let flushes =
        Entries::open(&log)?.filter(|entry| matches!(entry, Ok(Entry::Stable(_)))).count();
    let chosen = chosen(flushes, seed, most);
    let (mut step, mut flush, mut cuts, mut ended) = (Step::default(), 0, 0, 0);
    let (mut names, mut new) = (Vec::new(), Vec::new());
    let mut missing = 0;
    let mut lost = BTreeMap::new();
    let mut cut = |names: &[Named], cached: Option<(&Step, u64)>| {
        check_interrupted()?;
        cuts += 1;
        let disk = Disk::copied(folder.path(), file_system, &image, |copy| {
            let Some((step, seed)) = cached else { return Ok(()) };
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            step.apply_some(copy, file_system.superblock, &mut random)
        })?;
        let moment = disk.point().join("moment");
        for (name, told, survives) in names {
            let left = left(&moment.join(name));
            if left != *told && !survives {
                missing += 1;
            } else if left != *told {
                lost.entry(name.clone()).or_insert(format!("cut {cuts}: {left}, not {told}"));
            }
        }
        Ok::<_, Failure>(())
    };
    for entry in Entries::open(&log)? {
        match entry? {
            Entry::Mark(text) if text == "end" => break,
            Entry::Mark(text) => match text.split(',').collect::<Vec<_>>()[..] {
                [_, ""] => {
                    ended += 1;
                    names.append(&mut new);
                    cut(&names, None)?;
                }
                [seed, name, count, sum, verdict] => {
                    let survives = verdict == "Survives";
                    new.push((format!("{seed}/{name}"), format!("{count},{sum}"), survives));
                }
                _ => return Err(Failure::Failed(format!("an unknown mark: {text:?}"))),
            },
            Entry::Volatile(change) => step.volatile.push(change),
            Entry::Stable(change) => {
                step.stable = change;
                if chosen.contains(&flush) && !step.volatile.is_empty() && !names.is_empty() {
                    cut(&names, Some((&step, seed ^ flush as u64)))?;
                }
                step.apply(&changed)?;
                (step, flush) = (Step::default(), flush + 1);
            }
        }
    }
    let survive = names.iter().filter(|(.., survives)| *survives).count();
    let others = names.len() - survive;
    eprintln!("{ended} programs, {survive} names that survive, {cuts} cuts");
    eprintln!("{others} other names, {missing} times missing");
    if others > 0 && missing == 0 {
        return Err(Failure::Failed("no name that may be lost was missing in any cut".into()));
    }
    let told = |(name, left): (&String, &String)| {
        let seed = name.split('/').next().and_then(|seed| seed.parse().ok()).unwrap_or(0);
        format!("{name} was lost ({left}): {}", drawn(seed).join(", "))
    };
    let lost: Vec<_> = lost.iter().map(told).collect();
    if lost.is_empty() { Ok(()) } else { Err(Failure::Failed(lost.join("\n"))) }
}

/// Returns the remaining content of a file as its size and checksum, or the error.
fn left(file: &Path) -> String {
    match content(file) {
        Ok(bytes) => format!("{},{}", bytes.len(), crc32c::crc32c(&bytes)),
        Err(error) => error.to_string(),
    }
}
