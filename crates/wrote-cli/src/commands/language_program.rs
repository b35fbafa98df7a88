//! `wrote language-program`: the program that `wrote langs` starts for `wrote`'s own rows, as it
//! starts the programs of the languages.
//!
//! Only `wrote` calls it, so it is not part of the defined command line, and not in help, manual
//! page or completions.
//!
//! Its tasks are in `program.rs`, which is a link to the file in `langs/wrote`. So the measured
//! program is the one that a reader finds there next to the other languages, and the two files
//! can't be joined.

mod program;

use std::ffi::OsString;
use std::process::ExitCode;

/// The word that selects the language program, before all other arguments.
pub const LANGUAGE_PROGRAM: &str = "language-program";

/// Does one task, and prints the answer by the protocol in `langs/README.md`. Signals end it like
/// the languages' programs; the program that started it removes its files.
pub fn language_program(arguments: &[OsString]) -> ExitCode {
    match program::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::terminal::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
