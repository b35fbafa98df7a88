//! Reading a log by sequence, while it is written or not.

use crate::Error;
use std::path::Path;
use std::time::Duration;

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the log: the first record ever has 0, and each the one after its predecessor's.
    pub sequence: u64,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// The records of a log in order.
#[derive(Debug)]
pub struct LogReader {
    _private: (),
}

impl LogReader {
    /// Reads the log in `folder` from the record `from` on, up to what is there; no lock is taken, and
    /// the log may be open for writing here or in another process. Where retention has removed the
    /// record, it begins with the first that is there.
    ///
    /// # Errors
    ///
    /// When there is no log in the folder, or it can't be read.
    pub fn open(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        let _ = (folder.as_ref(), from);
        todo!()
    }

    /// The same, but where [`LogReader::open`] ends it waits for what is appended next.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn follow(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        let _ = (folder.as_ref(), from);
        todo!()
    }

    /// The next record, or `None` where there is none within `timeout`. A reader that does not follow
    /// does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where the log is damaged; else with the kernel's words.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>, Error> {
        let _ = timeout;
        todo!()
    }

    /// The next record's bytes, appended to `bytes`, and its sequence: spares an allocation a record.
    ///
    /// # Errors
    ///
    /// As [`LogReader::next_within`].
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        let _ = bytes;
        todo!()
    }
}

impl Iterator for LogReader {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
