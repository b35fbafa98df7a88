//! io_uring: a plain ring and, if possible, a polled ring next to it.
//!
//! A ring with `IORING_SETUP_IOPOLL` finds its completions by polling the device, which saves the
//! interrupt. It supports only reads and writes of direct files, on a device with poll queues
//! (`io_uring_setup(2)`). Everything else goes to the plain ring.

use super::backend::{OpenedFile, Queue};
use super::op::{OpKind, Reply, Request};
use super::open_file::raw;
use super::ring::{Ring, Service};
use super::slots::Requests;
use super::wait::Wait;
use super::{Callers, Effective, Options};
use crate::buffer::Pool;
use crate::device::{self, BlockDevice};
use std::io;
use std::time::Duration;

/// The pair of rings. The polled one is created for the first suitable file.
pub(super) struct Uring {
    plain: Ring,
    polled: Option<PolledRing>,
    /// The options, except for the refused ones.
    options: Options,
    callers: Callers,
    pool: Pool,
}

impl Uring {
    pub(super) fn start(
        options: &Options,
        callers: Callers,
        pool: &Pool,
        effective: &mut Effective,
    ) -> Result<Uring, String> {
        let mut options = options.clone();
        let (mut plain, flags) = start_plain(&mut options, callers, effective)?;
        effective.ring_flags = flags;
        effective.sqpoll = options.sqpoll.is_some();
        plain.register(&options, pool, effective);
        let pool = pool.clone();
        Ok(Uring { plain, polled: None, options, callers, pool })
    }

    /// Polls for the file's transfers from now on. Fails with the reason if any of them will not be
    /// polled.
    fn poll(&mut self, file: &OpenedFile, effective: &mut Effective) -> Result<(), String> {
        let device = device_for(file)?;
        if self.polled.is_none() {
            self.polled =
                Some(PolledRing::start(&self.options, self.callers, &self.pool, effective)?);
        }
        let polled = self.polled.as_mut().expect("made above");
        polled.ring.opened(file.slot, file.access.raw, effective);
        let taken = polled.take(file, &device, &self.pool);
        if polled.ring.in_flight() > 0 {
            // The late completion of the trial read could be mistaken for another operation's.
            self.polled = None;
        }
        taken?;
        effective.iopoll = true;
        if self.options.buffer_bytes as u64 > device.transfer_bytes_max {
            return Err(format!(
                "{}: transfers of more than {} bytes may be several commands",
                device.name, device.transfer_bytes_max
            ));
        }
        Ok(())
    }

    /// Waits for `missing` more replies while both rings have requests in flight. No call can wait
    /// for both, so this polls until there are enough.
    fn wait_for_both(&mut self, missing: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        let wanted = done.len() + missing;
        loop {
            if self.plain.wants_call() {
                self.plain.enter(0, done)?;
            } else {
                self.plain.collect(done);
            }
            let polled = self.polled.as_mut().filter(|polled| polled.ring.in_flight() > 0);
            let Some(polled) = polled else { break };
            if done.len() >= wanted {
                return polled.ring.enter(0, done);
            }
            polled.ring.enter(usize::from(self.plain.in_flight() == 0), done)?;
        }
        wait_for(&mut self.plain, wanted.saturating_sub(done.len()), done)
    }
}

/// Starts the plain ring, without the kernel thread if that is refused.
fn start_plain(
    options: &mut Options,
    callers: Callers,
    effective: &mut Effective,
) -> Result<(Ring, Vec<&'static str>), String> {
    let without = Service { sqpoll: None, iopoll: false, callers };
    let Some(sqpoll) = &options.sqpoll else { return Ring::start(effective.iodepth, without) };
    let served = Ring::start(effective.iodepth, Service { sqpoll: Some(sqpoll), ..without });
    served.or_else(|because| {
        let started = Ring::start(effective.iodepth, without)?;
        effective.fell_back("sqpoll", "a plain ring", because);
        options.sqpoll = None;
        Ok(started)
    })
}

/// Submits the queue, waits for `missing` more replies, and collects all there are.
fn wait_for(ring: &mut Ring, missing: usize, done: &mut Vec<Reply>) -> io::Result<()> {
    let wanted = done.len() + missing;
    ring.collect(done);
    loop {
        let missing = wanted.saturating_sub(done.len());
        if missing > 0 || ring.wants_call() {
            ring.enter(missing, done)?;
        }
        if done.len() >= wanted {
            return Ok(());
        }
    }
}

impl Queue for Uring {
    fn completes_in_calls(&self) -> bool {
        false
    }

    fn register_buffers(&mut self, pool: &Pool, effective: &mut Effective) {
        self.plain.register_buffers(pool, effective);
    }

    fn opened(&mut self, file: &OpenedFile, effective: &mut Effective) {
        self.plain.opened(file.slot, file.access.raw, effective);
        if self.options.iopoll
            && let Err(because) = self.poll(file, effective)
        {
            effective.fell_back("polled completions", "interrupts", because);
        }
    }

    fn left_direct(&mut self, slot: u32) {
        if let Some(polled) = &mut self.polled {
            polled.leave(slot);
        }
    }

    fn closing(&mut self, slot: u32) {
        self.plain.closing(slot);
        if let Some(polled) = &mut self.polled {
            polled.leave(slot);
            polled.ring.closing(slot);
        }
    }

    fn push(&mut self, requests: Requests) {
        let files = requests.files;
        let file = |slot| raw(files, slot);
        let Some(polled) = &mut self.polled else { return self.plain.push(requests, file) };
        for request in requests {
            let ring = if polled.takes(request) { &mut polled.ring } else { &mut self.plain };
            ring.push(std::iter::once(request), file);
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        if let Some(polled) = &mut self.polled {
            polled.ring.submit()?;
        }
        self.plain.submit()
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        match &self.polled {
            Some(polled) if polled.ring.in_flight() > 0 => self.wait_for_both(min, done),
            _ => wait_for(&mut self.plain, min, done),
        }
    }

    fn prepare_wait(&mut self) -> io::Result<Wait> {
        if self.polled.as_ref().is_some_and(|polled| polled.ring.in_flight() > 0) {
            self.submit()?;
            return Ok(Wait::Poll);
        }
        self.plain.prepare_wait()
    }

    fn interrupt(&mut self) -> io::Result<()> {
        self.plain.interrupt()
    }

    fn wait_within(&mut self, time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        self.plain.collect(done);
        match &self.polled {
            // It is not possible to wait for a polled ring with a time limit.
            Some(polled) if polled.ring.in_flight() > 0 => self.wait_for_both(0, done),
            _ if !done.is_empty() => wait_for(&mut self.plain, 0, done),
            _ => self.plain.enter_within(time, done),
        }
    }
}

/// The polled ring, created for the first suitable file.
pub(super) struct PolledRing {
    pub ring: Ring,
    /// The maximum length of a transfer that is polled, in bytes, for each slot; 0 if none is
    /// polled.
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

    /// Tries a read of the file. If that works, polls for the file's transfers from then on.
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
        self.ring.push(std::iter::once(&request), |_| file.access.raw);
        let mut done: Vec<Reply> = Vec::new();
        while done.is_empty() {
            if let Err(error) = self.ring.enter(1, &mut done) {
                // The kernel may still write to the buffer.
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

    /// Stops polling for the file's transfers.
    pub(super) fn leave(&mut self, slot: u32) {
        if let Some(bytes_max) = self.bytes_max.get_mut(slot as usize) {
            *bytes_max = 0;
        }
    }

    /// Returns whether the request is polled. A transfer that is split into several commands is not
    /// polled: on Linux 6.1, it would never complete, and would keep a worker of the ring busy.
    pub(super) fn takes(&self, request: &Request) -> bool {
        let bytes_max = self.bytes_max.get(request.slot as usize);
        request.kind.transfers() && bytes_max.is_some_and(|&bytes_max| request.len <= bytes_max)
    }
}

/// Returns the device to poll for the file's transfers, or the reason why it can't be polled.
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
