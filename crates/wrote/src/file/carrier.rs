//! A disk's engine as the ring of other engines: the `Writer`s that share the disk.

use super::Disk;
use crate::buffer::Pool;
use crate::engine::{CarriedReply, CarriedRequest, Carrier, FileId};
use crate::error::Error;
use rustix::param::page_size;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

/// One engine's way to the disk's.
pub(super) struct DiskCarrier {
    disk: Disk,
    /// The place of its replies in the disk's schedule.
    inbox: usize,
    /// Number and bytes of the buffers that it takes when the disk has memory for them.
    larger: Option<(u32, usize)>,
    reserved_bytes: usize,
}

impl DiskCarrier {
    /// Makes the way of an engine whose `reserved_bytes` are taken from the disk's memory.
    pub(super) fn new(disk: Disk, reserved_bytes: usize, larger: (u32, usize)) -> DiskCarrier {
        let inbox = disk.with(|schedule| schedule.inboxes.insert(Vec::new()));
        DiskCarrier { disk, inbox, larger: Some(larger), reserved_bytes }
    }
}

impl Carrier for DiskCarrier {
    fn adopt(&mut self, file: RawFd, path: &Path) -> FileId {
        self.disk.with(|schedule| schedule.engine.adopt_file(file, path))
    }

    fn release(&mut self, file: FileId) {
        // Nothing is in flight, so it cannot fail.
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

    /// Takes at most a quarter of what is left of the disk's memory, so that later engines find
    /// some: the buffers of the options, or halves of them.
    fn grow(&mut self) -> Option<Pool> {
        let (count, mut buffer_bytes) = self.larger?;
        let taken = |buffer_bytes| count as usize * buffer_bytes;
        let most = self.disk.memory_left() / 4;
        while taken(buffer_bytes) > most && buffer_bytes > page_size() {
            buffer_bytes = (buffer_bytes / 2).next_multiple_of(page_size());
        }
        let bytes = taken(buffer_bytes);
        if bytes > most || bytes <= self.reserved_bytes || !self.disk.reserve(bytes) {
            return None;
        }
        self.reserved_bytes += bytes;
        self.larger = None;
        // Without memory the smaller buffers serve on.
        Pool::new(count, buffer_bytes).ok()
    }
}

impl Drop for DiskCarrier {
    fn drop(&mut self) {
        self.disk.with(|schedule| schedule.inboxes.remove(self.inbox));
        self.disk.unreserve(self.reserved_bytes);
    }
}

fn as_io(error: Error) -> io::Error {
    io::Error::from_raw_os_error(error.errno())
}
