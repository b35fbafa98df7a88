//! The command `wrote`: parses its arguments, runs the subcommand, and exits.

mod closed;

use clap::error::ErrorKind;
use std::ffi::OsString;
use std::process::ExitCode;
use wrote_cli::args::{self, Command};
use wrote_cli::commands::Signals;
use wrote_cli::ranks::{self, Group};
use wrote_cli::{commands, output, terminal};
use wrote_result::{Error, Stop};

fn main() -> ExitCode {
    let arguments = args::of_link(std::env::args_os().collect());
    match arguments.get(1..) {
        Some([word, rest @ ..]) if word == commands::LANGUAGE_PROGRAM => {
            commands::language_program(rest)
        }
        _ => of_the_user(arguments),
    }
}

fn of_the_user(arguments: Vec<OsString>) -> ExitCode {
    // This must precede the first output, because even the help may go to a file.
    if let Err(error) = commands::outlive_the_size_limit() {
        terminal::complain(&error.to_string());
        return ExitCode::FAILURE;
    }
    let cli = match args::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, arguments.len() == 1),
    };
    terminal::obey(cli.manner);
    let stop = Stop::new();
    let mut group = Group::default();
    let signals = match &cli.command {
        // For a server, signals have other meanings, and a traced program receives its own signals.
        Command::Serve(_) => Ok(Signals::default()),
        Command::Trace(arguments) if arguments.runs() => Ok(Signals::default()),
        _ => Signals::listen(stop.clone()),
    };
    let (code, complaint) = match signals {
        Ok(signals) => {
            let command = arguments.iter().map(|argument| argument.to_string_lossy().into());
            let (of_ranks, joined) = Group::join(&cli.command, &stop);
            group = of_ranks;
            let peers = group.peers();
            let done = joined.and_then(|()| commands::run(cli, peers, &stop, command.collect()));
            commands::outcome(peers.end(done), &signals)
        }
        Err(error) => {
            let error = Error::Failed(format!("cannot listen for signals: {error}"));
            commands::outcome(Err(error), &Signals::default())
        }
    };
    if let Some(complaint) = complaint.filter(|_| group.tells()) {
        terminal::complain(&complaint);
    }
    group.end(code);
    ExitCode::from(code)
}

/// Prints what parsing returned instead of arguments. Help and the version that the user requested
/// go to standard output; anything else is bad usage. Without any arguments, the help ends with a
/// command to start with.
fn not_parsed(error: &clap::Error, is_wordless: bool) -> ExitCode {
    if error.use_stderr() && ranks::is_quiet() {
        // Rank 0 has the same arguments, and reports the error.
    } else if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let start = "\nStart with: wrote bench (measures this folder's disk, in a dozen seconds)\n";
        output::help_to_stderr(&error.render(), if is_wordless { start } else { "" });
    } else if error.use_stderr() {
        terminal::complain(&args::one_line(error));
    } else if let Err(error) = output::styled_to_stdout(&error.render()) {
        terminal::complain(&error.to_string());
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
