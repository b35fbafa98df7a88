//! A child process that never outlives its owner. All tools and tests start their processes with
//! it.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The time between SIGTERM and SIGKILL, which a process can use to clean up.
pub const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A running process. Dropping it terminates the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Whether the process leads a process group, so that its children also receive signals.
    is_leader: bool,
}

impl Process {
    /// Starts `command` in this process's group.
    pub fn start(command: &mut Command) -> io::Result<Process> {
        Ok(Process { child: command.spawn()?, is_leader: false })
    }

    /// Starts `command` in a new process group.
    pub fn lead(command: &mut Command) -> io::Result<Process> {
        Ok(Process { child: command.process_group(0).spawn()?, is_leader: true })
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the child process, including its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns how the process has ended; `None` while it runs.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.status(), Ok(Some(_)))
    }

    /// Waits up to `limit` for the process to end, as long as `may_run` returns `true`. Returns
    /// `None` if the process is still running.
    pub fn wait(&mut self, limit: Duration, may_run: impl Fn() -> bool) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            if let Ok(Some(status)) = self.status() {
                return Some(status);
            }
            if begin.elapsed() >= limit || !may_run() {
                return None;
            }
            thread::sleep(POLL);
        }
    }

    /// Like [`Process::wait`]. If the process leads a group, also waits until all processes of the
    /// group have ended, so that their files are closed and their locks released. Returns `None` if
    /// any is still running.
    fn wait_for_all(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        let status = self.wait(limit, || true)?;
        while self.is_leader && runs(self.id()) {
            if begin.elapsed() >= limit {
                return None;
            }
            thread::sleep(POLL);
        }
        // From now on, another group may reuse this group's number.
        self.is_leader = false;
        Some(status)
    }

    /// Sends a signal to the process, and to its children if it leads a group.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) else { return };
        // An error means that all processes have ended.
        let _ = if self.is_leader {
            kill_process_group(pid, signal)
        } else {
            kill_process(pid, signal)
        };
    }

    /// Sends SIGTERM, and SIGKILL after [`GRACE`], unless all processes have ended. Also terminates
    /// background processes of a leader that has already exited.
    pub fn end(&mut self) {
        if self.wait_for_all(Duration::ZERO).is_none() {
            self.send(Signal::TERM);
            if self.wait_for_all(GRACE).is_none() {
                self.kill();
            }
        }
    }

    /// Sends SIGKILL, and waits up to [`GRACE`] until the process and its group have ended. Returns
    /// `None` if a process is still stuck in the kernel.
    pub fn kill(&mut self) -> Option<ExitStatus> {
        self.wait_for_all(Duration::ZERO).or_else(|| {
            self.send(Signal::KILL);
            self.wait_for_all(GRACE)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_leader {
            self.end();
        } else {
            self.kill();
        }
    }
}

/// Returns whether a process of the group is still running. A zombie is not: its files are closed.
pub fn runs(group: u32) -> bool {
    // The first thread of a process may be a zombie while another thread is still ending.
    threads(group).filter_map(|thread| stat(&thread)).any(|one| !matches!(&*one.state, "Z" | "X"))
}

/// Returns the folders in `/proc` of all threads in the group.
pub fn threads(group: u32) -> impl Iterator<Item = PathBuf> {
    let is_in_group = move |process: &PathBuf| stat(process).is_some_and(|it| it.group == group);
    let processes = entries(Path::new("/proc")).filter(is_in_group);
    processes.flat_map(|process| entries(&process.join("task")))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The fields of `/proc/PID/stat` (`proc_pid_stat(5)`).
pub struct Stat {
    /// The state, as a letter: `R` for running, `Z` for a zombie, and so on.
    pub state: String,
    /// The process group.
    pub group: u32,
    /// The clock ticks spent in user space.
    pub user: u64,
    /// The clock ticks spent in the kernel.
    pub kernel: u64,
}

/// Reads the fields of a process or thread, given its folder in `/proc`; `None` if it no longer
/// exists.
pub fn stat(path: &Path) -> Option<Stat> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // The preceding name may contain anything, even parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.to_string(),
        group: fields.get(2)?.parse().ok()?,
        user: fields.get(11)?.parse().ok()?,
        kernel: fields.get(12)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &tempfile::TempDir) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let mut process = Process::lead(&mut command).expect("a shell");
        while !folder.path().join("ready").exists() {
            assert!(!process.has_ended(), "{script} has ended");
            thread::sleep(POLL);
        }
        process
    }

    #[test]
    fn an_end_waits_for_the_children_of_a_leader_that_ends_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let child = "(trap 'sleep 0.3; touch cleaned; exit' TERM; touch ready; while :; do \
                     sleep 0.01; done) & wait";
        let mut process = shell(child, &folder);
        process.end();
        assert!(folder.path().join("cleaned").exists());
    }

    #[test]
    fn nothing_of_a_killed_group_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let many = "i=0; while [ $((i += 1)) -lt 100 ]; do sleep 600 & done; touch ready; wait";
        let mut process = shell(many, &folder);
        assert!(process.kill().is_some());
        assert!(!runs(process.id()));
    }
}
