//! A child process that does not outlive us: watched, bounded, and ended with all that it started.

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

/// How long the child is left alone between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a program's file may be busy: another thread's child is at its `execve` long before.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// What is read of a pipe at once: all that a pipe holds that nobody made larger (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;
/// How often a pipe is read after the child's end: as much as the largest pipe of an ordinary user holds
/// (`/proc/sys/fs/pipe-max-size`), and not for ever where somebody else still writes into it.
const READS_AFTER_END: usize = (1 << 20) / PIPE_BYTES + 1;

/// What a child may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long it may run; then it is ended.
    pub timeout: Duration,
    /// How much of its standard output is kept: its first bytes. What comes after is read and forgotten.
    pub stdout_bytes_max: usize,
    /// How much of its standard error is kept: its last bytes.
    pub stderr_bytes_max: usize,
}

/// How a child came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By itself, or by a signal that is not ours.
    Exited(ExitStatus),
    /// By us, for it took too long.
    TimedOut,
}

impl How {
    /// What went wrong, to be put behind a program's name: `ended with exit code 3`, `was ended by SIGSEGV`;
    /// none where it ended with 0. Of the limit only that there was one: its user knows how long.
    pub(super) fn failure(self) -> Option<String> {
        match self {
            How::TimedOut => Some("took too long and was ended".into()),
            How::Exited(status) => match (status.code(), status.signal()) {
                (Some(0), _) => None,
                (Some(code), _) => Some(format!("ended with exit code {code}")),
                (None, signal) => Some(format!("was ended by {}", signal_name(signal))),
            },
        }
    }
}

/// `SIGSEGV`, or `signal 40` where it has no name.
fn signal_name(signal: Option<i32>) -> String {
    let number = signal.unwrap_or_default();
    match Signal::from_named_raw(number) {
        // Those that programs end by and whose names there are longer than in signal(7).
        Some(Signal::ABORT) => "SIGABRT".into(),
        Some(Signal::ALARM) => "SIGALRM".into(),
        // It shows itself as `"Signal::SEGV"`.
        Some(named) => format!("{named:?}").replace("Signal::", "SIG").replace('"', ""),
        None => format!("signal {number}"),
    }
}

/// What a child did, as far as it was looked at.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// How it ended.
    pub status: How,
    /// The first bytes that it printed.
    pub stdout: Vec<u8>,
    /// How many bytes it printed in all, those that were not kept too.
    pub stdout_total_bytes: u64,
    /// The last bytes of its standard error.
    pub stderr: Vec<u8>,
    /// From its start to its end, by our clock.
    pub elapsed_s: f64,
}

impl Outcome {
    /// Whether it was ended for taking too long.
    pub(super) fn timed_out(&self) -> bool {
        self.status == How::TimedOut
    }
}

/// Runs `command` to its end, in a process group of its own and with nothing on its standard input. `look`
/// is called with its process id again and again, every few milliseconds, as long as it runs.
///
/// When this returns, or panics, the child has been waited for and its whole group was sent SIGKILL: at its
/// own end too, so that nothing is left behind that it started in the background. What it started may still
/// hold the pipes (in a session of its own, where no signal to the group comes): that is not waited for.
///
/// # Errors
///
/// [`Error::Interrupted`] when `stop` is raised, before or meanwhile; [`Error::Failed`] when the child can't
/// be started or watched.
pub(super) fn supervise(
    command: &mut Command,
    limits: Limits,
    stop: &Stop,
    look: &mut dyn FnMut(u32),
) -> Result<Outcome, Error> {
    stop.check()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str, error: io::Error| Error::Failed(format!("{what} {program}: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let started = Instant::now();
    let child = spawn(command).map_err(|error| failed("cannot start", error))?;
    let mut group = Group::of(child);
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
        status: if timed_out { How::TimedOut } else { How::Exited(status) },
        stdout_total_bytes: stdout.total_bytes,
        stdout: stdout.into_kept(),
        stderr: stderr.into_kept(),
        elapsed_s,
    })
}

/// Starts it. A program that was written a moment ago is busy (`ETXTBSY`, execve(2)) as long as a child that
/// another thread starts at the same time, and that is not yet at its own `execve`, holds our file
/// descriptors: that passes.
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

/// The child with its process group, which ends when this is dropped.
struct Group {
    child: Child,
    id: Pid,
    /// Tells of the child's end at once; none before Linux 5.3.
    pidfd: Option<OwnedFd>,
    ended: bool,
}

impl Group {
    fn of(child: Child) -> Group {
        let id = Pid::from_child(&child);
        // Not yet waited for, the id is the child's still.
        Group { child, id, pidfd: pidfd_open(id, PidfdFlags::empty()).ok(), ended: false }
    }

    /// Whether the child has ended. It is left a zombie, whose process id no other group can have: so that
    /// [`Group::end`] ends this group and no other.
    fn leader_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.id), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the child ends, prints something (of which a piece is read), or `pause` is over.
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

    fn wait(&self, pipes: &[&mut Pipe; 2], left: Duration) -> Ready {
        let pause = Timespec::try_from(left).expect("a few milliseconds");
        let open = pipes.iter().map(|pipe| pipe.source.as_ref().map(AsFd::as_fd));
        let all: Vec<_> = open.chain([self.pidfd.as_ref().map(AsFd::as_fd)]).collect();
        let fds = all.iter().flatten();
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // A signal ends it early, as if nothing had come: it is called again.
        if poll(&mut fds, Some(&pause)).is_err() {
            return Ready::default();
        }
        let mut events = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut ready = all.iter().map(|fd| fd.is_some() && events.next().unwrap_or(false));
        let mut next = || ready.next().unwrap_or(false);
        Ready { pipes: [next(), next()], end: next() }
    }

    /// Ends whatever is left of the group, and waits for the child.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.ended = true;
        // Neither can fail but for there being nothing left to end. The child by itself too: it may have
        // joined another group.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            // An error is being told of already, or a panic.
            let _ = self.end();
        }
    }
}

/// What there is to see.
#[derive(Default)]
struct Ready {
    pipes: [bool; 2],
    end: bool,
}

/// Which bytes of a pipe are kept, and how many.
#[derive(Clone, Copy)]
enum Keep {
    First(usize),
    Last(usize),
}

/// Our end of a pipe into which the child writes, which never blocks us, nor the child.
struct Pipe {
    /// None once there is nothing more to come.
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

    /// Reads one piece. Whether there may be more at once.
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
            // Nobody has the other end any more.
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
                // Not at each piece: what is kept moves for it.
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

#[cfg(test)]
mod tests;
