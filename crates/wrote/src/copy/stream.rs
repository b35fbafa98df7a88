//! Bytes on their way: many reads and writes in flight together, in constant memory.
//!
//! A buffer is read into, then written from, then free for the next piece. Pieces overtake each
//! other, but for a checksum, which wants them in order.

use super::checksum::Checksum;
use super::extents::Extents;
use super::progress::Progress;
use crate::buffer::Buffer;
use crate::{Action, Completion, Engine, Error, FileId, Op};
use slab::Slab;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Zeros of a hole that are put into a checksum before it is told how far that has come.
const ZEROS_BYTES_MAX: u64 = 64 << 20;

/// An open file, and what the user calls it.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub file: FileId,
    pub named: &'a Path,
}

impl End<'_> {
    pub(super) fn shorter(&self) -> Error {
        let because = "became shorter while it was copied".into();
        Error::Differs { path: self.named.to_owned(), because }
    }

    /// An error that the kernel gave when it was asked where the data is.
    pub(super) fn seek_failed(&self, errno: rustix::io::Errno) -> Error {
        Error::file(self.named, Action::Examine, None, &errno.into())
    }
}

/// How a file's bytes are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The file's length.
    pub len: u64,
    /// Pieces begin at multiples of this.
    pub block_bytes: u64,
    /// The longest piece, a multiple of the block.
    pub piece_bytes: u64,
}

impl Cut {
    /// Pieces for the files of a copy, as long as the engine's buffers and `bs_bytes` allow.
    pub(crate) fn new(
        engine: &Engine,
        files: &[FileId],
        len: u64,
        bs_bytes: usize,
    ) -> Result<Cut, Error> {
        // A page at least: most file systems allocate in pages, and a block that is written in two
        // parts costs more than one.
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
        Ok(Cut { len, block_bytes, piece_bytes })
    }
}

/// Copies the data of `source` to the same places of `target`, holes left out.
///
/// # Errors
///
/// With the kernel's words; [`Error::Differs`] where the source became shorter.
pub(crate) fn copy_data(
    engine: &mut Engine,
    source: End,
    target: End,
    cut: Cut,
    checksum: Option<&mut Checksum>,
    progress: &mut Progress,
) -> Result<(), Error> {
    Stream::new(engine, source, Some(target), cut, checksum, progress).run()
}

/// The checksum of a file's bytes.
///
/// # Errors
///
/// Those of [`copy_data`].
pub(crate) fn checksum_of(
    engine: &mut Engine,
    file: End,
    cut: Cut,
    progress: &mut Progress,
) -> Result<u128, Error> {
    let mut checksum = Checksum::default();
    Stream::new(engine, file, None, cut, Some(&mut checksum), progress).run()?;
    Ok(checksum.value())
}

/// A part of the file that fits into a buffer.
#[derive(Clone, Copy)]
struct Piece {
    /// In the order of the file, from 0.
    number: u64,
    offset: u64,
    len: u64,
    /// Bytes of the hole before it.
    hole_bytes: u64,
}

/// What is in flight for a piece.
enum Flight {
    Read(Piece),
    Write { bytes: u64 },
}

struct Stream<'a, 'w> {
    engine: &'a mut Engine,
    source: End<'a>,
    target: Option<End<'a>>,
    cut: Cut,
    checksum: Option<&'a mut Checksum>,
    progress: &'a mut Progress<'w>,
    extents: Extents,
    /// What is left of the extent that is being read.
    extent: Range<u64>,
    /// Pieces that were begun, which is the number of the next.
    begun: u64,
    /// The end of the last piece that was begun.
    begun_bytes: u64,
    in_flight: Slab<Flight>,
    /// Pieces that were read before one that comes before them.
    early: BTreeMap<u64, (Piece, Buffer)>,
    /// The number of the next piece for the checksum.
    next: u64,
}

impl<'a, 'w> Stream<'a, 'w> {
    fn new(
        engine: &'a mut Engine,
        source: End<'a>,
        target: Option<End<'a>>,
        cut: Cut,
        checksum: Option<&'a mut Checksum>,
        progress: &'a mut Progress<'w>,
    ) -> Stream<'a, 'w> {
        Stream {
            engine,
            source,
            target,
            cut,
            checksum,
            progress,
            extents: Extents::new(cut.len, cut.block_bytes),
            extent: 0..0,
            begun: 0,
            begun_bytes: 0,
            in_flight: Slab::new(),
            early: BTreeMap::new(),
            next: 0,
        }
    }

    fn run(mut self) -> Result<(), Error> {
        let moved = self.move_all();
        if moved.is_err() {
            // What is in flight ends here, and the error is the one to tell of.
            let _ = self.engine.drain();
        }
        moved
    }

    fn move_all(&mut self) -> Result<(), Error> {
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
        self.pass_hole(self.cut.len - self.begun_bytes)
    }

    /// Reads while there is a buffer and something to read.
    fn read_ahead(&mut self) -> Result<(), Error> {
        while !self.engine.is_full()
            && let Some(mut buffer) = self.engine.pool().lease()
            && let Some(piece) = self.next_piece()?
        {
            let source = self.source.file;
            let align = u64::from(self.engine.align_bytes(source));
            buffer.set_len(piece.len.next_multiple_of(align) as usize);
            let flight = self.in_flight.insert(Flight::Read(piece));
            let read = Op::Read { file: source, offset: piece.offset, buffer };
            self.engine.queue(flight as u64, read);
        }
        Ok(())
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        if self.extent.is_empty() {
            let found = self.extents.next(self.engine.descriptor(self.source.file));
            match found.map_err(|errno| self.source.seek_failed(errno))? {
                Some(extent) => self.extent = extent,
                None => return Ok(None),
            }
        }
        let offset = self.extent.start;
        let len = self.cut.piece_bytes.min(self.extent.end - offset);
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
                let target = self.target.expect("there is one to write to");
                completion.result.map_err(|error| error.about(target.named))?;
                self.progress.add(bytes)
            }
            Flight::Read(piece) => {
                let found = completion.result.map_err(|error| error.about(self.source.named))?;
                if (found as u64) < piece.len {
                    return Err(self.source.shorter());
                }
                self.was_read(piece, completion.buffer.expect("of a read"))
            }
        }
    }

    fn was_read(&mut self, piece: Piece, buffer: Buffer) -> Result<(), Error> {
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

    fn hand_on(&mut self, piece: Piece, mut buffer: Buffer) -> Result<(), Error> {
        self.pass_hole(piece.hole_bytes)?;
        let len = piece.len as usize;
        if let Some(checksum) = &mut self.checksum {
            checksum.add(&buffer[..len]);
        }
        let Some(End { file, .. }) = self.target else { return self.progress.add(piece.len) };
        // Only the file's end is no whole block: it is cut to its length when all is written.
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
            checksum.add_zeros(zeros);
            left -= zeros;
            self.progress.add(zeros)?;
        }
        Ok(())
    }
}
