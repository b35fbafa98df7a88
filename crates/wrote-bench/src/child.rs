//! Supervised child processes: each is watched, limited, and killed with all its descendants. Every
//! child of a measurement is started by this module.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The maximum time to wait while a program's file is busy. The children of other threads reach
/// their `execve` far sooner.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// The default capacity of a pipe (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;
/// The maximum number of reads of a pipe after the child has terminated. It covers the largest pipe
/// of an ordinary user (`/proc/sys/fs/pipe-max-size`), and bounds the loop if another process keeps
/// writing.
const READS_AFTER_END: usize = (1 << 20) / PIPE_BYTES + 1;

/// The limits of a child.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time limit, after which the child is killed.
    pub timeout: Duration,
    /// The maximum number of bytes of standard output to keep, from its start. The rest is
    /// discarded.
    pub stdout_bytes_max: usize,
    /// The maximum number of bytes of standard error to keep, from its end.
    pub stderr_bytes_max: usize,
    /// Whether the group is killed if this process is killed. A shell does this. It takes a
    /// millisecond to start, and is an additional child of this process.
    pub is_kept: bool,
}

/// How a child terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The child exited, or died of a signal that we did not send.
    Exited(ExitStatus),
    /// The child exceeded its time limit.
    TimedOut,
}

impl End {
    /// Describes the failure in words that follow the program's name: `ended with exit code 3`,
    /// `was ended by SIGSEGV`; `None` for exit code 0. For a timeout, the caller adds the limit.
    pub fn failure(self) -> Option<String> {
        match self {
            End::TimedOut => Some("took too long and was ended".into()),
            End::Exited(status) => match (status.code(), status.signal()) {
                (Some(0), _) => None,
                (Some(code), _) => Some(format!("ended with exit code {code}")),
                (None, signal) => Some(format!("was ended by {}", signal_name(signal))),
            },
        }
    }
}

/// Returns a signal's name: `SIGSEGV`, or `signal 40` if it has none.
fn signal_name(signal: Option<i32>) -> String {
    let number = signal.unwrap_or_default();
    match Signal::from_named_raw(number) {
        // Rustix has longer names than signal(7) for these two signals.
        Some(Signal::ABORT) => "SIGABRT".into(),
        Some(Signal::ALARM) => "SIGALRM".into(),
        // The debug form of a signal is `"Signal::SEGV"`.
        Some(named) => format!("{named:?}").replace("Signal::", "SIG").replace('"', ""),
        None => format!("signal {number}"),
    }
}

/// The result of a child.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the child terminated.
    pub status: End,
    /// The first bytes of the child's standard output.
    pub stdout: Vec<u8>,
    /// The length of all of the child's standard output.
    pub stdout_total_bytes: u64,
    /// The last bytes of the child's standard error.
    pub stderr: Vec<u8>,
    /// The time from the child's start to its termination, in seconds.
    pub elapsed_s: f64,
}

impl Outcome {
    pub(crate) fn timed_out(&self) -> bool {
        self.status == End::TimedOut
    }
}

/// Runs `command` until it terminates, in a separate process group and with an empty standard
/// input. Calls `look` with the child's process ID every few milliseconds.
///
/// On return or panic, the child has been waited for and its whole group has been sent SIGKILL, so
/// no background process of the group remains. A process in another session gets no signal and may
/// still hold the pipes; this function does not wait for it.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` is raised; [`Error::Failed`] if the child can't be started or
/// watched.
pub fn supervise(
    command: &mut Command,
    limits: Limits,
    stop: &Stop,
    look: &mut dyn FnMut(u32),
) -> Result<Outcome, Error> {
    stop.check()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str, error: io::Error| Error::Failed(format!("{what} {program}: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let keeper = limits.is_kept.then(Keeper::start).and_then(io::Result::ok);
    let started = Instant::now();
    let mut group = Group::start(command, keeper).map_err(|error| failed("cannot start", error))?;
    let unwatched = |error| failed("cannot watch", error);
    let stdout = group.child.stdout.take().map(OwnedFd::from);
    let mut stdout = Pipe::new(stdout, Keep::First(limits.stdout_bytes_max)).map_err(unwatched)?;
    let stderr = group.child.stderr.take().map(OwnedFd::from);
    let mut stderr = Pipe::new(stderr, Keep::Last(limits.stderr_bytes_max)).map_err(unwatched)?;

    let timed_out = loop {
        stop.check()?;
        if group.leader_ended().map_err(unwatched)? {
            break false;
        }
        let left = limits.timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            break true;
        }
        look(group.child.id());
        group.wait_or_read(&mut [&mut stdout, &mut stderr], left.min(LOOK_EVERY));
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    let status = group.end().map_err(unwatched)?;
    for pipe in [&mut stdout, &mut stderr] {
        pipe.read_what_is_left();
    }
    Ok(Outcome {
        status: if timed_out { End::TimedOut } else { End::Exited(status) },
        stdout_total_bytes: stdout.total_bytes,
        stdout: stdout.into_kept(),
        stderr: stderr.into_kept(),
        elapsed_s,
    })
}

/// Starts the child. A newly written program is busy (`ETXTBSY`, execve(2)) while a child of
/// another thread has not reached its `execve` and still holds our file descriptors. This function
/// waits until the program is no longer busy.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let started = Instant::now();
    loop {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                if started.elapsed() >= BUSY_MAX {
                    return Err(error);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            spawned => return spawned,
        }
    }
}

/// The child and its process group, which is killed on drop.
#[derive(Debug)]
struct Group {
    child: Child,
    /// The group's leader: the keeper, or else the child.
    leader: Pid,
    /// A descriptor that becomes readable as soon as the child exits; `None` before Linux 5.3.
    pidfd: Option<OwnedFd>,
    keeper: Option<Keeper>,
    ended: bool,
}

impl Group {
    /// Starts a child in the process group of `keeper`, which kills the group if this process
    /// terminates; without a keeper, in a new group.
    fn start(command: &mut Command, keeper: Option<Keeper>) -> io::Result<Group> {
        let kept_by = keeper.as_ref().map(|keeper| Pid::from_child(&keeper.shell));
        let child = spawn(command.process_group(kept_by.map_or(0, Pid::as_raw_pid)))?;
        let id = Pid::from_child(&child);
        // Until the child is waited for, its ID can't be reused.
        let pidfd = pidfd_open(id, PidfdFlags::empty()).ok();
        Ok(Group { child, leader: kept_by.unwrap_or(id), pidfd, keeper, ended: false })
    }

    /// Returns whether the child has terminated. Such a child remains a zombie, so that its ID
    /// can't be reused before [`Group::end`].
    fn leader_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the child's output until the child terminates or `pause` has passed.
    fn wait_or_read(&self, pipes: &mut [&mut Pipe; 2], pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let ready = self.wait(pipes, left);
            for (pipe, ready) in pipes.iter_mut().zip(ready.pipes) {
                if ready {
                    pipe.read();
                }
            }
            if ready.end || left.is_zero() {
                return;
            }
        }
    }

    fn wait(&self, pipes: &[&mut Pipe; 2], left: Duration) -> Events {
        let pause = Timespec::try_from(left).expect("a few milliseconds");
        let open = pipes.iter().map(|pipe| pipe.source.as_ref().map(AsFd::as_fd));
        let all: Vec<_> = open.chain([self.pidfd.as_ref().map(AsFd::as_fd)]).collect();
        let fds = all.iter().flatten();
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // A signal may end the wait early; the caller repeats it.
        if poll(&mut fds, Some(&pause)).is_err() {
            return Events::default();
        }
        let mut events = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut ready = all.iter().map(|fd| fd.is_some() && events.next().unwrap_or(false));
        let mut next = || ready.next().unwrap_or(false);
        Events { pipes: [next(), next()], end: next() }
    }

    /// Kills what remains of the group, waits for the child, and returns its status.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.ended = true;
        // Both calls fail only if no process is left. The child may have joined another group.
        let _ = kill_process_group(self.leader, Signal::KILL);
        let _ = self.child.kill();
        // The keeper is dropped only now, because the group's ID can't be reused until its leader
        // has been waited for.
        self.keeper = None;
        self.child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            // The caller is already reporting an error or panic.
            let _ = self.end();
        }
    }
}

/// The keeper's script. It reports that it is ready, waits for the end of its input (which occurs
/// when this process terminates), and kills its group.
const SCRIPT: &str = "echo; read -r _; kill -s KILL 0";

/// A shell that kills its process group when this process dies, even by SIGKILL. The parent-death
/// signal (`PR_SET_PDEATHSIG`) would reach only the child, not its descendants.
#[derive(Debug)]
struct Keeper {
    shell: Child,
}

impl Keeper {
    /// Starts the shell and waits until it is ready, so that the measurement does not include the
    /// start of the shell.
    fn start() -> io::Result<Keeper> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = Keeper { shell: command.spawn()? };
        if let Some(mut ready) = keeper.shell.stdout.take() {
            ready.read_exact(&mut [0])?;
        }
        Ok(keeper)
    }
}

impl Drop for Keeper {
    /// Kills the shell before it can read the end of its input.
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[derive(Default)]
struct Events {
    pipes: [bool; 2],
    end: bool,
}

/// The bytes of a pipe to keep: the first or the last ones, with their maximum number.
#[derive(Clone, Copy)]
enum Keep {
    First(usize),
    Last(usize),
}

/// Our end of a pipe from the child, in non-blocking mode.
struct Pipe {
    /// The read end of the pipe; `None` after the last byte or an error.
    source: Option<File>,
    keep: Keep,
    kept: Vec<u8>,
    total_bytes: u64,
    piece: Vec<u8>,
}

impl Pipe {
    fn new(source: Option<OwnedFd>, keep: Keep) -> io::Result<Pipe> {
        if let Some(fd) = &source {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let source = source.map(File::from);
        Ok(Pipe { source, keep, kept: Vec::new(), total_bytes: 0, piece: vec![0; PIPE_BYTES] })
    }

    /// Reads one piece. Returns whether more may be available.
    fn read(&mut self) -> bool {
        let Some(source) = &mut self.source else {
            return false;
        };
        match source.read(&mut self.piece) {
            Ok(count @ 1..) => {
                self.total_bytes += count as u64;
                self.keep(count);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            // The other end is closed.
            Ok(_) | Err(_) => {
                self.source = None;
                false
            }
        }
    }

    fn keep(&mut self, count: usize) {
        match self.keep {
            Keep::First(max) => {
                let room = max.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&self.piece[..count.min(room)]);
            }
            Keep::Last(max) => {
                self.kept.extend_from_slice(&self.piece[..count]);
                // The oldest bytes are not dropped after each piece, because dropping them moves
                // the kept bytes.
                if self.kept.len() > 2 * max + PIPE_BYTES {
                    self.kept.drain(..self.kept.len() - max);
                }
            }
        }
    }

    fn read_what_is_left(&mut self) {
        for _ in 0..READS_AFTER_END {
            if !self.read() {
                break;
            }
        }
    }

    fn into_kept(mut self) -> Vec<u8> {
        if let Keep::Last(max) = self.keep {
            self.kept.drain(..self.kept.len().saturating_sub(max));
        }
        self.kept
    }
}

/// The maximum number of characters shown of another program's line.
const CHARS_MAX: usize = 200;

/// Returns a line of another program in a form that is safe and short enough for a terminal:
/// trimmed, without control characters, and truncated to `chars_max` characters.
pub(crate) fn shown(line: &str, chars_max: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    let mut letters = line.trim_matches(is_blank).chars();
    let mut shown: String = letters.by_ref().take(chars_max).map(plain).collect();
    if letters.next().is_some() {
        shown.push_str("..");
    }
    shown
}

/// Returns the most informative line of an error message: the last line that reports an error, or
/// else the last line; `None` if there is no line. Many languages print the origin of an error
/// first.
pub(crate) fn complaint(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let names_error = |line: &&str| {
        let from_start = !line.starts_with(char::is_whitespace);
        from_start && ["rror", "xception", "panic"].iter().any(|word| line.contains(word))
    };
    let line = lines().rfind(names_error).or_else(|| lines().next_back())?;
    Some(shown(line, CHARS_MAX))
}

#[cfg(test)]
mod tests;
