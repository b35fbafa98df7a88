//! Records the writes and flushes of a loop device's file, as `dm-log-writes` does.

use crate::runs::log_writes::entries::{FLUSH, MARK, SECTOR_BYTES, entry, head};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The log. Writes of whole sectors are writes to the device. Any other write is a mark, and the
/// first mark begins the log.
#[derive(Debug)]
pub struct Recording {
    log: BufWriter<File>,
    has_begun: bool,
}

impl Recording {
    /// Creates the log in a new file. The caller must finish it with the mark `end`, because its
    /// first sector does not state the number of entries.
    pub fn new(path: &Path) -> io::Result<Recording> {
        let mut log = BufWriter::new(File::create_new(path)?);
        log.write_all(&head(u64::MAX))?;
        Ok(Recording { log, has_begun: false })
    }

    /// Records a write. Until a flush, the device may perform later writes first.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let sectors = (data.len() / SECTOR_BYTES) as u64;
        match data.len().is_multiple_of(SECTOR_BYTES) {
            false if !self.has_begun => self.has_begun = true,
            false => {
                self.log.write_all(&entry(0, 0, MARK, data))?;
                self.log.flush()?;
            }
            true if !self.has_begun => {}
            true => {
                self.log.write_all(&entry(offset / SECTOR_BYTES as u64, sectors, 0, b""))?;
                self.log.write_all(data)?;
            }
        }
        Ok(())
    }

    /// Records a flush, which makes all earlier writes stable.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.has_begun { self.log.write_all(&entry(0, 0, FLUSH, b"")) } else { Ok(()) }
    }
}
