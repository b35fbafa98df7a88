//! Measures the duration of a run, its CPU time, and the device's counters over the same span. This
//! is a separate file because jobs and scenarios share it.

use crate::machine::counters::Counters;
use crate::machine::usage::Usage;
use crate::machine::watch::cpu::{CpuUse, CpuWatch};
use crate::peers::{Peers, now_s};
use std::time::Instant;
use wrote::device::BlockDevice;
use wrote_result::Error;
use wrote_result::document::Run;

/// The device whose counters are read around a timed part of a run, and the ranks that begin that
/// part together.
#[derive(Clone, Copy, Debug)]
pub struct Timer<'a> {
    /// The block device below the files, if there is one.
    pub device: Option<&'a BlockDevice>,
    /// The ranks that begin together.
    pub peers: Peers<'a>,
}

/// The resources that some work used.
pub(crate) struct Cost {
    pub used: Usage,
    /// The device's transfers; `None` if the device does not count them.
    pub moved: Option<Counters>,
    pub cpu: CpuUse,
}

/// Runs `work` between two readings of the counters (M7), and returns its result and its cost.
/// `usage` reads the CPU time.
pub(crate) fn measured<T>(
    device: Option<&BlockDevice>,
    usage: impl Fn() -> Usage,
    work: impl FnOnce() -> T,
) -> (T, Cost) {
    let cpu = CpuWatch::begin();
    let counters_before = device.and_then(Counters::of);
    let usage_before = usage();
    let done = work();
    let used = usage().since(&usage_before);
    let counted = device.and_then(Counters::of).zip(counters_before);
    let moved = counted.map(|(after, before)| after.since(&before));
    (done, Cost { used, moved, cpu: cpu.end() })
}

/// Times `work` between two readings of the counters (M7), and returns its result and a [`Run`].
/// The caller fills in the bytes, operations and memory.
pub fn clocked<T>(
    timer: &Timer,
    usage: impl Fn() -> Usage,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Run), Error> {
    let timed = || {
        let began = Instant::now();
        let done = work();
        let (elapsed_s, ended_s) = (began.elapsed().as_secs_f64().max(1e-9), now_s());
        timer.peers.is_over((ended_s - elapsed_s, ended_s));
        (done, elapsed_s)
    };
    let ((done, elapsed_s), Cost { used, moved, cpu }) = measured(timer.device, usage, timed);
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
    Ok((done?, run))
}
