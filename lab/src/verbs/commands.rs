//! `lab commands`: random command lines for the built `wrote`. It prints each that breaks a rule of
//! `judge.rs`, with the shortest form that still breaks it.

#![forbid(unsafe_code)]

mod draw;
mod run;
mod world;

use super::{Trouble, least, none_broken};
use crate::runs::seeds;
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
    #[command(flatten)]
    seeds: seeds::Arguments,
}

/// Tries all calls; fails if one broke a rule.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let program = std::path::absolute(&arguments.program)?;
    let drawer = Drawer::new(draw::verbs(&program)?, run::can_hide());
    let place = || World::new(&program, &arguments.folder);
    let broken = arguments.seeds.seeds().try_all("command lines", place, |world, seed| {
        let call = drawer.draw(seed);
        let Err(because) = one(&program, world, &call)? else { return Ok(None) };
        // Shortening a call that hangs would take minutes.
        let line = match because.as_str() {
            run::HANGS => call.to_string(),
            _ => {
                let is_broken =
                    |call: &Call| Ok::<_, Trouble>(one(&program, world, call)?.is_err());
                least(call, Call::smaller, is_broken)?.to_string()
            }
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
