//! The steps of a log: the changes up to each flush or FUA write, and the promises after it.

use super::entries::{Change, Entries, Entry};
use crate::tools::failure::{Failure, Tried};
use rand::{Rng, RngExt};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The mark at the end of a recording.
const END: &str = "end";
/// The size of the unit that a disk writes either completely or not at all.
const SECTOR_BYTES: u64 = 512;

/// A section of a log, which ends with the marks that follow a flush or a FUA write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The changes that were in the device's volatile cache before the flush.
    pub volatile: Vec<Change>,
    /// The FUA write, which is stable on its own.
    pub stable: Option<Change>,
    /// The texts of the marks.
    pub marks: Vec<String>,
}

impl Step {
    /// Returns the number of possible power losses: one at the end of the step, and one before that
    /// if anything was in the cache.
    pub fn moments(&self) -> usize {
        1 + usize::from(!self.volatile.is_empty())
    }

    /// Applies all changes of the step to an image.
    pub fn apply(&self, image: &File) -> Result<(), Failure> {
        self.volatile.iter().chain(&self.stable).try_for_each(|change| change.apply(image))
    }

    /// Applies those changes of the volatile cache that the device happened to write: some
    /// completely, some partially, and some not at all. The sectors of the `superblock` are written
    /// together.
    pub fn apply_some(
        &self,
        image: &File,
        superblock: Option<(u64, u64)>,
        random: &mut impl Rng,
    ) -> Result<(), Failure> {
        for change in &self.volatile {
            match random.random_range(0..3) {
                0 => {}
                1 => change.apply(image)?,
                _ => {
                    let is_kept = |_: &_| random.random_bool(0.5);
                    change
                        .units(superblock)
                        .filter(is_kept)
                        .try_for_each(|part| change.apply_part(image, part))?;
                }
            }
        }
        Ok(())
    }
}

impl Change {
    fn range(&self) -> Range<u64> {
        match self {
            Change::Write { offset, bytes } => *offset..offset + bytes.len() as u64,
            Change::Discard { offset, len } => *offset..offset + len,
        }
    }

    /// Returns the sectors of the change, as ranges of the device. The superblock is a single
    /// range.
    fn units(&self, superblock: Option<(u64, u64)>) -> impl Iterator<Item = Range<u64>> {
        let Range { mut start, end } = self.range();
        let whole = superblock.map_or(0..0, |(start, end)| start..end);
        std::iter::from_fn(move || {
            let next = if whole.contains(&start) { whole.end } else { start + SECTOR_BYTES };
            let unit = start..next.min(end);
            start = unit.end;
            (!unit.is_empty()).then_some(unit)
        })
    }

    fn apply(&self, image: &File) -> Result<(), Failure> {
        self.apply_part(image, self.range())
    }

    fn apply_part(&self, image: &File, part: Range<u64>) -> Result<(), Failure> {
        match self {
            Change::Write { offset, bytes } => {
                let [start, end] = [part.start, part.end].map(|at| (at - offset) as usize);
                image.write_all_at(&bytes[start..end], part.start).tried("the image")
            }
            Change::Discard { .. } => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(image, hole, part.start, part.end - part.start).tried("the image")
            }
        }
    }
}

/// Passes each step of a log to `each`, up to the mark [`END`].
pub fn each_step<R: Read>(
    entries: Entries<R>,
    mut each: impl FnMut(Step) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut step = Step::default();
    let mut is_stable = false;
    for entry in entries {
        match entry? {
            Entry::Mark(text) if text == END => return each(step),
            Entry::Mark(text) => step.marks.push(text),
            other => {
                if is_stable {
                    each(std::mem::take(&mut step))?;
                }
                is_stable = matches!(other, Entry::Stable(_));
                match other {
                    Entry::Volatile(change) => step.volatile.push(change),
                    Entry::Stable(change) => step.stable = change,
                    Entry::Mark(_) => {}
                }
            }
        }
    }
    Err(Failure::Failed("the log has no mark of its end".to_owned()))
}

/// Adds the promise in a mark to the lines of its subject.
pub fn add(lines: &mut BTreeMap<String, String>, mark: &str) -> Result<(), Failure> {
    let unknown = || Failure::Failed(format!("an unknown mark: {mark:?}"));
    let (subject, line) = mark.split_once(',').ok_or_else(unknown)?;
    let lines = lines.entry(subject.to_owned()).or_default();
    lines.push_str(line);
    lines.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::log_writes::entries::tests::log;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::BTreeSet;

    fn steps(bytes: &[u8]) -> Result<Vec<Step>, Failure> {
        let mut steps = Vec::new();
        each_step(Entries::read(bytes).expect("a log"), |step| {
            steps.push(step);
            Ok(())
        })?;
        Ok(steps)
    }

    fn write(sector: u64, byte: u8, sectors: usize) -> Change {
        Change::Write { offset: sector * 512, bytes: vec![byte; 512 * sectors] }
    }

    #[test]
    fn a_step_ends_behind_the_marks_of_a_flush_or_fua() {
        let (one, two) = ([1; 512], [2; 1024]);
        let bytes = log(&[
            (1, 1, 0, &one),
            (0, 2, 0, &two),
            (0, 0, 1, b""),
            (0, 0, 8, b"save,ready"),
            (0, 0, 8, br#"save,{"Saved":1}"#),
            (5, 1, 2, &one),
            (0, 0, 1, b""),
            (0, 0, 8, b"end"),
            (9, 1, 0, &one),
        ]);
        let steps = steps(&bytes).expect("steps");
        let marks = ["save,ready", r#"save,{"Saved":1}"#].map(str::to_owned).into();
        let expected = [
            Step { volatile: vec![write(1, 1, 1), write(0, 2, 2)], stable: None, marks },
            Step { stable: Some(write(5, 1, 1)), ..Step::default() },
            Step::default(),
        ];
        assert_eq!(steps, expected);
        assert_eq!(steps.iter().map(Step::moments).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[test]
    fn a_recording_without_an_end_is_a_failure() {
        assert!(steps(&log(&[(0, 0, 1, b"")])).is_err());
    }

    #[test]
    fn all_changes_are_applied_in_order() {
        let image = tempfile::tempfile().expect("a file");
        let step = Step {
            volatile: vec![write(0, 1, 4), write(1, 2, 2), Change::Discard { offset: 0, len: 512 }],
            stable: Some(write(2, 3, 1)),
            ..Step::default()
        };
        step.apply(&image).expect("applied");
        let mut bytes = [9; 2048];
        image.read_exact_at(&mut bytes, 0).expect("read");
        assert_eq!([0, 512, 1024, 1536].map(|at| bytes[at]), [0, 2, 3, 1]);
    }

    /// Returns the sectors that many power losses left of a write of one sector and a write of two.
    /// If `whole`, the two sectors are a superblock.
    fn left(whole: bool) -> BTreeSet<[u8; 5]> {
        let step = Step { volatile: vec![write(1, 1, 1), write(2, 2, 2)], ..Step::default() };
        let mut seen = BTreeSet::new();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..500 {
            let image = tempfile::tempfile().expect("a file");
            image.set_len(5 * 512).expect("a length");
            let superblock = whole.then_some((2 * 512, 4 * 512));
            step.apply_some(&image, superblock, &mut random).expect("applied");
            let mut bytes = [9; 5 * 512];
            image.read_exact_at(&mut bytes, 0).expect("read");
            seen.insert([0, 1, 2, 3, 4].map(|sector| bytes[sector * 512]));
        }
        seen
    }

    #[test]
    fn a_cut_leaves_any_sectors_of_the_cache_and_no_others() {
        let seen = left(false);
        // Each of the three sectors is either written or not.
        assert_eq!(seen.len(), 8);
        assert!(seen.iter().all(|sectors| sectors[0] == 0 && sectors[4] == 0));
    }

    #[test]
    fn a_cut_leaves_all_of_a_superblock_or_nothing() {
        let seen = left(true);
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|sectors| sectors[2] == sectors[3]));
    }

    #[test]
    fn marks_are_the_lines_of_their_subjects() {
        let mut lines = BTreeMap::new();
        for mark in ["save,ready", r#"log,{"end":[0,7]}"#, r#"save,{"Saved":1}"#] {
            add(&mut lines, mark).expect("a mark");
        }
        assert_eq!(lines["save"], "ready\n{\"Saved\":1}\n");
        assert_eq!(lines["log"], "{\"end\":[0,7]}\n");
        assert!(add(&mut lines, "dm-log-writes-end").is_err());
    }
}
