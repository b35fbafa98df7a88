//! A supervised child process: watched, limited, and ended with all processes that it started.
//! Every child of a measurement is started here.

mod keeper;

pub(crate) use keeper::Keeper;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The longest wait for a program's file that is busy: other threads' children reach their `execve`
/// long before.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// The size of one read of a pipe: a pipe's default capacity (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;
/// The most reads of a pipe after the child's end: the largest pipe of an ordinary user
/// (`/proc/sys/fs/pipe-max-size`), and a bound where another process still writes into it.
const READS_AFTER_END: usize = (1 << 20) / PIPE_BYTES + 1;

/// The limits of a child.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time limit; a child that exceeds it is ended.
    pub timeout: Duration,
    /// The bytes of standard output that are kept, from its start. The rest is read and discarded.
    pub stdout_bytes_max: usize,
    /// The bytes of standard error that are kept, up to its end.
    pub stderr_bytes_max: usize,
    /// Whether its group ends where this process is killed. A shell sees to that, which takes a
    /// millisecond to start and counts among the children of this process.
    pub is_kept: bool,
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ended by itself, or by a signal that was not ours.
    Exited(ExitStatus),
    /// It exceeded its time limit.
    TimedOut,
}

impl End {
    /// Describes the failure, to follow a program's name: `ended with exit code 3`, `was ended by
    /// SIGSEGV`; `None` for exit code 0. The caller knows the time limit.
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

/// Names a signal: `SIGSEGV`, or `signal 40` where it has no name.
fn signal_name(signal: Option<i32>) -> String {
    let number = signal.unwrap_or_default();
    match Signal::from_named_raw(number) {
        // Rustix has longer names than signal(7) for these.
        Some(Signal::ABORT) => "SIGABRT".into(),
        Some(Signal::ALARM) => "SIGALRM".into(),
        // Its debug form is `"Signal::SEGV"`.
        Some(named) => format!("{named:?}").replace("Signal::", "SIG").replace('"', ""),
        None => format!("signal {number}"),
    }
}

/// A child that has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its end.
    pub status: End,
    /// The first bytes of its standard output.
    pub stdout: Vec<u8>,
    /// All bytes of its standard output, with those that were not kept.
    pub stdout_total_bytes: u64,
    /// The last bytes of its standard error.
    pub stderr: Vec<u8>,
    /// The time from its start to its end, by our clock.
    pub elapsed_s: f64,
}

impl Outcome {
    pub(crate) fn timed_out(&self) -> bool {
        self.status == End::TimedOut
    }
}

/// Runs `command` to its end, in a process group of its own and with an empty standard input. Calls
/// `look` with its process id every few milliseconds while it runs.
///
/// When this returns or panics, the child was waited for and its whole group was sent SIGKILL,
/// after its own exit too: no background process of the group stays. A process in a session of its
/// own gets no such signal and may still hold the pipes; this does not wait for it.
///
/// # Errors
///
/// [`Error::Interrupted`] when `stop` is raised, before or meanwhile; [`Error::Failed`] when the
/// child cannot be started or watched.
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

/// Starts the child. A program that was just written is busy (`ETXTBSY`, execve(2)) while a child
/// of another thread, before its own `execve`, holds our file descriptors. This waits for that
/// child.
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

/// The child with its process group; its drop ends the group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    id: Pid,
    /// Reports the child's end at once; absent before Linux 5.3.
    pidfd: Option<OwnedFd>,
    keeper: Option<Keeper>,
    ended: bool,
}

impl Group {
    /// Starts a child in a process group of its own, which `keeper` ends with this process.
    pub(crate) fn start(command: &mut Command, mut keeper: Option<Keeper>) -> io::Result<Group> {
        let child = spawn(command.process_group(0))?;
        let id = Pid::from_child(&child);
        if let Some(keeper) = &mut keeper {
            keeper.keep(id);
        }
        // Before the child is waited for, the id is still its own.
        let pidfd = pidfd_open(id, PidfdFlags::empty()).ok();
        Ok(Group { child, id, pidfd, keeper, ended: false })
    }

    /// The child with its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The number of the child.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the child to end (SIGTERM). The rest of its group is not asked.
    pub(crate) fn ask_to_end(&self) -> io::Result<()> {
        Ok(kill_process(self.id, Signal::TERM)?)
    }

    /// Returns whether the child has ended. It stays a zombie, so that no other group can have its
    /// id, and [`Group::end`] ends this group.
    pub(crate) fn leader_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.id), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the child ends, prints (and reads one piece of that), or `pause` is over.
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
        // A signal ends the wait early; the caller repeats it.
        if poll(&mut fds, Some(&pause)).is_err() {
            return Events::default();
        }
        let mut events = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut ready = all.iter().map(|fd| fd.is_some() && events.next().unwrap_or(false));
        let mut next = || ready.next().unwrap_or(false);
        Events { pipes: [next(), next()], end: next() }
    }

    /// Ends the rest of the group, and waits for the child.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        self.ended = true;
        // It must not know the id once that may be another group's.
        self.keeper = None;
        // Both fail only without a process to end. The child may have joined another group.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            // The caller already reports an error or a panic.
            let _ = self.end();
        }
    }
}

#[derive(Default)]
struct Events {
    pipes: [bool; 2],
    end: bool,
}

/// The kept bytes of a pipe: its first or its last.
#[derive(Clone, Copy)]
enum Keep {
    First(usize),
    Last(usize),
}

/// Our end of a pipe from the child. Neither side blocks on it.
struct Pipe {
    /// `None` after the last byte.
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

    /// Reads one piece. Returns whether more may be at hand.
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
                // Rarely, because it moves the kept bytes.
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
