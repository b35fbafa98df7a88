//! The command `wrote`, without its `main`: takes arguments, and prints text. This file only
//! declares the modules.
//!
//! | room | content |
//! |---|---|
//! | [`args`] | the command line, and refusals of wrong arguments |
//! | [`commands`] | the subcommands, and their outcomes, including signals |
//! | [`output`] | the destinations of text: standard output, or a whole file |
//! | [`progress`] | messages during a run |
//! | [`ranks`] | the ranks under `mpirun` |
//! | [`stdio`] | standard streams whose waits end on request, and files that the user names |
//! | [`terminal`] | the capabilities of the screen, and lines on standard error |

// MPI reads a message after the call that sends it. Only `ranks/post.rs` contains unsafe code, for
// such messages.
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]
#![cfg_attr(feature = "mpi", deny(unsafe_code))]

pub mod args;
pub mod commands;
pub mod output;
pub mod progress;
pub mod ranks;
pub mod stdio;
pub mod terminal;

/// Returns the commit from which the program was built; `None` outside a clone.
pub fn commit() -> Option<String> {
    Some(env!("WROTE_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned)
}
