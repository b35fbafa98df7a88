//! `lab commands`: random command lines for the built `wrote`. It prints each that breaks a rule of
//! `judge.rs`, with the shortest form that still breaks it.

#![forbid(unsafe_code)]

mod draw;
mod run;
mod world;

use super::{Trouble, none_broken};
use crate::fixtures::Seeds;
use draw::{Call, Drawer};
use std::path::{Path, PathBuf};
use world::World;

/// Tries random command lines.
#[derive(clap::Args)]
pub struct Arguments {
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
    /// Stop after this many broken rules.
    #[arg(long, default_value_t = 3)]
    failures: usize,
}

/// Tries all calls; fails if one broke a rule.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let &Arguments { calls: count, from_seed: from, failures, .. } = arguments;
    let program = std::path::absolute(&arguments.program)?;
    let drawer = Drawer::new(draw::verbs(&program)?, run::can_hide());
    let place = || World::new(&program, &arguments.folder);
    let broken =
        Seeds { from, count, failures }.try_all("command lines", place, |world, seed| {
            let call = drawer.draw(seed);
            let Err(because) = one(&program, world, &call)? else { return Ok(None) };
            // Shortening a call that hangs would take minutes.
            let line = match because.as_str() {
                run::HANGS => call.to_string(),
                _ => shortest(&program, world, call)?,
            };
            Ok(Some(format!("{because}\n  {line}")))
        })?;
    none_broken(broken)
}

/// Runs one call in fresh files; the inner error is the broken rule.
fn one(program: &Path, world: &mut World, call: &Call) -> Result<Result<(), String>, Trouble> {
    world.refresh(call)?;
    let ended = run::run(program, world, call)?;
    Ok(run::judge(world, call, &ended))
}

/// Removes words, limits, hidden folders and the damage while a rule is still broken. Returns the
/// shell command.
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
