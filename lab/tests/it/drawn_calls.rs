//! Runs drawn command lines of the built `wrote`. A failure contains each command line that breaks
//! a rule of `run.rs`, in the shortest form that still breaks it.

mod draw;
mod run;
mod world;

use crate::drawn;
use draw::{Call, Drawer};
use lab::verbs::{Trouble, least};
use std::path::Path;
use world::World;

/// Runs this number of calls, and fails if a rule is broken.
fn judge(calls: u32) {
    let (program, folder) = (lab::program("wrote"), lab::folder());
    if !program.exists() {
        return lab::skip("drawn_calls", "wrote is not built: cargo build -p wrote-cli");
    }
    let verbs = draw::verbs(&program).expect("the verbs of the command");
    let drawer = Drawer::new(verbs, run::can_hide());
    let place = || World::new(&program, folder.path());
    let broken = drawn(calls).try_all("command lines", place, |world, seed| {
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
    });
    assert_eq!(broken.expect("every call is tried"), 0, "WROTE_FROM_SEED=SEED tries it again");
}

/// Runs one call with fresh files. The inner error is the broken rule.
fn one(program: &Path, world: &mut World, call: &Call) -> Result<Result<(), String>, Trouble> {
    world.refresh(call)?;
    let ended = run::run(program, world, call)?;
    Ok(run::judge(world, call, &ended))
}

#[test]
fn drawn_calls_keep_the_rules() {
    judge(500);
}

#[test]
#[ignore = "nightly"]
fn many_drawn_calls_keep_the_rules() {
    judge(5_000);
}
