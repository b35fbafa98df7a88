//! `wrote trace crash`: checks each folder that a power loss could have left.

use super::shown;
use crate::args::TraceCrashArgs;
use crate::output;
use crate::progress::Reporter;
use crate::terminal::stdout_screen;
use itertools::Itertools;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use wrote_bench::child::{End, Limits, supervise};
use wrote_report::write_crash_test;
use wrote_result::trace::{CrashState, CrashTest};
use wrote_result::{Error, Stop, quoted, units};
use wrote_trace::{Bytes, Entry, Record, State, states, without_loss};

/// The placeholder for the folder in a check command.
const FOLDER: &str = "DIR";
/// The environment variable that holds the number of answers.
const ANSWERS: &str = "WROTE_ANSWERS";
/// The exit code if something was not checked, or not seen.
pub(super) const UNDECIDED: u8 = 3;
/// The number of bytes kept from each output stream of a check. Only one line of the output is
/// shown.
const STREAM_BYTES_MAX: usize = 4096;
/// The words that mark a line as an error, in lower case.
const ERRORS: [&str; 7] = ["error", "exception", "panic", "assert", "fail", "fatal", "corrupt"];
/// The minimum size of a file that is moved from state to state.
const KEPT_BYTES_MIN: usize = 64 << 10;

/// Runs `wrote trace crash`.
pub(super) fn run(arguments: &TraceCrashArgs, stop: &Stop) -> Result<(), Error> {
    let test = test(arguments, stop)?;
    output::to_stdout(|out| write_crash_test(&test, stdout_screen(), out))?;
    verdict(&test, "")
}

/// Returns the error of a crash test that did not pass. `unseen` gives the reasons why the states
/// may be incomplete.
pub(super) fn verdict(test: &CrashTest, unseen: &str) -> Result<(), Error> {
    match (&test.failed, test.unchecked_states) {
        (Some(CrashState { problem: Some(_), number, .. }), _) => {
            Err(Error::Failed(format!("the check fails in crash state {number}")))
        }
        (_, 1..) => Err(Error::Coded(UNDECIDED, "no time for all states: raise --within".into())),
        (_, 0) if !unseen.is_empty() => {
            let why = format!("the check passes, but some writes could not be judged: {unseen}");
            Err(Error::Coded(UNDECIDED, why))
        }
        _ => Ok(()),
    }
}

/// Runs the check on the states of a record, on as many at a time as there are processors. After a
/// failure, only states that lack fewer changes are checked, so the failure that is reported lacks
/// the fewest.
pub(super) fn test(arguments: &TraceCrashArgs, stop: &Stop) -> Result<CrashTest, Error> {
    let name = shown(&arguments.record);
    if matches!(arguments.record.try_exists(), Ok(false)) {
        let make = "'wrote trace --record FILE COMMAND' makes a record";
        return Err(Error::Usage(format!("{name}: does not exist; {make}")));
    }
    let record = Record::read(&arguments.record);
    let record = record.map_err(|problem| Error::Failed(format!("{name}: {problem}")))?;
    let check = arguments.check.as_deref().map(words).transpose()?;
    if let Some(folder) = arguments.keep.as_deref().filter(|folder| folder.exists()) {
        return Err(Error::Usage(format!("--keep {}: already exists", shown(folder))));
    }
    let (give, given) = mpsc::sync_channel(0);
    let (started, found) = (Instant::now(), Mutex::default());
    let run = Run { arguments, words: check, stop, started, given: Mutex::new(given), found };
    if run.words.is_some() && arguments.state.is_none() {
        run.try_without_loss(&record)?;
    }
    let reporter = Reporter::default();
    let made = thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        (0..cpus).for_each(|_| drop(scope.spawn(|| run.work())));
        // This is dropped at the end of the block, which ends the threads.
        let give = give;
        states(&record, arguments.moments, &mut |state| {
            let (number, most) = (state.shown.number, arguments.moments);
            let text = format!("state {number} of at most {most}");
            reporter.show(number, most, None, &text);
            run.take(state, &give)
        })
    });
    // The bar must be removed from the screen before the result is printed.
    drop(reporter);
    let (count, crashes) = made?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let found = run.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = found.error {
        return Err(error);
    }
    let is_none = found.checked + found.unchecked == 0 && found.failed.is_none();
    if let Some(wanted) = arguments.state.filter(|_| is_none) {
        return Err(Error::Usage(format!("--state {wanted}: the record has only {count} states")));
    }
    Ok(CrashTest {
        check: arguments.check.clone().unwrap_or_default(),
        states: found.checked,
        unchecked_states: found.unchecked,
        crashes,
        is_limited: count >= arguments.moments,
        elapsed_s,
        failed: found.failed,
    })
}

struct Run<'a> {
    arguments: &'a TraceCrashArgs,
    words: Option<Vec<String>>,
    stop: &'a Stop,
    started: Instant,
    /// The states for the threads. Only a few states are in memory at a time, because the channel
    /// has no capacity.
    given: Mutex<Receiver<State>>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    checked: u64,
    /// The number of states for which there was no time.
    unchecked: u64,
    failed: Option<CrashState>,
    error: Option<Error>,
}

impl Run<'_> {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time left for checks.
    fn left(&self) -> Duration {
        self.arguments.within.saturating_sub(self.started.elapsed())
    }

    /// Runs the check on the folder as the program left it. If the check fails there, the check is
    /// wrong, or the program fails even without a crash.
    fn try_without_loss(&self, record: &Record) -> Result<(), Error> {
        let kept = Kept::new().map_err(|error| Error::Failed(format!("a folder: {error}")))?;
        match self.check(&without_loss(record), &kept)? {
            Some(Err(problem)) => Err(Error::Usage(format!(
                "no crash state was tried, because the check fails even without a power loss, on \
                 the folder as the program left it: {problem}"
            ))),
            _ => Ok(()),
        }
    }

    /// Gives a state to a thread to check, unless it lacks at least as many changes as a failed
    /// state. Returns whether to continue with further states.
    fn take(&self, state: State, give: &SyncSender<State>) -> Result<bool, Error> {
        self.stop.check()?;
        if self.arguments.state.is_some_and(|wanted| wanted != state.shown.number) {
            return Ok(true);
        }
        let mut found = self.found();
        if found.error.is_some() {
            return Ok(false);
        }
        if found.failed.as_ref().is_some_and(|of| of.lost_changes <= state.shown.lost_changes) {
            return Ok(true);
        }
        if self.left().is_zero() {
            found.unchecked += 1;
            return Ok(true);
        }
        if let Some(keep) = &self.arguments.keep {
            let made = fs::create_dir(keep).and_then(|()| state.tree.make(keep));
            let failed = |error| Error::Failed(format!("--keep {}: {error}", shown(keep)));
            made.map_err(failed)?;
            found.failed = Some(self.told(&state, None));
        }
        drop(found);
        if self.words.is_some() {
            // The threads run until this channel is dropped.
            let _ = give.send(state);
        }
        Ok(self.arguments.state.is_none())
    }

    /// Checks states until there are no more.
    fn work(&self) {
        let kept = Kept::new().map_err(|error| error.to_string());
        loop {
            let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(state) = given else { return };
            let checked = match &kept {
                Ok(kept) => self.check(&state, kept),
                Err(error) => Err(Error::Failed(format!("a folder: {error}"))),
            };
            let mut found = self.found();
            match checked {
                Ok(None) => found.unchecked += 1,
                Ok(Some(outcome)) => {
                    found.checked += 1;
                    let size = |of: &CrashState| (of.lost_changes, of.number);
                    let told = outcome.err().map(|problem| self.told(&state, Some(problem)));
                    let (now, best) = (told.as_ref().map(size), found.failed.as_ref().map(size));
                    if now.is_some() && best.is_none_or(|best| now <= Some(best)) {
                        found.failed = told;
                    }
                }
                Err(error) => drop(found.error.get_or_insert(error)),
            }
        }
    }

    fn told(&self, state: &State, problem: Option<String>) -> CrashState {
        let record = quoted(&[self.arguments.record.to_string_lossy()]);
        let (moments, number) = (self.arguments.moments, state.shown.number);
        let words = format!("--moments {moments} --state {number} --keep state-{number}");
        let reproduce = format!("wrote trace crash {record} {words}");
        CrashState { problem, reproduce, ..state.shown.clone() }
    }

    /// Runs the check on a state, in a new folder. Returns its result, or how it failed; `None` if
    /// there was no time.
    fn check(&self, state: &State, kept: &Kept) -> Result<Option<Result<(), String>>, Error> {
        let made = temporary().and_then(|place| {
            state.tree.make_by(place.path(), &mut |path, bytes| kept.put(path, bytes))?;
            kept.clear()?;
            Ok(Place(place, state))
        });
        let place = made.map_err(|error| Error::Failed(format!("a state: {error}")))?;
        let mut words = self.words.iter().flatten().map(|word| with_folder(word, place.0.path()));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.env(ANSWERS, state.told.to_string());
        let timeout = self.arguments.timeout.min(self.left());
        let limits = Limits {
            timeout,
            stdout_bytes_max: STREAM_BYTES_MAX,
            stderr_bytes_max: STREAM_BYTES_MAX,
            is_kept: true,
        };
        let ended = supervise(&mut command, limits, self.stop, &mut |_| {});
        let ended = ended.map_err(|error| match error {
            // The check cannot be started.
            Error::Failed(problem) => Error::Usage(format!("the check: {problem}")),
            other => other,
        })?;
        kept.take(place.0.path(), state);
        let Some(failure) = ended.status.failure() else { return Ok(Some(Ok(()))) };
        let failure = match ended.status {
            End::TimedOut if timeout < self.arguments.timeout => return Ok(None),
            End::TimedOut => {
                format!("did not end within {}", units::seconds(timeout.as_secs_f64()))
            }
            End::Exited(_) => failure,
        };
        let streams = [&ended.stderr, &ended.stdout];
        let told = streams.into_iter().find_map(|said| error_line(&String::from_utf8_lossy(said)));
        let told = told.map_or(String::new(), |line| format!(": {line}"));
        Ok(Some(Err(failure + &told)))
    }
}

/// The characters that only a shell understands.
const OF_SHELLS: &str = "|&;<>$`";

/// Returns the first character outside quotes that only a shell understands; `None` if there is no
/// such character.
fn of_a_shell(check: &str) -> Option<char> {
    let (mut quote, mut escapes) = (None, false);
    check.chars().find(|&letter| {
        let is_escaped = std::mem::replace(&mut escapes, false);
        let is_open = quote.is_none() && !is_escaped;
        match (quote, letter) {
            _ if is_escaped => {}
            (None | Some('"'), '\\') => escapes = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(of), _) if of == letter => quote = None,
            _ => {}
        }
        is_open && OF_SHELLS.contains(letter)
    })
}

/// Returns the words of a check command, which must contain the placeholder for the folder.
fn words(check: &str) -> Result<Vec<String>, Error> {
    let mut words = shlex::split(check).filter(|words| !words.is_empty()).ok_or_else(|| {
        Error::Usage(format!("--check {check:?}: a program with its arguments is needed"))
    })?;
    if let Some(letter) = of_a_shell(check) {
        return Err(Error::Usage(format!(
            "--check runs one program without a shell, so '{letter}' has no meaning in it; put the \
             words into --check \"sh -c '..'\""
        )));
    }
    if words.iter().all(|word| pieces(word).len() == 1) {
        words.push(FOLDER.into());
    }
    Ok(words)
}

/// Splits a word at the placeholder for the folder, which may be the whole word or a part of a
/// path.
fn pieces(word: &str) -> Vec<&str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (at, _) in word.match_indices(FOLDER) {
        let after = at + FOLDER.len();
        if !word[..at].ends_with(is_part) && !word[after..].starts_with(is_part) {
            pieces.push(&word[from..at]);
            from = after;
        }
    }
    pieces.push(&word[from..]);
    pieces
}

/// Returns a word in which the folder replaces the placeholder.
fn with_folder(word: &str, folder: &Path) -> OsString {
    pieces(word).iter().map(OsStr::new).collect_vec().join(folder.as_os_str())
}

/// Returns the line of a check's output that describes the error: the last line that mentions one,
/// or else the last line; `None` if there is no output. Skips indented lines, which are lines of
/// source or of a stack trace.
fn error_line(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let tells = |line: &&str| {
        let text = line.to_lowercase();
        !line.starts_with(char::is_whitespace) && ERRORS.iter().any(|word| text.contains(word))
    };
    let at = lines.iter().rposition(tells).or(lines.len().checked_sub(1))?;
    // In Rust, a panic's message is on the line after the colon.
    let next = lines.get(at + 1).filter(|_| lines[at].ends_with(':'));
    Some([lines[at].trim()].into_iter().chain(next.map(|line| line.trim())).join(" "))
}

pub(super) fn temporary() -> io::Result<TempDir> {
    // The files may be private, so the folder is, too.
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("wrote-crash-").permissions(private).tempdir()
}

/// The large files of the previous state that its check left unchanged. Most states share them.
struct Kept {
    folder: TempDir,
    /// The modification time of these files, in whole seconds. A check that writes to a file
    /// changes the file's time.
    changed_at: SystemTime,
}

impl Kept {
    fn new() -> io::Result<Kept> {
        let now_s = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let changed_at = UNIX_EPOCH + Duration::from_secs(now_s.saturating_sub(10));
        Ok(Kept { folder: temporary()?, changed_at })
    }

    fn path(&self, bytes: &Bytes) -> PathBuf {
        self.folder.path().join(format!("{:016x}-{}", bytes.hash(), bytes.len()))
    }

    /// Creates a file of a state, or moves an existing one to its path.
    fn put(&self, path: &Path, bytes: &Bytes) -> io::Result<()> {
        if bytes.len() < KEPT_BYTES_MIN {
            return fs::write(path, &**bytes);
        }
        if fs::rename(self.path(bytes), path).is_ok() {
            return Ok(());
        }
        let mut file = File::create(path)?;
        io::Write::write_all(&mut file, bytes)?;
        file.set_modified(self.changed_at)
    }

    /// Takes over the large files of a state that its check has left unchanged.
    fn take(&self, folder: &Path, state: &State) {
        for (path, (entry, _)) in &state.tree.0 {
            let Entry::File(bytes) = entry else { continue };
            let path = folder.join(path);
            let is_as_made = |found: Metadata| {
                let is_alone = found.is_file() && found.nlink() == 1;
                let is_unchanged = found.modified().is_ok_and(|at| at == self.changed_at);
                is_alone && is_unchanged && found.len() == bytes.len() as u64
            };
            let is_large = bytes.len() >= KEPT_BYTES_MIN;
            if is_large && path.symlink_metadata().is_ok_and(is_as_made) {
                // A file that cannot be moved is written again.
                let _ = fs::rename(&path, self.path(bytes));
            }
        }
    }

    /// Removes the files that the latest state did not use.
    fn clear(&self) -> io::Result<()> {
        fs::read_dir(self.folder.path())?.try_for_each(|entry| fs::remove_file(entry?.path()))
    }
}

/// The folder of a state. It is removed even if folders in it are not writable.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stands_wherever_its_word_does() {
        let made = |word| with_folder(word, Path::new("/t/x")).into_string().unwrap();
        assert_eq!(made("DIR"), "/t/x");
        assert_eq!(made("DIR/a"), "/t/x/a");
        assert_eq!(made("--in=DIR/a:DIR"), "--in=/t/x/a:/t/x");
        assert_eq!(made("test -s \"DIR/a\""), "test -s \"/t/x/a\"");
        assert_eq!(made("MYDIR DIRECT DIR_"), "MYDIR DIRECT DIR_");
        assert_eq!(words("grep x DIR/a").unwrap(), ["grep", "x", "DIR/a"]);
        assert_eq!(words("./load --DIRECT").unwrap(), ["./load", "--DIRECT", "DIR"]);
    }

    #[test]
    fn what_only_a_shell_understands_is_found_outside_quotes() {
        for check in
            ["a DIR||true", "a 2>/dev/null", "a $HOME", "a 'b'|c", "a `b`", "a \\'|", "a;b"]
        {
            assert!(of_a_shell(check).is_some(), "{check}");
        }
        for check in
            ["sh -c 'a | b; $c'", "grep \"a;b\" DIR", "a \\; b", "a \"\\\"|\"", "a 'b' DIR"]
        {
            assert_eq!(of_a_shell(check), None, "{check}");
        }
    }

    #[test]
    fn the_line_that_tells_the_error_is_found_in_the_output_of_each_language() {
        let line = |output: &str| error_line(output).unwrap_or_default();
        let python = "Traceback (most recent call last):\n  File \"l.py\", line 1, in <module>\n    \
            raise ValueError(1)\nValueError: Expecting value\n";
        assert_eq!(line(python), "ValueError: Expecting value");
        let rust = "thread 'main' (7) panicked at src/main.rs:2:5:\nit is torn\n\
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(line(rust), "thread 'main' (7) panicked at src/main.rs:2:5: it is torn");
        let go =
            "panic: it is torn\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:4\nexit status 2\n";
        assert_eq!(line(go), "panic: it is torn");
        let node = "/a.js:1\nthrow new Error('it is torn')\n^\n\nError: it is torn\n    at Object\n\n\
            Node.js v20.1.0\n";
        assert_eq!(line(node), "Error: it is torn");
        assert_eq!(line("a\n\n b \n"), "b");
        assert_eq!(line("\n"), "");
    }
}
