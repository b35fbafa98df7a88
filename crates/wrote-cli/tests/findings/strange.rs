//! The file system of `lab strange-fs`, unmounted when dropped.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest time for a daemon to mount or end.
const LIMIT: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(10);

/// A mounted file system that misbehaves on demand.
#[derive(Debug)]
pub struct Strange {
    daemon: Child,
    folder: TempDir,
}

impl Strange {
    /// Mounts it with these arguments, a word each; the error is a reason to skip the test.
    pub fn mount(arguments: &str) -> Result<Strange, String> {
        // A container may have the file but forbid its use, so the test opens it as the daemon
        // does.
        fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let folder = fixtures::folder();
        let daemon = Command::new(program()?)
            .arg("strange-fs")
            .arg(folder.path())
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strange-fs: {error}"))?;
        let mut strange = Strange { daemon, folder };
        strange.wait()?;
        Ok(strange)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn wait(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        while !is_mounted(self.path()) {
            if self.has_ended() {
                let mut said = String::new();
                if let Some(stderr) = &mut self.daemon.stderr {
                    let _ = std::io::Read::read_to_string(stderr, &mut said);
                }
                assert!(said.contains("Operation not permitted"), "strange-fs: {said}");
                return Err(said);
            }
            assert!(Instant::now() < deadline, "strange-fs does not mount");
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.daemon.try_wait(), Ok(None))
    }
}

impl Drop for Strange {
    fn drop(&mut self) {
        // The daemon unmounts at SIGTERM, unless a file is still open.
        if !self.has_ended() {
            let _ = kill_process(Pid::from_child(&self.daemon), Signal::TERM);
        }
        let deadline = Instant::now() + LIMIT;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(TICK);
        }
        if is_mounted(self.path()) {
            let _ = Command::new("umount").arg("-l").arg(self.path()).status();
        }
        // Both fail only if it has ended.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if is_mounted(self.path()) {
            // Removing the folder would empty a file system that is still mounted.
            self.folder.disable_cleanup(true);
        }
    }
}

/// Returns whether something is mounted on the folder, from the kernel's list: examining the folder
/// itself would wait for the daemon.
fn is_mounted(point: &Path) -> bool {
    // The list escapes what would divide its fields (proc_pid_mountinfo(5)).
    let mut listed = point.to_str().expect("text").replace('\\', "\\134");
    for (letter, escaped) in [(' ', "\\040"), ('\t', "\\011"), ('\n', "\\012")] {
        listed = listed.replace(letter, escaped);
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(&*listed))
}

/// Returns the program beside the command, where `cargo xtask test` builds it.
fn program() -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_wrote")).with_file_name("lab");
    let missing = || format!("no {}: cargo build -p lab --features lab/verbs", program.display());
    if program.exists() { Ok(program) } else { Err(missing()) }
}
