//! Direct files: reads of any offset and length, writes that are explicit about alignment.
//!
//! # Direct or cached?
//!
//! A cached file is copied through the kernel's memory: small and unaligned transfers are cheap, and
//! what was read or written lately is there without the device. A direct file (`O_DIRECT`,
//! `open(2)`) moves bytes between the device and the program's own buffers: nothing is copied,
//! nothing is kept, and each transfer costs what the device takes. It is the faster one for large
//! transfers, for many at once, and for data that is used once; one small read at a time is faster
//! through the cache.
//!
//! The kernel wants a direct transfer aligned, in the file and in memory. A [`DirectFile`] reads any
//! bytes: it reads the blocks that hold them and hands out exactly what was asked. So a read of a
//! few bytes costs a whole block; only aligned reads move nothing in vain. A write is not mended in
//! that way: to write a part of a block, the rest would have to be read first, at a price that
//! nobody sees. It takes a leased [`Buffer`], at an aligned offset and of an aligned length, and
//! says what alignment is needed where it gets anything else ([`Error::Alignment`]).
//!
//! # Waiting
//!
//! Each of `read`, `write`, `write_durable`, `allocate`, `sync_data` and `sync_all` has a form that
//! blocks and a form `start_..` that gives an [`Operation`] at once. What was started is under way,
//! many at a time: wait for it, or await it in [`Disk::block_on`] or another executor. The rest
//! (`len`, `truncate`, `close`) only blocks.
//!
//! Operations on the same bytes of a file happen in the order in which they were started through one
//! handle, whatever of it is waited for (W3). A flush covers every change that was started before it
//! (W1).
//!
//! ```
//! use wrote::{Disk, FileOptions, Ioengine, Options};
//!
//! # fn main() -> Result<(), wrote::Error> {
//! # let folder = std::env::temp_dir().join(format!("wrote-doc-file-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("data");
//! let disk = Disk::open(&Options::new(Ioengine::IoUring, 16, 64 << 10))?;
//! let options = FileOptions { create_new: true, write: true, direct: true, ..Default::default() };
//! let file = disk.open_file(&path, &options)?;
//!
//! let mut buffer = disk.lease()?; // 64 KiB, aligned in memory
//! buffer.fill(7);
//! file.write(buffer, 0)?; // whole, or an error
//! file.sync_data()?; // survives a power loss, once the folder is synced too
//! assert_eq!(file.read(1000, 13)?, [7; 13][..]); // any bytes
//!
//! let (first, second) = disk.block_on(async {
//!     // Both are under way at once.
//!     let (first, second) = (file.start_read(0, 10), file.start_read(65_530, 10));
//!     Ok::<_, wrote::Error>((first.await?, second.await?))
//! })?;
//! assert_eq!((first.len(), second.len()), (10, 6)); // there the file ends
//! # drop((file, disk));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```

mod bytes;
mod calibrate;
mod disk;
mod entry;
mod operation;
mod order;
mod schedule;
mod span;

pub use bytes::ReadBytes;
pub use calibrate::{Calibration, Durable, calibrate};
pub use disk::Disk;
pub use operation::{Operation, Output};

use crate::buffer::Buffer;
use crate::engine::{FileId, Op};
use crate::error::{Action, Error};
use entry::{Outcome, Work};
use order::Touch;
use span::Span;
use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;

/// A file that is read at any offset and length, and written in aligned blocks.
///
/// It is made by [`Disk::open_file`]. Dropping it closes it when everything that was started on it
/// is complete; nothing is flushed.
pub struct DirectFile {
    disk: Disk,
    /// Its place in the disk's schedule.
    place: usize,
    durable: Cell<Durable>,
    /// Durable writes bring all metadata to stable storage.
    sync_metadata: bool,
}

impl DirectFile {
    fn new(disk: Disk, place: usize, sync_metadata: bool) -> DirectFile {
        DirectFile { disk, place, durable: Cell::default(), sync_metadata }
    }

    /// Reads `len` bytes from `offset`, whatever their alignment: exactly those, fewer only where
    /// the file ends, none beyond.
    ///
    /// A read that is longer than a buffer of the engine's lies in several.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's words. [`Error::TooLong`] when the read takes more buffers
    /// than the engine has. [`Error::Engine`] with `ENOBUFS` when so many are not to be had, since
    /// they are held outside the engine.
    pub fn read(&self, offset: u64, len: usize) -> Result<ReadBytes, Error> {
        self.start_read(offset, len).wait()
    }

    /// As [`DirectFile::read`], under way when this returns.
    pub fn start_read(&self, offset: u64, len: usize) -> Operation<ReadBytes> {
        let span = self.span(offset, len);
        if span.is_empty() {
            return Operation::over(Ok(Outcome::Read(ReadBytes::default())));
        }
        let buffers = self.disk.with(|schedule| schedule.engine.pool().count());
        match span.pieces().filter(|&pieces| pieces <= u64::from(buffers)) {
            Some(pieces) => {
                let found = (0..pieces).map(|_| None).collect();
                let touch = Touch::Read(offset..offset.saturating_add(len as u64));
                self.start(touch, Work::Read { span, found })
            }
            None => {
                let (path, len_max) = (self.path(), span.len_max(buffers));
                let action = Action::Read;
                Operation::over(Err(Error::TooLong { path, action, offset, len, len_max }))
            }
        }
    }

    fn span(&self, offset: u64, len: usize) -> Span {
        self.disk.with(|schedule| {
            let align_bytes = schedule.engine.align_bytes(schedule.file(self.place).id);
            Span::around(offset, len, align_bytes, schedule.engine.pool().buffer_bytes())
        })
    }

    /// Writes the whole buffer at `offset`. It survives a crash of the process when this returns;
    /// [`Survives`](crate::Survives) tells when more.
    ///
    /// # Errors
    ///
    /// [`Error::Alignment`], which names the alignment, when `offset` or the buffer's length is not
    /// a multiple of [`DirectFile::alignment`]. [`Error::File`] with the kernel's words: then a part
    /// may have been written. [`Error::Poisoned`] when a flush failed before (W2).
    pub fn write(&self, buffer: Buffer, offset: u64) -> Result<(), Error> {
        self.start_write(buffer, offset).wait()
    }

    /// As [`DirectFile::write`], under way when this returns.
    pub fn start_write(&self, buffer: Buffer, offset: u64) -> Operation<()> {
        self.start_writing(buffer, offset, None)
    }

    /// Writes the whole buffer at `offset`, and brings it to stable storage, in the way that
    /// [`DirectFile::set_durable`] has chosen: it survives a power loss when this returns (W1), once
    /// the file's name does.
    ///
    /// # Errors
    ///
    /// As [`DirectFile::write`]. A failed flush poisons the file for good (W2).
    pub fn write_durable(&self, buffer: Buffer, offset: u64) -> Result<(), Error> {
        self.start_write_durable(buffer, offset).wait()
    }

    /// As [`DirectFile::write_durable`], under way when this returns.
    pub fn start_write_durable(&self, buffer: Buffer, offset: u64) -> Operation<()> {
        self.start_writing(buffer, offset, Some(self.durable.get()))
    }

    fn start_writing(
        &self,
        buffer: Buffer,
        offset: u64,
        durable: Option<Durable>,
    ) -> Operation<()> {
        let file = self.id();
        let len = buffer.len() as u64;
        let flush = if self.sync_metadata { Op::Fsync { file } } else { Op::Fdatasync { file } };
        let then = (durable == Some(Durable::Fdatasync)).then_some(flush);
        let durable = durable == Some(Durable::Dsync);
        self.start_change(offset, len, Op::Write { file, offset, buffer, durable }, then)
    }

    /// Allocates blocks for `len` bytes from `offset`, and extends the file over them with zeros:
    /// `fallocate(2)`. The first write to them costs more than a later one, since the file system
    /// keeps a record of which were written.
    ///
    /// # Errors
    ///
    /// With the kernel's words; `EOPNOTSUPP` where the file system cannot.
    pub fn allocate(&self, offset: u64, len: u64) -> Result<(), Error> {
        self.start_allocate(offset, len).wait()
    }

    /// As [`DirectFile::allocate`], under way when this returns.
    pub fn start_allocate(&self, offset: u64, len: u64) -> Operation<()> {
        let file = self.id();
        self.start_change(offset, len, Op::Fallocate { file, offset, len }, None)
    }

    fn start_change(&self, offset: u64, len: u64, op: Op, then: Option<Op>) -> Operation<()> {
        let end = self.disk.with(|schedule| schedule.file(self.place).end);
        self.start(Touch::change(offset, len, end), Work::Steps { first: Some(op), then })
    }

    /// Brings everything that was started before to stable storage, with the metadata that is needed
    /// to find it again: `fdatasync(2)`. What was written survives a power loss when this returns
    /// (W1); a new file's name does only when its folder was synced too.
    ///
    /// # Errors
    ///
    /// With the kernel's words: that poisons the file for good (W2). Also the first error of a
    /// change whose [`Operation`] was dropped before it could tell.
    pub fn sync_data(&self) -> Result<(), Error> {
        self.start_sync_data().wait()
    }

    /// As [`DirectFile::sync_data`], under way when this returns.
    pub fn start_sync_data(&self) -> Operation<()> {
        self.start_flush(Op::Fdatasync { file: self.id() })
    }

    /// As [`DirectFile::sync_data`], with all of the file's metadata: `fsync(2)`.
    ///
    /// # Errors
    ///
    /// As [`DirectFile::sync_data`].
    pub fn sync_all(&self) -> Result<(), Error> {
        self.start_sync_all().wait()
    }

    /// As [`DirectFile::sync_all`], under way when this returns.
    pub fn start_sync_all(&self) -> Operation<()> {
        self.start_flush(Op::Fsync { file: self.id() })
    }

    fn start_flush(&self, op: Op) -> Operation<()> {
        self.start(Touch::Sync, Work::Steps { first: Some(op), then: None })
    }

    fn start<T: Output>(&self, touch: Touch, work: Work) -> Operation<T> {
        self.disk.start(Some(self.place), touch, work)
    }

    /// The file's length in bytes, now: changes that are not complete may be in it or not.
    ///
    /// # Errors
    ///
    /// With the kernel's words.
    // A file has a length; it is not a collection that is empty or not.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> Result<u64, Error> {
        self.disk.with(|schedule| schedule.engine.file_len(schedule.file(self.place).id))
    }

    /// Waits for everything that was started on the file, and makes it `len_bytes` long: what is
    /// beyond is gone, what is new reads as zeros (`ftruncate(2)`). Nothing is flushed.
    ///
    /// # Errors
    ///
    /// With the kernel's words; [`Error::Poisoned`] when a flush failed before (W2).
    pub fn truncate(&self, len_bytes: u64) -> Result<(), Error> {
        self.disk.with(|schedule| {
            schedule.settle(self.place)?;
            let id = schedule.file(self.place).id;
            schedule.engine.truncate(id, len_bytes)?;
            schedule.file_mut(self.place).end = len_bytes;
            Ok(())
        })
    }

    /// Waits for everything that was started on the file, and closes it. Nothing is flushed.
    ///
    /// # Errors
    ///
    /// When the engine itself fails; the first error of a change whose [`Operation`] was dropped
    /// before it could tell.
    pub fn close(self) -> Result<(), Error> {
        self.disk.with(|schedule| {
            schedule.settle(self.place)?;
            schedule.take_untold(self.place)
        })
    }

    /// What offset and length of a write must be multiples of, and what reads cost least at: 1
    /// unless the file is direct.
    pub fn alignment(&self) -> u32 {
        self.disk.with(|schedule| schedule.engine.align_bytes(schedule.file(self.place).id))
    }

    /// Whether transfers bypass the page cache, as far as is known: a file system that takes
    /// `O_DIRECT` when the file is opened may still refuse the first transfer (W6).
    pub fn is_direct(&self) -> bool {
        self.disk.with(|schedule| schedule.engine.is_direct(schedule.file(self.place).id))
    }

    /// The path that the file was opened by.
    pub fn path(&self) -> PathBuf {
        self.disk.with(|schedule| schedule.file(self.place).path.clone())
    }

    /// How durable writes that are started from now on reach stable storage; [`calibrate`] tells
    /// which way is faster here.
    pub fn set_durable(&self, durable: Durable) {
        self.durable.set(durable);
    }

    /// How durable writes reach stable storage.
    pub fn durable(&self) -> Durable {
        self.durable.get()
    }

    fn id(&self) -> FileId {
        self.disk.with(|schedule| schedule.file(self.place).id)
    }
}

impl Drop for DirectFile {
    fn drop(&mut self) {
        self.disk.with(|schedule| schedule.let_go(self.place));
    }
}

impl fmt::Debug for DirectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectFile")
            .field("path", &self.path())
            .field("direct", &self.is_direct())
            .field("alignment", &self.alignment())
            .finish_non_exhaustive()
    }
}
