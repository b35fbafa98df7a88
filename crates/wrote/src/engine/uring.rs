//! io_uring: a plain ring, and a polled one beside it if that works.

use super::backend::{Backend, Files, OpenedFile, holds_files};
use super::polled::{self, PolledRing};
use super::request::Reply;
use super::ring::{Ring, Service};
use super::slots::Requests;
use super::wait::Wait;
use super::{Callers, Effective, Options};
use crate::buffer::Pool;
use std::io;
use std::time::Duration;

/// The pair of rings. The second is created for the first suitable file.
pub(super) struct Uring {
    plain: Ring,
    polled: Option<PolledRing>,
    /// The options, without refused ones.
    options: Options,
    callers: Callers,
    pool: Pool,
    files: Files,
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
        let (pool, files) = (pool.clone(), Files::default());
        Ok(Uring { plain, polled: None, options, callers, pool, files })
    }

    /// Polls the file's transfers from now on, or returns why not all of them are polled.
    fn poll(&mut self, file: &OpenedFile, effective: &mut Effective) -> Result<(), String> {
        let device = polled::device_for(file)?;
        if self.polled.is_none() {
            self.polled =
                Some(PolledRing::start(&self.options, self.callers, &self.pool, effective)?);
        }
        let polled = self.polled.as_mut().expect("made above");
        polled.ring.opened(file.slot, file.file, effective);
        let taken = polled.take(file, &device, &self.pool);
        if polled.ring.in_flight() > 0 {
            // The trial's late completion could be mistaken for an operation's.
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

    /// Waits for `missing` more while both rings have requests in flight. No call can wait for
    /// both, so this polls until enough are done.
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

/// Submits the queue, waits for `missing` more, and collects all that are done.
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

impl Backend for Uring {
    holds_files!();

    fn register_buffers(&mut self, pool: &Pool, effective: &mut Effective) {
        self.plain.register_buffers(pool, effective);
    }

    fn opened(&mut self, file: &OpenedFile, effective: &mut Effective) {
        self.plain.opened(file.slot, file.file, effective);
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
        let file = |slot| self.files.raw(slot);
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
            // A polled ring can't be waited for.
            Some(polled) if polled.ring.in_flight() > 0 => self.wait_for_both(0, done),
            _ if !done.is_empty() => wait_for(&mut self.plain, 0, done),
            _ => self.plain.enter_within(time, done),
        }
    }
}
