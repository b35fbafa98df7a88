//! Runs a command within a time limit, its output shown as it comes and kept, and ends it with all
//! its children when the time is over or a signal comes.

use crate::failure::{Failure, Tried};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest that a step takes on the slowest and busiest machine: after this time it hangs.
pub const HANG: Duration = Duration::from_secs(30 * 60);
/// How long a command that is told to end may take to clean up before it is killed.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

static STOPPED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether output appears while the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// On our own stdout and stderr, as it comes.
    Live,
    /// Stderr alone.
    Errors,
    /// Not at all: it is only kept.
    Quiet,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub struct Finished {
    /// Why it is no success: `exit code 1`, `killed after 20 min`; `None` where it is one.
    pub trouble: Option<String>,
    /// Its exit code, where it ended by itself.
    pub exit_code: Option<i32>,
    /// All that it wrote to stdout.
    pub stdout: String,
    /// All that it wrote to stderr.
    pub stderr: String,
}

impl Finished {
    /// The failure "`what`: why", unless it was a success.
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

/// From here on SIGINT, SIGTERM and SIGHUP end the running command and then us, in order.
pub fn heed_signals() -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&STOPPED)).tried("signal handler")?;
    }
    Ok(())
}

/// [`Failure::Interrupted`] where a signal came.
pub fn check_interrupted() -> Result<(), Failure> {
    if STOPPED.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Runs `command` for at most `limit`, in a process group of its own and without input.
pub fn run(command: &mut Command, limit: Duration, show: Show) -> Result<Finished, Failure> {
    check_interrupted()?;
    let mut group = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = keep(group.child.stdout.take(), show == Show::Live, std::io::stdout());
    let stderr = keep(group.child.stderr.take(), show != Show::Quiet, std::io::stderr());
    let status = group.wait(limit, true);
    // A grandchild may hold the pipes open after the command has ended.
    let end = Instant::now() + GRACE;
    while !(stdout.reader.is_finished() && stderr.reader.is_finished()) && Instant::now() < end {
        thread::sleep(POLL);
    }
    group.kill(Signal::KILL);
    check_interrupted()?;
    Ok(Finished {
        trouble: trouble(status, limit),
        exit_code: status.and_then(|status| status.code()),
        stdout: stdout.text(),
        stderr: stderr.text(),
    })
}

/// Runs a command that puts something in order again, also after a signal; says nothing.
pub fn clean_up(command: &mut Command) {
    if let Ok(mut group) = start(command.stdout(Stdio::null()).stderr(Stdio::null())) {
        group.wait(GRACE, false);
    }
}

/// Starts `command` in a process group of its own, without input.
pub fn start(command: &mut Command) -> Result<Group, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).process_group(0).spawn().tried(name)?;
    Ok(Group { child })
}

/// A running command and its children; ended when dropped.
#[derive(Debug)]
pub struct Group {
    /// The command itself.
    pub child: Child,
}

impl Group {
    /// Waits until the command ends; ends it after `limit`, or at a signal where it `heeds` them.
    /// `None` where it was ended.
    fn wait(&mut self, limit: Duration, heeds: bool) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < limit && !(heeds && STOPPED.load(Ordering::Relaxed)) {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(POLL);
        }
        self.end();
        None
    }

    /// Asks the command and its children to end, and kills what is left after a while.
    pub fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.kill(Signal::TERM);
        let end = Instant::now() + GRACE;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
        self.kill(Signal::KILL);
        // Reaps it; a process that the kernel will not let go of is left to the kernel.
        let end = Instant::now() + GRACE;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
    }

    fn kill(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An error means that no one is left to be killed.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// A stream that is being kept.
struct Kept {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Kept {
    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
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
                // Whoever reads us may have gone; the run goes on.
                let _ = shown.write_all(piece).and_then(|()| shown.flush());
            }
        }
    });
    Kept { bytes, reader }
}

fn trouble(status: Option<ExitStatus>, limit: Duration) -> Option<String> {
    match status {
        None => Some(format!("killed after {} s", limit.as_secs())),
        Some(status) if status.success() => None,
        Some(status) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended in an unknown way".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // It was killed a moment ago; it may not have left yet.
        let end = Instant::now() + LIMIT;
        while is_alive(child) {
            assert!(Instant::now() < end, "{child:?} is still there");
            thread::sleep(POLL);
        }
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
}
