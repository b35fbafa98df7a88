//! Process metrics under the standard names of Prometheus clients.

use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use std::fmt::Write;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the process part of the page. Unavailable figures are omitted.
pub(super) fn figures(started: SystemTime) -> String {
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may contain spaces (proc(5)).
    let fields = status.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<u64> =
        fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let ticks = fields.get(11..13).map(|ticks| ticks[0] + ticks[1]);
    let seconds_of_ticks = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
    let pages = fields.get(21).map(|pages| pages * rustix::param::page_size() as u64);
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
    let families = [
        ("cpu_seconds_total", "counter", "Processor time.", ticks.map(seconds_of_ticks)),
        ("resident_memory_bytes", "gauge", "Memory in RAM.", pages.map(|bytes| bytes as f64)),
        ("open_fds", "gauge", "Open file descriptors.", open.map(|open| open as f64)),
        (
            "max_fds",
            "gauge",
            "The limit of open file descriptors.",
            getrlimit(Resource::Nofile).current.map(|limit| limit as f64),
        ),
        (
            "start_time_seconds",
            "gauge",
            "When the server was started.",
            Some(seconds(started) as f64),
        ),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in families {
        let Some(value) = value else { continue };
        write!(
            text,
            "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\nprocess_{name} {value}\n"
        )
        .expect("a String takes all");
    }
    text
}

/// Returns seconds since 1970.
pub(super) fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
