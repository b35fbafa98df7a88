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

/// The size of an image. XFS needs 300 MiB.
const SIZE_BYTES: u64 = 320 << 20;
/// The time limit for an unmount, because a mount may remain busy after its last user has ended.
const BUSY: Duration = Duration::from_secs(60);
/// `FS_IOC_SHUTDOWN`, originally XFS's `GOINGDOWN` (`fs/ext4/ioctl.c`, `fs/xfs/xfs_ioctl.c`).
const FS_IOC_SHUTDOWN: rustix::ioctl::Opcode = 0x8004_587d;
/// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`: everything in memory is lost.
const NO_LOG_FLUSH: u32 = 2;

/// A kind of file system.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    /// The name in reports.
    pub name: &'static str,
    /// The type for `mount(2)` and `mkfs`.
    pub kind: &'static str,
    /// Additional arguments for `mkfs`.
    pub options: &'static [&'static str],
    /// The program that finds damage without repairing it, and its arguments.
    pub examine: &'static [&'static str],
    /// The start and end of a superblock that has several sectors but a single checksum. It is
    /// written in place, so that a mount fails if the disk has written only a part of it.
    pub superblock: Option<(u64, u64)>,
}

impl FileSystem {
    /// Creates a file system in a new `image`.
    pub fn make(&self, image: &Path) -> Result<(), Failure> {
        packages::image(image, SIZE_BYTES, self.kind, self.options)
    }
}

/// A mounted image. Dropping it removes the mount, the loop device and the image.
#[derive(Debug)]
pub struct Disk {
    file_system: FileSystem,
    /// The folder of the image and the mount point.
    folder: TempDir,
    node: Option<PathBuf>,
    mounted: bool,
}

impl Disk {
    /// Creates an image in a new folder below `folder`, and mounts it.
    pub fn new(folder: &Path, file_system: FileSystem) -> Result<Disk, Failure> {
        let disk = Disk::unmounted(folder, file_system)?;
        file_system.make(&disk.image())?;
        disk.mounted()
    }

    /// Creates a disk below the target folder. Skips the step if the kernel lacks this file system,
    /// or the container may not mount.
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

    /// Copies `image` to a new folder below `folder`, changes the copy, and mounts it.
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

    /// Returns the folder that contains the image.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Mounts the disk. After a power loss, the file system recovers its log.
    fn mount(&mut self) -> Result<(), Failure> {
        let (Some(node), kind) = (&self.node, self.file_system.kind) else { return Ok(()) };
        // Without this option, XFS refuses to mount a copy of a mounted file system.
        let options = if kind == "xfs" { c"nouuid" } else { c"" };
        let mounted = mount(node, self.point(), kind, MountFlags::empty(), Some(options));
        mounted.tried(format_args!("mounting {}", self.file_system.name))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts the disk, and mounts it again.
    pub fn remount(&mut self) -> Result<(), Failure> {
        self.unmount()?;
        self.mount()
    }

    fn unmount(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + BUSY;
        while self.mounted {
            match unmount(self.point(), UnmountFlags::empty()) {
                Ok(()) => self.mounted = false,
                // The kernel closes the files of a ring a moment after the process has ended.
                Err(Errno::BUSY) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(errno) => return Err(errno).tried("umount"),
            }
        }
        Ok(())
    }

    /// Opens the switch in advance, so that a power loss takes a single call.
    pub fn switch(&self) -> Result<File, Failure> {
        File::open(self.point()).tried("the mount point")
    }

    /// Tries one power loss. Skips the step if this kind of file system cannot be shut down.
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

    /// Unmounts the disk, and runs the file system's own program that finds damage.
    pub fn examine(&mut self) -> Result<(), Failure> {
        self.unmount()?;
        let Some((name, arguments)) = self.file_system.examine.split_first() else { return Ok(()) };
        output(program(name).args(arguments).arg(self.image()), name).map(drop)
    }

    /// Unmounts the disk, keeps the image, and returns its path.
    pub fn keep(mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.image()
    }

    /// Returns the path of the image.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(failure) = self.unmount() {
            // Removing the folder would delete the files of a file system that is still mounted.
            self.folder.disable_cleanup(true);
            eprintln!("xtask: {failure}; {} goes with its last user", self.point().display());
            let _ = unmount(self.point(), UnmountFlags::DETACH);
        }
        if let Some(node) = &self.node {
            clean_up(program("losetup").arg("--detach").arg(node));
        }
    }
}

/// Simulates a power loss: makes the file system of `switch` drop everything in memory and refuse
/// all later calls.
pub fn cut(switch: File) -> Result<(), Failure> {
    // SAFETY: FS_IOC_SHUTDOWN reads one u32 of flags from its argument, which `Setter` passes by a
    // pointer that is valid for the length of the call, and writes nothing.
    let cut = unsafe { ioctl(&switch, Setter::<FS_IOC_SHUTDOWN, u32>::new(NO_LOG_FLUSH)) };
    cut.tried("FS_IOC_SHUTDOWN")
}
