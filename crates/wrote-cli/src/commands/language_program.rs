//! `wrote language-program`: the program that `wrote langs` starts for the rows of `wrote` itself,
//! as it starts the other languages' programs.
//!
//! Only `wrote` calls it, so it is not part of the command line's definition, and does not appear
//! in the help, the manual page or the completions.
//!
//! Its tasks are in `program.rs`, which is a link to the file in `langs/wrote`. The measured
//! program is therefore the one that readers find there among the other languages. This is also why
//! the two files cannot be merged.

mod program;

use std::ffi::OsString;
use std::process::ExitCode;

/// The word that selects the language program. It precedes all other arguments.
pub const LANGUAGE_PROGRAM: &str = "language-program";

/// Performs one task, and prints the answer according to the protocol in `langs/README.md`. Signals
/// end this program as they end the languages' programs. The program that started it removes its
/// files.
pub fn language_program(arguments: &[OsString]) -> ExitCode {
    match program::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::terminal::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
