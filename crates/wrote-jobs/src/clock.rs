//! The clock of one run, with the CPU time and the device's counters meanwhile.

use std::time::Instant;
use wrote::device::{BlockDevice, Counters};
use wrote_machine::usage::Usage;
use wrote_machine::watch::cpu::CpuWatch;
use wrote_result::Error;
use wrote_result::document::Run;

/// Does the work between two reads of the counters (M7), and returns its outcome and its run.
/// `usage` reads the CPU time. The caller fills in bytes, operations and memory.
pub fn clocked<T>(
    device: Option<&BlockDevice>,
    usage: impl Fn() -> Usage,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Run), Error> {
    let cpu = CpuWatch::begin();
    let counters_before = counters(device);
    let usage_before = usage();
    let began = Instant::now();
    let done = work()?;
    let elapsed_s = began.elapsed().as_secs_f64().max(1e-9);
    let used = usage().since(&usage_before);
    let moved = counters(device).zip(counters_before).map(|(after, before)| after.since(&before));
    let cpu = cpu.end();
    let run = Run {
        elapsed_s,
        cpu_user_s: used.cpu_user_s,
        cpu_system_s: used.cpu_system_s,
        context_switches: used.context_switches,
        device_written_bytes: moved.map(|moved| moved.written_bytes),
        device_read_bytes: moved.map(|moved| moved.read_bytes),
        iodepth_reached: 1,
        cpu_busiest: cpu.busiest,
        cpu_waited_s: cpu.waited_s,
        ..Run::default()
    };
    Ok((done, run))
}

/// Returns the block layer's counters of the device, where it has any.
pub fn counters(device: Option<&BlockDevice>) -> Option<Counters> {
    device.filter(|device| device.counts())?.counters().ok()
}
