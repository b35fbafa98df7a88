//! The command `wrote`, without its `main`: arguments in, text out.
//!
//! | room | what belongs in it |
//! |---|---|
//! | [`args`] | what may be said on the command line, and what of it makes no sense |
//! | [`commands`] | what each subcommand does |
//! | [`output`] | where text goes: standard output, or a file that is whole or not there |
//! | [`progress`] | what is said while something runs |
//! | [`signals`] | SIGINT, SIGTERM and SIGHUP end a run early and cleanly |
//! | [`stdio`] | standard input and output that stop waiting when the user asks to stop |
//! | [`terminal`] | what the screen can show: its width, colour, characters |

#![forbid(unsafe_code)]

pub mod args;
pub mod commands;
pub mod output;
pub mod progress;
pub mod signals;
pub mod stdio;
pub mod terminal;

/// The commit that the program was built from; `None` where it was not built in a clone.
pub fn commit() -> Option<String> {
    Some(env!("WROTE_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned)
}
