//! Writes the metrics in Prometheus's text format.
//!
//! The format is <https://prometheus.io/docs/instrumenting/exposition_formats/>. Labels have few
//! values: reasons, levels, and log names.

use super::Shown;
use crate::acks::Level;
use crate::channel::Channel;
use crate::channel::shipping::Shipping;
use crate::memory::Pool;
use crate::metrics::{Counted, Metrics, read};
use crate::refusals::Reason;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use wrote::log::LogStats;

/// The prefix of every metric.
const PREFIX: &str = "wrote_serve_";

#[derive(Debug, Default)]
struct Page(String);

struct LogState<'a> {
    name: &'a str,
    /// `None` after a failure until the log is reopened.
    stats: Option<LogStats>,
    takes_messages: bool,
    /// The size of the files in its folder.
    file_bytes: u64,
    disk_free_bytes: Option<u64>,
    /// Shipping figures, if the log has a store.
    shipping: Option<&'a Shipping>,
}

/// The help of each family, by kind and name.
static FAMILIES: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
    LazyLock::new(|| toml::from_str(include_str!("families.toml")).expect("valid families"));

/// Writes the page. Reads the folder of each log.
pub(super) fn write(shown: &Shown) -> String {
    let mut page = Page::default();
    page.connections(shown);
    page.messages(shown);
    page.ack_durations(shown);
    page.settings(shown);
    page.logs(&shown.channels.iter().map(|channel| LogState::of(channel)).collect::<Vec<_>>());
    page.begin("build_info");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.0 += &process_figures(shown.totals.started);
    page.0
}

impl Page {
    fn connections(&mut self, shown: &Shown) {
        self.counts(shown, "connections", |of| &of.connections);
        self.counts(shown, "paused_connections", |of| &of.paused_connections);
        self.counts(shown, "connections_total", |of| &of.connections_total);
        self.begin("in_flight_bytes");
        for pool in Pool::ALL {
            let held = shown.totals.memory.held(pool);
            self.sample("in_flight_bytes", &[("pool", pool.as_str())], held);
        }
        self.reasons(shown, "refused_total", Metrics::refused);
    }

    fn messages(&mut self, shown: &Shown) {
        self.begin("messages_total");
        for counted in &*shown.counted {
            let answers = counted.listen.answers();
            let level = answers.map_or("none", Level::as_str);
            let messages = counted.metrics.messages(answers);
            self.of_listener(counted, "messages_total", Some(("level", level)), messages);
        }
        self.counts(shown, "bytes_total", |of| &of.bytes_total);
        self.counts(shown, "cut_messages_total", |of| &of.cut_messages_total);
        self.reasons(shown, "rejected_messages_total", Metrics::rejected);
        self.begin("acks_total");
        for counted in &*shown.counted {
            if let Some(level) = counted.listen.answers() {
                let acks = counted.metrics.acks(level);
                self.of_listener(counted, "acks_total", Some(("level", level.as_str())), acks);
            }
        }
        self.counts(shown, "unacked_messages", |of| &of.unacked_messages);
        self.counts(shown, "unanswered_messages_total", |of| &of.unanswered_messages_total);
        self.counts(shown, "udp_dropped_total", |of| &of.udp_dropped_total);
        self.counts(shown, "udp_truncated_total", |of| &of.udp_truncated_total);
    }

    fn ack_durations(&mut self, shown: &Shown) {
        const NAME: &str = "ack_duration_seconds";
        self.begin(NAME);
        let answering = |counted: &&Counted| counted.listen.answers().is_some();
        for counted in shown.counted.iter().filter(answering) {
            let durations = &counted.metrics.ack_durations;
            let mut count = 0;
            for (bound, up_to) in durations.cumulated() {
                let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                let bucket = format!("{NAME}_bucket");
                self.of_listener(counted, &bucket, Some(("le", &bound)), up_to);
                count = up_to;
            }
            self.of_listener(counted, &format!("{NAME}_sum"), None, durations.sum_s());
            self.of_listener(counted, &format!("{NAME}_count"), None, count);
        }
    }

    /// Writes certificates and reloads.
    fn settings(&mut self, shown: &Shown) {
        let name = "certificate_expiry_timestamp_seconds";
        self.begin(name);
        for counted in &*shown.counted {
            if let Some(expires_s) = counted.settings.borrow().expires_s {
                self.of_listener(counted, name, None, expires_s);
            }
        }
        let totals = &shown.totals;
        let is_reloaded = totals.is_reloaded.load(Ordering::Relaxed);
        self.gauge("reload_successful", u64::from(is_reloaded));
        let reloaded = *totals.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.gauge("reload_success_timestamp_seconds", seconds(reloaded));
    }

    /// Writes a family with one count per listener.
    fn counts(&mut self, shown: &Shown, name: &str, count: fn(&Metrics) -> &AtomicU64) {
        self.begin(name);
        for counted in &*shown.counted {
            self.of_listener(counted, name, None, read(count(&counted.metrics)));
        }
    }

    /// Writes a family with one value per listener and reason.
    fn reasons(&mut self, shown: &Shown, name: &str, value: fn(&Metrics, Reason) -> u64) {
        self.begin(name);
        for counted in &*shown.counted {
            for reason in Reason::ALL {
                let label = ("reason", reason.as_str());
                self.of_listener(counted, name, Some(label), value(&counted.metrics, reason));
            }
        }
    }

    fn of_listener(
        &mut self,
        counted: &Counted,
        name: &str,
        label: Option<(&str, &str)>,
        value: impl Display,
    ) {
        let listener = counted.listen.to_string();
        let mut labels = vec![("listener", listener.as_str()), ("log", &counted.log)];
        labels.extend(label);
        self.sample(name, &labels, value);
    }

    fn logs(&mut self, logs: &[LogState<'_>]) {
        self.of_logs(logs, "log_first_sequence", |log| Some(log.stats.as_ref()?.first_sequence));
        self.of_logs(logs, "log_next_sequence", |log| Some(log.stats.as_ref()?.next_sequence));
        self.of_logs(logs, "log_written_sequence", |log| {
            Some(log.stats.as_ref()?.written_sequence)
        });
        self.of_logs(logs, "log_durable_sequence", |log| {
            Some(log.stats.as_ref()?.durable_sequence)
        });
        self.of_logs(logs, "log_flushes_total", |log| Some(log.stats.as_ref()?.flushes));
        self.of_logs(logs, "log_batches_total", |log| Some(log.stats.as_ref()?.batches));
        self.of_logs(logs, "log_written_bytes_total", |log| {
            Some(log.stats.as_ref()?.written_bytes)
        });
        self.of_logs(logs, "log_flushed_bytes_total", |log| {
            Some(log.stats.as_ref()?.flushed_bytes)
        });
        self.of_logs(logs, "log_bytes", |log| Some(log.file_bytes));
        self.of_logs(logs, "log_failed", |log| Some(u64::from(!log.takes_messages)));
        self.of_logs(logs, "disk_free_bytes", |log| log.disk_free_bytes);
        if logs.iter().any(|log| log.shipping.is_some()) {
            let name = "log_shipped_sequence";
            self.of_logs(logs, name, |log| log.shipping.map(Shipping::shipped_sequence));
            let name = "log_unshipped_segments";
            self.of_logs(logs, name, |log| log.shipping.map(Shipping::waiting_segments));
            let name = "log_ship_failures_total";
            self.of_logs(logs, name, |log| log.shipping.map(Shipping::failures));
        }
        self.of_logs(logs, "log_flush_seconds_total", |log| {
            Some(log.stats.as_ref()?.flush_time.as_secs_f64())
        });
    }

    /// Writes a family with one value per log, where it has one.
    fn of_logs<V: Display>(
        &mut self,
        logs: &[LogState<'_>],
        name: &str,
        value: fn(&LogState<'_>) -> Option<V>,
    ) {
        self.begin(name);
        for log in logs {
            if let Some(value) = value(log) {
                self.sample(name, &[("log", log.name)], value);
            }
        }
    }

    fn gauge(&mut self, name: &str, value: u64) {
        self.begin(name);
        self.sample(name, &[], value);
    }

    fn begin(&mut self, name: &str) {
        let mut kinds = FAMILIES.iter();
        let family = kinds.find_map(|(kind, families)| Some((kind, families.get(name)?)));
        let (kind, help) = family.expect("a family of families.toml");
        self.put(format_args!("# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.put(format_args!("{PREFIX}{name}"));
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            self.put(format_args!("{before}{label}=\"{}\"", escaped(text)));
        }
        let behind = if labels.is_empty() { "" } else { "}" };
        self.put(format_args!("{behind} {value}\n"));
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.0.write_fmt(arguments).expect("a String takes all");
    }
}

impl LogState<'_> {
    fn of(channel: &Channel) -> LogState<'_> {
        let free_bytes = channel.free_bytes();
        LogState {
            name: &channel.config.name,
            stats: channel.log().map(|log| log.stats()),
            takes_messages: channel.takes_messages(),
            file_bytes: file_bytes(&channel.config.folder),
            disk_free_bytes: (free_bytes < u64::MAX).then_some(free_bytes),
            shipping: channel.config.store.as_ref().map(|_| &channel.shipping),
        }
    }
}

/// Returns the size of the files in a folder. Retention may remove one in the meantime.
fn file_bytes(folder: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    let lens = files.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len());
    lens.sum()
}

/// Escapes a label value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the process part of the page. Unavailable figures are omitted.
fn process_figures(started: SystemTime) -> String {
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
fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_families_are_those_of_prometheus() {
        assert!(FAMILIES.keys().eq(["counter", "gauge", "histogram"]), "{:?}", FAMILIES.keys());
    }

    #[test]
    fn a_label_may_hold_any_text() {
        let mut page = Page::default();
        page.sample("x", &[("log", "a\"b\\c\nd"), ("le", "1")], 5);
        assert_eq!(page.0, "wrote_serve_x{log=\"a\\\"b\\\\c\\nd\",le=\"1\"} 5\n");
    }
}
