//! `lab programs`: runs drawn programs under `wrote trace`. A name that is reported to survive must
//! exist, as the program left it, in each state that `wrote trace crash` derives after the
//! program's end. With `--marks`, the names are instead marked in the log of a device, which is
//! replayed later.

use super::power_cut::Marks;
use super::{Trouble, least, none_broken, without_each};
use crate::runs::seeds;
use crate::runs::trace::steps;
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use wrote_result::trace::{File as Traced, Trace, Verdict};
use wrote_trace::{Entry, Record, states};

/// The maximum number of states, which is more than any drawn program has.
const STATES_MAX: u64 = 10_000;
/// The minimum number of programs for requiring that some of them leave a name that survives.
const MANY: u64 = 60;

/// Tries drawn programs.
#[derive(clap::Args)]
pub struct Arguments {
    /// The built command.
    #[arg(long)]
    program: PathBuf,
    /// A folder on a disk, for the files of the programs.
    #[arg(long)]
    folder: PathBuf,
    /// Mark the surviving names in the log of this device, `/dev/mapper/DEVICE`.
    #[arg(long)]
    marks: Option<String>,
    #[command(flatten)]
    seeds: seeds::Arguments,
}

const VERDICTS: [Verdict; 3] = [Verdict::Survives, Verdict::Unknown, Verdict::Lost];

/// The number of names by verdict, in the order of [`Verdict`].
type Counts = [AtomicU64; 3];

/// Traces all programs. Fails if a verdict was better than a state.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let program = std::path::absolute(&arguments.program)?;
    let counts = Counts::default();
    let broken = match &arguments.marks {
        Some(device) => mark(arguments, &program, device, &counts).map(|()| 0)?,
        None => {
            let place = || TempDir::new_in(&arguments.folder);
            arguments.seeds.seeds().try_all(
                "programs",
                || Ok(place()?),
                |place, seed| {
                    let steps = steps::drawn(seed);
                    let Some(because) = broken(&program, place.path(), &steps, seed, &counts)?
                    else {
                        return Ok::<_, Trouble>(None);
                    };
                    let uncounted = Counts::default();
                    let is_broken = |steps: &Vec<String>| {
                        let broken = broken(&program, place.path(), steps, seed, &uncounted);
                        broken.map(|broken| broken.is_some())
                    };
                    let smaller = |steps: &Vec<String>| without_each(steps).collect();
                    let steps = least(steps, smaller, is_broken)?;
                    Ok(Some(format!("{because}\n  {}", steps.join(", "))))
                },
            )?
        }
    };
    let [survive, unknown, lost] = counts.map(AtomicU64::into_inner);
    if survive == 0 && arguments.seeds.seeds().count >= MANY {
        return Err("no name survives: nothing was compared".into());
    }
    println!("FACT: {survive} names survive, {lost} are lost, {unknown} cannot be judged");
    none_broken(broken)
}

/// Traces a program in a prepared `folder`. Programs with even seeds use paths relative to it.
fn traced(
    program: &Path,
    folder: &Path,
    steps: &[String],
    seed: u64,
    result: &Path,
    record: Option<&Path>,
) -> Result<Trace, Trouble> {
    let mut command = Command::new(program);
    // In the guest, the disk appears as a device in memory, and elsewhere it may lack a journal.
    command.args(["trace", "--on-disk", "--format", "json", "--force", "-o"]).arg(result);
    command.arg("--under").arg(folder).current_dir(folder).stderr(Stdio::piped());
    if let Some(record) = record {
        command.arg("--record").arg(record);
    }
    command.arg("--").arg(std::env::current_exe()?).args(["steps", "--any", &steps.join(", ")]);
    let ended =
        command.arg(if seed.is_multiple_of(2) { Path::new(".") } else { folder }).output()?;
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).into());
    }
    Ok(serde_json::from_reader(File::open(result)?)?)
}

/// Counts the names with a verdict in a trace, and returns them relative to `folder`.
fn names<'a>(
    trace: &'a Trace,
    folder: &'a Path,
    verdict: Verdict,
    counts: &Counts,
) -> Vec<&'a Path> {
    let is_it = |file: &&Traced| file.verdict == verdict;
    let names = trace.files.iter().filter(is_it);
    counts[verdict as usize].fetch_add(names.clone().count() as u64, Ordering::Relaxed);
    names.filter_map(|file| Path::new(&file.path).strip_prefix(folder).ok()).collect()
}

/// Traces a program. Returns how a verdict is better than a state; `None` if none is.
fn broken(
    program: &Path,
    place: &Path,
    steps: &[String],
    seed: u64,
    counts: &Counts,
) -> Result<Option<String>, Trouble> {
    let folder = place.join("files");
    let [result, record] = ["result", "record"].map(|name| place.join(name));
    let _ = fs::remove_dir_all(&folder);
    steps::prepare(&folder)?;
    let trace = traced(program, &folder, steps, seed, &result, Some(&record))?;
    let record = Record::read(&record)?;
    let [names, ..] = VERDICTS.map(|verdict| names(&trace, &folder, verdict, counts));
    let mut broken = None;
    // Because the program gives no answers, only the last states are after its end.
    let Ok(_) = states::<Infallible>(&record, STATES_MAX, &mut |state| {
        for name in names.iter().filter(|_| state.told > 0) {
            let left = match state.tree.0.get(*name) {
                Some((Entry::File(left), _)) => Some(&**left),
                Some((Entry::Link(to), _)) => Some(to.as_os_str().as_encoded_bytes()),
                _ => None,
            };
            if left != steps::content(&folder.join(name)).ok().as_deref() {
                let name = name.display();
                broken = Some(format!("{name} survives, and not in state {}", state.shown.moment));
            }
        }
        Ok(broken.is_none())
    });
    Ok(broken)
}

/// Traces all programs one after the other. After the end of each program, adds a mark
/// `SEED,NAME,BYTES,CHECKSUM,VERDICT` for each name, whether it survives or not, and then the mark
/// `SEED,`.
fn mark(
    arguments: &Arguments,
    program: &Path,
    device: &str,
    counts: &Counts,
) -> Result<(), Trouble> {
    let range = arguments.seeds.seeds();
    let place = |seed: u64| arguments.folder.join(seed.to_string());
    let seeds = range.from..range.from + range.count;
    seeds.clone().try_for_each(|seed| steps::prepare(&place(seed)))?;
    rustix::fs::sync();
    let temporary = TempDir::new()?;
    let result = temporary.path().join("result");
    for seed in seeds {
        let marks = Marks::open(device, &seed.to_string())?;
        let folder = place(seed);
        let trace = traced(program, &folder, &steps::drawn(seed), seed, &result, None)?;
        for verdict in VERDICTS {
            for name in names(&trace, &folder, verdict, counts) {
                // A renamed folder has no content.
                let Ok(bytes) = steps::content(&folder.join(name)) else { continue };
                let (count, sum) = (bytes.len(), crc32c::crc32c(&bytes));
                marks.mark(&format!("{},{count},{sum},{verdict:?}", name.display()))?;
            }
        }
        marks.mark("")?;
    }
    Ok(())
}
