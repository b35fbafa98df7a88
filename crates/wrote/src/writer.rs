//! `Writer`: a `std::io::Write` at the device's speed.

mod options;
mod stream;
mod target;

pub use options::WriterOptions;

use crate::{Effective, Engine, Error, FileId};
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;
use stream::Stream;
#[cfg(feature = "tokio")]
use tokio::io::{AsyncSeek, AsyncWrite};

/// A writer that writes a file in the background: a replacement for `BufWriter<File>`.
///
/// Bytes go into a few buffers, and are written from there in the background, bypassing the page
/// cache if the file system supports that (`O_DIRECT`), and otherwise through it. These buffers are
/// all the memory that is used, for a file of any size (W8).
///
/// ```
/// use std::io::Write;
/// use wrote::Writer;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers");
/// let mut writer = Writer::create(&path)?;
/// for number in 0..1_000_000 {
///     writeln!(writer, "{number}")?;
/// }
/// let written = writer.finish()?; // on stable storage, with its name
/// println!("{} bytes in {:?}", written.bytes, written.elapsed);
/// # assert_eq!(std::fs::metadata(&path)?.len(), written.bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What survives
///
/// | after | earlier writes survive |
/// |---|---|
/// | a write | nothing: they may still be in this process's memory |
/// | [`Write::flush`], [`Writer::close`] | a crash of the process |
/// | [`Writer::sync_data`], [`Writer::finish`] | a power loss, with the name of a new file |
/// | [`Writer::finish`] of [`Writer::replace`] | a power loss, with the name; before it, none do |
///
/// [`WriterOptions::sync`] makes writes durable automatically. The disk block at the end of the
/// synced bytes is rewritten when it fills up, as for any appended file. The synced bytes in it are
/// safe if the disk writes sectors atomically.
///
/// A kernel crash or power loss before any of these calls may leave any part of the file. A process
/// crash leaves a prefix of what was written. Other programs also see only a prefix, at any time.
///
/// # Errors
///
/// An error in the background is returned by the next call and every later one (W2): nothing is
/// retried, and nothing more is written. When the disk is full, the bytes that have been written
/// remain in the file.
///
/// Dropping a `Writer` acts like [`Writer::finish`], but can only log an error (crate `log`, level
/// error); with [`WriterOptions::abandon_on_drop`] it acts like [`Writer::abandon`]. Dropping a
/// `Writer` of [`Writer::replace`] removes its unfinished file, and logs the removal (level warn).
///
/// # Cost
///
/// Opening and closing a `Writer` takes about 0.3 ms, for a ring and its buffers. It uses 8 MiB of
/// memory by default, less for a short file, which touches only the part of the buffers that it
/// fills ([`WriterOptions::bs`], [`WriterOptions::iodepth`]). For a file of a few kilobytes,
/// [`crate::write`] is better, and it is also atomic.
pub struct Writer {
    stream: Stream,
    abandon_on_drop: bool,
}

// SAFETY: the parts that are not `Send` are the pointers into the buffer leased by `stream`, and
// the counted references between the engine, its pool and that buffer. All of them are inside and
// none is handed out, so they move together. The engine is created for callers on any thread.
unsafe impl Send for Writer {}

/// The method of moving a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// The copy shares the source's blocks (`FICLONE`, `ioctl_ficlone(2)`), at least in part.
    Reflink,
    /// The bytes were moved by the file system's server (`copy_file_range(2)`).
    CopyFileRange,
    /// The bytes bypassed the page cache (`O_DIRECT`, `open(2)`), except for the last ones.
    Direct,
    /// The bytes went through the page cache.
    Cached,
}

impl Method {
    pub(crate) fn of(engine: &Engine, file: FileId) -> Method {
        if engine.is_direct(file) { Method::Direct } else { Method::Cached }
    }
}

/// The result of a [`Writer`] or a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The file's length, in bytes.
    pub bytes: u64,
    /// The time from opening the file until it was finished.
    pub elapsed: Duration,
    /// The method of moving the bytes.
    pub method: Method,
    /// Whether the file and its name are on stable storage, provided that the file system and the
    /// device keep their promises ([`crate::device::Target::limit`]).
    pub durable: bool,
    /// The checksum of a verified copy (128-bit XXH3, <https://xxhash.com>).
    pub checksum: Option<u128>,
    /// The settings in effect, and every fallback.
    pub effective: Effective,
}

impl Writer {
    /// Creates the file, or truncates an existing one, like [`std::fs::File::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Writer, Error> {
        Writer::options().open(path)
    }

    /// Creates a file next to `path`. [`Writer::finish`] then replaces the file at `path` with it.
    /// This is [`crate::write`](fn@crate::write) for a stream of content, of any size.
    ///
    /// After a crash of the process or the kernel, or a power loss, at any moment, the file at
    /// `path` has either its old content or the new. Readers also see one or the other. The new
    /// file gets the permissions, owner and attributes of the old one, or the permissions of
    /// [`WriterOptions::mode`]. Links are followed, as by [`crate::write`](fn@crate::write).
    ///
    /// If the writer is dropped without `finish`, the new file is removed, and the old one is kept.
    /// A process killed before `finish` leaves a file `.NAME.wrote-PROCESS-NUMBER` in the folder,
    /// which `wrote clean` finds and removes. An unnamed file, which the kernel would remove after
    /// a kill (`O_TMPFILE`, `open(2)`), could not replace an existing name (`linkat(2)`).
    ///
    /// ```
    /// use std::io::Write;
    /// use wrote::Writer;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("index");
    /// # std::fs::write(&path, "old")?;
    /// let mut writer = Writer::replace(&path)?;
    /// for number in 0..1000 {
    ///     writeln!(writer, "{number}")?;
    /// }
    /// assert_eq!(std::fs::read(&path)?, b"old");
    /// writer.finish()?; // the new content is there, and survives a power loss
    /// assert_eq!(std::fs::read(&path)?.len(), 3890);
    /// # assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`crate::write`](fn@crate::write).
    pub fn replace(path: impl AsRef<Path>) -> Result<Writer, Error> {
        Writer::options().replace(true).open(path)
    }

    /// Writes to a file opened by the caller, from its current position: see
    /// [`WriterOptions::from_file`].
    pub fn from_file(file: File) -> Result<Writer, Error> {
        Writer::options().from_file(file)
    }

    /// Returns the options of a `Writer`, as a builder.
    pub fn options() -> WriterOptions {
        WriterOptions::default()
    }

    /// Writes everything that `reader` returns, reading straight into the buffers, and returns the
    /// number of bytes. If `reader` fails, the bytes read so far are still written.
    pub fn read_from(&mut self, mut reader: impl Read) -> io::Result<u64> {
        let mut total = 0;
        loop {
            let mut read = || {
                let room = self.stream.room()?;
                let len = reader.read(room)?;
                assert!(len <= room.len(), "a reader gives no more than it was asked for");
                self.stream.fill(len)?;
                Ok(len)
            };
            let result: io::Result<usize> = read();
            match result {
                Ok(0) => return Ok(total),
                Ok(len) => total += len as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes earlier writes durable, with the name of a new file. After an error, every later call
    /// returns it, too (W2). A file of [`Writer::replace`] becomes durable at its final path only
    /// with [`Writer::finish`].
    pub fn sync_data(&mut self) -> Result<(), Error> {
        self.stream.sync_data()
    }

    /// Writes the rest and closes the file, which then survives a power loss. Returns the first
    /// error that has occurred since the file was opened.
    ///
    /// For [`Writer::replace`], gives the new file its name. After an error, the old file is
    /// unchanged and the new one has been removed. [`crate::Action::SyncFolder`] is the exception:
    /// the new file has its name, and after a power loss the path has either the new file or the
    /// old one, complete in both cases.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.stream.end(true)
    }

    /// Writes the rest and closes the file without a flush, so that it survives a process crash.
    /// Returns the first error that has occurred since the file was opened. For
    /// [`Writer::replace`], the new file gets its name, and is as safe as after
    /// [`crate::write_unflushed`].
    pub fn close(mut self) -> Result<Written, Error> {
        self.stream.end(false)
    }

    /// Converts the writer into an asynchronous writer, which works on any runtime or without one.
    /// It implements tokio's `AsyncWrite` and `AsyncSeek`; the compat module of the crate
    /// `tokio-util` adds the traits of `futures-io`. Fails if no thread can be started, and then
    /// finishes the file like a dropped writer.
    ///
    /// `shutdown` acts like [`Writer::finish`]: the file then survives a power loss.
    ///
    /// A poll never waits for the disk. It fills a chunk of 128 KiB. If the chunk is full while the
    /// writer's thread is still writing the previous chunk, the poll is pending, and the thread
    /// wakes the task when it is done. The asynchronous writer uses 256 KiB more memory than a
    /// [`Writer`] (W8).
    ///
    /// An error in the background is returned by a later call and by every call after that (W2).
    ///
    /// Dropping the asynchronous writer does not wait: the thread writes the remaining chunks,
    /// including a partial one, and finishes the file like a dropped writer. The process may exit
    /// before the thread has done so. An unfinished replacement is removed.
    #[cfg(feature = "tokio")]
    pub fn into_async(self) -> io::Result<impl AsyncWrite + AsyncSeek + Send + Unpin + use<>> {
        crate::asynchronous::writer::AsyncWriter::start(self, Writer::finish)
    }

    /// Closes the file without writing the rest. A file that this `Writer` created is removed, a
    /// file of [`Writer::replace`] before it gets its name. A file that already existed keeps the
    /// bytes written so far.
    pub fn abandon(mut self) {
        if self.stream.is_open() {
            self.stream.abandon();
        }
    }

    /// Returns the settings in effect, and every fallback.
    pub fn effective(&self) -> &Effective {
        self.stream.effective()
    }

    /// Writes on the slow path: when the buffer is full, a sync is due, or there is an error to
    /// report.
    #[cold]
    #[inline(never)]
    fn write_slowly(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.stream.write(bytes)?)
    }

    /// Writes one byte, passed by value, so that a loop over single bytes in the caller keeps them
    /// in registers.
    #[cold]
    #[inline(never)]
    fn write_byte_slowly(&mut self, byte: u8) -> io::Result<()> {
        self.write_slowly(&[byte])
    }
}

impl Write for Writer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= self.stream.room_bytes() {
            // SAFETY: there is room for these bytes.
            unsafe { self.stream.put(bytes) };
            return Ok(());
        }
        match bytes {
            &[byte] => self.write_byte_slowly(byte),
            bytes => self.write_slowly(bytes),
        }
    }

    /// Writes all slices as if they were one, and returns their total length. With
    /// [`crate::SyncPolicy::Always`] there is only one sync.
    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        if len <= self.stream.room_bytes() {
            for slice in slices {
                self.write_all(slice)?;
            }
        } else {
            self.stream.write_vectored(slices)?;
        }
        Ok(len)
    }

    /// Writes all bytes to the file, where other programs can read them, and waits until they have
    /// been written. Does not make them durable, unlike [`Writer::sync_data`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.stream.flush()?)
    }
}

/// A seek waits for operations in flight. A seek into the middle of a block reads that block, so
/// that the next write keeps the rest of it. Seeks suit a header that is filled in at the end. For
/// random writes, use [`crate::file::DirectFile`].
impl Seek for Writer {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.stream.position().checked_add_signed(by),
            SeekFrom::End(by) => self.stream.len().checked_add_signed(by),
        };
        // No file is longer than this (`lseek(2)`, EINVAL). This error does not affect later calls.
        let place = place.filter(|&place| place <= i64::MAX as u64);
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.stream.seek(place)?;
        Ok(place)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.stream.position())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.stream.is_open() {
            return;
        }
        if self.stream.is_replacement() || self.abandon_on_drop {
            if !self.abandon_on_drop {
                let path = self.stream.path().display();
                log::warn!("{path}: not replaced: its Writer was dropped without finish");
            }
            self.stream.abandon();
        } else {
            let result = self.stream.end(true);
            if let Err(error) = result {
                log::error!("a file is not whole and its Writer was dropped: {error}");
            }
        }
    }
}

/// Like [`Writer::from_file`].
impl TryFrom<File> for Writer {
    type Error = Error;

    fn try_from(file: File) -> Result<Writer, Error> {
        Writer::from_file(file)
    }
}

/// Returns the open file's descriptor, to examine the file and to change its permissions, owner or
/// locks. The file may still lack bytes that this writer has accepted. A write through the
/// descriptor may be lost.
///
/// # Panics
///
/// If the file is on a simulated disk, which has no descriptors.
impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.descriptor().expect("a file on a simulated disk has no descriptor")
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("stream", &self.stream).finish_non_exhaustive()
    }
}
