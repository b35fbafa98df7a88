//! `wrote trace crash`: a check of each folder that a power cut could have left.

use super::shown;
use crate::args::TraceCrashArgs;
use crate::output;
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;
use wrote_bench::child::{End, Limits, supervise};
use wrote_report::plain;
use wrote_result::{Error, Stop, quoted, units};
use wrote_trace::{Entry, Record, State, states};

/// The placeholder for the folder in a check.
const FOLDER: &str = "DIR";
/// The environment variable with the number of answers.
const ANSWERS: &str = "WROTE_ANSWERS";
/// The most failed states shown; the rest is counted.
const SHOWN_MAX: u64 = 5;
/// The kept bytes of a check's errors; the last line is shown.
const STDERR_BYTES_MAX: usize = 4096;

pub(super) fn run(arguments: &TraceCrashArgs, stop: &Stop) -> Result<(), Error> {
    let name = shown(&arguments.record);
    let record = Record::read(&arguments.record);
    let record = record.map_err(|problem| Error::Failed(format!("{name}: {problem}")))?;
    let check = arguments.check.as_deref().map(words).transpose()?;
    if let Some(folder) = arguments.keep.as_deref().filter(|folder| folder.exists()) {
        return Err(Error::Usage(format!("--keep {}: exists already", shown(folder))));
    }
    let mut run = Run { arguments, check, stop, failed: 0, made: 0, text: String::new() };
    let count = states(&record, arguments.moments, &mut |state| run.take(&state))?;
    run.finish(count)
}

struct Run<'a> {
    arguments: &'a TraceCrashArgs,
    check: Option<Vec<String>>,
    stop: &'a Stop,
    failed: u64,
    made: u64,
    text: String,
}

impl Run<'_> {
    /// Makes a state and checks it. Returns whether to continue.
    fn take(&mut self, state: &State) -> Result<bool, Error> {
        self.stop.check()?;
        if self.arguments.state.is_some_and(|wanted| wanted != state.number) {
            return Ok(true);
        }
        self.made += 1;
        if let Some(keep) = &self.arguments.keep {
            let made = fs::create_dir(keep).and_then(|()| state.tree.make(keep));
            let failed = |error| Error::Failed(format!("--keep {}: {error}", shown(keep)));
            made.map_err(failed)?;
            self.tell(state, None);
        }
        if let Some(words) = &self.check {
            let problem = check(words, state, self.arguments, self.stop)?;
            self.failed += u64::from(problem.is_some());
            if let Some(problem) = problem.filter(|_| self.failed <= SHOWN_MAX) {
                self.tell(state, Some(&problem));
            }
        }
        Ok(self.arguments.state.is_none())
    }

    fn tell(&mut self, state: &State, problem: Option<&str>) {
        let losses = match state.losses.as_slice() {
            [] => "nothing is lost".to_owned(),
            losses => units::some_of(losses, SHOWN_MAX as usize),
        };
        let text = &mut self.text;
        let _ = writeln!(text, "state {}, a power cut {}", state.number, plain(&state.moment));
        let _ = writeln!(text, "  {}", plain(&losses));
        let Some(problem) = problem else { return };
        let _ = writeln!(text, "  the check {}", plain(problem));
        if self.arguments.state.is_none() {
            let mut words = vec!["wrote".into(), "trace".into(), "crash".into()];
            words.push(self.arguments.record.to_string_lossy().into_owned());
            words.extend(["--moments".into(), self.arguments.moments.to_string()]);
            words.extend(["--state".into(), state.number.to_string()]);
            words.extend(["--keep".into(), format!("state-{}", state.number)]);
            let _ = writeln!(text, "  make it: {}", quoted(&words));
        }
    }

    fn finish(self, count: u64) -> Result<(), Error> {
        if let Some(wanted) = self.arguments.state.filter(|_| self.made == 0) {
            return Err(Error::Usage(format!("--state {wanted}: there are {count} states")));
        }
        let states = units::counted(self.made, "state");
        let is_checked = self.check.is_some();
        output::to_stdout(|out| {
            out.write_all(self.text.as_bytes())?;
            match (is_checked, self.failed) {
                (true, 0) => writeln!(out, "The check passes in all of {states}."),
                _ => Ok(()),
            }
        })?;
        match self.failed {
            0 => Ok(()),
            failed => Err(Error::Failed(format!("the check fails in {failed} of {states}"))),
        }
    }
}

/// The words of a check, with the word for the folder.
fn words(check: &str) -> Result<Vec<String>, Error> {
    let mut words = shlex::split(check).filter(|words| !words.is_empty()).ok_or_else(|| {
        Error::Usage(format!("--check {check:?}: a program with its arguments is needed"))
    })?;
    if !words.iter().any(|word| word == FOLDER) {
        words.push(FOLDER.into());
    }
    Ok(words)
}

/// Runs a check on a state in a new folder. Returns how it failed.
fn check(
    words: &[String],
    state: &State,
    arguments: &TraceCrashArgs,
    stop: &Stop,
) -> Result<Option<String>, Error> {
    let place = tempfile::Builder::new().prefix("wrote-crash-").tempdir();
    let made = place.and_then(|place| state.tree.make(place.path()).map(|()| Place(place, state)));
    let place = made.map_err(|error| Error::Failed(format!("a state: {error}")))?;
    let mut command = Command::new(&words[0]);
    for word in &words[1..] {
        match word.as_str() {
            FOLDER => command.arg(place.0.path()),
            word => command.arg(word),
        };
    }
    command.env(ANSWERS, state.told.to_string());
    let limits = Limits {
        timeout: arguments.timeout,
        stdout_bytes_max: 0,
        stderr_bytes_max: STDERR_BYTES_MAX,
        is_kept: true,
    };
    let ended = supervise(&mut command, limits, stop, &mut |_| {})?;
    let Some(failure) = ended.status.failure() else { return Ok(None) };
    let failure = match ended.status {
        End::TimedOut => {
            format!("did not end within {}", units::seconds(arguments.timeout.as_secs_f64()))
        }
        End::Exited(_) => failure,
    };
    let said = String::from_utf8_lossy(&ended.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(Some(match last {
        Some(line) => format!("{failure}: {line}"),
        None => failure,
    }))
}

/// The folder of a state. It is removed even if its folders are not writable.
struct Place<'a>(TempDir, &'a State);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let folders = self.1.tree.0.iter().filter(|(_, (entry, _))| *entry == Entry::Folder);
        for (path, _) in folders {
            let path = self.0.path().join(path);
            let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
        }
    }
}
