//! Transfers a file's bytes with many reads and writes in flight, in constant memory.
//!
//! A piece is read into a buffer and written from it, which frees the buffer for the next piece.
//! Pieces may overtake each other, unless a checksum needs them in order.

use super::checksum::{Checksum, add_zeros};
use super::extents::Extents;
use crate::buffer::Buffer;
use crate::engine::Op;
use crate::error::Tried;
use crate::progress::Watcher;
use crate::{Action, Completion, Engine, Error, FileId};
use rustix::fs::{Advice, fadvise};
use slab::Slab;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The zeros of a hole that a checksum processes between progress reports.
const ZEROS_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceSizes {
    pub len: u64,
    /// Pieces begin at multiples of this.
    pub block_bytes: u64,
    /// The longest piece, a multiple of the block.
    pub piece_bytes: u64,
}

impl PieceSizes {
    /// Returns sizes for a copy's files, as large as the engine's buffers and `bs_bytes` allow.
    pub(crate) fn new(
        engine: &Engine,
        files: &[FileId],
        len: u64,
        bs_bytes: usize,
    ) -> Result<PieceSizes, Error> {
        // At least a page: most file systems allocate in pages, and writing a block in two parts
        // costs more.
        let page_bytes = rustix::param::page_size() as u64;
        let aligns = files.iter().map(|&file| u64::from(engine.align_bytes(file)));
        let block_bytes = aligns.max().unwrap_or(1).max(page_bytes);
        let longest = engine.pool().buffer_bytes() as u64;
        let piece_bytes = (bs_bytes as u64).max(block_bytes).min(longest);
        let piece_bytes = piece_bytes - piece_bytes % block_bytes;
        if piece_bytes == 0 {
            let what = "copying: the engine's buffers are shorter than a block";
            return Err(Error::Engine { what, errno: libc::EINVAL });
        }
        Ok(PieceSizes { len, block_bytes, piece_bytes })
    }
}

pub(crate) fn source_shrank(engine: &Engine, source: FileId) -> Error {
    shrank(engine.path(source))
}

pub(super) fn shrank(path: &Path) -> Error {
    let because = "became shorter while it was copied".into();
    Error::Differs { path: path.to_owned(), because }
}

/// Allocates space in `target` for the data of `source`, to detect a full disk before anything is
/// copied. Returns `false` if the file system can't allocate.
///
/// ext4 performs direct writes into allocated blocks concurrently, while writes that allocate wait
/// for each other.
pub(super) fn allocate(
    engine: &mut Engine,
    source: FileId,
    target: FileId,
    sizes: PieceSizes,
    progress: &mut Watcher,
) -> Result<bool, Error> {
    let mut extents = Extents::new(sizes.len, sizes.block_bytes);
    let mut allocate_all = || {
        while let Some(extent) = next_extent(engine, source, &mut extents)? {
            let len = extent.end.next_multiple_of(sizes.block_bytes) - extent.start;
            engine.queue(0, Op::Fallocate { file: target, offset: extent.start, len });
            engine.reap_results(engine.is_full().into())?;
            // A file may have too many extents to allocate in a second.
            progress.add(0)?;
        }
        engine.drain()
    };
    let allocated = allocate_all();
    if allocated.is_err() {
        // Report the first error.
        let _ = engine.drain();
    }
    match allocated {
        Err(error) if matches!(error.errno(), libc::EOPNOTSUPP | libc::ENOSYS) => Ok(false),
        allocated => allocated.map(|()| true),
    }
}

fn next_extent(
    engine: &Engine,
    source: FileId,
    extents: &mut Extents,
) -> Result<Option<Range<u64>>, Error> {
    extents.next(engine.descriptor(source)).tried(engine.path(source), Action::Examine)
}

/// Copies the data of `source` to the same offsets of `target`, if there is one, skipping holes.
/// Fails with [`Error::Differs`] if the source was shortened.
pub(crate) fn copy_data(
    engine: &mut Engine,
    source: FileId,
    target: Option<FileId>,
    sizes: PieceSizes,
    checksum: Option<&mut Checksum>,
    progress: &mut Watcher,
) -> Result<(), Error> {
    let mover = PieceMover {
        engine,
        source,
        target,
        sizes,
        checksum,
        progress,
        extents: Extents::new(sizes.len, sizes.block_bytes),
        extent: 0..0,
        begun: 0,
        begun_bytes: 0,
        in_flight: Slab::new(),
        early: BTreeMap::new(),
        next: 0,
    };
    mover.run()
}

pub(crate) fn checksum_of(
    engine: &mut Engine,
    file: FileId,
    sizes: PieceSizes,
    progress: &mut Watcher,
) -> Result<u128, Error> {
    let mut checksum = Checksum::default();
    copy_data(engine, file, None, sizes, Some(&mut checksum), progress)?;
    Ok(checksum.digest128())
}

/// Reads the file back from the disk and compares its checksum with `wanted`.
///
/// Reads are direct if the file system supports that. Otherwise the file's pages are first dropped
/// from the page cache, after a flush, because dirty pages are not dropped (`posix_fadvise(2)`).
/// Fails with [`Error::Differs`] if the checksums differ.
pub(crate) fn read_back(
    engine: &mut Engine,
    file: FileId,
    sizes: PieceSizes,
    wanted: u128,
    progress: &mut Watcher,
) -> Result<(), Error> {
    engine.flush(file)?;
    if let Some(descriptor) = engine.descriptor(file) {
        // A tmpfs drops nothing: its files exist only in memory.
        let _ = fadvise(descriptor, 0, None, Advice::DontNeed);
    }
    let found = checksum_of(engine, file, sizes, progress)?;
    if found == wanted {
        return Ok(());
    }
    let because = format!(
        "was read back otherwise than it was written: XXH3 {found:032x}, not {wanted:032x}"
    );
    Err(Error::Differs { path: engine.path(file).to_owned(), because })
}

/// A part of the file that fits into a buffer.
#[derive(Clone, Copy)]
struct Piece {
    /// Its number in file order, from 0.
    number: u64,
    offset: u64,
    len: u64,
    hole_bytes: u64,
}

enum Flight {
    Read(Piece),
    Write { bytes: u64 },
}

struct PieceMover<'a, 'w> {
    engine: &'a mut Engine,
    source: FileId,
    target: Option<FileId>,
    sizes: PieceSizes,
    checksum: Option<&'a mut Checksum>,
    progress: &'a mut Watcher<'w>,
    extents: Extents,
    /// The rest of the extent being read.
    extent: Range<u64>,
    /// The number of the next piece to start.
    begun: u64,
    /// The end of the last piece that was started.
    begun_bytes: u64,
    in_flight: Slab<Flight>,
    /// Pieces that were read before an earlier one.
    early: BTreeMap<u64, (Piece, Buffer)>,
    /// The next piece for the checksum.
    next: u64,
}

impl PieceMover<'_, '_> {
    fn run(mut self) -> Result<(), Error> {
        let mut completions = Vec::new();
        loop {
            self.read_ahead()?;
            if self.engine.outstanding() == 0 {
                break;
            }
            self.engine.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                self.completed(completion)?;
            }
        }
        debug_assert!(self.early.is_empty() && self.in_flight.is_empty());
        self.pass_hole(self.sizes.len - self.begun_bytes)
    }

    /// Starts reads while there are free buffers and pieces.
    fn read_ahead(&mut self) -> Result<(), Error> {
        while !self.engine.is_full()
            && let Some(mut buffer) = self.engine.pool().lease()
            && let Some(piece) = self.next_piece()?
        {
            let align = u64::from(self.engine.align_bytes(self.source));
            buffer.set_len(piece.len.next_multiple_of(align) as usize);
            let flight = self.in_flight.insert(Flight::Read(piece));
            let read = Op::Read { file: self.source, offset: piece.offset, buffer };
            self.engine.queue(flight as u64, read);
        }
        Ok(())
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        if self.extent.is_empty() {
            match next_extent(self.engine, self.source, &mut self.extents)? {
                Some(extent) => self.extent = extent,
                None => return Ok(None),
            }
        }
        let offset = self.extent.start;
        let len = self.sizes.piece_bytes.min(self.extent.end - offset);
        let hole_bytes = offset - self.begun_bytes;
        let piece = Piece { number: self.begun, offset, len, hole_bytes };
        self.extent.start += len;
        self.begun += 1;
        self.begun_bytes = offset + len;
        Ok(Some(piece))
    }

    fn completed(&mut self, completion: Completion) -> Result<(), Error> {
        match self.in_flight.remove(completion.user_data as usize) {
            Flight::Write { bytes } => {
                completion.result?;
                self.progress.add(bytes)
            }
            Flight::Read(piece) => {
                if (completion.result? as u64) < piece.len {
                    return Err(source_shrank(self.engine, self.source));
                }
                let buffer = completion.buffer.expect("of a read");
                if self.checksum.is_none() {
                    return self.hand_on(piece, buffer);
                }
                self.early.insert(piece.number, (piece, buffer));
                while let Some((piece, buffer)) = self.early.remove(&self.next) {
                    self.next += 1;
                    self.hand_on(piece, buffer)?;
                }
                Ok(())
            }
        }
    }

    fn hand_on(&mut self, piece: Piece, mut buffer: Buffer) -> Result<(), Error> {
        self.pass_hole(piece.hole_bytes)?;
        let len = piece.len as usize;
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&buffer[..len]);
        }
        let Some(file) = self.target else { return self.progress.add(piece.len) };
        // Pads the last block, which is cut when everything is written.
        let whole = len.next_multiple_of(self.engine.align_bytes(file) as usize);
        buffer.set_len(whole);
        buffer[len..].fill(0);
        let flight = self.in_flight.insert(Flight::Write { bytes: piece.len });
        let write = Op::Write { file, offset: piece.offset, buffer, durable: false };
        self.engine.queue(flight as u64, write);
        Ok(())
    }

    fn pass_hole(&mut self, bytes: u64) -> Result<(), Error> {
        let Some(checksum) = &mut self.checksum else {
            return if bytes == 0 { Ok(()) } else { self.progress.add(bytes) };
        };
        let mut left = bytes;
        while left > 0 {
            let zeros = left.min(ZEROS_BYTES_MAX);
            add_zeros(checksum, zeros);
            left -= zeros;
            self.progress.add(zeros)?;
        }
        Ok(())
    }
}
