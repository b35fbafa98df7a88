//! Mounts a strange file system.

use crate::tools::failure::Failure;
use crate::tools::run::{Group, check_interrupted, clean_up, start};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Finds a hang; a mount takes milliseconds.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// A mounted strange file system; dropping it unmounts it.
#[derive(Debug)]
pub struct Mount {
    point: PathBuf,
    daemon: Group,
}

impl Mount {
    /// Mounts it on the empty folder `point`; `arguments` are those of its verb `strange-fs`.
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
        let end = Instant::now() + LIMIT;
        while !is_mounted(&self.point) {
            check_interrupted()?;
            if self.daemon.has_ended() {
                let said = self.daemon.child.stderr.take().map(std::io::read_to_string).transpose();
                return Err(Failure::Failed(match said {
                    Err(error) => {
                        format!("strange-fs ended; what it said cannot be read: {error}")
                    }
                    Ok(Some(said)) if !said.trim().is_empty() => said.trim().to_owned(),
                    Ok(_) => "strange-fs ended and said nothing".to_owned(),
                }));
            }
            if Instant::now() > end {
                let seconds = LIMIT.as_secs();
                let because = format!("strange-fs did not mount within {seconds} s");
                return Err(Failure::Failed(because));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
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
