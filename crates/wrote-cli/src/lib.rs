//! The command `wrote`, without its `main`: arguments in, text out.
//!
//! | room | content |
//! |---|---|
//! | [`args`] | the command line, and refusals of wrong arguments |
//! | [`commands`] | the subcommands |
//! | [`input`] | files that the user names, read within a bound |
//! | [`output`] | the destinations of text: standard output, or a whole file |
//! | [`progress`] | messages during a run |
//! | [`ranks`] | the ranks under `mpirun` |
//! | [`signals`] | SIGINT, SIGTERM and SIGHUP end a run early and cleanly |
//! | [`stderr`] | lines on standard error |
//! | [`stdio`] | standard input and output that stop waiting when the user asks to stop |
//! | [`terminal`] | the capabilities of the screen: width, colour, characters |

// MPI keeps a message after the call that sends it. Only `ranks/post.rs` has such bytes.
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]
#![cfg_attr(feature = "mpi", deny(unsafe_code))]

pub mod args;
pub mod commands;
pub mod input;
mod library;
mod open_files;
pub mod output;
pub mod progress;
pub mod ranks;
pub mod signals;
pub mod stderr;
pub mod stdio;
pub mod terminal;

/// The commit that the program was built from; `None` outside a clone.
pub fn commit() -> Option<String> {
    Some(env!("WROTE_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned)
}
