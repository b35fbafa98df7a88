//! Mounts a strange file system.

use crate::process::Process;
use crate::tools::failure::Failure;
use crate::tools::run::{clean_up, start, until};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Finds a hang; a mount takes milliseconds.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// A mounted strange file system; dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    point: PathBuf,
    daemon: Process,
}

impl Mount {
    /// Mounts it on the empty folder `point`; `arguments` go to its verb `strange-fs`.
    pub fn new(daemon: &Path, point: &Path, arguments: &[&str]) -> Result<Mount, Failure> {
        let mut command = Command::new(daemon);
        command
            .arg("strange-fs")
            .arg(point)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut mount = Mount { point: point.to_owned(), daemon: start(&mut command)? };
        mount.wait()?;
        Ok(mount)
    }

    /// Returns the mount point.
    pub fn point(&self) -> &Path {
        &self.point
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let pause = Duration::from_millis(20);
        let mounted = until(LIMIT, pause, || {
            let is_over = is_mounted(&self.point);
            if !is_over && self.daemon.has_ended() {
                return Err(self.failure());
            }
            Ok(is_over.then_some(()))
        })?;
        mounted.ok_or_else(|| {
            Failure::Failed(format!("strange-fs did not mount within {} s", LIMIT.as_secs()))
        })
    }

    fn failure(&mut self) -> Failure {
        let said = self.daemon.child().stderr.take().map(std::io::read_to_string).transpose();
        Failure::Failed(match said {
            Err(error) => format!("strange-fs ended; what it said cannot be read: {error}"),
            Ok(Some(said)) if !said.trim().is_empty() => said.trim().to_owned(),
            Ok(_) => "strange-fs ended and said nothing".to_owned(),
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The daemon unmounts itself at SIGTERM. Killed, it leaves a dead mount, which is removed
        // lazily: a process may still be waiting in it.
        self.daemon.end();
        for words in [&["fusermount3", "-u", "-z", "--"][..], &["umount", "-l", "--"]] {
            if is_mounted(&self.point) {
                clean_up(Command::new(words[0]).args(&words[1..]).arg(&self.point));
            }
        }
        if is_mounted(&self.point) {
            eprintln!("xtask: {} could not be unmounted", self.point.display());
        }
    }
}

/// Whether `point` is a mount point by the kernel's list. A call on the folder itself would wait
/// for the daemon.
fn is_mounted(point: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    is_in(&mounts, point)
}

/// Whether `point` is a mount point in this `/proc/self/mountinfo` (`proc(5)`: the fifth field,
/// with spaces and such as octal escapes).
fn is_in(mounts: &str, point: &Path) -> bool {
    let escaped = point.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(escaped.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_found_by_its_whole_name() {
        let mounts =
            "26 1 0:24 / / rw - ext4 /dev/a rw\n90 26 0:50 / /tmp/a\\040b rw - fuse s rw\n";
        assert!(is_in(mounts, Path::new("/tmp/a b")));
        assert!(is_in(mounts, Path::new("/")));
        assert!(!is_in(mounts, Path::new("/tmp/a")));
        assert!(!is_in(mounts, Path::new("/dev/a")));
    }
}
