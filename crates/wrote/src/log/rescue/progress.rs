//! The progress of a verification.

use crate::Error;
use crate::progress::{Progress, Watch, report};

/// Bytes between two reports of progress.
const STEP_BYTES: u64 = 1 << 20;

pub(super) struct VerifyProgress<'a> {
    watch: Watch<'a>,
    /// Bytes of finished files.
    before: u64,
    reported: u64,
    all_bytes: u64,
}

impl<'a> VerifyProgress<'a> {
    pub(super) fn new(all_bytes: u64, watch: Watch<'a>) -> VerifyProgress<'a> {
        VerifyProgress { watch, before: 0, reported: 0, all_bytes }
    }

    /// Records that the file was read up to this byte.
    pub(super) fn at(&mut self, offset: u64) -> Result<(), Error> {
        let read = self.before + offset;
        if read < self.reported + STEP_BYTES { Ok(()) } else { self.report(read) }
    }

    /// Records that a file of this length is finished.
    pub(super) fn finish_file(&mut self, file_bytes: u64) -> Result<(), Error> {
        self.before += file_bytes;
        self.report(self.before)
    }

    fn report(&mut self, read: u64) -> Result<(), Error> {
        self.reported = read;
        let progress = Progress::new(read.min(self.all_bytes), Some(self.all_bytes));
        report(self.watch, progress)
    }
}
