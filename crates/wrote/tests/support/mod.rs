//! File systems that exist for the length of one test: made in image files, mounted, and undone
//! when dropped.
//!
//! All need root. Each maker's error is a reason to skip the test, for [`skip`].

#![allow(dead_code, reason = "each file of tests uses a part of this")]

pub use fixtures::skip;

use std::any::Any;
use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A mounted file system, unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    point: PathBuf,
    // Fields are dropped in this order, after the unmounting: what the mount lay on, then the
    // folder with the mount point and the images.
    _below: Vec<Box<dyn Any + Send>>,
    folder: TempDir,
}

impl Mounted {
    /// A new file system of type `fs` (`ext4`, `xfs`, `btrfs`, ..) in a sparse image file. XFS wants
    /// at least 300 MiB, Btrfs 128 MiB.
    pub fn image(fs: &str, size_bytes: u64) -> Result<Mounted, String> {
        Mounted::disks(fs, vec![Loop::attach(size_bytes)?])
    }

    /// The same, mounted with these options: `data=journal`.
    pub fn image_with(fs: &str, size_bytes: u64, options: &str) -> Result<Mounted, String> {
        let disk = Loop::attach(size_bytes)?;
        let node = disk.node().to_owned();
        make(fs, std::slice::from_ref(&node))?;
        Mounted::node(fs, &node, options, vec![disk])
    }

    /// A new file system of type `fs` on one loop device, or, where its `mkfs` can do that, on
    /// several.
    pub fn disks(fs: &str, disks: Vec<Loop>) -> Result<Mounted, String> {
        let nodes: Vec<PathBuf> = disks.iter().map(|disk| disk.node().to_owned()).collect();
        make(fs, &nodes)?;
        Mounted::node(fs, &nodes[0], "rw", disks)
    }

    /// The file system of type `fs` that is on the disk already.
    pub fn found(fs: &str, disk: Loop) -> Result<Mounted, String> {
        let node = disk.node().to_owned();
        Mounted::node(fs, &node, "rw", vec![disk])
    }

    /// A new file system of type `fs` on the only partition of a loop device, which leaves the
    /// first MiB of the device free.
    pub fn partition(fs: &str, size_bytes: u64) -> Result<Mounted, String> {
        let mut disk = Loop::attach(size_bytes)?;
        let node = disk.partition(1 << 20, size_bytes - (1 << 20))?;
        make(fs, std::slice::from_ref(&node))?;
        Mounted::node(fs, &node, "rw", vec![disk])
    }

    /// A tmpfs of `size_bytes` at most.
    pub fn tmpfs(size_bytes: u64) -> Result<Mounted, String> {
        let options = format!("size={size_bytes}");
        Mounted::new(&["-t", "tmpfs", "-o", &options, "wrote-test"], Vec::new())
    }

    /// An overlay whose upper folder is a new one on the file system of `upper`, which it keeps
    /// mounted.
    pub fn overlay(upper: Mounted) -> Result<Mounted, String> {
        let mut options = String::new();
        for name in ["lowerdir", "upperdir", "workdir"] {
            let folder = upper.path().join(name);
            std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            options += &format!("{name}={},", folder.display());
        }
        let options = options.trim_end_matches(',');
        Mounted::new(&["-t", "overlay", "-o", options, "wrote-test"], vec![Box::new(upper)])
    }

    /// The same files at a second place.
    pub fn bind(folder: &Path) -> Result<Mounted, String> {
        Mounted::new(&[OsStr::new("--bind"), folder.as_os_str()], Vec::new())
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Makes the mount and its file system read-only.
    pub fn make_read_only(&self) -> Result<(), String> {
        run("mount", &[OsStr::new("-o"), OsStr::new("remount,ro"), self.point.as_os_str()])?;
        Ok(())
    }

    fn node(fs: &str, node: &Path, options: &str, disks: Vec<Loop>) -> Result<Mounted, String> {
        let below = disks.into_iter().map(|disk| Box::new(disk) as Box<dyn Any + Send>).collect();
        let arguments = ["-t".as_ref(), fs.as_ref(), "-o".as_ref(), options.as_ref()];
        Mounted::new(&[&arguments[..], &[node.as_os_str()]].concat(), below)
    }

    fn new<S: AsRef<OsStr>>(
        arguments: &[S],
        below: Vec<Box<dyn Any + Send>>,
    ) -> Result<Mounted, String> {
        be_root()?;
        let folder = folder()?;
        // The space proves that paths are unescaped wherever they are read.
        let point = folder.path().join("mount point");
        std::fs::create_dir(&point).map_err(|e| format!("{}: {e}", point.display()))?;
        let mut all: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        all.push(point.as_os_str());
        run("mount", &all)?;
        Ok(Mounted { point, _below: below, folder })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily as the last resort: then the mount goes with its last user.
        let point = self.point.as_os_str();
        if persistently("umount", &[point]).is_err()
            && let Err(reason) = run("umount", &[OsStr::new("-l"), point])
        {
            // What is still mounted must not be emptied along with the folder.
            self.folder.disable_cleanup(true);
            eprintln!("{reason}");
        }
    }
}

/// A loop device over a sparse image file, detached when dropped.
#[derive(Debug)]
pub struct Loop {
    node: PathBuf,
    partitioned: bool,
    image: PathBuf,
    _folder: TempDir,
}

impl Loop {
    /// Attaches a new image of `size_bytes` to a free loop device.
    pub fn attach(size_bytes: u64) -> Result<Loop, String> {
        be_root()?;
        let folder = folder()?;
        let image = folder.path().join("image");
        File::create_new(&image)
            .and_then(|file| file.set_len(size_bytes))
            .map_err(|e| format!("{}: {e}", image.display()))?;
        Loop::of(image, folder)
    }

    /// Attaches a copy of an image, as it is now: what a device would hold if the power were cut.
    pub fn copy(image: &Path) -> Result<Loop, String> {
        be_root()?;
        let folder = folder()?;
        let copy = folder.path().join("image");
        std::fs::copy(image, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
        Loop::of(copy, folder)
    }

    fn of(image: PathBuf, folder: TempDir) -> Result<Loop, String> {
        let arguments = [OsStr::new("--find"), OsStr::new("--show"), image.as_os_str()];
        let node = PathBuf::from(run("losetup", &arguments)?.trim());
        Ok(Loop { node, partitioned: false, image, _folder: folder })
    }

    /// `/dev/loopN`.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// The file below.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Tells the kernel of one partition and gives its device. No partition table is written, so
    /// this also works on a kernel that reads none.
    pub fn partition(&mut self, start_bytes: u64, size_bytes: u64) -> Result<PathBuf, String> {
        let node = self.node.as_os_str();
        let (start, sectors) = ((start_bytes / 512).to_string(), (size_bytes / 512).to_string());
        let place = [OsStr::new("1"), OsStr::new(&start), OsStr::new(&sectors)];
        // The device was free when it was attached: a partition that it has was left by a test that
        // was killed, and is in the way. Mostly there is none.
        let _ = run("delpart", &[node, OsStr::new("1")]);
        run("addpart", &[&[node], &place[..]].concat())?;
        self.partitioned = true;
        let partition = PathBuf::from(format!("{}p1", self.node.display()));
        match partition.try_exists() {
            Ok(true) => Ok(partition),
            _ => Err(format!("{} did not appear", partition.display())),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let node = self.node.as_os_str();
        if self.partitioned
            && let Err(reason) = persistently("delpart", &[node, OsStr::new("1")])
        {
            eprintln!("{reason}");
        }
        if let Err(reason) = run("losetup", &[OsStr::new("--detach"), node]) {
            eprintln!("{reason}");
        }
    }
}

/// Runs a command to its end and gives what it printed; in words why it could not.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Result<String, String> {
    // Where an ordinary user's PATH leaves out the folders of system programs.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output =
        Command::new(program).args(arguments).env("PATH", path).env("LC_ALL", "C").output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(format!("{program} is not installed"))
        }
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// Runs a command until it succeeds, for some two seconds. A process that another test is just
/// starting may hold copies of our open files for a moment, and what they lie on is busy meanwhile.
fn persistently(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    for _ in 0..40 {
        if let Ok(said) = run(program, arguments) {
            return Ok(said);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    run(program, arguments)
}

/// Makes a file system over what the nodes held: they are the test's own.
fn make(fs: &str, nodes: &[PathBuf]) -> Result<(), String> {
    let force = if fs.starts_with("ext") { "-F" } else { "-f" };
    let mut arguments = vec![OsStr::new("-q"), OsStr::new(force)];
    arguments.extend(nodes.iter().map(|node| node.as_os_str()));
    run(&format!("mkfs.{fs}"), &arguments)?;
    Ok(())
}

fn be_root() -> Result<(), String> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err("not root".into()) }
}

/// A folder beside what the build makes: on a disk where the build is on a disk.
fn folder() -> Result<TempDir, String> {
    // Tests inside of a crate have no such folder.
    let parent = option_env!("CARGO_TARGET_TMPDIR").unwrap_or(env!("CARGO_MANIFEST_DIR"));
    TempDir::with_prefix_in("wrote-test-", parent).map_err(|e| format!("{parent}: {e}"))
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
