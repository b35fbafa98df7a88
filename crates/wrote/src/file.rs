//! Direct files: reads of any offset and length, and writes with explicit alignment.
//!
//! # Direct or cached?
//!
//! A cached file is copied through the kernel's memory: small and unaligned transfers are cheap,
//! and recent bytes need no device access. A direct file (`O_DIRECT`, `open(2)`) moves bytes
//! between the device and the program's buffers: nothing is copied or cached, and each transfer
//! takes as long as the device needs. A direct file is faster for large transfers, for many
//! transfers at once, and for data that is used only once. Single small reads are faster through
//! the cache.
//!
//! A [`DirectFile`] that is open only for reading checks whether the bytes are in the page cache,
//! and if so copies them from there.
//!
//! The kernel requires direct transfers to be aligned, both in the file and in memory. A
//! [`DirectFile`] can read any range: it reads the blocks that contain the range and returns the
//! requested bytes, so reading a few bytes costs a whole block. Writing part of a block would first
//! require reading the rest of it, at a hidden cost. So a write requires a leased [`DiskBuffer`]
//! with an aligned offset and length, and otherwise fails with the alignment
//! ([`Error::Alignment`]).
//!
//! # Waiting
//!
//! `read`, `write`, `write_durable`, `allocate`, `sync_data` and `sync_all` block. Each has a
//! variant named `start_..` that returns an [`Operation`] at once. Many operations can be in
//! progress: wait for each of them, or await it in [`Disk::block_on`] or another executor. The
//! other methods (`len`, `truncate`, `close`) only block.
//!
//! Operations on the same bytes of a file are executed in the order in which they were started
//! through one handle (W3). A flush covers every change that was started before the flush (W1).
//!
//! ```
//! use wrote::engine::Options;
//! use wrote::{Disk, FileOptions, Ioengine};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("data");
//! let disk = Disk::open(&Options::new(Ioengine::IoUring, 16, 64 << 10))?;
//! let options = FileOptions::new().create_new(true).write(true).direct(true);
//! let file = disk.open_file(&path, &options)?;
//!
//! let mut buffer = disk.lease()?; // 64 KiB, aligned in memory
//! buffer.fill(7);
//! file.write(buffer, 0)?; // whole, or an error
//! file.sync_data()?; // survives a power loss, once the folder is synced too
//! assert_eq!(file.read(1000, 13)?[..], [7; 13]); // any bytes
//!
//! let (first, second) = disk.block_on(async {
//!     // Both are in progress at once.
//!     let (first, second) = (file.start_read(0, 10), file.start_read(65_530, 10));
//!     Ok::<_, wrote::Error>((first.await?, second.await?))
//! })?;
//! assert_eq!((first.len(), second.len()), (10, 6)); // there the file ends
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
pub(crate) mod cached;
mod calibrate;
mod disk;
mod driver;
mod entry;
mod schedule;
mod shared;
mod span;

pub use buffer::DiskBuffer;
pub use calibrate::{Calibrated, calibrate};
pub use disk::{Disk, Operation};

use crate::device::{self, AtomicWrites};
use crate::engine::{FileId, FileOptions, Op};
use crate::error::{Action, Error, Tried};
use cached::CachedReads;
use entry::{Outcome, Touch, Work};
use schedule::Schedule;
use span::Span;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The option that limits the size of a buffer.
const BUFFER_BYTES: &str = "buffer_bytes of Options::new";

/// A file that is read at any offset and length, and written in aligned blocks. Clones are handles
/// to the same open file, for other threads and tasks.
///
/// Opened by [`Disk::open_file`]. When the last clone is dropped, the file is closed as soon as its
/// operations are complete; nothing is flushed.
#[derive(Clone)]
pub struct DirectFile(Arc<OpenedFile>);

struct OpenedFile {
    disk: Disk,
    /// The file's key in the disk's schedule.
    place: usize,
    id: FileId,
    /// Whether a durable write is a single call: [`DirectFile::set_dsync`].
    dsync: AtomicBool,
    /// Whether durable writes also make all metadata durable.
    sync_metadata: bool,
    /// A second open file for reads through the page cache, if the file is opened only for direct
    /// reads.
    cached: Option<CachedReads>,
}

impl DirectFile {
    fn new(disk: Disk, (place, id): (usize, FileId), options: &FileOptions) -> DirectFile {
        let dsync = AtomicBool::new(true);
        let sync_metadata = options.sync_metadata;
        let open_cached = |it: &mut Schedule| it.direct_descriptor(place).and_then(CachedReads::of);
        let cached = if options.write { None } else { disk.with(open_cached) };
        DirectFile(Arc::new(OpenedFile { disk, place, id, dsync, sync_metadata, cached }))
    }

    fn disk(&self) -> &Disk {
        &self.0.disk
    }

    fn place(&self) -> usize {
        self.0.place
    }

    /// Reads `len` bytes from `offset`. Neither number need be aligned. Returns fewer bytes only at
    /// the end of the file.
    ///
    /// A read that is longer than one of the engine's buffers uses several of them, and then copies
    /// their bytes together.
    ///
    /// If the file was opened only for reading, bytes in the page cache are copied from there, on
    /// the calling thread (`cachestat(2)`, Linux 6.5). While the bytes are not cached, at least one
    /// read in 64 checks again.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's message. [`Error::TooLong`] if the read needs more buffers
    /// than the engine has.
    pub fn read(&self, offset: u64, len: usize) -> Result<DiskBuffer, Error> {
        self.start_read(offset, len).wait()
    }

    /// Starts a [`DirectFile::read`], and returns while it is in progress.
    pub fn start_read(&self, offset: u64, len: usize) -> Operation<DiskBuffer> {
        if let Err(error) = self.disk().check_process() {
            return Operation::over(Err(error), Outcome::buffer);
        }
        let (span, buffers) = self.disk().with(|schedule| {
            let pool = schedule.engine.pool();
            let align_bytes = schedule.engine.align_bytes(schedule.files[self.place()].id);
            (Span::around(offset, len, align_bytes, pool.buffer_bytes()), pool.count())
        });
        if span.is_empty() {
            return Operation::over(
                Ok(Outcome::Buffer(DiskBuffer::copied(Vec::new()))),
                Outcome::buffer,
            );
        }
        let cached = self.0.cached.as_ref();
        if let Some(bytes) =
            cached.and_then(|cached| cached.read(|| self.disk().try_lease(), offset, len))
        {
            return Operation::over(Ok(Outcome::Buffer(bytes)), Outcome::buffer);
        }
        match span.pieces().filter(|&pieces| pieces <= u64::from(buffers)) {
            Some(pieces) => {
                let found = (0..pieces).map(|_| None).collect();
                let touch = Touch::Read(offset..offset.saturating_add(len as u64));
                self.disk().start(
                    Some(self.place()),
                    (touch, Work::Read { span, found }),
                    Outcome::buffer,
                )
            }
            None => {
                let (path, action, len_max) = (self.path(), Action::Read, span.len_max(buffers));
                let (offset, limit) = (Some(offset), "Options::buffers");
                let error = Error::TooLong { path, action, offset, len, len_max, limit };
                Operation::over(Err(error), Outcome::buffer)
            }
        }
    }

    /// Writes the whole buffer at `offset`. The bytes survive a process crash when this returns.
    /// [`Survives`](crate::Survives) describes the other levels.
    ///
    /// # Errors
    ///
    /// [`Error::Alignment`], with the alignment, if `offset` or the buffer's length is not a
    /// multiple of [`DirectFile::alignment`]. [`Error::TooLong`] for bytes that were read through
    /// several buffers. [`Error::File`] with the kernel's message; part of the buffer may then have
    /// been written. [`Error::Poisoned`] if an earlier flush failed (W2).
    pub fn write(&self, buffer: DiskBuffer, offset: u64) -> Result<(), Error> {
        self.start_write(buffer, offset).wait()
    }

    /// Starts a [`DirectFile::write`], and returns while it is in progress.
    pub fn start_write(&self, buffer: DiskBuffer, offset: u64) -> Operation<()> {
        self.start_writing(buffer, offset, None)
    }

    /// Writes the whole buffer at `offset`, and makes it durable by the method of
    /// [`DirectFile::set_dsync`]. The bytes survive a power loss when this returns (W1), provided
    /// that the file's name does. A failed flush poisons the file permanently (W2).
    pub fn write_durable(&self, buffer: DiskBuffer, offset: u64) -> Result<(), Error> {
        self.start_write_durable(buffer, offset).wait()
    }

    /// Starts a [`DirectFile::write_durable`], and returns while it is in progress.
    pub fn start_write_durable(&self, buffer: DiskBuffer, offset: u64) -> Operation<()> {
        self.start_writing(buffer, offset, Some(self.dsync()))
    }

    fn start_writing(
        &self,
        buffer: DiskBuffer,
        offset: u64,
        durable_by_dsync: Option<bool>,
    ) -> Operation<()> {
        if let Err(error) = self.disk().check_process() {
            return Operation::over(Err(error), Outcome::done);
        }
        let file = self.id();
        let len = buffer.len();
        let Some(buffer) = buffer.into_inner() else {
            let (path, action, len_max) = (self.path(), Action::Write, self.disk().buffer_bytes());
            let (offset, len_max, limit) = (Some(offset), len_max as u64, BUFFER_BYTES);
            let error = Error::TooLong { path, action, offset, len, len_max, limit };
            return Operation::over(Err(error), Outcome::done);
        };
        let len = len as u64;
        let flush = if self.0.sync_metadata { Op::Fsync { file } } else { Op::Fdatasync { file } };
        let then = (durable_by_dsync == Some(false)).then_some(flush);
        let durable = durable_by_dsync == Some(true);
        self.start_change(offset, len, Op::Write { file, offset, buffer, durable }, then)
    }

    /// Allocates blocks for `len` bytes from `offset`, and extends the file over them with zeros
    /// (`fallocate(2)`). The first write to a block costs more than later ones, because the file
    /// system records which blocks have been written. Fails with `EOPNOTSUPP` if the file system
    /// can't allocate blocks.
    pub fn allocate(&self, offset: u64, len: u64) -> Result<(), Error> {
        self.start_allocate(offset, len).wait()
    }

    /// Starts a [`DirectFile::allocate`], and returns while it is in progress.
    pub fn start_allocate(&self, offset: u64, len: u64) -> Operation<()> {
        let file = self.id();
        self.start_change(offset, len, Op::Fallocate { file, offset, len }, None)
    }

    fn start_change(&self, offset: u64, len: u64, op: Op, then: Option<Op>) -> Operation<()> {
        if let Err(error) = self.disk().check_process() {
            return Operation::over(Err(error), Outcome::done);
        }
        let end = self.disk().with(|schedule| schedule.files[self.place()].end);
        self.start(Touch::change(offset, len, end), Work::Steps { first: Some(op), then })
    }

    /// Makes all operations started before this call durable, with the metadata needed to find
    /// their data (`fdatasync(2)`). The writes survive a power loss when this returns (W1). The
    /// name of a new file survives one only once the file's folder has also been synced. An error
    /// poisons the file permanently (W2). Also returns the first error of a change whose
    /// [`Operation`] was dropped.
    pub fn sync_data(&self) -> Result<(), Error> {
        self.start_sync_data().wait()
    }

    /// Starts a [`DirectFile::sync_data`], and returns while it is in progress.
    pub fn start_sync_data(&self) -> Operation<()> {
        self.start_flush(Op::Fdatasync { file: self.id() })
    }

    /// Like [`DirectFile::sync_data`], but makes all of the file's metadata durable, too
    /// (`fsync(2)`).
    pub fn sync_all(&self) -> Result<(), Error> {
        self.start_sync_all().wait()
    }

    /// Starts a [`DirectFile::sync_all`], and returns while it is in progress.
    pub fn start_sync_all(&self) -> Operation<()> {
        self.start_flush(Op::Fsync { file: self.id() })
    }

    fn start_flush(&self, op: Op) -> Operation<()> {
        self.start(Touch::Sync, Work::Steps { first: Some(op), then: None })
    }

    fn start(&self, touch: Touch, work: Work) -> Operation<()> {
        self.disk().start(Some(self.place()), (touch, work), Outcome::done)
    }

    /// Returns the file's current length in bytes. Operations in progress may already have changed
    /// it.
    // A file is not a collection that can be empty.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> Result<u64, Error> {
        self.disk().check_process()?;
        self.disk().with(|schedule| schedule.engine.file_len(schedule.files[self.place()].id))
    }

    /// Waits for all operations on the file, and sets its length (`ftruncate(2)`). Bytes beyond the
    /// new length are discarded, and added bytes read as zeros. Nothing is flushed. Fails if an
    /// earlier flush failed (W2).
    pub fn truncate(&self, len_bytes: u64) -> Result<(), Error> {
        let place = self.place();
        self.when_settled(|schedule| {
            let id = schedule.files[place].id;
            schedule.engine.truncate(id, len_bytes)?;
            schedule.files[place].end = len_bytes;
            Ok(())
        })
    }

    /// Waits for all operations on the file, and closes it. Nothing is flushed. Returns the first
    /// error of a change whose [`Operation`] was dropped.
    pub fn close(self) -> Result<(), Error> {
        let place = self.place();
        self.when_settled(|schedule| schedule.files[place].untold.take().map_or(Ok(()), Err))
    }

    /// Waits until no operation on the file is in progress, and then calls `act` before another
    /// operation can start.
    fn when_settled<T>(
        &self,
        mut act: impl FnMut(&mut Schedule) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let place = self.place();
        let is_settled = |schedule: &Schedule| schedule.unfinished_of(place) == 0;
        let shared = self.disk().shared();
        shared.wait_until(|schedule| is_settled(schedule).then(|| act(schedule)))?
    }

    /// Returns the alignment, in bytes, that the offset and length of a write require, and at which
    /// reads are cheapest. It is 1 unless the file is direct.
    pub fn alignment(&self) -> u32 {
        self.disk().look(|schedule| schedule.engine.align_bytes(schedule.files[self.place()].id))
    }

    /// Returns whether transfers bypass the page cache, as far as is known: a file system may
    /// accept `O_DIRECT` when the file is opened and refuse the first transfer (W6).
    pub fn is_direct(&self) -> bool {
        self.disk().look(|schedule| schedule.engine.is_direct(schedule.files[self.place()].id))
    }

    /// Returns the limits of atomic writes to this file. After a power loss, an atomic write is
    /// either complete or absent ([`FileOptions::atomic`]).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with `EOPNOTSUPP` and the reason if there are no atomic writes.
    pub fn atomic_writes(&self) -> Result<AtomicWrites, Error> {
        let path = self.path();
        let copied = |it: &mut Schedule| {
            it.direct_descriptor(self.place()).map(|file| file.try_clone_to_owned())
        };
        let units = match self.disk().with(copied) {
            Some(file) => {
                let file = File::from(file.tried(&path, Action::Examine)?);
                device::atomic_writes(&file, &device::examine(&path)?)
            }
            None => Err("they need direct transfers of a real file".into()),
        };
        AtomicWrites::or_refused(&path, units)
    }

    /// Returns the path under which the file was opened.
    pub fn path(&self) -> PathBuf {
        self.disk().look(|schedule| schedule.files[self.place()].path.clone())
    }

    /// Sets how later durable writes reach stable storage. They survive a power loss with either
    /// setting, and [`calibrate`] finds the faster one.
    ///
    /// - `true`, the default: a single write (`RWF_DSYNC`, `pwritev2(2)`, Linux 4.7), which
    ///   completes when its bytes are on stable storage. If the device has FUA, a direct write over
    ///   written blocks needs no flush.
    /// - `false`: a write followed by `fdatasync(2)`. It costs a second call, but some devices
    ///   flush faster than they write through.
    pub fn set_dsync(&self, dsync: bool) {
        self.0.dsync.store(dsync, Ordering::Relaxed);
    }

    /// Returns whether a durable write is a single call ([`DirectFile::set_dsync`]).
    pub fn dsync(&self) -> bool {
        self.0.dsync.load(Ordering::Relaxed)
    }

    fn id(&self) -> FileId {
        self.0.id
    }
}

impl Drop for OpenedFile {
    fn drop(&mut self) {
        if self.disk.check_process().is_ok() {
            self.disk.with(|schedule| schedule.let_go(self.place));
        }
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
