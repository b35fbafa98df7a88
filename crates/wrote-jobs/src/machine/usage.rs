//! The resources that a process uses: CPU time, memory and its peak, and the number of files that
//! it may open.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{fs, io};

/// The resources that the process has used since it began, with all its threads.
///
/// They come from `getrusage(2)` with `RUSAGE_SELF`, which includes threads that have ended and the
/// kernel's threads for the process's io_uring (its workers and the SQPOLL thread). The scheduler
/// measures the total CPU time in microseconds. The kernel divides it between user and system time
/// according to its clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The CPU time in user space, in seconds.
    pub cpu_user_s: f64,
    /// The CPU time that the kernel spent for the process, in seconds.
    pub cpu_system_s: f64,
    /// The number of voluntary and involuntary context switches.
    pub context_switches: u64,
    /// The peak of the resident memory, in bytes.
    pub max_rss_bytes: u64,
    /// The number of page faults that required the disk.
    pub major_faults: u64,
    /// The number of page faults that did not require the disk.
    pub minor_faults: u64,
}

impl Usage {
    /// Returns the use so far; all 0 if the kernel does not report it.
    pub fn now() -> Usage {
        Usage::of(UsageWho::RUSAGE_SELF)
    }

    /// Returns the calling thread's use so far (`RUSAGE_THREAD`), without the kernel's threads that
    /// work for it. The peak memory is the whole process's.
    pub fn of_thread() -> Usage {
        Usage::of(UsageWho::RUSAGE_THREAD)
    }

    /// Returns the use of child processes that have been waited for (`RUSAGE_CHILDREN`). The peak
    /// memory is the largest child's, including its memory before it executed its program.
    pub fn of_children() -> Usage {
        Usage::of(UsageWho::RUSAGE_CHILDREN)
    }

    fn of(who: UsageWho) -> Usage {
        // The call fails only for an unknown `who`.
        let Ok(usage) = getrusage(who) else {
            return Usage::default();
        };
        let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
        Usage {
            cpu_user_s: usage.user_time().num_microseconds() as f64 / 1e6,
            cpu_system_s: usage.system_time().num_microseconds() as f64 / 1e6,
            context_switches: u64::try_from(switches).unwrap_or(0),
            // Linux reports this in units of 1024 bytes.
            max_rss_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
            major_faults: u64::try_from(usage.major_page_faults()).unwrap_or(0),
            minor_faults: u64::try_from(usage.minor_page_faults()).unwrap_or(0),
        }
    }

    /// Returns the use since `earlier`. The peak memory covers the whole process from its start,
    /// because the kernel keeps only that figure.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            cpu_user_s: (self.cpu_user_s - earlier.cpu_user_s).max(0.0),
            cpu_system_s: (self.cpu_system_s - earlier.cpu_system_s).max(0.0),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            max_rss_bytes: self.max_rss_bytes,
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }
}

/// Resets the process's peak memory to its current memory, so that [`peak_memory_bytes`] covers
/// only later use. Writes 5 to `/proc/PID/clear_refs` (proc(5), Linux 4.0).
///
/// # Errors
///
/// An error if `/proc` is not writable, as in some containers.
pub fn reset_peak_memory() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// Returns the peak memory of this process, in bytes; `None` if the kernel does not report it.
pub fn peak_memory_bytes() -> Option<u64> {
    peak_memory_bytes_of(std::process::id())
}

/// Returns the peak memory of another process since it executed its program, in bytes; `None` if
/// the process has exited.
pub fn peak_memory_bytes_of(process: u32) -> Option<u64> {
    high_water_mark(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// Parses `VmHWM` in the text of a `status` file (proc(5)), and returns it in bytes; `None` if it
/// is missing.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

/// Raises the soft limit on open files to the hard limit, for this process and its children. The
/// soft limit is 1024 almost everywhere, for the sake of programs that use select(2).
///
/// # Errors
///
/// The errors of `setrlimit(2)`, which leave the limit unchanged.
pub fn raise_open_files() -> rustix::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}

#[cfg(test)]
mod usage_tests {
    use super::*;
    use std::sync::mpsc;

    fn cpu_s(usage: &Usage) -> f64 {
        usage.cpu_user_s + usage.cpu_system_s
    }

    #[test]
    fn work_costs_cpu_time_also_in_a_thread_that_has_ended() {
        let before = Usage::now();
        std::thread::spawn(|| {
            let mut sum = 0_u64;
            for number in 0..5_000_000_u64 {
                sum = std::hint::black_box(sum ^ number);
            }
            sum
        })
        .join()
        .unwrap();
        let used = Usage::now().since(&before);
        assert!(cpu_s(&used) > 0.0, "{used:?}");
    }

    #[test]
    fn a_threads_own_use_is_not_that_of_another() {
        let page_bytes = rustix::param::page_size();
        let before = Usage::of_thread();
        std::thread::spawn(move || {
            let before = Usage::of_thread();
            // A new mapping, because the pages of other memory may already be present.
            let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
            let used = Usage::of_thread().since(&before);
            assert!(used.minor_faults > 0, "{used:?}, {} pages", memory.len() / page_bytes);
        })
        .join()
        .unwrap();
        let used = Usage::of_thread().since(&before);
        assert!(used.minor_faults < 1000, "{used:?}");
    }

    #[test]
    fn threads_that_wait_for_each_other_switch_contexts() {
        let before = Usage::now();
        let (question, asked) = mpsc::sync_channel::<()>(0);
        let (answer, answered) = mpsc::sync_channel::<()>(0);
        let other = std::thread::spawn(move || {
            while asked.recv().is_ok() {
                answer.send(()).unwrap();
            }
        });
        for _ in 0..50 {
            question.send(()).unwrap();
            answered.recv().unwrap();
        }
        drop(question);
        other.join().unwrap();
        assert!(Usage::now().since(&before).context_switches > 0);
    }

    #[test]
    fn memory_that_was_touched_shows_in_the_peak() {
        let memory = vec![1_u8; 32 << 20];
        assert!(Usage::now().max_rss_bytes > std::hint::black_box(&memory).len() as u64);
    }

    #[test]
    fn a_difference_is_never_negative() {
        let (small, large) = (
            Usage {
                cpu_user_s: 1.0,
                cpu_system_s: 1.0,
                context_switches: 1,
                max_rss_bytes: 1,
                major_faults: 1,
                minor_faults: 4,
            },
            Usage {
                cpu_user_s: 2.0,
                cpu_system_s: 3.0,
                context_switches: 9,
                max_rss_bytes: 5,
                major_faults: 3,
                minor_faults: 9,
            },
        );
        let used = large.since(&small);
        assert_eq!((used.cpu_user_s, used.cpu_system_s, used.context_switches), (1.0, 2.0, 8));
        assert_eq!((used.max_rss_bytes, used.major_faults, used.minor_faults), (5, 2, 5));
        assert_eq!(small.since(&large), Usage { max_rss_bytes: 1, ..Usage::default() });
    }
}

#[cfg(test)]
mod peak_memory_tests {
    use super::*;

    #[test]
    fn the_mark_is_read_in_bytes_and_a_process_that_is_over_has_none() {
        assert_eq!(
            high_water_mark("Name:\tx\nVmHWM:\t   1234 kB\nVmRSS:\t 1 kB\n"),
            Some(1234 << 10)
        );
        assert_eq!(high_water_mark("Name:\tx\nState:\tZ (zombie)\n"), None);
        assert_eq!(high_water_mark("VmHWM:\t many kB\n"), None);
    }

    #[test]
    fn the_mark_of_this_process_holds_what_it_has_touched() {
        let memory = std::hint::black_box(vec![1_u8; 48 << 20]);
        assert!(peak_memory_bytes().unwrap() > memory.len() as u64);
    }
}
