//! `Writer`: a `std::io::Write` at the device's speed.

mod options;
mod stream;

pub use options::WriterOptions;

use crate::{Effective, Error};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;
use stream::Stream;

/// Writes a file in the background: in place of `BufWriter<File>`.
///
/// What is written goes into a few buffers of its own, and from there to the file behind the caller's
/// back: past the page cache where the file system can (`O_DIRECT`), through it where not. It uses
/// the memory of those buffers, whatever the file's size (W8).
///
/// ```
/// use std::io::Write;
/// use wrote::Writer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers");
/// let mut writer = Writer::create(&path)?;
/// for number in 0..1_000_000 {
///     writeln!(writer, "{number}")?;
/// }
/// let written = writer.finish()?; // on stable storage, with its name
/// println!("{} bytes in {:?}", written.bytes, written.elapsed);
/// # assert_eq!(std::fs::metadata(&path)?.len(), written.bytes);
/// # Ok(())
/// # }
/// ```
///
/// # What survives
///
/// | after | what was written before survives |
/// |---|---|
/// | a write, [`Write::flush`] | nothing: it may still be in this process's memory |
/// | [`Writer::close`] | a crash of the process |
/// | [`Writer::sync_data`], [`Writer::finish`] | a power loss, of a new file with its name |
///
/// [`WriterOptions::sync`] calls [`Writer::sync_data`] by itself. The block of the disk that holds the
/// end of what was synced is written again when it fills: as of any file that is appended to, those
/// bytes are safe as long as the disk writes a sector whole or not at all.
///
/// A crash without any of these leaves any part of the file, and the file may be longer than what was
/// written, by zeros: a long file is extended ahead of the writes, since a direct write that extends
/// its file waits for all others (ext4).
///
/// # Errors
///
/// What goes wrong in the background is told by the next call, and by every call after it (W2):
/// nothing is tried again, and nothing more is written. Of a full disk what was written until then
/// stays.
///
/// Dropping a `Writer` does what [`Writer::finish`] does; what went wrong can then only be logged
/// (crate `log`, level error).
///
/// # Cost
///
/// Opening and closing one costs a ring and its buffers, some 0.3 ms. For a file of a few kilobytes
/// [`crate::write`] is the better tool: it is atomic, too.
pub struct Writer {
    /// Where the next byte goes, and where the last byte of the buffer does, which is left to the slow
    /// path: a full buffer is handed on at once. The two are the same where every write must be
    /// looked at: after an error, and when writes sync by themselves.
    next: *mut u8,
    last: *mut u8,
    stream: Stream,
}

// SAFETY: what is not `Send` in here is the pointers, which lead into the buffer that `stream` has
// leased, and the counted references between the engine, its pool and that buffer: all of them are
// inside, none is handed out, so they move together. The engine is made for callers of any thread.
unsafe impl Send for Writer {}

/// What a [`Writer`] has written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The file's length.
    pub bytes: u64,
    /// From the opening to the end.
    pub elapsed: Duration,
    /// Whether the file was written past the page cache to the end.
    pub direct: bool,
    /// Whether the file, with its name, is on stable storage, as far as its file system and device
    /// keep what they promise: [`crate::device::Target::flushes_reach_device`].
    pub durable: bool,
    /// What was in effect, and what was not to be had.
    pub effective: Effective,
}

impl Writer {
    /// Makes the file, or cuts what is there to nothing, as [`std::fs::File::create`] does.
    ///
    /// # Errors
    ///
    /// With the kernel's words.
    pub fn create(path: impl AsRef<Path>) -> Result<Writer, Error> {
        Writer::options().open(path)
    }

    /// What may be asked of a `Writer`, as a builder.
    pub fn options() -> WriterOptions {
        WriterOptions::new()
    }

    fn new(stream: Stream) -> Writer {
        let mut writer = Writer { next: std::ptr::null_mut(), last: std::ptr::null_mut(), stream };
        writer.take_room();
        writer
    }

    /// Takes everything that the reader gives, straight into the buffers, and tells how much that
    /// was.
    ///
    /// # Errors
    ///
    /// The reader's, or those of a write. What was read until then is written.
    pub fn read_from(&mut self, mut reader: impl Read) -> io::Result<u64> {
        let mut total = 0;
        loop {
            self.give_room_back();
            let result = self.stream.room().map_err(io::Error::from).and_then(|room| {
                let len = reader.read(room)?;
                assert!(len <= room.len(), "a reader gives no more than it was asked for");
                Ok(len)
            });
            let result = result.and_then(|len| {
                self.stream.fill(len)?;
                Ok(len)
            });
            self.take_room();
            match result {
                Ok(0) => return Ok(total),
                Ok(len) => total += len as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes what was written so far survive a power loss; of a file that was made, its name too.
    ///
    /// # Errors
    ///
    /// With the kernel's words, and for ever after (W2).
    pub fn sync_data(&mut self) -> Result<(), Error> {
        self.on_stream(Stream::sync_data)
    }

    /// Writes what is left and closes the file, which then survives a power loss.
    ///
    /// # Errors
    ///
    /// Any since the opening.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.on_stream(|stream| stream.end(true))
    }

    /// Writes what is left and closes the file, without a flush: it survives a crash of the process.
    ///
    /// # Errors
    ///
    /// Any since the opening.
    pub fn close(mut self) -> Result<Written, Error> {
        self.on_stream(|stream| stream.end(false))
    }

    /// What is in effect, and what was not to be had.
    pub fn effective(&self) -> &Effective {
        self.stream.effective()
    }

    /// The slow path of a write: the buffer is full, or someone must look.
    #[cold]
    #[inline(never)]
    fn write_slowly(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.on_stream(|stream| stream.write(bytes))?)
    }

    /// The same for one byte, by value: a caller's loop that writes single bytes then need not keep
    /// each of them in memory just for this.
    #[cold]
    #[inline(never)]
    fn write_byte_slowly(&mut self, byte: u8) -> io::Result<()> {
        self.write_slowly(&[byte])
    }

    /// Does something with the stream, which meanwhile knows how full its buffer is.
    fn on_stream<T>(&mut self, act: impl FnOnce(&mut Stream) -> T) -> T {
        self.give_room_back();
        let result = act(&mut self.stream);
        self.take_room();
        result
    }

    fn give_room_back(&mut self) {
        self.stream.set_next(self.next);
    }

    fn take_room(&mut self) {
        (self.next, self.last) = self.stream.free_room();
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
        if bytes.len() <= self.last as usize - self.next as usize {
            // SAFETY: there is room for so much from `next` on to `last`, which lie in one buffer that
            // is leased to the stream; nobody else has a reference to it between two calls.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, bytes.len());
                self.next = self.next.add(bytes.len());
            }
            return Ok(());
        }
        match bytes {
            &[byte] => self.write_byte_slowly(byte),
            bytes => self.write_slowly(bytes),
        }
    }

    /// Hands over what is whole: every byte through the page cache, whole blocks where the file is
    /// direct. Does not wait, and makes nothing durable: [`Writer::sync_data`] does.
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.on_stream(Stream::flush)?)
    }
}

/// A seek waits for what is in flight. Where it leads into a block, that block is read, so that what
/// is written next leaves the rest of it as it is: good for a header that is filled in at the end, not
/// for writes in random order ([`crate::DirectFile`]).
impl Seek for Writer {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.on_stream(|stream| {
            let place = match to {
                SeekFrom::Start(place) => Some(place),
                SeekFrom::Current(by) => stream.position().checked_add_signed(by),
                SeekFrom::End(by) => stream.len().checked_add_signed(by),
            };
            // No file reaches further (`lseek(2)`, EINVAL); to ask is no failure of this one.
            let place = place.filter(|&place| place <= i64::MAX as u64);
            let place = place.ok_or(io::ErrorKind::InvalidInput)?;
            stream.seek(place)?;
            Ok(place)
        })
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.on_stream(|stream| stream.position()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.stream.is_open() {
            let result = self.on_stream(|stream| stream.end(true));
            if let Err(error) = result {
                log::error!("a file is not whole and its Writer was dropped: {error}");
            }
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("stream", &self.stream).finish_non_exhaustive()
    }
}
