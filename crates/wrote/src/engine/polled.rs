//! The polled ring of a pair of rings.
//!
//! A ring with `IORING_SETUP_IOPOLL` finds its completions by polling the device, which saves the
//! interrupt. It supports only reads and writes of direct files, on a device with poll queues
//! (`io_uring_setup(2)`). Everything else goes to the plain ring beside it.

use super::backend::OpenedFile;
use super::op::OpKind;
use super::request::{Reply, Request};
use super::ring::{Ring, Service};
use super::{Callers, Effective, Options};
use crate::buffer::Pool;
use crate::device::{self, BlockDevice};

/// The polled ring, created for the first suitable file.
pub(super) struct PolledRing {
    pub ring: Ring,
    /// For each slot the longest transfer that is polled; 0 for none.
    bytes_max: Vec<u64>,
}

impl PolledRing {
    pub(super) fn start(
        options: &Options,
        callers: Callers,
        pool: &Pool,
        effective: &mut Effective,
    ) -> Result<PolledRing, String> {
        let sqpoll = options.sqpoll.as_ref();
        let service = Service { sqpoll, iopoll: true, callers };
        let (mut ring, flags) = Ring::start(effective.iodepth, service)?;
        ring.register(options, pool, effective);
        effective.ring_flags = flags;
        Ok(PolledRing { ring, bytes_max: Vec::new() })
    }

    /// Tries one read of the file, and if that works polls its transfers from then on.
    pub(super) fn take(
        &mut self,
        file: &OpenedFile,
        device: &BlockDevice,
        pool: &Pool,
    ) -> Result<(), String> {
        let buffer = pool.lease().ok_or("no buffer to try it with")?;
        let len = u64::from(file.access.align_bytes).min(buffer.len() as u64);
        let request = Request {
            token: 0,
            kind: OpKind::Read,
            slot: file.slot,
            offset: 0,
            address: buffer.address(),
            len,
            in_pool: true,
            rw_flags: 0,
        };
        self.ring.push(std::iter::once(&request), |_| file.file);
        let mut done: Vec<Reply> = Vec::new();
        while done.is_empty() {
            if let Err(error) = self.ring.enter(1, &mut done) {
                // The kernel may still fill the buffer.
                pool.leak();
                std::mem::forget(buffer);
                return Err(format!("a polled read: {error}"));
            }
        }
        if let Ok(errno @ 1..) = i32::try_from(-done[0].result) {
            return Err(format!("a polled read: {}", std::io::Error::from_raw_os_error(errno)));
        }
        let slot = file.slot as usize;
        self.bytes_max.resize(self.bytes_max.len().max(slot + 1), 0);
        self.bytes_max[slot] = device.transfer_bytes_max;
        Ok(())
    }

    /// Stops polling the file's transfers.
    pub(super) fn leave(&mut self, slot: u32) {
        if let Some(bytes_max) = self.bytes_max.get_mut(slot as usize) {
            *bytes_max = 0;
        }
    }

    /// Returns whether the request is polled. A transfer of several commands is not: on Linux 6.1
    /// it never ends, and keeps a worker of the ring busy.
    pub(super) fn takes(&self, request: &Request) -> bool {
        let bytes_max = self.bytes_max.get(request.slot as usize);
        request.kind.transfers() && bytes_max.is_some_and(|&bytes_max| request.len <= bytes_max)
    }
}

/// Returns the device to poll for the file's transfers, or why it can't be polled.
pub(super) fn device_for(file: &OpenedFile) -> Result<BlockDevice, String> {
    if !file.access.direct {
        return Err("polling needs direct transfers".into());
    }
    match device::device_at(file.path) {
        Some(device) if device.io_poll && device.transfer_bytes_max == 0 => {
            Err(format!("{}: no length is known to be one command", device.name))
        }
        Some(device) if device.io_poll => Ok(device),
        Some(device) => Err(format!("{}: the device has no poll queues", device.name)),
        None => Err("there is no block device that could be polled".into()),
    }
}
