//! Transfers a file's bytes with many reads and writes in flight, in constant memory.
//!
//! A piece is read into a buffer and then written from it. The buffer is then free for the next
//! piece. Pieces may overtake each other, unless a checksum needs them in order.

use crate::buffer::Buffer;
use crate::engine::Op;
use crate::error::Tried;
use crate::progress::Watcher;
use crate::{Action, Completion, Engine, Error, FileId};
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;
use slab::Slab;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// The maximum number of a hole's zeros that a checksum processes between progress reports.
const ZEROS_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct PieceSizes {
    pub len: u64,
    /// The unit of the pieces, in bytes: each piece begins at a multiple of it.
    pub block_bytes: u64,
    /// The maximum length of a piece, in bytes; a multiple of `block_bytes`.
    pub piece_bytes: u64,
}

impl PieceSizes {
    /// Returns the sizes for copying these files. Pieces are as large as the engine's buffers and
    /// `bs_bytes` allow.
    pub(super) fn new(
        engine: &Engine,
        files: &[FileId],
        len: u64,
        bs_bytes: usize,
    ) -> Result<PieceSizes, Error> {
        // A block is at least a page: most file systems allocate in pages, and writing a block in
        // two parts costs more.
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

pub(super) fn source_shrank(engine: &Engine, source: FileId) -> Error {
    let because = "became shorter while it was copied".into();
    Error::Differs { path: engine.path(source).to_owned(), because }
}

/// Allocates space in `target` for the data of `source`, to detect a full disk before anything is
/// copied. Returns `false` if the file system can't allocate.
///
/// ext4 performs direct writes into allocated blocks concurrently, while writes that have to
/// allocate wait for each other.
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
            // Allocating may take longer than a second if a file has very many extents.
            progress.add(0)?;
        }
        engine.drain()
    };
    let allocated = allocate_all();
    if allocated.is_err() {
        // A further error is ignored, because the first one is reported.
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

/// Copies the data of `source`, skipping holes, to the same offsets of `target`, if there is one.
/// Fails with [`Error::Differs`] if the source was truncated.
pub(super) fn copy_data(
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

pub(super) fn checksum_of(
    engine: &mut Engine,
    file: FileId,
    sizes: PieceSizes,
    progress: &mut Watcher,
) -> Result<u128, Error> {
    let mut checksum = Checksum::default();
    copy_data(engine, file, None, sizes, Some(&mut checksum), progress)?;
    Ok(checksum.digest128())
}

/// Reads the file back from the disk, and compares its checksum with `wanted`.
///
/// Reads are direct if the file system supports that. Otherwise, the file is flushed and its pages
/// are dropped from the page cache first; without the flush, dirty pages would not be dropped
/// (`posix_fadvise(2)`). Fails with [`Error::Differs`] if the checksums differ.
pub(super) fn read_back(
    engine: &mut Engine,
    file: FileId,
    sizes: PieceSizes,
    wanted: u128,
    progress: &mut Watcher,
) -> Result<(), Error> {
    engine.flush(file)?;
    if let Some(descriptor) = engine.descriptor(file) {
        // tmpfs drops nothing, because its files exist only in memory.
        let _ = fadvise(descriptor, 0, None, Advice::DontNeed);
    }
    let found = checksum_of(engine, file, sizes, progress)?;
    if found == wanted {
        return Ok(());
    }
    let because = format!("differs when read back: XXH3 {found:032x} instead of {wanted:032x}");
    Err(Error::Differs { path: engine.path(file).to_owned(), because })
}

/// A part of the file that fits into a buffer.
#[derive(Clone, Copy)]
struct Piece {
    /// The number of the piece in file order, from 0.
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
    /// The remaining part of the extent that is being read.
    extent: Range<u64>,
    /// The number of the next piece to start.
    begun: u64,
    /// The end of the most recently started piece.
    begun_bytes: u64,
    in_flight: Slab<Flight>,
    /// The pieces that have been read before a preceding piece of the file.
    early: BTreeMap<u64, (Piece, Buffer)>,
    /// The number of the next piece for the checksum.
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

    /// Starts reads as long as there are free buffers and pieces.
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
        // Pads the last block. The padding is truncated once everything has been written.
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

/// The data extents of a file's first `len` bytes.
/// The extents are found one by one, because a list of them would be unbounded (W8). Each is
/// extended to whole blocks, but not beyond the file's end, and they never overlap.
#[derive(Debug)]
pub(super) struct Extents {
    len: u64,
    block_bytes: u64,
    /// The offset at which the next search starts. Everything before it has been returned or is a
    /// hole.
    next: u64,
}

impl Extents {
    pub(super) fn new(len: u64, block_bytes: u64) -> Extents {
        Extents { len, block_bytes, next: 0 }
    }

    /// Returns the next extent, if any. If holes can't be found, because there is no descriptor or
    /// the file system does not support `SEEK_DATA` (`lseek(2)`, EINVAL), that is the whole rest of
    /// the file.
    pub(super) fn next(&mut self, file: Option<BorrowedFd>) -> Result<Option<Range<u64>>, Errno> {
        let found = match file {
            _ if self.next >= self.len => None,
            Some(file) => self.seek(file)?,
            None => Some(self.next..self.len),
        };
        self.next = found.as_ref().map_or(self.len, |extent| extent.end);
        Ok(found)
    }

    fn seek(&self, file: BorrowedFd) -> Result<Option<Range<u64>>, Errno> {
        let data = match seek(file, SeekFrom::Data(self.next)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(self.next..self.len)),
            Err(errno) => return Err(errno),
        };
        let start = (data - data % self.block_bytes).max(self.next);
        if start >= self.len {
            return Ok(None);
        }
        let hole = match seek(file, SeekFrom::Hole(data)) {
            Ok(hole) => hole,
            // The file was truncated between the two calls; a read will detect that.
            Err(Errno::NXIO) => self.len,
            Err(errno) => return Err(errno),
        };
        let end = hole.checked_next_multiple_of(self.block_bytes).unwrap_or(self.len);
        Ok(Some(start..end.min(self.len)))
    }
}

/// XXH3 detects accidental damage at memory speed. It does not protect against deliberate
/// collisions.
pub(super) use xxhash_rust::xxh3::Xxh3 as Checksum;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Adds `count` zeros, the content of a hole.
fn add_zeros(checksum: &mut Checksum, count: u64) {
    let piece = ZEROS.len() as u64;
    for _ in 0..count / piece {
        checksum.update(&ZEROS);
    }
    checksum.update(&ZEROS[..(count % piece) as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const BLOCK_BYTES: u64 = 64 << 10;

    fn all(file: Option<&File>, len: u64) -> Vec<Range<u64>> {
        let mut extents = Extents::new(len, BLOCK_BYTES);
        std::iter::from_fn(|| extents.next(file.map(AsFd::as_fd)).unwrap()).collect()
    }

    /// Creates a file with a few bytes of data at each of these offsets.
    fn file_with_data_at(places: &[u64], len: u64) -> File {
        // The file is in the build folder, which is usually on a disk.
        let program = std::env::current_exe().unwrap();
        let file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        file.set_len(len).unwrap();
        places.iter().for_each(|&place| file.write_all_at(b"data", place).unwrap());
        file
    }

    #[test]
    fn extents_hold_all_data_in_order_in_whole_blocks_and_do_not_overlap() {
        let len = 64 * BLOCK_BYTES + 77;
        let places = [5, BLOCK_BYTES - 2, 9 * BLOCK_BYTES + 9000, 40 * BLOCK_BYTES, len - 4];
        let file = file_with_data_at(&places, len);
        let extents = all(Some(&file), len);
        let holds = |place: u64| extents.iter().any(|extent| extent.contains(&place));
        assert!(places.iter().all(|&place| holds(place) && holds(place + 3)), "{extents:?}");
        assert!(extents.windows(2).all(|two| two[0].end <= two[1].start), "{extents:?}");
        let whole = |at: u64| at.is_multiple_of(BLOCK_BYTES) || at == len;
        assert!(extents.iter().all(|extent| whole(extent.start) && whole(extent.end)));
    }

    #[test]
    fn a_file_of_a_hole_has_no_extent_where_the_file_system_knows_holes() {
        let file = file_with_data_at(&[], 10 * BLOCK_BYTES);
        if seek(&file, SeekFrom::Data(0)) != Err(Errno::NXIO) {
            return fixtures::skip("a_file_of_a_hole_has_no_extent", "no SEEK_DATA here");
        }
        assert_eq!(all(Some(&file), 10 * BLOCK_BYTES), []);
    }

    #[test]
    fn without_a_descriptor_everything_is_data() {
        assert!(matches!(&all(None, 1000)[..], [Range { start: 0, end: 1000 }]));
        assert_eq!(all(None, 0), []);
    }

    #[test]
    fn bytes_added_after_the_beginning_are_left_out() {
        let file = file_with_data_at(&[0, 5 * BLOCK_BYTES], 6 * BLOCK_BYTES);
        let extents = all(Some(&file), 1000);
        assert!(matches!(&extents[..], [Range { start: 0, end: 1000 }]), "{extents:?}");
    }

    #[test]
    fn the_checksum_is_that_of_the_whole_and_a_hole_is_zeros() {
        let zeros = 3 * ZEROS.len() + 17;
        let whole = [&b"before"[..], &vec![0; zeros], b"after"].concat();
        let mut checksum = Checksum::default();
        checksum.update(b"bef");
        checksum.update(b"ore");
        add_zeros(&mut checksum, zeros as u64);
        checksum.update(b"after");
        assert_eq!(checksum.digest128(), xxhash_rust::xxh3::xxh3_128(&whole));
    }

    #[test]
    fn the_checksum_of_nothing_is_the_one_that_others_give() {
        // XXH128 of empty input, as printed by `xxhsum -H2`.
        assert_eq!(Checksum::default().digest128(), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }
}
