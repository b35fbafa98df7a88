//! A disk whose power can be cut: a file system on a loop device over an image file.

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::{self, program};
use crate::tools::repository::target;
use crate::tools::run::{clean_up, output};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// XFS needs 300 MiB.
const SIZE_BYTES: u64 = 320 << 20;
/// A mount may be busy for this time after its last user has ended.
const BUSY: Duration = Duration::from_secs(60);
/// `FS_IOC_SHUTDOWN`, first known as XFS's `GOINGDOWN` (`fs/ext4/ioctl.c`, `fs/xfs/xfs_ioctl.c`).
const FS_IOC_SHUTDOWN: rustix::ioctl::Opcode = 0x8004_587d;
/// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`: everything in memory is lost.
const NO_LOG_FLUSH: u32 = 2;

/// A kind of file system.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    /// Its name in reports.
    pub name: &'static str,
    /// Its type for `mount(2)` and `mkfs`.
    pub kind: &'static str,
    /// Further arguments of its `mkfs`.
    pub options: &'static [&'static str],
    /// The program that finds damage without repairing it, with its arguments.
    pub examine: &'static [&'static str],
    /// Start and end of a superblock of several sectors with one checksum. It is written in place,
    /// so a mount fails if the disk has written only a part of it.
    pub superblock: Option<(u64, u64)>,
}

impl FileSystem {
    /// Makes it in a new `image`.
    pub fn make(&self, image: &Path) -> Result<(), Failure> {
        packages::image(image, SIZE_BYTES, self.kind, self.options)
    }
}

/// A mounted image; dropping it removes mount, loop device and image.
#[derive(Debug)]
pub struct Disk {
    file_system: FileSystem,
    /// Holds the image and the mount point.
    folder: TempDir,
    node: Option<PathBuf>,
    mounted: bool,
}

impl Disk {
    /// Makes the image below `folder` and mounts it.
    pub fn new(folder: &Path, file_system: FileSystem) -> Result<Disk, Failure> {
        let disk = Disk::unmounted(folder, file_system)?;
        file_system.make(&disk.image())?;
        disk.mounted()
    }

    /// Makes it below the target folder. Skips the step if the kernel lacks this file system, or
    /// the container may not mount.
    pub fn unless_impossible(file_system: FileSystem) -> Result<Disk, Failure> {
        Disk::new(&target(), file_system).map_err(|failure| match failure {
            Failure::Failed(because)
                if because.contains("No such device") || because.contains("not permitted") =>
            {
                Failure::Skipped(because)
            }
            other => other,
        })
    }

    /// Copies an `image` to below `folder`, changes the copy, and mounts it.
    pub fn copied(
        folder: &Path,
        file_system: FileSystem,
        image: &Path,
        change: impl FnOnce(&File) -> Result<(), Failure>,
    ) -> Result<Disk, Failure> {
        let disk = Disk::unmounted(folder, file_system)?;
        let copy = disk.image();
        let mut command = Command::new("cp");
        output(command.args(["--reflink=auto", "--sparse=always"]).args([image, &copy]), "cp")?;
        change(&File::options().write(true).open(&copy).tried(copy.display())?)?;
        disk.mounted()
    }

    fn unmounted(folder: &Path, file_system: FileSystem) -> Result<Disk, Failure> {
        let folder =
            TempDir::with_prefix_in("lab-power-cut-", folder).tried("a temporary folder")?;
        Ok(Disk { file_system, folder, node: None, mounted: false })
    }

    fn mounted(mut self) -> Result<Disk, Failure> {
        std::fs::create_dir(self.point()).tried("the mount point")?;
        let mut losetup = program("losetup");
        losetup.args(["--find", "--show"]).arg(self.image());
        self.node = Some(PathBuf::from(output(&mut losetup, "losetup")?.trim()));
        self.mount()?;
        Ok(self)
    }

    /// Returns the mount point.
    pub fn point(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Returns the folder of the image.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Mounts it; after a cut, the file system recovers its log.
    fn mount(&mut self) -> Result<(), Failure> {
        let (Some(node), kind) = (&self.node, self.file_system.kind) else { return Ok(()) };
        // XFS refuses a copy of a mounted file system otherwise.
        let options = if kind == "xfs" { c"nouuid" } else { c"" };
        let mounted = mount(node, self.point(), kind, MountFlags::empty(), Some(options));
        mounted.tried(format_args!("mounting {}", self.file_system.name))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts it and mounts it again.
    pub fn remount(&mut self) -> Result<(), Failure> {
        self.unmount()?;
        self.mount()
    }

    fn unmount(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + BUSY;
        while self.mounted {
            match unmount(self.point(), UnmountFlags::empty()) {
                Ok(()) => self.mounted = false,
                // The kernel closes a ring's files a moment after their process has ended.
                Err(Errno::BUSY) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(errno) => return Err(errno).tried("umount"),
            }
        }
        Ok(())
    }

    /// Opens the switch beforehand, so that a cut is one call.
    pub fn switch(&self) -> Result<File, Failure> {
        File::open(self.point()).tried("the mount point")
    }

    /// Tries one cut; skips where this kind of file system cannot be shut down.
    pub fn try_switch(&mut self) -> Result<(), Failure> {
        match cut(self.switch()?) {
            Err(Failure::Failed(because)) if because.contains("Inappropriate ioctl") => {
                let name = self.file_system.name;
                let because = format!("{name} has no shutdown in this kernel: {because}");
                Err(Failure::Skipped(because))
            }
            done => done.and_then(|()| self.remount()),
        }
    }

    /// Unmounts it and runs the file system's own program that finds damage.
    pub fn examine(&mut self) -> Result<(), Failure> {
        self.unmount()?;
        let Some((name, arguments)) = self.file_system.examine.split_first() else { return Ok(()) };
        output(program(name).args(arguments).arg(self.image()), name).map(drop)
    }

    /// Unmounts it, keeps the image, and returns its path.
    pub fn keep(mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.image()
    }

    /// Returns the image.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(failure) = self.unmount() {
            // Removing the folder would empty a file system that is still mounted.
            self.folder.disable_cleanup(true);
            eprintln!("xtask: {failure}; {} goes with its last user", self.point().display());
            let _ = unmount(self.point(), UnmountFlags::DETACH);
        }
        if let Some(node) = &self.node {
            clean_up(program("losetup").arg("--detach").arg(node));
        }
    }
}

/// Cuts the power: makes the file system of `switch` drop everything in memory and refuse every
/// later call.
pub fn cut(switch: File) -> Result<(), Failure> {
    // SAFETY: FS_IOC_SHUTDOWN reads one u32 of flags from its argument, which `Setter` passes by a
    // pointer that is valid for the length of the call, and writes nothing.
    let cut = unsafe { ioctl(&switch, Setter::<FS_IOC_SHUTDOWN, u32>::new(NO_LOG_FLUSH)) };
    cut.tried("FS_IOC_SHUTDOWN")
}
