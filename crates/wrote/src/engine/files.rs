//! The kernel's files: opened directly if the file system supports that, otherwise through the page
//! cache.

use super::backend::Files;
use super::names::{self, Folder, Located, NameChange, PlaceOfName, is_same};
use super::open_file::FileAccess;
use super::{Fallback, FileOptions};
use crate::device;
use crate::error::errno_of;
use rustix::fs::{
    Advice, AtFlags, FileType, Mode, OFlags, SeekFrom, fadvise, fcntl_getfl, fcntl_setfl, fstat,
    ftruncate, seek, unlinkat,
};
use rustix::io::pwrite;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The `fcntl(2)` command that sets the signal of a lease (uapi/asm-generic/fcntl.h). The libc
/// crate does not define it.
const F_SETSIG: i32 = 10;

/// The errors of an open that are unrelated to `O_DIRECT`.
const SCARCE: [i32; 3] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];

/// The open files, by slot.
#[derive(Default)]
pub(super) struct KernelFiles {
    held: Vec<Option<File>>,
    /// The folder relative to which paths below its path are resolved.
    within: Option<Folder>,
}

impl KernelFiles {
    fn file(&self, slot: u32) -> &File {
        self.held[slot as usize].as_ref().expect("the engine closes a file once")
    }

    fn place<'a>(&'a self, path: &'a Path) -> PlaceOfName<'a> {
        PlaceOfName::new(self.within.as_ref(), path)
    }
}

impl Files for KernelFiles {
    fn open(&mut self, slot: u32, path: &Path, options: &FileOptions) -> io::Result<FileAccess> {
        let (file, access) = open(self.place(path), options)?;
        let slot = slot as usize;
        self.held.resize_with(self.held.len().max(slot + 1), || None);
        self.held[slot] = Some(file);
        Ok(access)
    }

    fn close(&mut self, slot: u32) {
        self.held[slot as usize] = None;
    }

    fn enter(&mut self, folder: Folder) {
        self.within = Some(folder);
    }

    fn len_at(&self, slot: u32, path: &Path) -> io::Result<Option<u64>> {
        self.place(path).len_of(self.file(slot))
    }

    /// Changes the flag of the open file description, and therefore of a ring's registered file,
    /// too (`fcntl(2)`, F_SETFL).
    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        set_direct(self.file(slot), direct)
    }

    fn sync_file_system(&mut self, slot: u32) -> io::Result<()> {
        names::sync_file_system(self.file(slot))
    }

    fn len(&self, slot: u32) -> io::Result<u64> {
        let file = self.file(slot);
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            return Ok(seek(file, SeekFrom::End(0))?);
        }
        Ok(metadata.len())
    }

    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()> {
        Ok(ftruncate(self.file(slot), len_bytes)?)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        Ok(pwrite(self.file(slot), bytes, offset)?)
    }

    fn drop_clean_pages(&mut self, slot: u32) {
        // This is only advice: a refusal changes nothing.
        let _ = fadvise(self.file(slot), 0, None, Advice::DontNeed);
    }

    fn is_shared(&self, slot: u32) -> io::Result<bool> {
        is_shared(self.file(slot))
    }

    fn descriptor(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        Some(self.file(slot).as_fd())
    }

    fn locate(&mut self, path: &Path) -> io::Result<Located> {
        names::locate(self.within.as_ref(), path)
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        names::make_folder(self.within.as_ref(), folder)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        names::list(self.within.as_ref(), folder)
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>> {
        names::change(self.within.as_ref(), change)
    }
}

/// Opens a named file.
///
/// A new file is created without `O_DIRECT` and then reopened with it. If `O_DIRECT` were set at
/// creation, a file system might create the file and still refuse direct I/O (`open(2)`, EINVAL),
/// and it would be impossible to tell who had created the file.
fn open(place: PlaceOfName, options: &FileOptions) -> io::Result<(File, FileAccess)> {
    refuse_block_device(place, options)?;
    let flag = |wanted, flag| if wanted { flag } else { OFlags::empty() };
    let access = if options.write { OFlags::RDWR } else { OFlags::RDONLY };
    let made = flag(options.create_new, OFlags::CREATE | OFlags::EXCL)
        | flag(options.create, OFlags::CREATE)
        | flag(options.truncate, OFlags::TRUNC);
    let file =
        place.open(access | made, Mode::from_raw_mode(options.mode.unwrap_or(place.mode)))?;
    let cached = |file: File, refused| {
        let raw = file.as_raw_fd();
        (file, FileAccess { raw, direct: false, refused, align_bytes: 1 })
    };
    if !options.direct {
        return Ok(cached(file, None));
    }
    let refused = |file, errno| cached(file, Some(errno));
    let direct = place
        .open(access | OFlags::DIRECT, Mode::empty())
        .and_then(|direct| same_file(&file, &direct).map(|()| direct));
    let direct = match direct {
        Ok(direct) => direct,
        Err(error) if SCARCE.contains(&errno_of(&error)) => {
            return Err(given_up(place, options, error));
        }
        Err(error) => return Ok(refused(file, errno_of(&error))),
    };
    let alignment = match device::alignment_told(&direct) {
        Some(told) => told,
        // The descriptor is examined, because the name may now refer to another file.
        None => match device::examine(format!("/proc/self/fd/{}", direct.as_raw_fd())) {
            Ok(target) => device::alignment(&direct, &target),
            Err(error) if SCARCE.contains(&error.errno()) => {
                return Err(given_up(place, options, io::Error::from_raw_os_error(error.errno())));
            }
            // Without `/proc`, the alignment is unknown.
            Err(error) => return Ok(refused(file, error.errno())),
        },
    };
    match alignment {
        Some((offset_bytes, _)) => {
            let align_bytes = offset_bytes.max(1);
            let raw = direct.as_raw_fd();
            Ok((direct, FileAccess { raw, direct: true, refused: None, align_bytes }))
        }
        None => Ok(refused(file, libc::EINVAL)),
    }
}

/// Removes the file that this call created before it failed, so that a retry can create it. Returns
/// `error`.
fn given_up(place: PlaceOfName, options: &FileOptions, error: io::Error) -> io::Error {
    if options.create_new {
        let _ = unlinkat(place.folder, place.name, AtFlags::empty());
    }
    error
}

/// Refuses to write to a block device, because its contents belong to others (W7).
fn refuse_block_device(place: PlaceOfName, options: &FileOptions) -> io::Result<()> {
    let is_device = || {
        let found = place.stat(AtFlags::empty());
        found.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::BlockDevice)
    };
    // A file that must be new can't be a device.
    if options.write && !options.create_new && is_device() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(())
}

/// Fails if the name was given to another file between the two calls.
fn same_file(ours: &File, other: &File) -> io::Result<()> {
    let is_same = is_same(&fstat(ours)?, &fstat(other)?);
    if is_same { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESTALE)) }
}

fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, direct);
    Ok(fcntl_setfl(file, flags)?)
}

/// Returns whether the file has another name, or is also open elsewhere on this system. Fails if
/// the file system does not support leases, or refuses one for another owner's file.
///
/// A write lease is granted only if no other open file description refers to the file (`fcntl(2)`,
/// F_SETLEASE). The lease is released at once. If another process opens the file before the
/// release, this process gets SIGURG, which is ignored by default, instead of SIGIO, which is
/// fatal.
fn is_shared(file: &File) -> io::Result<bool> {
    if file.metadata()?.nlink() != 1 {
        return Ok(true);
    }
    // SAFETY: these commands take a number and no memory.
    let fcntl = |command, number: i32| unsafe { libc::fcntl(file.as_raw_fd(), command, number) };
    let done = |result| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    done(fcntl(F_SETSIG, libc::SIGURG))?;
    match done(fcntl(libc::F_SETLEASE, libc::F_WRLCK)) {
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => return Ok(true),
        leased => leased?,
    }
    done(fcntl(libc::F_SETLEASE, libc::F_UNLCK)).map(|()| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;
    use std::path::Path;

    fn open(path: &Path, options: &FileOptions) -> io::Result<(File, FileAccess)> {
        super::open(PlaceOfName::new(None, path), options)
    }

    #[test]
    fn a_block_device_is_not_opened_for_writing() {
        // W7
        let is_device = |path: &std::path::PathBuf| {
            std::fs::metadata(path).is_ok_and(|is| is.file_type().is_block_device())
        };
        let mut devices = std::fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path());
        let Some(device) = devices.find(is_device) else {
            return fixtures::skip(
                "a_block_device_is_not_opened_for_writing",
                "there is none in /dev",
            );
        };
        let options = FileOptions::new().write(true);
        let error = open(&device, &options).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_file_is_shared_while_it_is_open_elsewhere_or_has_another_name() {
        let folder = fixtures::folder();
        let path = folder.path().join("file");
        let options = FileOptions::new().create_new(true).write(true).direct(true);
        let (file, _) = open(&path, &options).unwrap();
        if is_shared(&file).is_err() {
            return fixtures::skip(
                "a_file_is_shared_while_it_is_open_elsewhere_or_has_another_name",
                "the file system gives no leases",
            );
        }
        let reader = File::open(&path).unwrap();
        assert!(is_shared(&file).unwrap());
        drop(reader);
        assert!(!is_shared(&file).unwrap());
        let other = folder.path().join("other");
        std::fs::hard_link(&path, &other).unwrap();
        assert!(is_shared(&file).unwrap());
        std::fs::remove_file(&other).unwrap();
        assert!(!is_shared(&file).unwrap());
    }

    #[test]
    fn clearing_direct_leaves_the_other_flags() {
        let file = tempfile::tempfile().unwrap();
        let flags = fcntl_getfl(&file).unwrap();
        set_direct(&file, false).unwrap();
        assert_eq!(fcntl_getfl(&file).unwrap(), flags - OFlags::DIRECT);
    }
}
