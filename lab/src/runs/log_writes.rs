//! Records every write of the subjects of `lab power-cut`, or of drawn programs, in a guest. Then
//! simulates a power loss at each flush and between flushes.
//!
//! The guest's kernel has `dm-log-writes`, which the host's kernel may lack. The guest needs
//! nothing else, because the log is replayed on the host, into images that the host mounts. Since
//! the log requires nothing from a file system, Btrfs, which cannot be shut down, can be tested
//! like the others.

pub(crate) mod entries;
mod pages;
mod programs;
mod replay;
mod steps;

use super::guest::{self, Base, Disk, Guest, Module, Planned, checksum, module};
use super::power_cut::disk::FileSystem;
use super::power_cut::{FILE_SYSTEMS, SUBJECTS, lacking};
use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, DEVICE_MAPPER};
use crate::tools::report::{Counts, Outcome, Report};
use crate::tools::repository::{release, target};
use crate::tools::run::HANG;
use std::fs::File;
use std::path::PathBuf;
use tempfile::TempDir;

/// Options of the lab.
#[derive(Clone, Default, clap::Args)]
pub struct Arguments {
    /// The seed of the subjects and of the moments; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many moments on each file system, drawn from those in the log; all by default.
    #[arg(long, value_name = "N")]
    pub moments: Option<usize>,
    /// Trace this many drawn programs in place of the subjects: `wrote trace` must say of no name
    /// that it survives which a cut loses.
    #[arg(long, value_name = "N")]
    pub programs: Option<u64>,
    /// Let pages be overwritten on XFS, by this machine's kernel, in place of the subjects: none by
    /// `RWF_ATOMIC` may be torn.
    #[arg(long)]
    pub pages: bool,
    /// Record nothing, and replay this folder, which a failure has kept.
    #[arg(long, value_name = "FOLDER")]
    pub again: Option<PathBuf>,
}

/// The number of entries in the log of a file system, which yields some hundred moments.
const ENTRIES: u64 = 2000;
const NAME: &str = "lab log-writes";
const SCRIPT: &str = include_str!("../../guest/log-writes.sh");

const MODULES: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    checksum("crc64_rocksoft_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("btrfs", ""),
    module("nvme", ""),
    module("loop", "max_loop=1"),
    module("dm-log-writes", ""),
];

/// The size of a log's disk, which is a sparse file.
const LOG_BYTES: u64 = 8 << 30;

/// Records the writes, and simulates power losses on each file system.
///
/// If a part of the guest is missing, the lab fails if `install` is set, and is skipped otherwise.
pub fn lab(report: &mut Report, arguments: &Arguments, install: bool) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip(NAME, because);
    }
    let seed = arguments.seed.unwrap_or_else(super::draw_seed);
    if arguments.pages {
        return report.step("lab log-writes: pages on XFS", || {
            pages::cut(&release("lab")?, (seed, arguments.moments))
        });
    }
    let built = report
        .make("lab log-writes: build", || Ok([release("lab")?, target().join("release/wrote")]))?;
    let Some(built) = built else { return Ok(()) };
    let Some(mut recorded) = recorded(report, arguments, &built, seed, install)? else {
        return Ok(());
    };
    for file_system in FILE_SYSTEMS {
        let name = format!("{NAME}: {}", file_system.name);
        report.step(&name, || {
            let images = (recorded.disk(file_system), recorded.log(file_system));
            let moments = (seed, arguments.moments);
            let replayed = match arguments.programs {
                Some(_) => programs::replay(file_system, images, moments),
                None => replay::replay(&built[0], file_system, images, moments, &SUBJECTS),
            };
            replayed.map_err(|failure| {
                failure.in_words(|because| format!("{because}; {}", recorded.keep(seed)))
            })
        })?;
    }
    Ok(())
}

/// Creates a recording, or reuses the one that was kept after a failure. If that failed or was
/// skipped, reports the reason and returns `None`.
fn recorded(
    report: &mut Report,
    arguments: &Arguments,
    built: &[PathBuf],
    seed: u64,
    install: bool,
) -> Result<Option<Recorded>, Failure> {
    if let Some(folder) = &arguments.again {
        return Ok(Some(Recorded { folder: folder.clone(), made: None }));
    }
    let Some(base) = guest::base(report, NAME, DEVICE_MAPPER, install)? else { return Ok(None) };
    let mut recorded = None;
    report.step("lab log-writes: recording", || {
        let folder = TempDir::with_prefix_in("lab-log-writes-", target()).tried("a folder")?;
        let new = Recorded { folder: folder.path().to_owned(), made: Some(folder) };
        let counts = record(&base, built, &new, seed, arguments.programs)?;
        recorded = (counts.failed == 0).then_some(new);
        Ok(Outcome::Tests(counts))
    })?;
    Ok(recorded)
}

/// The folder of a recording.
struct Recorded {
    folder: PathBuf,
    /// The guard that removes the folder of a new recording.
    made: Option<TempDir>,
}

impl Recorded {
    /// Returns the image of the disk before the recording.
    fn disk(&self, FileSystem { kind, .. }: FileSystem) -> PathBuf {
        self.folder.join(format!("{kind}.image"))
    }

    fn log(&self, FileSystem { kind, .. }: FileSystem) -> PathBuf {
        self.folder.join(format!("{kind}.log"))
    }

    /// Keeps the folder, and returns how to replay it.
    fn keep(&mut self, seed: u64) -> String {
        self.made.iter_mut().for_each(|made| made.disable_cleanup(true));
        format!("`{NAME} --seed {seed} --again {}` repeats it", self.folder.display())
    }
}

/// Runs the subjects in a guest, on each file system until its log has [`ENTRIES`] entries. If
/// `programs` is given, traces that number of programs instead.
fn record(
    base: &Base,
    built: &[PathBuf],
    recorded: &Recorded,
    seed: u64,
    programs: Option<u64>,
) -> Result<Counts, Failure> {
    eprintln!("--seed {seed}");
    let logs = guest::logs("log-writes")?;
    let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
    let (mut disks, mut plan) = (Vec::new(), Vec::new());
    for file_system in FILE_SYSTEMS {
        let (name, kind) = (file_system.name, file_system.kind);
        let [before, log] = [recorded.disk(file_system), recorded.log(file_system)];
        file_system.make(&before)?;
        File::create_new(&log).and_then(|log| log.set_len(LOG_BYTES)).tried(log.display())?;
        // The guest writes to a copy of the image.
        let image = folder.path().join(format!("{kind}.image"));
        std::fs::copy(&before, &image).tried(image.display())?;
        let absolute = std::path::absolute(&log).tried(log.display())?;
        disks.push(Disk { serial: kind.to_owned(), image });
        disks.push(Disk { serial: format!("{kind}-log"), image: absolute });
        let command = match programs {
            Some(count) => format!("programs {kind} {seed} {count}"),
            None => format!("record {kind} {seed} {ENTRIES} {}", SUBJECTS.join(" ")),
        };
        plan.push(Planned { name: format!("recording {name}"), command });
    }
    let mut tools = packages::files(&["dmsetup", "losetup"])?;
    tools.extend_from_slice(built);
    let guest = Guest {
        script: SCRIPT.to_owned(),
        modules: MODULES,
        programs: &[],
        tools: &tools,
        plan: &plan,
        disks: &disks,
        parameters: "",
        limit: 6 * HANG,
    };
    let results = guest.run(base, folder.path(), &logs)?;
    Ok(results.counts(plan.len()))
}
