//! Runs the log on a simulated disk that fails and loses its power, and checks it against a model
//! of its promises.
//!
//! In some programs, the disk hides faults ([`Program::with_hidden_faults`]). Even then, no record
//! is altered, duplicated or out of order, and no gap is skipped without an error.
//!
//! - **A misdirected read** may end one reading, with an error or too early. The next reading finds
//!   everything. An opening with two such reads may cut the log short.
//! - **A bit that rots** makes damage an error. Only records that no later batch states to be
//!   durable may be treated as torn, and they are kept aside. After a second bit, any end may be.
//! - **A flush that lies** breaks promises only after a power loss, and never promises about
//!   records that were already stable. An end that was cut may return. Lines after the stable
//!   records may be altered, because they have no checksums.
//!
//! A damaged log is repaired. The repair keeps all records that could be read, with two exceptions:
//! records from the first one on that a flush that lied may have replaced by an older version, and
//! records after a gap that no batch states to be durable. After the repair, all promises hold
//! again.
//!
//! A [`Program`] consists of a few lives of one log. Each life has its options, steps, faults and
//! end. [`carry_out`] runs them on one [`wrote::Sim`] and returns the promise that was broken, if
//! any. [`Program::of_seed`] draws a random program. [`Program::smaller`] returns versions of a
//! program in which something is left out.

#![forbid(unsafe_code)]

use super::{least, none_broken};
use crate::fixtures::words_of_panic;
use crate::runs::seeds::SimArguments as Arguments;
use std::convert::Infallible;
use std::panic::{self, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;
use wrote::Error;

pub use program::{End, Flavour, How, Life, Opening, PlannedFault, Program, Step};
pub use run::{Tally, carry_out};

mod disk;
mod life;
mod model;
mod program;
mod reading;
mod repairing;
mod run;

/// Returns the program that belongs to a seed.
fn program_of(arguments: Arguments, seed: u64) -> Program {
    if arguments.hidden_faults { Program::with_hidden_faults(seed) } else { Program::of_seed(seed) }
}

/// Tries all seeds. Fails if one of them broke a promise.
pub fn run(arguments: Arguments) -> Result<(), super::Trouble> {
    // Panics are printed later, with their seed.
    panic::set_hook(Box::new(|_| ()));
    let (begun, tally) = (Instant::now(), Mutex::new(Tally::default()));
    let nothing = || Ok::<_, super::Trouble>(());
    let broken = arguments.seeds.seeds().try_all("seeds", nothing, |(), seed| {
        let program = program_of(arguments, seed);
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

/// Runs one program, and converts a panic into a broken promise.
fn one(program: &Program, seed: u64) -> Result<Tally, String> {
    catch_unwind(|| carry_out(program, seed)).unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

/// Returns a description of the smallest program that breaks the promise, and how to repeat it.
fn told(arguments: Arguments, program: &Program, seed: u64, because: &str) -> String {
    let is_broken = |program: &Program| Ok::<_, Infallible>(one(program, seed).is_err());
    let Ok(least) = least(program.clone(), Program::smaller, is_broken);
    let why = one(&least, seed).err().unwrap_or_default();
    let hidden = if arguments.hidden_faults { " --hidden-faults" } else { "" };
    format!(
        "{because}\n  at least this is needed: {why}\n{least:#?}\n  again: cargo xtask lab sim \
         --from-seed {seed} --seeds 1{hidden}"
    )
}

/// The reason why a step failed.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// A broken promise of the log, described in one sentence.
    Broken(String),
    /// A reader that ended too early, described in one sentence. Only a misdirected read excuses
    /// this.
    Ended(String),
    /// An error of the log. The caller knows whether there is a reason for it.
    Error(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Error(error)
    }
}

/// Reports a broken promise if `holds` is false.
pub fn holds(holds: bool, broken: impl FnOnce() -> String) -> Result<(), Trouble> {
    if holds { Ok(()) } else { Err(Trouble::Broken(broken())) }
}
