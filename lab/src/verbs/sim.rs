//! The log on a simulated disk that fails and loses its power, checked against a model of its
//! promises.
//!
//! Some programs have faults that the disk hides ([`Program::with_hidden_faults`]). Even then no
//! record is altered, doubled or out of order, and no gap is skipped without an error.
//!
//! - **A misdirected read** may end one reading, by an error or early. The next reading finds
//!   everything. An opening with two such reads may cut the log short.
//! - **A bit that rots** makes damage an error. Only the records that no later batch calls durable
//!   may count as torn, and they are kept aside. After a second bit any end may.
//! - **A flush that lies** breaks promises only after a power loss, and none about records that
//!   were stable before it. An end that was cut before may be back. Lines after those records may
//!   be altered, since they have no checksums.
//!
//! A damaged log is repaired. The repair keeps each record that could be read, except for two ends:
//! records from the first one that a lie may have replaced by an older one, and records after a gap
//! that no batch calls durable. Then all promises hold again.
//!
//! A [`Program`] is a few lives of one log. Each has its options, its steps, its faults and its
//! end. [`carry_out`] runs them on one [`wrote::Sim`] and returns the promise that was broken, if
//! any. [`Program::of_seed`] draws a random program. [`Program::smaller`] leaves out parts of one.

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

/// Returns the program of a seed.
fn program_of(arguments: Arguments, seed: u64) -> Program {
    if arguments.hidden_faults { Program::with_hidden_faults(seed) } else { Program::of_seed(seed) }
}

/// Tries all seeds; fails if one broke a promise.
pub fn run(arguments: Arguments) -> Result<(), super::Trouble> {
    // A panic is printed with its seed.
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

/// Runs one program, and turns a panic into a broken promise.
fn one(program: &Program, seed: u64) -> Result<Tally, String> {
    catch_unwind(|| carry_out(program, seed)).unwrap_or_else(|panic| Err(words_of_panic(&*panic)))
}

/// Returns the smallest program that breaks the promise, and how to repeat it.
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
    /// A broken promise of the log, in one sentence.
    Broken(String),
    /// A reader that ended too early, in one sentence. Only a misdirected read excuses it.
    Ended(String),
    /// An error of the log. The caller knows whether it has a reason.
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
