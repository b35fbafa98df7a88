//! The command `wrote`, without its `main`: arguments in, text out. This door only names the rooms.
//!
//! | room | content |
//! |---|---|
//! | [`args`] | the command line, and refusals of wrong arguments |
//! | [`commands`] | the subcommands, and how each ends, also by a signal |
//! | [`output`] | the destinations of text: standard output, or a whole file |
//! | [`progress`] | messages during a run |
//! | [`ranks`] | the ranks under `mpirun` |
//! | [`stdio`] | standard input and output that stop waiting when the user asks to stop; files that
//! the user names |
//! | [`terminal`] | the capabilities of the screen, and lines on standard error |

// MPI keeps a message after the call that sends it. Only `ranks/post.rs` has such bytes.
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]
#![cfg_attr(feature = "mpi", deny(unsafe_code))]

pub mod args;
pub mod commands;
pub mod output;
pub mod progress;
pub mod ranks;
pub mod stdio;
pub mod terminal;

/// Returns the commit that the program was built from; `None` outside a clone.
pub fn commit() -> Option<String> {
    Some(env!("WROTE_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned)
}
