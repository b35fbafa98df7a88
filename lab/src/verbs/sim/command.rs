//! `lab sim`: programs of many seeds, on every CPU. It prints each that breaks a promise, with the
//! smallest program that still does.

use super::super::{Trouble, none_broken};
use super::{Program, Tally, carry_out, smallest};
use crate::fixtures::{Seeds, words_of_panic};
use std::panic::{self, catch_unwind};
use std::sync::Mutex;
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
    /// Stop after this many failing seeds.
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

/// Tries all seeds; fails if one broke a promise.
pub fn run(arguments: Arguments) -> Result<(), Trouble> {
    // A panic is printed with its seed.
    panic::set_hook(Box::new(|_| ()));
    let Arguments { seeds: count, from_seed: from, failures, .. } = arguments;
    let (begun, tally) = (Instant::now(), Mutex::new(Tally::default()));
    let nothing = || Ok::<_, Trouble>(());
    let broken = Seeds { from, count, failures }.try_all("seeds", nothing, |(), seed| {
        let program = arguments.program(seed);
        Ok(match one(&program, seed) {
            Ok(one) => {
                tally.lock().expect("whole").add(&one);
                None
            }
            Err(because) => Some(told(arguments, &program, seed, &because)),
        })
    })?;
    let (tally, seconds) = (tally.into_inner().expect("whole"), begun.elapsed().as_secs_f64());
    eprintln!("{tally:?} in {seconds:.1} s");
    none_broken(broken)
}

/// Runs one program, and turns a panic into a broken promise.
fn one(program: &Program, seed: u64) -> Result<Tally, String> {
    catch_unwind(|| carry_out(program, seed)).unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

/// Returns the smallest program that breaks the promise, and how to repeat it.
fn told(arguments: Arguments, program: &Program, seed: u64, because: &str) -> String {
    let least = smallest(program, |program| one(program, seed).is_err());
    let why = one(&least, seed).err().unwrap_or_default();
    let hidden = if arguments.hidden_faults { " --hidden-faults" } else { "" };
    format!(
        "{because}\n  at least this is needed: {why}\n{least:#?}\n  again: cargo xtask lab sim \
         --from-seed {seed} --seeds 1{hidden}"
    )
}
