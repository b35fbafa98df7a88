//! How far the reading of a log has come, told now and then.

use crate::Error;

/// After how many bytes it is told.
const STEP_BYTES: u64 = 1 << 20;

/// Tells whoever watches, and hears from them whether to go on.
pub(super) struct Progress<'a> {
    watch: &'a mut dyn FnMut(u64, u64) -> bool,
    /// Bytes of the files before the one that is read.
    before: u64,
    told: u64,
    all_bytes: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(all_bytes: u64, watch: &'a mut dyn FnMut(u64, u64) -> bool) -> Progress<'a> {
        Progress { watch, before: 0, told: 0, all_bytes }
    }

    /// The file is read up to this byte.
    pub(super) fn at(&mut self, offset: u64) -> Result<(), Error> {
        let read = self.before + offset;
        if read < self.told + STEP_BYTES { Ok(()) } else { self.tell(read) }
    }

    /// A file of so many bytes is read to its end.
    pub(super) fn finished(&mut self, file_bytes: u64) -> Result<(), Error> {
        self.before += file_bytes;
        self.tell(self.before)
    }

    fn tell(&mut self, read: u64) -> Result<(), Error> {
        self.told = read;
        let read = read.min(self.all_bytes);
        if (self.watch)(read, self.all_bytes) { Ok(()) } else { Err(Error::Interrupted) }
    }
}
