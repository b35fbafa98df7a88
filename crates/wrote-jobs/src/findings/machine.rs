//! Findings on the machine: its clock, CPUs, limits, temperature and links.

use super::{Evidence, stayed_in_memory};
use crate::machine::host::SLOW_CLOCKS;
use crate::machine::watch::{Heat, Link};
use serde::Serialize;
use std::collections::BTreeMap;
use wrote_result::document::{CpuBusy, Direction, Finding, Flush, Ioengine, Limit, Row, Run, View};
use wrote_result::stats::median;
use wrote_result::units::rate;

/// A row is limited by its control group if it reaches this share of the group's limit.
const LIMIT_SHARE_MIN: f64 = 0.85;
/// A row above this multiple of the limit is not limited by it: the kernel does not charge such
/// writes to the group.
const LIMIT_SHARE_MAX: f64 = 1.5;
/// A process that was stopped for this share of the time was slowed down.
const STOPPED_SHARE_MIN: f64 = 0.01;
/// A row is limited by the CPU if its threads ran, or waited for a CPU, for this share of the time.
const USED_SHARE_MIN: f64 = 0.9;
/// If threads wait for a CPU for more than this share of the time, there are too many of them, and
/// additional threads would only wait longer.
const WAITED_SHARE_MIN: f64 = 0.1;
/// A clock is slow if reading it takes longer than this.
const CLOCK_READ_NS_MAX: f64 = 1000.0;

/// Returns a finding for each kind of device limit that a row came close to.
pub(super) fn held(evidence: &Evidence) -> Vec<Finding> {
    let mut tightest: Vec<&Limit> = Vec::new();
    for limit in &evidence.target.limits {
        match tightest.iter_mut().find(|known| known.of == limit.of) {
            Some(known) if limit.most < known.most => *known = limit,
            Some(_) => {}
            None => tightest.push(limit),
        }
    }
    tightest.into_iter().filter_map(|limit| held_to(evidence, limit)).collect()
}

fn held_to(evidence: &Evidence, limit: &Limit) -> Option<Finding> {
    let device = evidence.target.device.as_ref()?;
    let iops: &[Figure] = &[|run, _| run.iops, device_writes_per_s];
    let bytes_per_s: &[Figure] = &[|run, _| run.throughput_bytes_per_s, device_bytes_per_s];
    let (direction, figures) = match limit.of.as_str() {
        "read_bytes_per_s" => (Direction::Read, bytes_per_s),
        "write_bytes_per_s" => (Direction::Write, bytes_per_s),
        "read_iops" => (Direction::Read, iops),
        "write_iops" => (Direction::Write, iops),
        _ => return None,
    };
    // The device's bytes include the journal's, and other programs', which the limit may not cover.
    let reached = |row: &Row| {
        let own = row.direction == direction && stayed_in_memory(evidence, row) != Some(true);
        let figures = figures.iter().filter(|_| own);
        let mut values = figures.filter_map(|figure| {
            let values: Vec<f64> = row.runs.iter().map(|run| figure(run, direction)).collect();
            (!values.is_empty()).then(|| median(&values))
        });
        let near = LIMIT_SHARE_MIN * limit.most..=LIMIT_SHARE_MAX * limit.most;
        values.find(|value| near.contains(value))
    };
    let near = |row| Some((row, reached(row)?));
    let (rows, values): (Vec<&Row>, Vec<f64>) = evidence.rows.iter().filter_map(near).unzip();
    let most = values.into_iter().reduce(f64::max)?;
    let done = if direction == Direction::Read { "read" } else { "written" };
    let amount = |value: f64| match limit.of.ends_with("iops") {
        true => format!("{value:.0} operations a second"),
        false => rate(value),
    };
    let text = format!(
        "Limited to {} by a control group, not by the device: {} was {done} at {}. Raise the limit \
         ({}) to measure the device",
        amount(limit.most),
        device.name,
        amount(most),
        limit.from,
    );
    Finding::warning("throttled", text)
        .about(&rows)
        .with("limit", &limit.of)
        .with("most", limit.most)
        .with("reached", most)
        .with("from", &limit.from)
        .into()
}

/// Returns the device's write operations per second; 0 for reads, where the row's own operations
/// suffice. A transaction of a program is several operations of the device, and so is a flush of
/// new blocks.
fn device_writes_per_s(run: &Run, direction: Direction) -> f64 {
    let writes = run.device_writes.filter(|_| direction == Direction::Write);
    writes.unwrap_or(0) as f64 / run.elapsed_s.max(f64::MIN_POSITIVE)
}

/// A figure of a run, in one direction, that a control group can limit.
type Figure = fn(&Run, Direction) -> f64;

/// Returns the device's rate, or the file's rate if the device does not count bytes.
fn device_bytes_per_s(run: &Run, direction: Direction) -> f64 {
    let moved = match direction {
        Direction::Read => run.device_read_bytes,
        Direction::Write => run.device_written_bytes,
    };
    moved.unwrap_or(run.bytes) as f64 / run.elapsed_s.max(f64::MIN_POSITIVE)
}

/// Finds that the kernel stopped the process because its control group had used up its CPU time.
pub(super) fn stopped(evidence: &Evidence) -> Option<Finding> {
    let watched = &evidence.watched;
    let throttled = watched.cpu_throttled.filter(|throttled| throttled.periods > 0)?;
    if throttled.stopped_s < STOPPED_SHARE_MIN * watched.elapsed_s {
        return None;
    }
    let limits = evidence.target.limits.iter().filter(|limit| limit.of == "cpus");
    let least = limits.min_by(|a, b| a.most.total_cmp(&b.most));
    let held =
        least.map_or(String::new(), |limit| format!(" of {:.2} CPUs ({})", limit.most, limit.from));
    let text = format!(
        "A control group stopped this process {} times, for {:.1} of {:.1} s: no figure here is \
         the device's. Raise the limit{held} to measure the device",
        throttled.periods, throttled.stopped_s, watched.elapsed_s,
    );
    Finding::warning("throttled", text)
        .with("limit", "cpus")
        .with("most", least.map(|limit| limit.most))
        .with("from", least.map(|limit| &limit.from))
        .with("periods_stopped", throttled.periods)
        .with("stopped_s", throttled.stopped_s)
        .with("elapsed_s", watched.elapsed_s)
        .into()
}

pub(super) fn cpu_limited(evidence: &Evidence) -> Option<Finding> {
    let busy = |row| Some((row, busy_cpu(evidence, row)?));
    let (rows, busy): (Vec<&Row>, Vec<CpuUse>) = evidence.rows.iter().filter_map(busy).unzip();
    let most = busy.iter().max_by(|a, b| a.used_share.total_cmp(&b.used_share))?;
    let instead = match most.waited_share > WAITED_SHARE_MIN {
        true => "Use larger blocks, or fewer jobs or threads, or stop other work",
        false => "Use larger blocks, a larger depth or more jobs",
    };
    let text = format!(
        "The CPU was the limit, not the device: threads ran for {:.0} % of the time and waited for \
         a CPU for {:.0} %, and CPU {} was {:.0} % busy. The device may be faster. {instead}",
        most.used_share * 100.0,
        most.waited_share * 100.0,
        most.busiest.cpu,
        most.busiest.busy_share * 100.0,
    );
    let each: BTreeMap<_, _> = rows.iter().map(|row| &row.name).zip(&busy).collect();
    Finding::warning("cpu-limited", text).about(&rows).with("cpu", each).into()
}

/// The CPU use of a run that did not wait for anything else.
#[derive(Serialize)]
struct CpuUse {
    #[serde(flatten)]
    busiest: CpuBusy,
    /// The share of the time for which the row's threads ran.
    used_share: f64,
    /// The share of the time for which they were ready to run but had no CPU.
    waited_share: f64,
}

/// Returns the CPU use of the longest run that a CPU limited; `None` unless such runs took at least
/// half of the time.
fn busy_cpu(evidence: &Evidence, row: &Row) -> Option<CpuUse> {
    let settings = &row.settings.effective;
    // A write to memory waits only for a CPU. Rows of messages do not report how many producer
    // threads ran at once. A polling thread keeps a CPU busy while it waits.
    let to_memory =
        row.direction == Direction::Write && !settings.direct && settings.sync == Flush::None;
    // With a rate, a thread spins just before an operation is due.
    let polls =
        settings.iopoll == Some(true) || settings.sqpoll == Some(true) || row.is_open_loop();
    if to_memory
        || polls
        || row.view() == View::Messages
        || stayed_in_memory(evidence, row) == Some(true)
    {
        return None;
    }
    // The threads engine uses one thread for each operation in flight.
    let of_job = if settings.ioengine == Ioengine::Threads { settings.iodepth } else { 1 };
    let threads = f64::from(settings.numjobs.max(1)) * f64::from(of_job.max(1));
    let busy = |run: &Run| {
        let could_s = (run.elapsed_s * threads).max(f64::MIN_POSITIVE);
        let used_share = ((run.cpu_user_s + run.cpu_system_s) / could_s).min(1.0);
        // If there are more threads than CPUs, the threads wait for each other.
        let waited_share = run.cpu_waited_s.unwrap_or(0.0) / could_s;
        let waited_share = waited_share.min(1.0 - used_share);
        Some(CpuUse { busiest: run.cpu_busiest?, used_share, waited_share })
    };
    let is_limited = |run: &&Run| {
        busy(run).is_some_and(|busy| busy.used_share + busy.waited_share >= USED_SHARE_MIN)
    };
    let limited = || row.runs.iter().filter(is_limited);
    let limited_s: f64 = limited().map(|run| run.elapsed_s).sum();
    let elapsed_s: f64 = row.runs.iter().map(|run| run.elapsed_s).sum();
    let longest = limited().max_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    longest.filter(|_| limited_s >= 0.5 * elapsed_s).and_then(busy)
}

pub(super) fn too_hot(evidence: &Evidence) -> Option<Finding> {
    let is_hot = |heat: &&Heat| heat.celsius >= heat.celsius_max;
    let (before, after) = (&evidence.watched.before.heat, &evidence.watched.after.heat);
    let all =
        || after.iter().map(|heat| (heat, "after")).chain(before.iter().map(|h| (h, "before")));
    let (hottest, when) = all()
        .filter(|(heat, _)| is_hot(heat))
        .reduce(|most, next| if next.0.celsius > most.0.celsius { next } else { most })?;
    let Heat { disk, sensor, celsius, celsius_max } = hottest;
    let start = before.iter().find(|heat| heat.disk == *disk && heat.sensor == *sensor);
    let start = start.map(|heat| heat.celsius);
    let text = format!(
        "Drive too hot: {disk} ({sensor}) was at {celsius:.0} \u{b0}C {when} the run, and its own \
         limit is {celsius_max:.0} \u{b0}C. Hot drives slow down. Let it cool, and measure again"
    );
    Finding::warning("too-hot", text)
        .with("disk", disk)
        .with("sensor", sensor)
        .with("celsius", celsius)
        .with("celsius_max", celsius_max)
        .with("celsius_before", start)
        .into()
}

pub(super) fn link_downgraded(evidence: &Evidence) -> Option<Finding> {
    let links = evidence.watched.after.links.iter();
    let slow: Vec<&Link> = links.filter(|link| link.now < link.most).collect();
    if slow.is_empty() {
        return None;
    }
    let shown =
        |link: &&Link| format!("{} is at {} of {} ({})", link.disk, link.now, link.most, link.what);
    let text = format!(
        "The link to the drive is slower than it could be: {}. The figures may be the link's, not \
         the drive's. Check slot and cable",
        slow.iter().map(shown).collect::<Vec<_>>().join(", "),
    );
    Finding::warning("link-downgraded", text).with("links", slow).into()
}

/// Finds that the kernel was still initialising a new ext4 file system when the measurement ended.
pub(super) fn lazy_init(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.target;
    // With this mount option, the kernel does not initialise the tables.
    let is_left = target.mount_options.iter().any(|option| option == "noinit_itable");
    let is_ext4 = target.filesystem == "ext4" && !is_left;
    let text = "The kernel still initialises a new ext4 file system, and its writes slow down \
                yours. Measure again when the thread ext4lazyinit is gone, or make the file \
                system with -E lazy_itable_init=0";
    (is_ext4 && evidence.watched.initialises_ext4).then(|| Finding::warning("lazy-init", text))
}

pub(super) fn slow_clock(evidence: &Evidence) -> Option<Finding> {
    let read_ns = evidence.host.clock_read_ns;
    let clocksource = evidence.host.clocksource.as_deref().unwrap_or("unknown");
    let is_slow = read_ns.is_some_and(|cost| cost > CLOCK_READ_NS_MAX);
    if !is_slow && !SLOW_CLOCKS.contains(&clocksource) {
        return None;
    }
    let read_ns = read_ns.unwrap_or(0.0);
    // A thread reads the clock at most once per operation.
    let share = |row: &Row| {
        let most = row.runs.iter().map(|run| run.iops).fold(0.0, f64::max);
        read_ns * most / 1e9 / f64::from(row.settings.effective.numjobs.max(1))
    };
    let timed = evidence.rows.iter().filter(|row| row.view() != View::Files);
    let most = timed.max_by(|a, b| share(a).total_cmp(&share(b)));
    let of_row = most.map_or(String::new(), |row| {
        let percent = (share(row) * 100.0).min(100.0);
        format!(", up to {percent:.0} % of the shortest operations ({})", row.name)
    });
    let text = format!(
        "Slow clock: reading the clock source {clocksource} adds {read_ns:.0} ns to every \
         latency{of_row}. `dmesg | grep -i clocksource` shows why"
    );
    Finding::warning("slow-clock", text)
        .with("clocksource", clocksource)
        .with("clock_read_ns", read_ns)
        .with("share_max", most.map_or(0.0, share).min(1.0))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{PLAIN, cached, direct, each_run, found, with_device_bytes};
    use crate::machine::watch::{Drives, Throttled, Watched};
    use crate::sample::{evidence, row, target};
    use serde_json::json;
    use wrote_result::document::{Host, Target};

    fn limited(of: &str, most: f64) -> Target {
        let from = "/sys/fs/cgroup/jail/io.max".into();
        Target { limits: vec![Limit { of: of.into(), most, from }], ..target() }
    }

    #[test]
    fn a_row_that_comes_near_to_what_a_control_group_allows_is_throttled() {
        let slow = row("stream/direct-psync", "process-crash", &[0.9e7, 0.95e7, 1.0e7]);
        let target = limited("write_bytes_per_s", 1.0e7);
        let rows = [slow.clone(), cached()];
        let finding = found(&evidence(&target, &rows), "throttled").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["stream/direct-psync"]));
        assert!(
            finding
                .text
                .starts_with("Limited to 10.0 MB/s by a control group, not by the device: sda"),
            "{}",
            finding.text
        );
        // A limit far above the row's rate, and one far below it.
        for most in [1.0e9, 1.0e6] {
            let target = limited("write_bytes_per_s", most);
            assert!(found(&evidence(&target, std::slice::from_ref(&slow)), "throttled").is_none());
        }
        let of_reads = limited("read_bytes_per_s", 1.0e7);
        assert!(found(&evidence(&of_reads, &rows), "throttled").is_none());
        let unlimited = crate::sample::target();
        assert!(found(&evidence(&unlimited, &rows), "throttled").is_none());
        // 1e9 / 512 KiB = 1907 operations per second.
        let operations = limited("write_iops", 2000.0);
        let finding = found(&evidence(&operations, &[direct()]), "throttled").unwrap();
        assert!(finding.text.contains("2000 operations a second"), "{}", finding.text);
        // A transaction of a program is several operations of the device.
        let operations = limited("write_iops", 3000.0);
        let mut commits = row("mine/wal", "power-loss", &[1.0e5]);
        let run = &mut commits.runs[0];
        (run.iops, run.device_writes) = (1400.0, Some((2800.0 * run.elapsed_s) as u64));
        let finding = found(&evidence(&operations, &[commits]), "throttled").unwrap();
        assert!(
            finding.text.contains("was written at 2800 operations a second"),
            "{}",
            finding.text
        );
    }

    #[test]
    fn of_several_limits_of_a_kind_the_tightest_counts() {
        let mut target = limited("write_bytes_per_s", 1.0e7);
        target.limits.push(Limit { most: 1.0e6, ..target.limits[0].clone() });
        let slow = row("stream/direct-psync", "process-crash", &[1.0e6]);
        let finding = found(&evidence(&target, &[slow]), "throttled").unwrap();
        assert_eq!(finding.evidence["most"], json!(1.0e6));
    }

    #[test]
    fn a_process_that_was_stopped_for_its_use_of_cpus_is_throttled() {
        let target = limited("cpus", 0.25);
        let stopped = |periods, stopped_s| {
            let cpu_throttled = Some(Throttled { periods, stopped_s });
            let watched = Watched { elapsed_s: 10.0, cpu_throttled, ..Watched::default() };
            found(&Evidence { watched, ..evidence(&target, &[]) }, "throttled")
        };
        let finding = stopped(70, 5.0).unwrap();
        assert!(finding.text.contains("Raise the limit of 0.25 CPUs"), "{}", finding.text);
        assert!(finding.text.contains("70 times, for 5.0 of 10.0 s"), "{}", finding.text);
        assert!(stopped(1, 0.05).is_none(), "too short to matter");
        assert!(found(&evidence(&target, &[]), "throttled").is_none());
    }

    /// Returns a row whose threads ran, and waited for a CPU, for these shares of the time.
    fn busy(name: &str, used_share: f64, waited_share: f64) -> Row {
        each_run(row(name, "process-crash", &PLAIN), |run| {
            run.cpu_user_s = 0.25 * used_share * run.elapsed_s;
            run.cpu_system_s = 0.75 * used_share * run.elapsed_s;
            run.cpu_waited_s = Some(waited_share * run.elapsed_s);
            run.cpu_busiest = Some(CpuBusy { cpu: 3, busy_share: 0.99 });
        })
    }

    #[test]
    fn a_row_whose_thread_waits_for_nothing_but_a_cpu_is_limited_by_that() {
        let target = target();
        let rows = [busy("small/direct-psync", 0.95, 0.0), direct()];
        let finding = found(&evidence(&target, &rows), "cpu-limited").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["small/direct-psync"]));
        assert_eq!(finding.evidence["cpu"]["small/direct-psync"]["cpu"], json!(3));
        assert!(finding.text.contains("CPU 3 was 99 % busy."), "{}", finding.text);
        assert!(finding.text.contains("a larger depth or more jobs"), "{}", finding.text);
        // Other processes occupy the CPU.
        let rows = [busy("small/direct-psync", 0.4, 0.58)];
        let finding = found(&evidence(&target, &rows), "cpu-limited").unwrap();
        assert!(finding.text.contains("40 % of the time and waited for a CPU for 58 %"));
        assert!(finding.text.contains("fewer jobs or threads"), "{}", finding.text);
    }

    #[test]
    fn a_row_that_waits_or_that_writes_to_memory_is_not_limited_by_a_cpu() {
        let target = target();
        let fast = || busy("small/direct-psync", 0.97, 0.0);
        let mut four = fast();
        four.settings.effective.numjobs = 4;
        let mut polled = fast();
        polled.settings.effective.iopoll = Some(true);
        let mut pool = busy("small/direct-io_uring", 0.7, 3.0);
        pool.settings.effective.ioengine = Ioengine::Threads;
        pool.settings.effective.iodepth = 32;
        let mut at_a_rate = fast();
        at_a_rate.settings.asked.rate_iops = Some(30_000.0);
        let unknown = each_run(fast(), |run| run.cpu_busiest = None);
        let mut once = fast();
        for run in &mut once.runs[1..] {
            (run.cpu_user_s, run.cpu_system_s) = (0.0, 0.0);
        }
        for row in [
            // This row waits for its flushes.
            busy("small/direct-fdatasync-each", 0.2, 0.1),
            busy("small/cached", 0.99, 0.0),
            with_device_bytes(busy("small/cached-fdatasync-at-end", 0.99, 0.0), 0, 0),
            four,
            pool,
            polled,
            at_a_rate,
            unknown,
            once,
        ] {
            let name = row.name.clone();
            assert!(found(&evidence(&target, &[row]), "cpu-limited").is_none(), "{name}");
        }
    }

    #[test]
    fn a_drive_that_calls_itself_too_hot_is_told() {
        let target = target();
        let at = |celsius| Drives {
            heat: vec![Heat {
                disk: "nvme0n1".into(),
                sensor: "Composite".into(),
                celsius,
                celsius_max: 82.0,
            }],
            ..Drives::default()
        };
        let watched = |before, after| {
            let watched = Watched { before: at(before), after: at(after), ..Watched::default() };
            found(&Evidence { watched, ..evidence(&target, &[]) }, "too-hot")
        };
        let finding = watched(50.0, 83.4).unwrap();
        assert!(finding.text.contains("83 \u{b0}C after the run"), "{}", finding.text);
        assert_eq!(finding.evidence["celsius_before"], json!(50.0));
        assert!(watched(82.0, 70.0).unwrap().text.contains("before the run"));
        assert!(watched(50.0, 81.0).is_none());
        assert!(found(&evidence(&target, &[]), "too-hot").is_none());
    }

    #[test]
    fn a_link_that_is_slower_than_it_could_be_is_told() {
        let target = target();
        let link =
            |what: &str, now, most| Link { disk: "sda".into(), what: what.into(), now, most };
        let watched = |links| {
            let after = Drives { links, ..Drives::default() };
            let watched = Watched { after, ..Watched::default() };
            found(&Evidence { watched, ..evidence(&target, &[]) }, "link-downgraded")
        };
        let whole = link("PCI Express, lanes", 4.0, 4.0);
        let finding = watched(vec![whole.clone(), link("SATA, Gbps", 1.5, 6.0)]).unwrap();
        assert!(finding.text.contains("sda is at 1.5 of 6 (SATA, Gbps)"), "{}", finding.text);
        assert_eq!(finding.evidence["links"].as_array().unwrap().len(), 1);
        assert!(watched(vec![whole]).is_none());
    }

    #[test]
    fn a_clock_that_is_slow_to_look_at_is_told_with_what_it_takes_of_an_operation() {
        let (target, rows) = (target(), [row("small/direct-psync", "process-crash", &PLAIN)]);
        let with = |clocksource: &str, clock_read_ns| {
            let evidence = evidence(&target, &rows);
            let clocksource = Some(clocksource.to_owned());
            let host = Host { clocksource, clock_read_ns: Some(clock_read_ns), ..evidence.host };
            found(&Evidence { host, ..evidence }, "slow-clock")
        };
        // 1.02 GB/s in blocks of 4096 bytes is one block every 4 us.
        let finding = with("acpi_pm", 2000.0).unwrap();
        assert!(finding.text.contains("reading the clock source acpi_pm adds 2000 ns"));
        assert!(finding.text.contains("up to 50 %"), "{}", finding.text);
        assert!(with("tsc", 1500.0).is_some(), "a hypervisor that traps it");
        assert!(with("hpet", 800.0).is_some());
        assert!(with("tsc", 900.0).is_none() && with("kvm-clock", 30.0).is_none());
    }
}
