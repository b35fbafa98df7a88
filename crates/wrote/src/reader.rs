//! `Reader`: a `std::io::BufRead` at the device's speed.

mod ahead;
mod plain;
mod source;
#[cfg(test)]
mod tests;

use crate::engine::Options;
use crate::error::Tried;
use crate::{Action, Disk, Effective, Error, Ioengine};
use plain::Plain;
use source::Source;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, IoSliceMut, Read, Seek, SeekFrom};
use std::path::Path;
#[cfg(feature = "tokio")]
use tokio::io::{AsyncBufRead, AsyncSeek};

/// The unit of buffer sizes: whole pages, which every file accepts in a direct transfer.
const BS_UNIT_BYTES: usize = 4096;

/// A reader that reads a file in order: a replacement for `BufReader<File>`.
///
/// The first read is 8 KiB, as with a `BufReader`, and each consecutive read is larger, up to 128
/// KiB. If a long file is not in the page cache, reads bypass the cache (`O_DIRECT`), with a
/// growing number of 1 MiB reads in flight. A `Reader` uses at most 8 MiB of memory, for a file of
/// any size (W8), and about 8 KiB for a short file.
///
/// ```
/// use std::io::BufRead;
/// use wrote::Reader;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers");
/// # wrote::write(&path, "1\n2\n3\n")?;
/// let mut sum = 0;
/// for line in Reader::open(&path)?.lines() {
///     sum += line?.parse::<u64>()?;
/// }
/// assert_eq!(sum, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cached or direct
///
/// An ordinary file or block device is read directly if at least 4 MiB remain and the page cache
/// holds less than half of the next 8 MiB (`cachestat(2)`, Linux 6.5; this process must own the
/// file or be able to write to it). This is checked again every 8 MiB. Data read directly is not
/// cached afterwards: [`ReaderOptions::direct`] turns direct reads off. Everything else is read
/// through the cache: cached files, short files, files in `/proc`, pipes and terminals.
///
/// The bytes returned are those last written, durable or not: a direct read also sees pages that
/// are only in the cache (`open(2)`, O_DIRECT). A growing file is read up to its end at the time of
/// the read, and a later read continues there. Buffered bytes do not change when another program
/// changes the file.
///
/// # Errors
///
/// An error is returned at its offset, after all the bytes that precede it. A direct read that
/// fails is retried once through the cache, and the error of that attempt is returned. A later call
/// retries.
///
/// # Seeks
///
/// A seek within buffered data is free. After any other seek, the first read is short again. For
/// random reads, with several in flight, use [`crate::file::DirectFile`].
pub struct Reader {
    /// The addresses of the next byte and of the buffer's end. They are equal if every read takes
    /// the slow path.
    next: *const u8,
    end: *const u8,
    source: Source,
}

// SAFETY: the parts that are not `Send` are the pointers into the buffer held by `source`, and the
// counted references between the engine, its pool and that buffer. All of them are inside and none
// is handed out, so they move together. The engine is created for callers on any thread.
unsafe impl Send for Reader {}

impl Reader {
    /// Opens the file for reading, as [`File::open`] does.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, Error> {
        Reader::options().open(path)
    }

    /// Returns the options of a `Reader`, as a builder.
    pub fn options() -> ReaderOptions {
        ReaderOptions::default()
    }

    fn open_by(options: ReaderOptions, path: &Path) -> Result<Reader, Error> {
        let plain = match &options.disk {
            Some(disk) => {
                let one = Options::new(options.ioengine, 1, options.bs_bytes);
                Plain::open(disk.engine(&one)?, path)?
            }
            None => Plain::of(File::open(path).tried(path, Action::Open)?, path),
        };
        if plain.is_folder() {
            return Err(Error::is_a_folder(path));
        }
        Ok(Reader::new(Source::new(plain, options, 0)))
    }

    fn of_file(options: ReaderOptions, file: File) -> Reader {
        let plain = Plain::given(file);
        let place = plain.place();
        Reader::new(Source::new(plain, options, place))
    }

    fn new(source: Source) -> Reader {
        let mut reader = Reader { next: std::ptr::null(), end: std::ptr::null(), source };
        reader.take_buffer();
        reader
    }

    /// Returns the file's current length, in bytes; 0 for a pipe, and for most files of `/proc`.
    pub fn len(&self) -> Result<u64, Error> {
        self.source.len()
    }

    /// Returns whether the file is currently empty.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Returns the settings in effect, and every fallback. Until the file is read directly, reads
    /// go through the page cache one by one ([`crate::Ioengine::Psync`]).
    pub fn effective(&self) -> &Effective {
        self.source.effective()
    }

    /// Returns whether reads at the current offset bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.source.is_direct()
    }

    /// Returns an iterator over the remaining bytes. It is faster than [`Read::bytes`], and yields
    /// the same items. An error is returned at its offset, and the next call retries. The iterator
    /// can be converted back into the reader, which continues after the last byte that the iterator
    /// returned.
    pub fn bytes(self) -> impl Iterator<Item = io::Result<u8>> + Into<Reader> + Send + fmt::Debug {
        ReaderBytes::new(self)
    }

    /// Converts the reader into an asynchronous reader, which works on any runtime or without one.
    /// It implements tokio's `AsyncRead`, `AsyncBufRead` and `AsyncSeek`; the compat module of the
    /// crate `tokio-util` adds the traits of `futures-io`. Fails if no thread can be started.
    ///
    /// A poll never waits for the disk: a thread reads a chunk of 128 KiB ahead, and wakes the
    /// task. An idle reader uses no CPU time. The asynchronous reader uses 256 KiB more memory than
    /// a [`Reader`]. When it is dropped, the thread exits after the current read. Errors are
    /// returned at their offset, as by a [`Reader`].
    #[cfg(feature = "tokio")]
    pub fn into_async(self) -> io::Result<impl AsyncBufRead + AsyncSeek + Send + Unpin + use<>> {
        crate::asynchronous::reader::AsyncReader::start(self)
    }

    /// Returns the bytes in the buffer, which the next reads return. Does not read from the file.
    #[inline]
    pub fn buffer(&self) -> &[u8] {
        // SAFETY: from `next` to `end` there are bytes of the buffer that `source` holds. It
        // changes nothing of it until `refill` or `seek`, which take the reader for themselves.
        unsafe { std::slice::from_raw_parts(self.next, self.left()) }
    }

    /// Returns the number of bytes left in the buffer.
    #[inline]
    fn left(&self) -> usize {
        self.end as usize - self.next as usize
    }

    /// Returns the buffer's next `len` bytes and moves past them; returns `None` if the buffer has
    /// fewer.
    #[inline]
    fn take(&mut self, len: usize) -> Option<&[u8]> {
        if len > self.left() {
            return None;
        }
        // SAFETY: as in `buffer`, and `len` bytes are left.
        let taken = unsafe { std::slice::from_raw_parts(self.next, len) };
        // SAFETY: at most `end`.
        self.next = unsafe { self.next.add(len) };
        Some(taken)
    }

    /// Returns the offset of the next byte.
    fn position(&self) -> u64 {
        self.source.place().0 - self.left() as u64
    }

    fn take_buffer(&mut self) {
        let buffer = self.source.buffered().as_ptr_range();
        (self.next, self.end) = (buffer.start, buffer.end);
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> io::Result<()> {
        let refilled = self.source.refill();
        self.take_buffer();
        Ok(refilled?)
    }

    /// Reads one byte, and returns it by value, so that a caller's loop over bytes keeps its state
    /// in registers. Returns `None` at the end of the file.
    #[cold]
    #[inline(never)]
    fn read_byte_slowly(&mut self) -> io::Result<Option<u8>> {
        self.refill()?;
        Ok(self.take(1).map(|byte| byte[0]))
    }

    /// Reads into `into` when the buffer has too few bytes.
    #[cold]
    #[inline(never)]
    fn read_slowly(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.left() == 0 {
            if let Some(read) = self.source.read_past(into) {
                self.take_buffer();
                return Ok(read?);
            }
            self.refill()?;
        }
        let len = into.len().min(self.left());
        if let Some(bytes) = self.take(len) {
            into[..len].copy_from_slice(bytes);
        }
        Ok(len)
    }

    fn go_to(&mut self, place: u64, is_to_be_told: bool) -> io::Result<()> {
        let (end, buffered) = self.source.place();
        let back = end.checked_sub(place).filter(|&back| back <= buffered as u64);
        if let (Some(back), false) = (back, is_to_be_told) {
            self.next = self.end.wrapping_sub(back as usize);
            return Ok(());
        }
        let result = self.source.seek(place);
        if result.is_ok() {
            self.take_buffer();
        }
        Ok(result?)
    }
}

impl Read for Reader {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let [byte] = into {
            let next = if self.left() > 0 {
                self.take(1).map(|taken| taken[0])
            } else {
                self.read_byte_slowly()?
            };
            return Ok(next.map_or(0, |next| {
                *byte = next;
                1
            }));
        }
        match self.take(into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(into.len())
            }
            None => self.read_slowly(into),
        }
    }

    #[inline]
    fn read_exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        if let Some(bytes) = self.take(into.len()) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        while !into.is_empty() {
            match self.read_slowly(into)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => into = &mut into[len..],
            }
        }
        Ok(())
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut total = 0;
        for slice in into.iter_mut().filter(|slice| !slice.is_empty()) {
            if total > 0 && self.left() == 0 {
                // The bytes read so far must be returned without waiting for more.
                break;
            }
            let len = self.read(slice)?;
            total += len;
            if len < slice.len() {
                break;
            }
        }
        Ok(total)
    }

    fn read_to_end(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let rest = self.len().unwrap_or(0).saturating_sub(self.position());
        // If the file's length was wrong, the vector grows as the rest is read.
        into.try_reserve(usize::try_from(rest).unwrap_or(0))?;
        let mut total = 0;
        loop {
            let bytes = self.fill_buf()?;
            let len = bytes.len();
            if len == 0 {
                return Ok(total);
            }
            into.extend_from_slice(bytes);
            self.consume(len);
            total += len;
        }
    }
}

impl BufRead for Reader {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left() == 0 {
            self.refill()?;
        }
        Ok(self.buffer())
    }

    #[inline]
    fn consume(&mut self, len: usize) {
        self.next = self.next.wrapping_add(len.min(self.left()));
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.position().checked_add_signed(by),
            SeekFrom::End(by) => self.source.place_from_end(by)?,
        };
        // No file is longer than this (`lseek(2)`, EINVAL).
        let place = place.filter(|&place| place <= i64::MAX as u64);
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.go_to(place, matches!(to, SeekFrom::End(_)))?;
        Ok(place)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position())
    }
}

/// Reads from the file's current position. A write-only file fails at the first read. The file's
/// position (`lseek(2)`), which it shares with its duplicates, does not change.
impl From<File> for Reader {
    fn from(file: File) -> Reader {
        Reader::options().from_file(file)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("source", &self.source).finish_non_exhaustive()
    }
}

/// An iterator over the bytes of a [`Reader`], returned by [`Reader::bytes`].
///
/// The iterator has its own copies of the addresses of the next byte and the buffer's end. Code
/// that fills the buffer never sees these copies, so a loop keeps them in registers. A byte costs
/// half as much as with the iterator of [`io::Read::bytes`].
struct ReaderBytes {
    next: *const u8,
    end: *const u8,
    /// The reader, boxed so that the code that fills the buffer does not know the iterator's
    /// address.
    reader: Box<Reader>,
}

// SAFETY: the pointers lead into the buffer of `reader`, which this value owns and which is `Send`.
unsafe impl Send for ReaderBytes {}

impl ReaderBytes {
    fn new(reader: Reader) -> ReaderBytes {
        ReaderBytes { next: reader.next, end: reader.end, reader: Box::new(reader) }
    }
}

impl From<ReaderBytes> for Reader {
    fn from(bytes: ReaderBytes) -> Reader {
        let mut reader = bytes.reader;
        reader.next = bytes.next;
        *reader
    }
}

impl Iterator for ReaderBytes {
    type Item = io::Result<u8>;

    #[inline]
    fn next(&mut self) -> Option<io::Result<u8>> {
        if self.next == self.end {
            match refill_bytes(&mut self.reader) {
                Ok((next, end)) => (self.next, self.end) = (next, end),
                Err(error) => {
                    // The buffer is empty after an error.
                    (self.next, self.end) = (self.reader.next, self.reader.end);
                    return Some(Err(error));
                }
            }
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: between `next` and `end` there are bytes of the reader's buffer, which changes
        // only in `refill_bytes`.
        let byte = unsafe { *self.next };
        self.next = self.next.wrapping_add(1);
        Some(Ok(byte))
    }
}

/// Fills the buffer, and returns the addresses of its start and end.
#[cold]
#[inline(never)]
fn refill_bytes(reader: &mut Reader) -> io::Result<(*const u8, *const u8)> {
    reader.next = reader.end;
    reader.refill()?;
    Ok((reader.next, reader.end))
}

impl fmt::Debug for ReaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderBytes").field("reader", &self.reader).finish_non_exhaustive()
    }
}

/// Options of a [`Reader`], which [`ReaderOptions::open`] opens.
///
/// ```
/// use std::io::BufRead;
/// use wrote::Reader;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("lines");
/// # wrote::write(&path, "one\ntwo\n")?;
/// let reader = Reader::options().bs(256 << 10).iodepth(4).open(&path)?; // 1 MiB of memory
/// assert_eq!(reader.lines().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    direct: bool,
    bs_bytes: usize,
    iodepth: u32,
    ioengine: Ioengine,
    /// The disk that the file is on.
    disk: Option<Disk>,
}

impl Default for ReaderOptions {
    /// Returns the default options: a few long transfers, which are enough to keep a device busy.
    fn default() -> ReaderOptions {
        let ioengine = Ioengine::IoUring;
        ReaderOptions { direct: true, bs_bytes: 1 << 20, iodepth: 8, ioengine, disk: None }
    }
}

impl ReaderOptions {
    /// Sets whether reads bypass the page cache if it does not hold the file; true by default. With
    /// false, the file is cached afterwards, for the next reader.
    pub fn direct(self, direct: bool) -> ReaderOptions {
        ReaderOptions { direct, ..self }
    }

    /// Sets the size of a direct read and of a buffer, in bytes; 1 MiB by default. It is rounded up
    /// to a multiple of 4096.
    pub fn bs(self, bytes: usize) -> ReaderOptions {
        ReaderOptions { bs_bytes: bytes.max(1).next_multiple_of(BS_UNIT_BYTES), ..self }
    }

    /// Sets the number of buffers for direct reads; 8 by default, at least 2. The caller uses one
    /// of them, and the others are for read-ahead.
    pub fn iodepth(self, iodepth: u32) -> ReaderOptions {
        ReaderOptions { iodepth: iodepth.clamp(2, Options::IODEPTH_MAX), ..self }
    }

    /// Reads by the method of the disk's engine ([`Options`]) or, if the disk is simulated, from
    /// that disk. The reader has its own engine and buffers.
    pub fn on(self, disk: &Disk) -> ReaderOptions {
        ReaderOptions { disk: Some(disk.clone()), ..self }
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's message; [`Error::Refused`] for a folder. If io_uring or
    /// `O_DIRECT` is refused, that is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader, Error> {
        Reader::open_by(self, path.as_ref())
    }

    /// Reads a file that the caller opened, from its current position. `Reader::from` does the same
    /// with the default options. A folder or a write-only file fails at the first read.
    pub fn from_file(self, file: File) -> Reader {
        Reader::of_file(self, file)
    }
}
