//! Runs a command within a time limit, and keeps its output. After the limit or a signal, the
//! command is terminated together with all its children. If the limit was reached, the state of its
//! threads is printed first.

use crate::process::{GRACE, Process};
use crate::process::{Stat, stat, threads};
use crate::tools::failure::{Failure, Tried};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A time limit that only a hang exceeds, even on a slow and busy machine.
pub const HANG: Duration = Duration::from_secs(30 * 60);
const POLL: Duration = Duration::from_millis(20);

static STOPPED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The time limit that all commands share.
static END: OnceLock<Instant> = OnceLock::new();

/// The output that is shown while the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Both stdout and stderr are shown.
    Live,
    /// Only stderr is shown.
    Errors,
    /// Nothing is shown.
    Quiet,
}

/// The outcome and the output of a command.
#[derive(Debug)]
pub struct Finished {
    /// The reason for a failure, such as `exit code 1` or `killed after 1800 s`; `None` after a
    /// success.
    pub trouble: Option<String>,
    /// The exit code; `None` if the command was killed.
    pub exit_code: Option<i32>,
    /// The output on stdout.
    pub stdout: String,
    /// The output on stderr.
    pub stderr: String,
}

impl Finished {
    /// Returns a failure with the text "`what`: reason", unless the command succeeded.
    pub fn success(self, what: &str) -> Result<Finished, Failure> {
        match &self.trouble {
            None => Ok(self),
            Some(trouble) => {
                let said = self.stderr.trim().lines().last().unwrap_or_default();
                let colon = if said.is_empty() { "" } else { ": " };
                Err(Failure::Failed(format!("{what}: {trouble}{colon}{said}")))
            }
        }
    }
}

/// Arranges for SIGINT, SIGTERM and SIGHUP to terminate the running command first, and then this
/// process.
pub fn heed_signals() -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&STOPPED)).tried("signal handler")?;
    }
    Ok(())
}

/// Arranges for a command that is still running at `end` to be terminated, and for no further
/// command to be started.
pub fn end_at(end: Instant) {
    let _ = END.set(end);
}

/// Fails after a signal, or if no time is left.
pub fn check_interrupted() -> Result<(), Failure> {
    match () {
        () if STOPPED.load(Ordering::Relaxed) => Err(Failure::Interrupted),
        () if is_out_of_time() => Err(Failure::OutOfTime),
        () => Ok(()),
    }
}

fn is_out_of_time() -> bool {
    END.get().is_some_and(|end| *end <= Instant::now())
}

/// Runs `command` for at most `limit`, in a new process group and with an empty standard input.
pub fn run(command: &mut Command, limit: Duration, show: Show) -> Result<Finished, Failure> {
    check_interrupted()?;
    let mut process = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = keep(process.child().stdout.take(), show == Show::Live, std::io::stdout());
    let stderr = keep(process.child().stderr.take(), show != Show::Quiet, std::io::stderr());
    let status = watch(&mut process, limit, true);
    // A grandchild may hold the pipes open after the command has ended.
    wait_until(GRACE, || stdout.1.is_finished() && stderr.1.is_finished());
    process.kill();
    check_interrupted()?;
    Ok(Finished {
        trouble: match status {
            None => Some(format!("killed after {} s", limit.as_secs())),
            Some(status) => trouble(status),
        },
        exit_code: status.and_then(|status| status.code()),
        stdout: text(&stdout),
        stderr: text(&stderr),
    })
}

/// Runs a command within [`HANG`], and returns its stdout. A failure names the command by `what`.
pub fn output(command: &mut Command, what: &str) -> Result<String, Failure> {
    Ok(run(command, HANG, Show::Quiet)?.success(what)?.stdout)
}

/// Runs `action`, and repeats it once if it fails, because a registry may be busy for a moment.
pub fn twice<T>(action: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    action().or_else(|failure| {
        check_interrupted()?;
        eprintln!("xtask: {failure}; once more");
        action()
    })
}

fn wait_until(limit: Duration, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_true() && Instant::now() < end {
        thread::sleep(POLL);
    }
}

/// Runs a command that cleans up, even after a signal. Ignores the result.
pub fn clean_up(command: &mut Command) {
    if let Ok(mut process) = start(command.stdout(Stdio::null()).stderr(Stdio::null())) {
        watch(&mut process, GRACE, false);
    }
}

/// Starts `command` in a new process group, with an empty standard input.
pub fn start(command: &mut Command) -> Result<Process, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    Process::lead(command.stdin(Stdio::null())).tried(name)
}

/// Waits until `found` returns a value, for at most `limit`, after which it returns `None`. Fails
/// after a signal.
pub fn until<T>(
    limit: Duration,
    pause: Duration,
    mut found: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let end = Instant::now() + limit;
    loop {
        match found()? {
            None if Instant::now() > end => return Ok(None),
            None => check_interrupted()?,
            found => return Ok(found),
        }
        thread::sleep(pause);
    }
}

/// Waits for a process to end. After `limit`, ends the process and returns `None`. If `heeds` is
/// set, also does so after a signal, or when no time is left.
fn watch(process: &mut Process, limit: Duration, heeds: bool) -> Option<ExitStatus> {
    let status = process.wait(limit, || !(heeds && check_interrupted().is_err()));
    if status.is_none() {
        if !STOPPED.load(Ordering::Relaxed) {
            print_threads(process.id());
        }
        process.end();
    }
    status
}

/// The bytes received from a stream, and the thread that collects them.
type Kept = (Arc<Mutex<Vec<u8>>>, JoinHandle<()>);

fn text((bytes, _): &Kept) -> String {
    let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn keep(
    stream: Option<impl Read + Send + 'static>,
    is_shown: bool,
    mut shown: impl Write + Send + 'static,
) -> Kept {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bytes);
    let reader = thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut piece = [0; 16 << 10];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            let piece = &piece[..length];
            kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(piece);
            if is_shown {
                // If the reader of the shown output has exited, the run continues nevertheless.
                let _ = shown.write_all(piece).and_then(|()| shown.flush());
            }
        }
    });
    (bytes, reader)
}

/// Returns how a command failed; `None` if it succeeded.
pub fn trouble(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("ended by signal {signal}")),
        (None, None) => Some("ended in an unknown way".to_owned()),
    }
}

/// Prints each thread of a process group, with its state, its processor time and its location in
/// the kernel.
fn print_threads(group: u32) {
    for thread in lines(group) {
        eprintln!("xtask: {thread}");
    }
}

fn lines(group: u32) -> Vec<String> {
    threads(group).filter_map(|thread| line(&thread)).collect()
}

fn line(thread: &Path) -> Option<String> {
    let Stat { state, user, kernel, .. } = stat(thread)?;
    let word = |name| fs::read_to_string(thread.join(name)).unwrap_or_default().trim().to_owned();
    let (name, place, call) = (word("comm"), word("wchan"), word("syscall"));
    let id = thread.file_name()?.to_string_lossy();
    let ticks = format!("{user} ticks in user space, {kernel} in the kernel");
    Some(format!("thread {id} {name}: state {state}, {ticks}, at {place}, system call {call}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::Pid;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn is_alive(pid: Pid) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        state.is_ok_and(|state| !state.contains(") Z "))
    }

    #[test]
    fn both_streams_and_the_exit_code_are_kept() {
        let finished =
            run(&mut shell("echo out; echo err >&2; exit 3"), LIMIT, Show::Quiet).expect("a shell");
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.exit_code, Some(3));
        let failure = finished.success("step").expect_err("not a success");
        assert_eq!(failure.to_string(), "step: exit code 3: err");
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let mut command = shell("sleep 60 & echo $!; wait");
        let finished = run(&mut command, Duration::from_secs(3), Show::Quiet).expect("a shell");
        assert_eq!(finished.trouble.as_deref(), Some("killed after 3 s"));
        let child = finished.stdout.trim().parse().ok().and_then(Pid::from_raw).expect("a pid");
        assert!(!is_alive(child), "{child:?} is still there");
    }

    #[test]
    fn a_command_gets_no_input() {
        let finished = run(&mut shell("cat; echo end"), LIMIT, Show::Quiet).expect("a shell");
        assert_eq!(finished.stdout, "end\n");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = run(&mut Command::new("no-such-program"), LIMIT, Show::Quiet);
        let message = failure.expect_err("not there").to_string();
        assert_eq!(message, "no-such-program: No such file or directory (os error 2)");
    }

    #[test]
    fn the_threads_of_this_process_are_told() {
        let own = stat(Path::new("/proc/self")).expect("this process");
        let name = std::thread::current().name().expect("a test has a name").to_owned();
        // The kernel keeps only 15 bytes of a thread's name.
        assert!(lines(own.group).iter().any(|thread| thread.contains(&name[..15])));
    }
}
