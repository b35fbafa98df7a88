//! The subcommands, one file each.

mod bench;
mod clean;
mod compare;
mod copy;
mod doctor;
mod fit;
mod langs;
mod language_program;
mod log;
mod manual;
#[cfg(not(feature = "serve"))]
mod no_serve;
mod report;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod trace;

pub use language_program::{LANGUAGE_PROGRAM, language_program};

#[cfg(not(feature = "serve"))]
use no_serve as serve;

use crate::args::{Cli, Command};
use crate::output;
use crate::signals::Signals;
use signal_hook::consts::SIGXFSZ;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wrote::Survives;
use wrote_jobs::peers::Peers;
use wrote_report::plain;
use wrote_result::{Error, Stop};

/// Runs the subcommand, with these ranks if it measures. `stop` ends a measurement early; `command`
/// is the original command line, for the result.
///
/// # Errors
///
/// One line: why there is no result.
pub fn run(cli: Cli, peers: &dyn Peers, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    match cli.command {
        Command::Bench(arguments) => bench::run(&arguments, peers, stop, command),
        Command::Run(arguments) => run::run(&arguments, peers, stop, command),
        Command::Fit(arguments) => fit::run(&arguments, stop, command),
        Command::Trace(arguments) => trace::run(&arguments, stop),
        Command::Langs(arguments) => langs::run(&arguments, peers, stop, command),
        Command::Compare(arguments) => compare::run(&arguments, stop),
        Command::Report(arguments) => report::run(&arguments, stop),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Copy(arguments) => copy::run(&arguments, stop),
        Command::Log(arguments) => log::run(&arguments, stop),
        Command::Serve(arguments) => serve::run(&arguments),
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

/// The exit code and, after a failure, the one line about it: 0 done, 1 failed, 2 bad usage, 3 a
/// fault that loses nothing or a verdict that is undecided, 128 and the signal's number when a
/// signal ended the run. A command that had finished, or that runs until interrupted (`log tail
/// -f`), has no line on a signal.
pub fn outcome(result: Result<(), Error>, signals: &Signals) -> (u8, Option<String>) {
    match (signals.exit_code(), result) {
        (Some(code), Ok(())) => (code, None),
        // Other errors then come from the signal, or do not matter to its sender.
        (Some(code), _) => (code, Some("interrupted".into())),
        (None, Ok(())) => (0, None),
        (None, Err(Error::Usage(text))) => (2, Some(text)),
        (None, Err(Error::Ended(code))) => (code, None),
        (None, Err(Error::Harmless(text))) => (3, Some(text)),
        (None, Err(error)) => (1, Some(error.to_string())),
    }
}

/// A write beyond RLIMIT_FSIZE is an error to report (EFBIG, `setrlimit(2)`), not the end of the
/// process: its signal is caught and ignored.
pub fn outlive_the_size_limit() -> Result<(), Error> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| Error::Failed(format!("cannot take SIGXFSZ: {error}")))
}

/// The level that something survives, as the end of a line.
fn promised(survives: Survives) -> &'static str {
    match survives {
        Survives::PowerLoss => "survives a power loss",
        Survives::OsCrash => "survives an OS crash (os-crash), no power loss",
        Survives::ProcessCrash => "survives a process crash (process-crash), no power loss",
        Survives::Nothing => "survives nothing",
    }
}

/// A path as results show it: one line, without terminal control characters.
fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
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
