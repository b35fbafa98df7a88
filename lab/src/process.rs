//! A child process that never outlives its holder. Every tool and test starts its processes with
//! this.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

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

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process with its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns how it ended; `None` while it runs.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Returns whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.status(), Ok(Some(_)))
    }

    /// Waits for its end while it `may_run`, at most for `limit`; returns `None` if it continues.
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

    /// Like [`Process::wait`], and waits for every process of its group too if it leads one: their
    /// files are closed and their locks released.
    fn wait_for_all(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        let status = self.wait(limit, || true)?;
        while self.is_leader && runs(self.id()) {
            if begin.elapsed() >= limit {
                return None;
            }
            thread::sleep(POLL);
        }
        // From now on the group's number may come to another one.
        self.is_leader = false;
        Some(status)
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

    /// Sends SIGTERM, and SIGKILL after [`GRACE`], unless all has ended. A background process of an
    /// ended leader is ended too.
    pub fn end(&mut self) {
        if self.wait_for_all(Duration::ZERO).is_none() {
            self.send(Signal::TERM);
            if self.wait_for_all(GRACE).is_none() {
                self.kill();
            }
        }
    }

    /// Sends SIGKILL, and waits at most for [`GRACE`] until it and its group have ended. `None`: a
    /// process is still stuck in the kernel.
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

/// Returns whether a process of the group still runs. A zombie does not: its files are closed.
pub fn runs(group: u32) -> bool {
    // The first thread of a process may be a zombie while another still ends.
    threads(group).filter_map(|thread| stat(&thread)).any(|one| !matches!(&*one.state, "Z" | "X"))
}

/// Returns the folder in `/proc` of each thread of the group.
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
    /// A letter: `R` runs, `Z` is a zombie.
    pub state: String,
    /// The process group.
    pub group: u32,
    /// Clock ticks in user space.
    pub user: u64,
    /// Clock ticks in the kernel.
    pub kernel: u64,
}

/// Reads the fields of a process or thread by its folder in `/proc`.
pub fn stat(path: &Path) -> Option<Stat> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // The preceding name may contain anything, even brackets.
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
