//! Copies small files into a private folder with one read and one write each.
//!
//! Such a file needs no temporary name, because its folder has one. It also needs no engine: one
//! small transfer at a time gains nothing from a ring, which costs two more calls.

use super::super::options::Method;
use super::super::stream::shrank;
use crate::Fallback;
use crate::error::{Action, Error, Tried};
use crate::metadata::{Metadata, MetadataParts};
use rustix::fs::{OFlags, SeekFrom, ioctl_ficlone, seek};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A possibly small file, and the place of its copy in a private folder.
#[derive(Debug)]
pub(super) struct SmallJob {
    pub from: PathBuf,
    pub to: PathBuf,
    /// Whether the copy is flushed separately.
    pub is_synced: bool,
}

/// The result of copying a small file.
#[derive(Debug)]
pub(super) struct SmallCopied {
    pub bytes: u64,
    pub method: Method,
    /// Why blocks were not shared.
    pub fallback: Option<Fallback>,
}

/// The settings of all small copies, and a device that can't share blocks.
#[derive(Debug)]
pub(super) struct SmallCopier {
    /// The maximum length of a small file.
    pub bytes_max: usize,
    /// The metadata that a copy gets besides permissions and attributes.
    pub parts: MetadataParts,
    /// Whether blocks are shared if the file system can.
    pub shares_blocks: bool,
    /// A device whose file system can't share blocks with the copy, so it is tried only once.
    pub no_reflink_of: OnceLock<u64>,
}

impl SmallCopier {
    /// Copies the file with its metadata; `buffer` has at least [`SmallCopier::bytes_max`] bytes.
    ///
    /// Returns `None`, leaving nothing, for a file that needs the general way: a longer one, one
    /// with holes, one that the kernel may generate, or something that is not a file any more.
    pub(super) fn copy(
        &self,
        job: &SmallJob,
        buffer: &mut [u8],
    ) -> Result<Option<SmallCopied>, Error> {
        let SmallJob { from, to, .. } = job;
        let Some(source) = open_source(from)? else { return Ok(None) };
        let metadata = Metadata::of(source.as_fd(), from)?;
        let len = metadata.len();
        if !metadata.is_file()
            || len > self.bytes_max as u64
            || has_holes(&source, len)
            || may_be_generated(&source, &metadata, from)?
        {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(metadata.mode_in_private());
        let target = options.open(to).tried(to, Action::Open)?;
        let filled = self.fill(&source, &target, &metadata, job, &mut buffer[..len as usize]);
        if filled.is_err() {
            // The copy may continue without this file.
            let _ = fs::remove_file(to);
        }
        filled.map(Some)
    }

    fn fill(
        &self,
        source: &File,
        target: &File,
        metadata: &Metadata,
        SmallJob { from, to, is_synced }: &SmallJob,
        bytes: &mut [u8],
    ) -> Result<SmallCopied, Error> {
        let len = metadata.len();
        let (is_shared, fallback) = self.reflink(source, target, metadata.device());
        if is_shared {
            give_len(target, len, [from, to])?;
        } else {
            match source.read_exact_at(bytes, 0) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(shrank(from));
                }
                read => read.map_err(|error| Error::file(from, Action::Read, Some(0), &error))?,
            }
            let written = target.write_all_at(bytes, 0);
            written.map_err(|error| Error::file(to, Action::Write, Some(0), &error))?;
        }
        metadata.give(target.as_fd(), to, self.parts)?;
        if *is_synced {
            target.sync_all().tried(to, Action::Fsync)?;
        }
        let method = if is_shared { Method::Reflink } else { Method::Cached };
        Ok(SmallCopied { bytes: len, method, fallback })
    }

    /// Tries to share the blocks. Returns whether they are; if not, the first time also why.
    fn reflink(&self, source: &File, target: &File, device: u64) -> (bool, Option<Fallback>) {
        if !self.shares_blocks || self.no_reflink_of.get() == Some(&device) {
            return (false, None);
        }
        let Err(errno) = ioctl_ficlone(target, source) else { return (true, None) };
        if matches!(errno, Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY) {
            // Another device may have been stored first.
            let _ = self.no_reflink_of.set(device);
        }
        let because = format!("FICLONE: {}", io::Error::from(errno));
        (false, Some(Fallback { wanted: "reflink", got: "copy", because }))
    }
}

/// Opens the file; `None` if the name now refers to another kind of entry. Does not block on a
/// pipe, and leaves a file leased by another process to the general way.
fn open_source(path: &Path) -> Result<Option<File>, Error> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EWOULDBLOCK)) => {
            Ok(None)
        }
        opened => opened.map(Some).tried(path, Action::Open),
    }
}

/// Returns whether the file system reports a hole before the end (`lseek(2)`).
fn has_holes(file: &File, len: u64) -> bool {
    len > 0 && seek(file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < len)
}

/// Returns whether a read may find a different length than reported. An empty file is checked; a
/// file without blocks that reports a length is left to the general way.
fn may_be_generated(file: &File, metadata: &Metadata, path: &Path) -> Result<bool, Error> {
    if metadata.len() > 0 {
        return Ok(metadata.may_be_generated());
    }
    let read = file.read_at(&mut [0], 0).tried(path, Action::Read)?;
    Ok(read > 0)
}

/// Sets the length of a file with shared blocks to its source's.
fn give_len(target: &File, len: u64, [from, to]: [&Path; 2]) -> Result<(), Error> {
    let shared = target.metadata().tried(to, Action::Examine)?.len();
    if shared < len {
        return Err(shrank(from));
    }
    if shared == len { Ok(()) } else { target.set_len(len).tried(to, Action::Truncate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::symlink;

    fn copier() -> SmallCopier {
        let parts = MetadataParts { owner: false, times: true };
        SmallCopier {
            bytes_max: 64 << 10,
            parts,
            shares_blocks: true,
            no_reflink_of: OnceLock::new(),
        }
    }

    fn copy(from: &Path, to: &Path) -> Result<Option<SmallCopied>, Error> {
        let job = SmallJob { from: from.to_owned(), to: to.to_owned(), is_synced: true };
        copier().copy(&job, &mut vec![0; 64 << 10])
    }

    #[test]
    fn a_file_that_is_not_small_and_whole_is_left_to_the_general_way_and_nothing_is_made() {
        let folder = fixtures::folder();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("long"), vec![1; (64 << 10) + 1]).unwrap();
        mknodat(CWD, place("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("long", place("link")).unwrap();
        let hole = File::create(place("hole")).unwrap();
        hole.set_len(60 << 10).unwrap();
        let mut names = vec!["long", "pipe", "link"];
        if has_holes(&hole, 60 << 10) {
            names.push("hole");
        }
        for name in names {
            assert!(copy(&place(name), &place("to")).unwrap().is_none(), "{name}");
            assert!(!place("to").exists(), "{name}");
        }
        // It reports a length of 0.
        assert!(copy(Path::new("/proc/self/status"), &place("to")).unwrap().is_none());
    }

    #[test]
    fn a_file_of_any_small_length_is_copied_and_nothing_is_overwritten() {
        // W7
        let folder = fixtures::folder();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for len in [0, 1, 4096, 5000, 64 << 10] {
            let content: Vec<u8> = (0..len).map(|place| (place / 3 + 1) as u8).collect();
            fs::write(&from, &content).unwrap();
            let copied = copy(&from, &to).unwrap().expect("it is small");
            assert_eq!(copied.bytes, len as u64);
            assert_eq!(fs::read(&to).unwrap(), content);
            let error = copy(&from, &to).unwrap_err();
            assert_eq!(error.path(), Some(to.as_path()));
            assert_eq!(error.errno(), libc::EEXIST);
            fs::remove_file(&to).unwrap();
        }
    }

    #[test]
    fn a_file_system_that_shares_no_blocks_is_asked_once() {
        let folder = fixtures::folder();
        let place = |name: &str| folder.path().join(name);
        let (source, target) =
            (File::create(place("from")).unwrap(), File::create(place("to")).unwrap());
        let copier = copier();
        let (is_shared, fallback) = copier.reflink(&source, &target, 7);
        assert_ne!(is_shared, fallback.is_some());
        if copier.no_reflink_of.get() == Some(&7) {
            assert!(copier.reflink(&source, &target, 7).1.is_none());
            assert!(copier.reflink(&source, &target, 8).1.is_some());
        }
    }
}
