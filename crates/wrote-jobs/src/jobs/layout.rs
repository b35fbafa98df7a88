//! Writes the random data that jobs will read, in large blocks, and flushes it.

use crate::data;
use crate::data::Data;
use crate::written::first_unwritten;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use wrote::engine::{Engine, Op, Options};
use wrote::{FileOptions, Ioengine};
use wrote_result::{Error, Stop};

const PIECE_BYTES: usize = 1 << 20;
const IODEPTH: u32 = 8;

/// Writes the unwritten bytes of `range`, and flushes them. `file` is open on a file that belongs
/// to the run.
pub fn lay_out(path: &Path, file: &File, range: Range<u64>, stop: &Stop) -> Result<(), Error> {
    let failed = Error::at(path, "lseek");
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
        // Direct I/O cannot write an unaligned end of a block or of the file.
        engine.close_file(id)?;
        id = open(&mut engine, false)?;
    }
    let mut data = Data::new(0, data::seed());
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
    fn existing_bytes_stay() {
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
