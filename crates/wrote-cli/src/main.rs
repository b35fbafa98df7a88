//! The command `wrote`: parse, do, exit.

use clap::Parser;
use std::process::ExitCode;
use wrote_bench::{Error, Stop};
use wrote_cli::args::{self, Cli};
use wrote_cli::commands;
use wrote_cli::signals::Signals;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let stop = Stop::new();
    let (code, complaint) = match Signals::listen(stop.clone()) {
        Ok(signals) => {
            let command = std::env::args_os().map(|argument| argument.to_string_lossy().into());
            commands::outcome(commands::run(cli, &stop, command.collect()), &signals)
        }
        Err(error) => {
            let error = Error::Failed(format!("cannot listen for signals: {error}"));
            commands::outcome(Err(error), &Signals::default())
        }
    };
    if let Some(complaint) = complaint {
        commands::complain(&complaint);
    }
    ExitCode::from(code)
}

/// Help and the version are answers, on standard output; everything else is bad usage.
fn not_parsed(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        commands::complain(&args::one_line(error));
    } else {
        // A reader that has gone has seen enough of the help.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
