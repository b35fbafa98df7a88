//! Compares the verdicts of `wrote trace` with simulated power losses, for each method of saving a
//! file and on each file system.
//!
//! A power loss is simulated by copying the image under a loop device at a moment between two
//! steps. The copy contains everything that has left the page cache, like a device whose cache is
//! not volatile.

mod pattern;
mod queued;
pub mod steps;

use super::Moments;
use super::power_cut::disk::{Disk, FileSystem};
use super::power_cut::{FILE_SYSTEMS, lacking};
use crate::tools::failure::{Failure, Tried};
use crate::tools::report::Report;
use crate::tools::repository::{fresh, release, target};
use crate::tools::run::{HANG, Show, check_interrupted, run};
use pattern::{FILE, PATTERNS, Pattern, content};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum number of patterns that have ended before a power loss. It is small, because each
/// flush may save what other patterns wrote.
const ENDED_MAX: usize = 4;
/// The findings about a file that may be neither old nor new during a save.
const TORN: [&str; 3] =
    ["rename-before-flush", "only-copy-overwritten", "unlink-before-durable-name"];
/// The finding about a removed file that may exist again.
const REMOVED: &str = "unlink-not-flushed";

/// Compares the verdicts with power losses on each file system.
pub fn lab(report: &mut Report, options: Moments) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip("lab trace", because);
    }
    let (moments, seed) = (options.moments, options.seed());
    for file_system in FILE_SYSTEMS {
        let name = format!("lab trace: {}, {moments} moments", file_system.name);
        let programs = || Ok([release("wrote")?, release("lab")?]);
        report.step(&name, || compare(&programs()?, file_system, seed, moments))?;
    }
    Ok(())
}

/// The verdict of `wrote trace` on a pattern.
#[derive(Debug, Default)]
struct Verdict {
    survives: String,
    findings: Vec<(String, bool)>,
}

impl Verdict {
    fn of(document: &Value) -> Verdict {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = document["files"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = rows.iter().find(|row| text(&row["path"]).ends_with(&format!("/{FILE}")));
        let findings = document["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
        Verdict {
            survives: row.map_or("removed".into(), |row| text(&row["survives"])),
            findings: findings
                .iter()
                .map(|found| (text(&found["id"]), text(&found["severity"]) == "warning"))
                .collect(),
        }
    }

    fn has(&self, id: &str) -> bool {
        self.findings.iter().any(|(found, _)| found == id)
    }

    /// Returns whether the saved content may be lost after the pattern has ended.
    fn may_lose(&self) -> bool {
        match self.survives.as_str() {
            "removed" => self.has(REMOVED),
            survives => survives != "power-loss",
        }
    }

    /// Returns whether the file may be neither old nor new before the pattern has ended.
    fn may_tear(&self) -> bool {
        TORN.iter().any(|id| self.has(id))
    }

    fn ids(&self) -> String {
        let ids: Vec<&str> = self.findings.iter().map(|(id, _)| id.as_str()).collect();
        ids.join(", ")
    }
}

/// The outcomes of the power losses for a pattern.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// The number of power losses after the end.
    ended: u32,
    lost: u32,
    /// The number of power losses at any moment, if the pattern must leave either the old or the
    /// new content.
    judged: u32,
    torn: u32,
}

impl Left {
    /// Returns how the verdict is wrong; `None` if it is not.
    fn miss(&self, verdict: &Verdict) -> Option<String> {
        match self {
            Left { lost: 1.., .. } if !verdict.may_lose() => {
                Some("lost, and called durable".into())
            }
            Left { torn: 1.., .. } if !verdict.may_tear() => {
                Some("neither old nor new, without a warning of it".into())
            }
            _ => None,
        }
    }

    /// Returns whether there is a warning that no power loss has confirmed.
    fn is_unshown(&self, verdict: &Verdict) -> bool {
        verdict.findings.iter().any(|(_, is_warning)| *is_warning)
            && self.lost == 0
            && self.torn == 0
    }
}

/// Compares the verdicts with power losses on one file system.
fn compare(
    programs: &[PathBuf; 2],
    file_system: FileSystem,
    seed: u64,
    moments: u32,
) -> Result<(), Failure> {
    eprintln!("--seed {seed} draws them again");
    let disk = Disk::unless_impossible(file_system)?;
    let verdicts = PATTERNS
        .iter()
        .map(|pattern| traced(programs, &disk, pattern))
        .collect::<Result<Vec<_>, _>>()?;
    let whole =
        PATTERNS.iter().map(|pattern| whole(&disk, pattern)).collect::<Result<Vec<_>, _>>()?;
    let mut left = [Left::default(); PATTERNS.len()];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for number in 0..moments {
        check_interrupted()?;
        let words = |because| format!("moment {number}: {because}");
        cut(&disk, file_system, &mut random, &whole, &mut left)
            .map_err(|failure| failure.in_words(words))?;
    }
    let mut misses = Vec::new();
    for ((pattern, verdict), left) in PATTERNS.iter().zip(&verdicts).zip(&left) {
        let Left { ended, lost, judged, torn } = left;
        let unshown = if left.is_unshown(verdict) { "; a warning that no cut showed" } else { "" };
        eprintln!(
            "  {}: {} ({}): lost {lost} of {ended}, torn {torn} of {judged}{unshown}",
            pattern.name,
            verdict.survives,
            verdict.ids(),
        );
        misses.extend(left.miss(verdict).map(|miss| format!("{}: {miss}", pattern.name)));
    }
    match misses.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("seed {seed}: {}", misses.join("; ")))),
    }
}

/// Returns the verdict of `wrote trace` on a pattern.
fn traced([wrote, lab]: &[PathBuf; 2], disk: &Disk, pattern: &Pattern) -> Result<Verdict, Failure> {
    let folder = disk.point().join(format!("traced {}", pattern.name));
    pattern.prepare(&folder).tried(pattern.name)?;
    rustix::fs::sync();
    let document = disk.folder().join("trace.json");
    let mut command = Command::new(wrote);
    command.args(["trace", "--format", "json", "--force", "-o"]).arg(&document).arg("--under");
    command.arg(&folder).arg("--").arg(lab).args(["steps", pattern.steps]).arg(&folder);
    run(&mut command, HANG, Show::Quiet)?.success(pattern.name)?;
    let file = File::open(&document).tried(document.display())?;
    let document: Value = serde_json::from_reader(file).tried(document.display())?;
    Ok(Verdict::of(&document))
}

/// Returns the content before and after a pattern; `None` where there is no file.
fn whole(disk: &Disk, pattern: &Pattern) -> Result<[Option<Vec<u8>>; 2], Failure> {
    let folder = disk.point().join(format!("whole {}", pattern.name));
    pattern.prepare(&folder).tried(pattern.name)?;
    let before = content(&folder).tried(pattern.name)?;
    pattern.run(&folder, pattern.steps().len()).tried(pattern.name)?;
    Ok([before, content(&folder).tried(pattern.name)?])
}

/// Runs some patterns to their end and one only partially, cuts the power, and adds up the
/// outcomes.
fn cut(
    disk: &Disk,
    file_system: FileSystem,
    random: &mut Xoshiro256PlusPlus,
    whole: &[[Option<Vec<u8>>; 2]],
    left: &mut [Left],
) -> Result<(), Failure> {
    let place = |point: &Path| point.join("moment");
    let folder = fresh(place(&disk.point()))?;
    let mut order: Vec<usize> = (0..PATTERNS.len()).collect();
    order.shuffle(random);
    order.truncate(random.random_range(2..=ENDED_MAX + 1));
    for number in &order {
        let pattern = &PATTERNS[*number];
        pattern.prepare(&folder.join(number.to_string())).tried(pattern.name)?;
    }
    rustix::fs::sync();
    let (last, ended) = order.split_last().expect("there are two or more");
    for number in ended {
        let pattern = &PATTERNS[*number];
        let folder = folder.join(number.to_string());
        pattern.run(&folder, pattern.steps().len()).tried(pattern.name)?;
    }
    let pattern = &PATTERNS[*last];
    let steps = random.random_range(0..pattern.steps().len());
    let open = pattern.run(&folder.join(last.to_string()), steps).tried(pattern.name)?;
    // A flush of another file may make names durable before the bytes.
    if random.random() {
        let path = folder.join("neighbour");
        std::fs::write(&path, "x")
            .and_then(|()| File::open(&path)?.sync_all())
            .tried("neighbour")?;
    }
    let crashed = Disk::copied(&target(), file_system, &disk.image(), |_| Ok(()))?;
    drop(open);
    for number in &order {
        let folder = place(&crashed.point()).join(number.to_string());
        let found = content(&folder).tried(folder.display())?;
        let ([old, new], left) = (&whole[*number], &mut left[*number]);
        let pattern = &PATTERNS[*number];
        if number != last {
            left.ended += 1;
            left.lost += u32::from(found != *new);
        }
        if pattern.is_whole {
            left.judged += 1;
            left.torn += u32::from(found != *old && found != *new);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(survives: &str, findings: &[(&str, &str)]) -> Verdict {
        let findings: Vec<Value> = findings
            .iter()
            .map(|(id, severity)| json!({ "id": id, "severity": severity }))
            .collect();
        let files = json!([{ "path": "/a/file", "survives": survives }]);
        Verdict::of(&json!({ "files": files, "findings": findings }))
    }

    #[test]
    fn a_loss_is_a_miss_only_where_it_was_called_durable() {
        let lost = Left { ended: 9, lost: 1, ..Left::default() };
        assert!(lost.miss(&verdict("power-loss", &[])).is_some());
        assert!(lost.miss(&verdict("process-crash", &[])).is_none());
        let removed = |ids| Verdict::of(&json!({ "files": [], "findings": ids }));
        assert!(lost.miss(&removed(json!([]))).is_some());
        let warned = json!([{ "id": "unlink-not-flushed", "severity": "info" }]);
        assert!(lost.miss(&removed(warned)).is_none());
    }

    #[test]
    fn a_torn_file_is_a_miss_without_a_warning_of_it() {
        let torn = Left { judged: 9, torn: 1, ..Left::default() };
        assert!(torn.miss(&verdict("power-loss", &[])).is_some());
        let warned = verdict("power-loss", &[("only-copy-overwritten", "warning")]);
        assert!(torn.miss(&warned).is_none());
        assert!(!torn.is_unshown(&warned) && Left::default().is_unshown(&warned));
    }
}
