//! Options of a `Reader`.

use crate::engine::Options;
use crate::{Disk, Ioengine};

/// Buffers are whole pages: every file takes direct transfers of these.
const BS_UNIT_BYTES: usize = 4096;

/// Options of a [`Reader`](crate::Reader), which [`ReaderOptions::open`] opens.
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
    pub(super) direct: bool,
    pub(super) bs_bytes: usize,
    pub(super) iodepth: u32,
    pub(super) ioengine: Ioengine,
    /// The disk whose engine and memory it shares.
    pub(super) disk: Option<Disk>,
}

impl Default for ReaderOptions {
    /// A few long transfers keep a device busy.
    fn default() -> ReaderOptions {
        let ioengine = Ioengine::IoUring;
        ReaderOptions { direct: true, bs_bytes: 1 << 20, iodepth: 8, ioengine, disk: None }
    }
}

impl ReaderOptions {
    /// Sets whether the page cache is bypassed if it does not hold the file; true by default.
    /// Otherwise the file is in the cache afterwards, for the next reader.
    pub fn direct(self, direct: bool) -> ReaderOptions {
        ReaderOptions { direct, ..self }
    }

    /// Sets the bytes of one direct read, and of one buffer; 1 MiB by default. Rounded up to a
    /// multiple of 4096.
    pub fn bs(self, bytes: usize) -> ReaderOptions {
        ReaderOptions { bs_bytes: bytes.max(1).next_multiple_of(BS_UNIT_BYTES), ..self }
    }

    /// Sets the number of buffers of direct reads; 8 by default, at least 2. The caller uses one,
    /// and the others are read ahead.
    pub fn iodepth(self, iodepth: u32) -> ReaderOptions {
        ReaderOptions { iodepth: iodepth.clamp(2, Options::IODEPTH_MAX), ..self }
    }

    /// Shares a disk's engine and memory with its files, `Writer`s and other `Reader`s, instead of
    /// creating a ring and buffers.
    ///
    /// This suits many `Reader`s at once. Each starts with 8 KiB of [`Disk::set_memory`], and can't
    /// be opened ([`Error::Refused`](crate::Error::Refused)) if these do not fit. Later it takes
    /// more, at most a quarter of what is left:
    ///
    /// - up to 128 KiB, for longer reads through the page cache;
    /// - instead of these, to read directly, the buffers of [`ReaderOptions::bs`] and
    ///   [`ReaderOptions::iodepth`], or repeatedly halved ones down to 128 KiB. They are returned
    ///   when it reads through the cache again: at the end of the file, after a seek, in a cached
    ///   part.
    ///
    /// If the memory has no room for these, it reads through the cache, which is recorded in
    /// [`Reader::effective`](crate::Reader::effective), and checks again after some 8 MiB. No
    /// `Reader` waits for another's memory. The chunks of an `AsyncReader` are not counted.
    ///
    /// ```
    /// use std::io::{BufRead, Read};
    /// use wrote::engine::Options;
    /// use wrote::{Disk, Ioengine, Reader};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// # for number in 0..100 {
    /// #     std::fs::write(folder.join(number.to_string()), format!("{number}\n"))?;
    /// # }
    /// let disk = Disk::open(&Options::new(Ioengine::IoUring, 32, 64 << 10))?;
    /// let open = |number: u32| {
    ///     Reader::options().on(&disk).open(folder.join(number.to_string()))
    /// };
    /// let mut readers = (0..100).map(open).collect::<Result<Vec<Reader>, _>>()?;
    /// let mut sum = 0;
    /// for reader in &mut readers {
    ///     let mut line = String::new();
    ///     reader.read_line(&mut line)?;
    ///     sum += line.trim().parse::<u32>()?;
    /// }
    /// assert_eq!(sum, 4950);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(self, disk: &Disk) -> ReaderOptions {
        ReaderOptions { disk: Some(disk.clone()), ..self }
    }
}
