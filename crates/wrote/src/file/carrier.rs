//! A disk's engine as the ring of other engines: used by `Writer`s and `Reader`s on the disk.

use super::Disk;
use crate::engine::{CarriedReply, CarriedRequest, Carrier, FileId};
use crate::error::Error;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

/// One engine's connection to the disk's.
pub(super) struct DiskCarrier {
    disk: Disk,
    /// The index of its replies in the disk's schedule.
    inbox: usize,
}

impl DiskCarrier {
    pub(super) fn new(disk: Disk) -> DiskCarrier {
        let inbox = disk.with(|schedule| schedule.inboxes.insert(Vec::new()));
        DiskCarrier { disk, inbox }
    }
}

impl Carrier for DiskCarrier {
    fn adopt(&mut self, file: RawFd, path: &Path) -> FileId {
        self.disk.with(|schedule| schedule.engine.adopt_file(file, path))
    }

    fn release(&mut self, file: FileId) {
        // Nothing is in flight, so it can't fail.
        let _ = self.disk.with(|schedule| schedule.engine.close_file(file));
    }

    fn push(&mut self, request: CarriedRequest) {
        self.disk.with(|schedule| schedule.carry(self.inbox, request));
    }

    fn submit(&mut self) -> io::Result<()> {
        self.disk.shared().submit().map_err(as_io)
    }

    fn wait(&mut self, min: usize, done: &mut Vec<CarriedReply>) -> io::Result<()> {
        let shared = self.disk.shared();
        if min == 0 {
            shared.look().map_err(as_io)?;
        }
        let waited = shared.wait_until(|schedule| {
            (schedule.inboxes[self.inbox].len() >= min).then(|| {
                done.append(&mut schedule.inboxes[self.inbox]);
            })
        });
        waited.map_err(as_io)
    }
}

impl Drop for DiskCarrier {
    fn drop(&mut self) {
        self.disk.with(|schedule| schedule.inboxes.remove(self.inbox));
    }
}

fn as_io(error: Error) -> io::Error {
    io::Error::from_raw_os_error(error.errno())
}
