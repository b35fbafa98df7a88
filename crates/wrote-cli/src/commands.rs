//! What each subcommand does.

mod bench;
mod clean;
mod copy;
mod manual;
mod run;

use crate::args::{Cli, Command};
use crate::output;
use crate::signals::Signals;
use std::io::Write as _;
use wrote_bench::{Error, Stop};

/// Runs the subcommand. `stop` ends a measurement early; `command` is the command line as it was
/// given, for the result.
///
/// # Errors
///
/// Why there is no result, in one line.
pub fn run(cli: Cli, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    match cli.command {
        Command::Bench(arguments) => bench::run(&arguments, stop, command),
        Command::Run(arguments) => run::run(&arguments, stop, command),
        Command::Copy(arguments) => copy::run(&arguments, stop),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(
                arguments.shell,
                &mut crate::args::definition(),
                "wrote",
                &mut script,
            );
            output::to_stdout(|out| out.write_all(&script))
        }
        Command::Man => output::to_stdout(manual::write),
    }
}

/// The exit code and, where something went wrong, the one line about it: 0 done, 1 failed, 2 bad
/// usage, 128 and the signal's number when a signal ended the run.
pub fn outcome(result: Result<(), Error>, signals: &Signals) -> (u8, Option<String>) {
    match (signals.exit_code(), result) {
        // Whatever else went wrong then, went wrong because of the signal or does not matter to
        // who sent it.
        (Some(code), _) => (code, Some("interrupted".into())),
        (None, Ok(())) => (0, None),
        (None, Err(Error::Usage(text))) => (2, Some(text)),
        (None, Err(error)) => (1, Some(error.to_string())),
    }
}

/// Says on standard error, in one line, why the program ends.
pub fn complain(text: &str) {
    let line: String = text.split(char::is_control).collect::<Vec<_>>().join(" ");
    // When nobody can read standard error any more, there is nobody to tell that either.
    let _ = writeln!(std::io::stderr(), "wrote: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_bad_usage_from_failure() {
        let code = |result| outcome(result, &Signals::default()).0;
        assert_eq!(code(Ok(())), 0);
        assert_eq!(code(Err(Error::Failed("a full disk".into()))), 1);
        assert_eq!(code(Err(Error::Usage("a file, not a folder".into()))), 2);
    }
}
