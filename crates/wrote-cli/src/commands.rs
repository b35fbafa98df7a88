//! The subcommands, and their outcomes: an exit code and, after a failure, a one-line message.
//! SIGINT, SIGTERM and SIGHUP end a subcommand early.

use crate::args::{Cli, Command};
use crate::{output, terminal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{io, process, thread};
use wrote::Survives;
use wrote_jobs::peers::Peers;
use wrote_report::{Format, plain};
use wrote_result::{Error, Stop, quoted};

mod bench;
mod copy;
mod fio;
mod fit;
mod langs;
mod language_program;
mod log;
mod manual;
mod reports;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod trace;

pub use language_program::{LANGUAGE_PROGRAM, language_program};

/// `wrote serve` in a program built without that feature, which reports this in one line.
#[cfg(not(feature = "serve"))]
mod serve {
    use crate::args::ServeArgs;
    use wrote_result::Error;

    pub(super) fn run(_: &ServeArgs) -> Result<(), Error> {
        Err(Error::Usage(
            "this program was built without the server; to build it: cargo build --release \
             --features serve"
                .into(),
        ))
    }
}

/// Runs the subcommand, on these ranks if it measures. `stop` ends it early. `command` is the
/// original command line, for the result.
///
/// # Errors
///
/// The reason why there is no result, on one line.
pub fn run(cli: Cli, peers: Peers, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    let next = next(&cli.command).filter(|_| peers.is_first() && stdout().is_terminal());
    let done = match cli.command {
        Command::Bench(arguments) => bench::run(&arguments, peers, stop, command),
        Command::Run(arguments) => run::run(&arguments, peers, stop, command),
        Command::Fio(arguments) => fio::run(&arguments.words, stop, command),
        Command::Fit(arguments) => fit::run(&arguments, stop, command),
        Command::Trace(arguments) => trace::run(&arguments, stop),
        Command::Langs(arguments) => langs::run(&arguments, stop, command),
        Command::Compare(arguments) => reports::compare(&arguments, stop),
        Command::Report(arguments) => reports::report(&arguments, stop),
        Command::Doctor(arguments) => reports::doctor(&arguments),
        Command::Copy(arguments) => copy::run(&arguments, stop),
        Command::Log(arguments) => log::run(&arguments, stop),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Clean(arguments) => reports::clean(&arguments),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(
                arguments.shell,
                &mut crate::args::completed(),
                "wrote",
                &mut script,
            );
            output::to_stdout(|out| out.write_all(&script))
        }
        Command::Man => output::to_stdout(manual::write),
    };
    // The next command is also suggested after a verdict or another program's exit code, which are
    // results, too.
    if let (Some(next), Ok(()) | Err(Error::Ended(_) | Error::Coded(1..=4, _))) = (next, &done) {
        terminal::say(&next);
    }
    done
}

/// Returns the suggestion for the next command; `None` if the command does not print a table, or
/// has no natural next command.
fn next(command: &Command) -> Option<String> {
    let path = |path: &Path| quoted(&[path.to_string_lossy()]);
    let (format, next, of) = match command {
        Command::Bench(of) if !of.list && !of.schema => (of.format, "fit --all", path(&of.path)),
        Command::Fit(of) if !of.list && !of.show && !of.all => {
            (of.format, "doctor", path(&of.path))
        }
        Command::Trace(of) if of.runs() && of.record.is_none() && of.check.is_none() => {
            let traced: Vec<_> = of.command.iter().map(|word| word.to_string_lossy()).collect();
            (of.format, "trace --record run.record", quoted(&traced))
        }
        Command::Doctor(of) if !of.schema => (of.format, "bench", path(&of.path)),
        _ => return None,
    };
    (format == Format::Table).then(|| format!("Next: wrote {next} {of}"))
}

/// Returns the exit code and, after a failure, a one-line message. The code is 0 for success, 1 for
/// failure, 2 for bad usage, 3 to 5 for outcomes specific to a command, and 128 plus the signal
/// number if a signal ended the run. A signal causes no message if the command had already
/// finished, or if it runs until interrupted (`log tail -f`).
pub fn outcome(result: Result<(), Error>, signals: &Signals) -> (u8, Option<String>) {
    match (signals.exit_code(), result) {
        (Some(code), Ok(())) => (code, None),
        // After a signal, any error is either due to the signal or irrelevant to its sender.
        (Some(code), _) => (code, Some("interrupted".into())),
        (None, Ok(())) => (0, None),
        (None, Err(Error::Usage(text))) => (2, Some(text)),
        (None, Err(Error::Ended(code))) => (code, None),
        (None, Err(Error::Coded(code, text))) => (code, Some(text)),
        (None, Err(error)) => (1, Some(error.to_string())),
    }
}

/// Catches and ignores SIGXFSZ, so that a write beyond RLIMIT_FSIZE fails with an error that can be
/// reported (EFBIG, `setrlimit(2)`), instead of ending the process.
pub fn outlive_the_size_limit() -> Result<(), Error> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| Error::Failed(format!("cannot take SIGXFSZ: {error}")))
}

/// Returns text about what something survives, for the end of a line.
fn promised(survives: Survives) -> &'static str {
    match survives {
        Survives::PowerLoss => "survives a power loss",
        Survives::OsCrash => "survives an OS crash (os-crash), but no power loss",
        Survives::ProcessCrash => "survives a process crash (process-crash), but no power loss",
        Survives::Nothing => "survives nothing",
    }
}

/// Returns a path in the form that results show: on one line, without terminal control characters.
fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

/// The base of the exit codes that shells use for signals.
const EXIT_SIGNAL_BASE: i32 = 128;

/// The time after which a second signal is obeyed.
const AGAIN_MIN: Duration = Duration::from_millis(300);

/// A listener for the signals that end a run.
///
/// The first signal raises a [`Stop`], so that the run removes what it has created and returns. A
/// second signal ends the program immediately, without cleaning up, for a user who will not wait. A
/// signal shortly after the first is ignored, because `timeout(1)` sends its signal both to a
/// program and to the program's group.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The first signal; 0 if there was none.
    first: Arc<AtomicI32>,
}

impl Signals {
    /// Starts listening, and raises `stop` at the first signal. Signals that the program was
    /// started to ignore (`nohup`, a shell's background job) are still ignored.
    ///
    /// # Errors
    ///
    /// An error if the kernel refuses a handler, its pipe or the thread.
    pub fn listen(stop: Stop) -> io::Result<Signals> {
        let signals = Signals::default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let wanted = wanted.filter(|signal| !is_ignored(*signal, &status));
        let mut coming = signal_hook::iterator::Signals::new(wanted)?;
        let first = signals.first.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            let mut since: Option<Instant> = None;
            for signal in coming.forever() {
                match since {
                    None => since = Some(Instant::now()),
                    Some(since) if since.elapsed() < AGAIN_MIN => continue,
                    Some(_) => process::exit(EXIT_SIGNAL_BASE + signal),
                }
                first.store(signal, Ordering::Relaxed);
                stop.request();
            }
        })?;
        Ok(signals)
    }

    /// Returns the exit code of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM, 129
    /// for SIGHUP. `None` if there has been no signal.
    pub fn exit_code(&self) -> Option<u8> {
        match self.first.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(EXIT_SIGNAL_BASE + signal).ok(),
        }
    }
}

/// Returns whether the process with this `/proc/PID/status` ignores a signal. Bit n - 1 represents
/// signal n (`proc(5)`).
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod signals_tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn an_ignored_signal_is_found_in_the_status_of_the_process() {
        let nohup = "Name:\twrote\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(SIGHUP, nohup));
        assert!(!is_ignored(SIGINT, nohup) && !is_ignored(SIGTERM, nohup));
        assert!(!is_ignored(SIGHUP, "Name:\twrote\n"));
    }

    #[test]
    fn the_first_signal_asks_the_run_to_end_and_decides_the_exit_code() {
        let stop = Stop::new();
        let signals = Signals::listen(stop.clone()).expect("handlers can be installed");
        signal_hook::low_level::raise(SIGTERM).expect("a signal can be raised");
        let patience = Instant::now() + Duration::from_secs(30);
        while !stop.is_requested() {
            assert!(Instant::now() < patience, "nobody listens");
            thread::yield_now();
        }
        assert_eq!(signals.exit_code(), Some(143));
    }
}
