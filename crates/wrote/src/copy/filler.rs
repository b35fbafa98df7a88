//! Fills a file from a stream, in order, up to the stream's end.

use super::checksum::Checksum;
use super::copied::Filled;
use super::options::{CopySettings, Method};
use super::pipe::Pipe;
use super::stream::{PieceSizes, read_back};
use crate::engine::Op;
use crate::progress::{Watch, Watcher};
use crate::{Engine, Error, FileId};

pub(super) struct Filler<'a> {
    engine: &'a mut Engine,
    file: FileId,
    settings: &'a CopySettings,
    bytes: u64,
    checksum: Option<Checksum>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(
        engine: &'a mut Engine,
        file: FileId,
        settings: &'a CopySettings,
    ) -> Filler<'a> {
        let checksum = settings.verify.then(Checksum::default);
        Filler { engine, file, settings, bytes: 0, checksum }
    }

    /// Writes the stream to its end, and optionally reads the file back.
    pub(super) fn fill(mut self, mut from: Pipe, watch: Watch) -> Result<Filled, Error> {
        self.write_all(&mut from, &mut Watcher::new(watch, None))?;
        self.engine.truncate(self.file, self.bytes)?;
        let checksum = self.verify(watch)?;
        let method = Method::of(self.engine, self.file);
        Ok(Filled { bytes: self.bytes, method, checksum, fallbacks: Vec::new() })
    }

    /// Writes the stream to its end. The file may then be longer by the padding of its last block.
    fn write_all(&mut self, from: &mut Pipe, progress: &mut Watcher) -> Result<(), Error> {
        let file = self.file;
        let sizes = PieceSizes::new(self.engine, &[file], u64::MAX, self.settings.bs_bytes)?;
        loop {
            let mut buffer = self.engine.lease()?;
            buffer.set_len(sizes.piece_bytes as usize);
            let filled = from.fill(&mut buffer, progress)?;
            if let Some(checksum) = &mut self.checksum {
                checksum.update(&buffer[..filled]);
            }
            if filled > 0 {
                // Pads the last block, which is cut when everything is written.
                buffer.set_len(filled.next_multiple_of(sizes.block_bytes as usize));
                buffer[filled..].fill(0);
                self.engine
                    .queue(0, Op::Write { file, offset: self.bytes, buffer, durable: false });
                self.bytes += filled as u64;
                self.engine.reap_results(0)?;
            }
            if (filled as u64) < sizes.piece_bytes {
                return self.engine.drain();
            }
        }
    }

    /// Reads the file back, and returns the checksum if it matches the stream's.
    fn verify(&mut self, watch: Watch) -> Result<Option<u128>, Error> {
        let Some(checksum) = self.checksum.take() else { return Ok(None) };
        let wanted = checksum.digest128();
        let sizes = PieceSizes::new(self.engine, &[self.file], self.bytes, self.settings.bs_bytes)?;
        let mut progress = Watcher::new(watch, Some(self.bytes.saturating_mul(2)));
        progress.add(self.bytes)?;
        read_back(self.engine, self.file, sizes, wanted, &mut progress)?;
        Ok(Some(wanted))
    }
}
