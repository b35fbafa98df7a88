//! A child process that never outlives its holder. Every tool and test starts its processes with
//! this.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL, in which a process cleans up.
pub const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A running process. It ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Whether it leads a process group: then signals reach its children too.
    is_leader: bool,
}

impl Process {
    /// Starts `command` in the group of this process.
    pub fn start(command: &mut Command) -> io::Result<Process> {
        Ok(Process { child: command.spawn()?, is_leader: false })
    }

    /// Starts `command` in a new process group.
    pub fn lead(command: &mut Command) -> io::Result<Process> {
        Ok(Process { child: command.process_group(0).spawn()?, is_leader: true })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process with its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns how it ended; `None` while it runs.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.status(), Ok(Some(_)))
    }

    /// Waits for its end while it `may_run`, at most for `limit`; returns `None` if it continues.
    pub fn wait(&mut self, limit: Duration, may_run: impl Fn() -> bool) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < limit && may_run() {
            if let Ok(Some(status)) = self.status() {
                return Some(status);
            }
            thread::sleep(POLL);
        }
        None
    }

    /// Sends a signal to the process, and to its children if it leads a group.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) else { return };
        // An error means that every process has ended.
        let _ = if self.is_leader {
            kill_process_group(pid, signal)
        } else {
            kill_process(pid, signal)
        };
    }

    /// Sends SIGTERM, and SIGKILL after [`GRACE`], unless it has ended.
    pub fn end(&mut self) {
        if !self.has_ended() {
            self.send(Signal::TERM);
            if self.wait(GRACE, || true).is_none() {
                self.kill();
            }
        }
    }

    /// Sends SIGKILL, and waits for the end. A process stuck in the kernel cannot be reaped.
    pub fn kill(&mut self) -> Option<ExitStatus> {
        self.send(Signal::KILL);
        self.wait(GRACE, || true)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_leader {
            self.end();
        } else if !self.has_ended() {
            self.kill();
        }
    }
}
