//! The program `damage`: logs with damaged files, one a seed. It prints each after which a rule of
//! `check.rs` does not hold, with the fewest edits that still break it.

#![forbid(unsafe_code)]

mod check;
mod edit;
mod written;

use clap::Parser;
use edit::Edit;
use std::collections::BTreeMap;
use std::panic::{self, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use written::Written;

/// The reason why this program failed, for a person.
type Trouble = Box<dyn std::error::Error + Send + std::marker::Sync>;
/// The files of a log: names and bytes.
type Files = BTreeMap<String, Vec<u8>>;

/// Damages logs and reads them.
#[derive(Parser)]
#[command(name = "damage")]
struct Arguments {
    /// A folder for the logs.
    #[arg(long)]
    folder: PathBuf,
    /// How many logs to damage.
    #[arg(long, default_value_t = 1000)]
    logs: u64,
    /// The seed of the first; each other has the next.
    #[arg(long, default_value_t = 0)]
    from_seed: u64,
    /// The number of broken rules after which to stop.
    #[arg(long, default_value_t = 3)]
    failures: usize,
}

fn main() -> ExitCode {
    // A panic is printed with its seed.
    panic::set_hook(Box::new(|_| ()));
    match all(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("damage: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Damages all logs, on every CPU, and returns the number of those that broke a rule.
fn all(arguments: &Arguments) -> Result<usize, Trouble> {
    let logs = written::logs(&arguments.folder)?;
    let next = AtomicU64::new(0);
    let broken = Mutex::new(0);
    let work = || -> Result<(), Trouble> {
        let folder = tempfile::tempdir_in(&arguments.folder)?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.logs || *broken.lock().expect("whole") >= arguments.failures {
                return Ok(());
            }
            let seed = arguments.from_seed + number;
            let (log, edits) = edit::draw(seed, logs.len());
            if let Err(because) = one(folder.path(), &logs, log, &edits) {
                *broken.lock().expect("whole") += 1;
                let edits = fewest(folder.path(), &logs, log, edits);
                let least = one(folder.path(), &logs, log, &edits).err().unwrap_or_default();
                eprintln!("seed {seed}: {because}\n  {}: {edits:?}: {least}\n", logs[log].name);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let (tried, broken) = (next.into_inner().min(arguments.logs), broken.into_inner()?);
    eprintln!("{tried} damaged logs from seed {}: {broken} broke a rule", arguments.from_seed);
    Ok(broken)
}

/// Damages one log, and returns the rule that does not hold. A panic is one.
fn one(folder: &Path, logs: &[Written], log: usize, edits: &[Edit]) -> Result<(), String> {
    let mut files = logs[log].files.clone();
    let other = &logs[(log + 2) % logs.len()];
    edits.iter().for_each(|edit| edit.apply(&mut files, &logs[log], other));
    catch_unwind(|| check::check(folder, &logs[log], &files)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", words.unwrap_or("without words")))
    })
}

/// Leaves out edits as long as a rule is still broken.
fn fewest(folder: &Path, logs: &[Written], log: usize, mut edits: Vec<Edit>) -> Vec<Edit> {
    let mut at = 0;
    while at < edits.len() {
        let mut fewer = edits.clone();
        fewer.remove(at);
        if one(folder, logs, log, &fewer).is_err() {
            edits = fewer;
        } else {
            at += 1;
        }
    }
    edits
}
