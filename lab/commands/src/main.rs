//! The program `commands`: random command lines for the built `wrote`. It prints each after which
//! a rule of `judge.rs` does not hold, with the shortest that still breaks it.

#![forbid(unsafe_code)]

mod draw;
mod help;
mod judge;
mod run;
mod world;

use clap::Parser;
use draw::{Call, Drawer};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use world::World;

/// The reason why this program failed, for a person.
type Trouble = Box<dyn std::error::Error + Send + std::marker::Sync>;

/// Tries random command lines.
#[derive(Parser)]
#[command(name = "commands")]
struct Arguments {
    /// The built command.
    #[arg(long)]
    program: PathBuf,
    /// A folder on a disk, for the files of the commands.
    #[arg(long)]
    folder: PathBuf,
    /// How many command lines to try.
    #[arg(long, default_value_t = 1000)]
    calls: u64,
    /// The seed of the first; each other has the next.
    #[arg(long, default_value_t = 0)]
    from_seed: u64,
    /// The number of broken rules after which to stop.
    #[arg(long, default_value_t = 3)]
    failures: usize,
}

fn main() -> ExitCode {
    match all(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("commands: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Tries all calls, on every CPU, and returns the number of those that broke a rule.
fn all(arguments: &Arguments) -> Result<usize, Trouble> {
    let program = std::path::absolute(&arguments.program)?;
    let drawer = Drawer::new(help::verbs(&program)?);
    let next = AtomicU64::new(0);
    let broken = Mutex::new(Vec::new());
    let count = || broken.lock().expect("whole").len();
    let work = || -> Result<(), Trouble> {
        let mut world = World::new(&program, &arguments.folder)?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.calls || count() >= arguments.failures {
                return Ok(());
            }
            let seed = arguments.from_seed + number;
            let call = drawer.draw(seed);
            if let Err(because) = one(&program, &mut world, &call)? {
                broken.lock().expect("whole").push(());
                // To shorten a call that hangs would take minutes.
                let line = match because.as_str() {
                    judge::HANGS => call.to_string(),
                    _ => shortest(&program, &mut world, call)?,
                };
                eprintln!("seed {seed}: {because}\n  {line}\n");
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let tried = next.into_inner().min(arguments.calls);
    eprintln!("{tried} command lines from seed {}: {} broke a rule", arguments.from_seed, count());
    Ok(count())
}

/// Runs one call in fresh files; the inner error is the broken rule.
fn one(program: &Path, world: &mut World, call: &Call) -> Result<Result<(), String>, Trouble> {
    world.refresh(call)?;
    let ended = run::run(program, world, call)?;
    Ok(judge::judge(world, call, &ended))
}

/// Leaves out words, the limits and the damage, as long as a rule is still broken; returns the line
/// for a shell.
fn shortest(program: &Path, world: &mut World, mut call: Call) -> Result<String, Trouble> {
    loop {
        let mut shorter = None;
        for smaller in call.smaller() {
            if one(program, world, &smaller)?.is_err() {
                shorter = Some(smaller);
                break;
            }
        }
        match shorter {
            Some(smaller) => call = smaller,
            None => return Ok(call.to_string()),
        }
    }
}
