//! `wrote language-program`: what `wrote langs` starts for `wrote`'s own rows, as it starts the
//! programs of the languages.
//!
//! It is asked for by `wrote` alone, and is no part of what the command line is defined as: neither
//! help nor the manual page nor completions have it.

mod program;

use std::ffi::OsString;
use std::process::ExitCode;

/// The word that asks for it, before all other arguments.
pub const LANGUAGE_PROGRAM: &str = "language-program";

/// Does one task, and prints what the protocol in `langs/README.md` says. Signals end it as they
/// end the programs of the languages: the program that started it removes its files.
pub fn language_program(arguments: &[OsString]) -> ExitCode {
    match program::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::stderr::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
