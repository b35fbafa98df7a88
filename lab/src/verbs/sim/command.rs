//! `lab sim`: programs of many seeds, in turn on every CPU. It prints each that breaks
//! a promise, with the smallest program that still does.

mod watch;

use super::super::Trouble;
use super::{Program, Tally, carry_out, smallest};
use crate::fixtures::words_of_panic;
use std::ops::Range;
use std::panic::{self, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Tries the log on simulated disks.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many seeds to try.
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from_seed: u64,
    /// The number of failing seeds after which to stop.
    #[arg(long, default_value_t = 3)]
    failures: usize,
    /// Let every disk hide faults: flushes that lie, bits that rot, misdirected reads.
    #[arg(long)]
    hidden_faults: bool,
}

impl Arguments {
    fn program(self, seed: u64) -> Program {
        if self.hidden_faults { Program::with_hidden_faults(seed) } else { Program::of_seed(seed) }
    }
}

/// Seeds that a thread takes at once.
const CHUNK: u64 = 64;

/// Tries all seeds; fails where one broke a promise.
pub fn run(arguments: Arguments) -> Result<(), Trouble> {
    // A panic is printed with its seed.
    panic::set_hook(Box::new(|_| ()));
    watch::start(move |seed| give_up(arguments, seed));
    let begun = Instant::now();
    let (tally, mut broken) = all(arguments);
    broken.sort();
    broken.truncate(arguments.failures);
    for (seed, because) in &broken {
        tell(arguments, *seed, because);
    }
    let Arguments { seeds, from_seed, .. } = arguments;
    eprintln!(
        "{tally:?}\n{seeds} seeds from {from_seed} in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    match broken.first() {
        None => Ok(()),
        Some((seed, because)) => Err(format!("seed {seed}: {because}").into()),
    }
}

fn all(arguments: Arguments) -> (Tally, Vec<(u64, String)>) {
    let next = AtomicU64::new(0);
    let found = Mutex::new((Tally::default(), Vec::new()));
    let work = |thread| {
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let end = arguments.seeds.min(start + CHUNK);
            let is_over = found.lock().expect("whole").1.len() >= arguments.failures;
            if start >= end || is_over {
                return watch::end(thread);
            }
            let (tally, mut broken) = some(thread, arguments, start..end);
            let mut found = found.lock().expect("whole");
            found.0.add(&tally);
            found.1.append(&mut broken);
        }
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        let work = &work;
        for thread in 0..threads {
            scope.spawn(move || work(thread));
        }
    });
    found.into_inner().expect("whole")
}

fn some(thread: usize, arguments: Arguments, seeds: Range<u64>) -> (Tally, Vec<(u64, String)>) {
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    for seed in seeds {
        let seed = arguments.from_seed + seed;
        watch::begin(thread, seed);
        match one(&arguments.program(seed), seed) {
            Ok(one) => tally.add(&one),
            Err(because) => broken.push((seed, because)),
        }
    }
    (tally, broken)
}

/// Ends the process: the thread that hangs at this seed cannot be ended.
fn give_up(arguments: Arguments, seed: u64) {
    eprintln!("seed {seed}: it hangs");
    again(arguments, seed);
    std::process::exit(1);
}

/// Runs one program, and turns a panic into a broken promise.
fn one(program: &Program, seed: u64) -> Result<Tally, String> {
    catch_unwind(|| carry_out(program, seed)).unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

fn tell(arguments: Arguments, seed: u64, because: &str) {
    eprintln!("seed {seed}: {because}");
    let least = smallest(&arguments.program(seed), |program| one(program, seed).is_err());
    let why = one(&least, seed).err().unwrap_or_default();
    eprintln!("  at least this is needed: {why}\n{least:#?}");
    again(arguments, seed);
}

fn again(arguments: Arguments, seed: u64) {
    let hidden = if arguments.hidden_faults { " --hidden-faults" } else { "" };
    eprintln!("  again: cargo xtask lab sim --from-seed {seed} --seeds 1{hidden}\n");
}
