//! Writing what a job is going to read: random data, in large pieces, flushed.

use crate::buffers;
use crate::data::Data;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use wrote::engine::{Op, Options};
use wrote::{Engine, FileOptions, Ioengine};
use wrote_result::{Error, Stop};

const PIECE_BYTES: usize = 1 << 20;
const IODEPTH: u32 = 8;

/// Writes what is not yet written of `range`, and flushes it. The file is the run's own; `file` is
/// open on it.
pub fn lay_out(path: &Path, file: &File, range: Range<u64>, stop: &Stop) -> Result<(), Error> {
    let failed = |error| Error::Failed(format!("{}: lseek: {error}", path.display()));
    let Some(mut unwritten) = first_unwritten(file, range.clone()).map_err(failed)? else {
        return Ok(());
    };
    let mut engine = Engine::open(&Options::new(Ioengine::IoUring, IODEPTH, PIECE_BYTES))?;
    let open = |engine: &mut Engine, direct| {
        engine.open_file(path, &FileOptions::new().write(true).direct(direct))
    };
    let mut id = open(&mut engine, true)?;
    let align = u64::from(engine.align_bytes(id));
    let ends = file.metadata().map_err(failed)?.len().clamp(range.start, range.end);
    if [range.start, ends, range.end].iter().any(|place| !place.is_multiple_of(align)) {
        // A piece begins or ends, or goes on where the file does, at what direct writes don't take.
        engine.close_file(id)?;
        id = open(&mut engine, false)?;
    }
    let mut data = Data::new(0, buffers::seed());
    loop {
        let mut offset = unwritten.start;
        while offset < unwritten.end {
            if engine.is_full() {
                wait(&mut engine, 1)?;
                stop.check()?;
            }
            let mut buffer = engine.lease()?;
            buffer.set_len((unwritten.end - offset).min(PIECE_BYTES as u64) as usize);
            data.fill(&mut buffer);
            let len = buffer.len() as u64;
            engine.queue(0, Op::Write { file: id, offset, buffer, durable: false });
            engine.submit()?;
            offset += len;
        }
        wait(&mut engine, usize::MAX)?;
        stop.check()?;
        let rest = unwritten.end..range.end;
        unwritten = match first_unwritten(file, rest).map_err(failed)? {
            Some(unwritten) => unwritten,
            None => break,
        };
    }
    engine.flush(id)?;
    Ok(())
}

fn wait(engine: &mut Engine, min: usize) -> Result<(), Error> {
    let mut completions = Vec::new();
    engine.reap(min, &mut completions)?;
    for completion in completions {
        completion.result?;
    }
    Ok(())
}

/// The first bytes of `range` that were never written: a hole, blocks that were only allocated, or
/// what lies behind the file's end. By `SEEK_DATA` and `SEEK_HOLE` (`lseek(2)`); a file system that
/// does not know them takes everything for written. The file is to be flushed first: what is still
/// on its way to new blocks looks written on one file system and not on another.
pub fn first_unwritten(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let len_bytes = file.metadata()?.len();
    let mut from = range.start;
    while from < range.end {
        if from >= len_bytes {
            return Ok(Some(from..range.end));
        }
        let data = match seek(file, SeekFrom::Data(from)) {
            Ok(data) => data,
            // No data from here to the end of the file.
            Err(Errno::NXIO) => return Ok(Some(from..range.end)),
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if data > from {
            return Ok(Some(from..data.min(range.end)));
        }
        from = seek(file, SeekFrom::Hole(from))?;
    }
    Ok(None)
}

pub fn unwritten_bytes(file: &File, range: Range<u64>) -> io::Result<u64> {
    let (mut from, mut bytes) = (range.start, 0);
    while let Some(unwritten) = first_unwritten(file, from..range.end)? {
        bytes += unwritten.end - unwritten.start;
        from = unwritten.end;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn laid_out(range: Range<u64>, before: impl Fn(&File)) -> Vec<u8> {
        let file = fixtures::file();
        before(file.as_file());
        file.as_file().sync_all().unwrap();
        lay_out(file.path(), file.as_file(), range.clone(), &Stop::new()).unwrap();
        assert_eq!(first_unwritten(file.as_file(), range).unwrap(), None);
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn every_byte_that_is_missing_is_written_at_any_alignment() {
        for end in [3 << 20, (3 << 20) + 4096, (2 << 20) + 1, 5000] {
            let bytes = laid_out(0..end, |_| {});
            assert_eq!(bytes.len() as u64, end);
            assert!(bytes.chunks_exact(512).all(|sector| sector.iter().any(|byte| *byte != 0)));
        }
    }

    #[test]
    fn what_is_there_already_stays() {
        let bytes = laid_out(0..1 << 20, |file| file.write_all_at(&[7; 65536], 65536).unwrap());
        assert_eq!(&bytes[65536..131_072], &[7; 65536]);
        assert!(bytes[..65536].iter().any(|byte| *byte != 0));
        assert_eq!(bytes.len(), 1 << 20);
    }

    #[test]
    fn it_goes_on_where_a_file_ends_at_any_byte() {
        let bytes = laid_out(0..2 << 20, |file| file.write_all_at(&[7; 5000], 0).unwrap());
        assert_eq!(&bytes[..5000], &[7; 5000]);
        assert!(bytes.len() == 2 << 20 && bytes[5000..5512].iter().any(|byte| *byte != 0));
    }

    #[test]
    fn it_ends_when_someone_asks() {
        let file = fixtures::file();
        let stop = Stop::new();
        stop.request();
        let ended = lay_out(file.path(), file.as_file(), 0..1 << 30, &stop);
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert!(file.as_file().metadata().unwrap().len() < 1 << 30);
    }
}

#[cfg(test)]
mod unwritten_tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BLOCK: u64 = 65536;

    #[test]
    fn holes_allocated_blocks_and_what_lies_behind_the_end_are_unwritten() {
        let file = fixtures::file().into_file();
        file.write_all_at(&[1; BLOCK as usize], 0).unwrap();
        file.write_all_at(&[1; BLOCK as usize], 4 * BLOCK).unwrap();
        file.sync_all().unwrap();
        let first = |range| first_unwritten(&file, range).unwrap();
        if first(0..BLOCK * 5).is_none() {
            return fixtures::skip(
                "holes_are_unwritten",
                "this file system does not tell of holes",
            );
        }
        assert_eq!(first(0..BLOCK), None);
        assert_eq!(first(0..BLOCK * 5), Some(BLOCK..4 * BLOCK));
        assert_eq!(first(2 * BLOCK..3 * BLOCK), Some(2 * BLOCK..3 * BLOCK));
        assert_eq!(first(4 * BLOCK..7 * BLOCK), Some(5 * BLOCK..7 * BLOCK));
        assert_eq!(first(9 * BLOCK..9 * BLOCK), None);
        assert_eq!(unwritten_bytes(&file, 0..7 * BLOCK).unwrap(), 5 * BLOCK);
        let flags = rustix::fs::FallocateFlags::empty();
        if rustix::fs::fallocate(&file, flags, 0, 4 * BLOCK).is_ok() {
            file.sync_all().unwrap();
            assert_eq!(first(0..BLOCK * 5), Some(BLOCK..4 * BLOCK), "allocated is not written");
        }
    }
}
