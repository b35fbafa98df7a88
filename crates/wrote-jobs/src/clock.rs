//! Times one run, with CPU time and the device's counters over the same span.

use crate::machine::counters::Counters;
use crate::machine::usage::Usage;
use crate::machine::watch::cpu::CpuWatch;
use crate::peers::Peers;
use crate::report::Part;
use std::cell::RefCell;
use std::time::Instant;
use wrote::device::BlockDevice;
use wrote_result::Error;
use wrote_result::document::Run;

/// The device whose counters belong to a run, and the ranks that begin it together.
#[derive(Clone, Copy, Debug)]
pub struct Timer<'a> {
    /// The block device below, where there is one.
    pub device: Option<&'a BlockDevice>,
    /// The ranks; `None` where this process times by itself.
    pub together: Option<&'a Together<'a>>,
    has_begun: bool,
}

impl<'a> Timer<'a> {
    /// A timer of runs on this device.
    pub fn new(device: Option<&'a BlockDevice>, together: Option<&'a Together<'a>>) -> Timer<'a> {
        Timer { device, together, has_begun: false }
    }

    /// Waits for the other ranks now rather than at the start of the clock, for work whose threads
    /// must not be kept waiting.
    ///
    /// # Errors
    ///
    /// As [`Together::begin`].
    pub fn begun(self) -> Result<Timer<'a>, Error> {
        self.together.map_or(Ok(()), Together::begin)?;
        Ok(Timer { has_begun: true, ..self })
    }
}

/// The ranks that begin each timed part of a run together, and the parts so far.
#[derive(Debug)]
pub struct Together<'a> {
    peers: Peers<'a>,
    parts: RefCell<Vec<Part>>,
}

impl<'a> Together<'a> {
    /// A run of these ranks, without any part yet.
    pub fn new(peers: Peers<'a>) -> Together<'a> {
        Together { peers, parts: RefCell::default() }
    }

    /// Returns when every rank is ready.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn begin(&self) -> Result<(), Error> {
        self.peers.barrier("the start of a run")
    }

    /// Adds a part that began and ended at these seconds since 1970, by this rank's clock.
    pub fn is_over(&self, (began_s, ended_s): Part) {
        let ahead_s = self.peers.ahead_s();
        self.parts.borrow_mut().push((began_s - ahead_s, ended_s - ahead_s));
    }

    /// Returns the parts so far, by rank 0's clock.
    pub fn parts(&self) -> Vec<Part> {
        self.parts.borrow().clone()
    }
}

/// Does the work between two reads of the counters (M7), and returns its outcome and its run.
/// `usage` reads the CPU time. The caller fills in bytes, operations and memory. Several ranks
/// begin together.
pub fn clocked<T>(
    timer: &Timer,
    usage: impl Fn() -> Usage,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Run), Error> {
    let device = timer.device;
    if !timer.has_begun {
        timer.together.map_or(Ok(()), Together::begin)?;
    }
    let cpu = CpuWatch::begin();
    let counters_before = device.and_then(Counters::of);
    let usage_before = usage();
    let began = Instant::now();
    let done = work()?;
    let elapsed_s = began.elapsed().as_secs_f64().max(1e-9);
    if let Some(together) = timer.together {
        let now_s = now_s();
        let since_end_s = began.elapsed().as_secs_f64() - elapsed_s;
        together.is_over((now_s - since_end_s - elapsed_s, now_s - since_end_s));
    }
    let used = usage().since(&usage_before);
    let moved = device
        .and_then(Counters::of)
        .zip(counters_before)
        .map(|(after, before)| after.since(&before));
    let cpu = cpu.end();
    let run = Run {
        elapsed_s,
        cpu_user_s: used.cpu_user_s,
        cpu_system_s: used.cpu_system_s,
        context_switches: used.context_switches,
        device_written_bytes: moved.map(|moved| moved.written_bytes),
        device_writes: moved.map(|moved| moved.writes + moved.flushes),
        device_read_bytes: moved.map(|moved| moved.read_bytes),
        iodepth_reached: 1,
        cpu_busiest: cpu.busiest,
        cpu_waited_s: cpu.waited_s,
        ..Run::default()
    };
    Ok((done, run))
}

/// Returns the time by this machine's clock, in seconds since 1970.
pub fn now_s() -> f64 {
    jiff::Timestamp::now().as_nanosecond() as f64 / 1e9
}
