//! The load of each CPU due to all processes, from `/proc/stat` (proc_stat(5)).

use wrote_result::document::CpuBusy;

/// The minimum number of ticks (of 10 ms) from which a CPU's load is computed.
const TICKS_MIN: u64 = 10;

/// The ticks of each CPU since the machine booted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes(Vec<CpuTime>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTime {
    cpu: u32,
    busy: u64,
    total: u64,
}

impl CpuTimes {
    /// Returns the ticks so far; empty if the kernel does not report them. Takes 10 us, and longer
    /// on large machines, so call it while no clock is running.
    pub fn now() -> CpuTimes {
        CpuTimes::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> CpuTimes {
        // The lines of the CPUs come first. The very first line is their sum.
        let lines = text.lines().take_while(|line| line.starts_with("cpu"));
        CpuTimes(lines.filter_map(CpuTime::parse).collect())
    }

    /// Returns the load of each CPU since `earlier`, without CPUs that counted fewer ticks than
    /// `ticks_min`.
    fn since(&self, earlier: &CpuTimes, ticks_min: u64) -> impl Iterator<Item = CpuBusy> {
        let share = move |now: &CpuTime| {
            let before = earlier.0.iter().find(|before| before.cpu == now.cpu)?;
            let total = now.total.saturating_sub(before.total);
            let busy = now.busy.saturating_sub(before.busy);
            let busy_share = (busy as f64 / total.max(1) as f64).min(1.0);
            (total >= ticks_min).then_some(CpuBusy { cpu: now.cpu, busy_share })
        };
        self.0.iter().filter_map(share)
    }

    /// Returns the CPU that was busiest since `earlier`; `None` if too little time has passed.
    fn busiest_since(&self, earlier: &CpuTimes) -> Option<CpuBusy> {
        // Of equally busy CPUs, this takes the first.
        let all = self.since(earlier, TICKS_MIN);
        all.reduce(|most, next| if next.busy_share > most.busy_share { next } else { most })
    }

    /// Returns the share of the time since these counters during which each CPU was idle, from 0 to
    /// 1.
    pub fn idle_until_now(&self) -> Vec<(u32, f64)> {
        CpuTimes::now().since(self, 0).map(|busy| (busy.cpu, 1.0 - busy.busy_share)).collect()
    }
}

impl CpuTime {
    /// Parses `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`. Stolen time
    /// is included in the busy time. `user` already includes the time of guests. Returns `None` for
    /// any other line.
    fn parse(line: &str) -> Option<CpuTime> {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let total = ticks.iter().sum();
        let idle: u64 = ticks.get(3..)?.iter().take(2).sum();
        Some(CpuTime { cpu, busy: total - idle, total })
    }
}

/// Returns the seconds for which this process's threads were ready to run but had no CPU; `None` if
/// the kernel does not count them (`/proc/PID/schedstat`, proc_pid_schedstat(5)). Threads that have
/// ended are not included.
pub fn waited_s() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        // The thread may have ended since the folder was listed.
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        // The fields are the nanoseconds on a CPU, the nanoseconds of waiting for one, and the
        // number of waits.
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let each: Vec<u64> = threads.filter_map(of_thread).collect();
    (!each.is_empty()).then(|| each.iter().sum::<u64>() as f64 / 1e9)
}

/// The counters of the CPUs, and the waiting time of this process's threads, when a run began.
pub struct CpuWatch {
    times: CpuTimes,
    waited_s: Option<f64>,
}

/// The load of the CPUs during a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuUse {
    /// The busiest CPU.
    pub busiest: Option<CpuBusy>,
    /// The time for which threads of this process waited for a CPU.
    pub waited_s: Option<f64>,
}

impl CpuWatch {
    /// Reads the counters. Call this just before a clock starts.
    pub fn begin() -> CpuWatch {
        CpuWatch { times: CpuTimes::now(), waited_s: waited_s() }
    }

    /// Returns the load since the counters were read. Call this just after the clock stops.
    pub fn end(&self) -> CpuUse {
        let waited_s = waited_s().zip(self.waited_s);
        CpuUse {
            busiest: CpuTimes::now().busiest_since(&self.times),
            waited_s: waited_s.map(|(after, before)| (after - before).max(0.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 100 800 0 0 0 0 0 0\n\
        cpu0 50 0 50 400 0 0 0 0 0 0\n\
        cpu1 50 0 50 400 0 0 0 0 0 0\n\
        intr 116 0 0\nctxt 5\n";

    fn busiest(after: &str) -> Option<CpuBusy> {
        CpuTimes::parse(after).busiest_since(&CpuTimes::parse(BEFORE))
    }

    #[test]
    fn the_busiest_cpu_is_told_and_waiting_for_the_disk_is_not_busy() {
        let after = "cpu  0 0 0 0 0\n\
            cpu0 50 0 60 410 80 0 0 0 0 0\n\
            cpu1 90 2 80 405 2 0 20 1 0 0\nintr 1\n";
        assert_eq!(busiest(after), Some(CpuBusy { cpu: 1, busy_share: 0.93 }));
    }

    #[test]
    fn a_span_of_no_time_has_no_busiest_cpu() {
        assert_eq!(busiest(BEFORE), None);
        assert_eq!(busiest("cpu0 54 0 54 401 0 0 0 0 0 0\n"), None, "nine ticks");
        assert_eq!(busiest(""), None);
        assert_eq!(busiest("cpu7 900 0 0 0 0 0 0 0 0 0\n"), None, "it was not there before");
        assert_eq!(busiest("cpu0 x\n"), None);
    }

    #[test]
    fn this_machine_has_cpus() {
        assert!(!CpuTimes::now().0.is_empty());
    }
}
