//! SIGINT, SIGTERM and SIGHUP end a run early and cleanly.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::{io, process, thread};
use wrote_result::Stop;

/// The offset of exit codes that shells give to signals.
const EXIT_SIGNAL_BASE: i32 = 128;

/// Listens for the signals that end a run.
///
/// The first raises a [`Stop`], so that the run removes what it made and returns. A second one ends
/// the program at once, without cleaning up, for a user who will not wait.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The first signal; 0 before it.
    first: Arc<AtomicI32>,
}

impl Signals {
    /// Starts to listen, and raises `stop` at the first signal. A signal that the program was
    /// started to ignore (`nohup`, a shell's background job) stays ignored.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses a handler, its pipe or the thread.
    pub fn listen(stop: Stop) -> io::Result<Signals> {
        let signals = Signals::default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let wanted = wanted.filter(|signal| !is_ignored(*signal, &status));
        let mut coming = signal_hook::iterator::Signals::new(wanted)?;
        let first = signals.first.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in coming.forever() {
                if first.swap(signal, Ordering::Relaxed) != 0 {
                    process::exit(EXIT_SIGNAL_BASE + signal);
                }
                stop.request();
            }
        })?;
        Ok(signals)
    }

    /// The exit code of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM, 129 for
    /// SIGHUP. `None` as long as no signal came.
    pub fn exit_code(&self) -> Option<u8> {
        match self.first.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(EXIT_SIGNAL_BASE + signal).ok(),
        }
    }
}

/// Whether the process of a `/proc/PID/status` ignores a signal: bit n - 1 is signal n
/// (`proc(5)`).
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn an_ignored_signal_is_found_in_the_status_of_the_process() {
        let nohup = "Name:\twrote\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(SIGHUP, nohup));
        assert!(!is_ignored(SIGINT, nohup) && !is_ignored(SIGTERM, nohup));
        assert!(!is_ignored(SIGHUP, "Name:\twrote\n"));
    }

    #[test]
    fn the_first_signal_asks_the_run_to_end_and_decides_the_exit_code() {
        let stop = Stop::new();
        let signals = Signals::listen(stop.clone()).expect("handlers can be installed");
        signal_hook::low_level::raise(SIGTERM).expect("a signal can be raised");
        let patience = Instant::now() + Duration::from_secs(30);
        while !stop.is_requested() {
            assert!(Instant::now() < patience, "nobody listens");
            thread::yield_now();
        }
        assert_eq!(signals.exit_code(), Some(143));
    }

    #[test]
    fn before_any_signal_there_is_no_exit_code() {
        assert_eq!(Signals::default().exit_code(), None);
    }
}
