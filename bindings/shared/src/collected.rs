//! `Collected`: a writer behind a buffer for small writes.

use crate::from_io;
use std::io::Write;
use wrote::{Error, SyncPolicy, Writer, Written};

/// Bytes that are collected before the writer gets them. Only that may wait for the disk, so only
/// then does the language's own thread have to be let go.
const PENDING_BYTES: usize = 64 << 10;

/// The library's writer, and bytes that it has not got yet.
pub struct Collected {
    /// `None` after its end.
    writer: Option<Writer>,
    pending: Vec<u8>,
    /// Whether bytes may wait in `pending`: no write syncs by itself.
    collects: bool,
}

impl Collected {
    /// Wraps a writer that was opened with this policy.
    pub fn new(writer: Writer, sync: SyncPolicy) -> Collected {
        let collects = sync == SyncPolicy::No;
        Collected { writer: Some(writer), pending: Vec::new(), collects }
    }

    /// Whether the file has not ended.
    pub fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Takes the bytes without waiting, if there is room for them.
    pub fn collect(&mut self, bytes: &[u8]) -> bool {
        let fits = self.collects && bytes.len() <= PENDING_BYTES - self.pending.len();
        if fits {
            self.pending.extend_from_slice(bytes);
        }
        fits
    }

    /// Writes bytes, and the collected ones before them.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.push()?;
        if self.collects && bytes.len() < PENDING_BYTES {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes)).map_err(from_io)
    }

    /// Gives the writer what was collected.
    fn push(&mut self) -> Result<(), Error> {
        if let (Some(writer), false) = (&mut self.writer, self.pending.is_empty()) {
            writer.write_all(&self.pending).map_err(from_io)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Calls `act` with the writer, which has all bytes. Returns `None` after the end.
    pub fn on_writer<T>(
        &mut self,
        act: impl FnOnce(&mut Writer) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.push()?;
        self.writer.as_mut().map(act).transpose()
    }

    /// Returns the place of the next byte.
    pub fn position(&mut self) -> Result<u64, Error> {
        use std::io::Seek;
        let position = self.writer.as_mut().map_or(Ok(0), Writer::stream_position);
        position.map(|position| position + self.pending.len() as u64).map_err(from_io)
    }

    /// Ends the file, unless it has ended. After an error the old one is unchanged.
    pub fn finish(&mut self, durable: bool) -> Result<Option<Written>, Error> {
        let pushed = self.push();
        self.pending = Vec::new();
        let Some(writer) = self.writer.take() else { return Ok(None) };
        // Else the writer is dropped, and abandons.
        pushed?;
        if durable { writer.finish() } else { writer.close() }.map(Some)
    }

    /// Ends without writing the rest.
    pub fn abandon(&mut self) {
        self.pending = Vec::new();
        drop(self.writer.take());
    }
}
