//! Writes the metrics in the Prometheus text format.
//!
//! The format is specified at <https://prometheus.io/docs/instrumenting/exposition_formats/>.
//! Labels have few distinct values: reasons, levels, and log names.

use super::Shown;
use crate::channel::Channel;
use crate::channel::shipping::Shipping;
use crate::lock;
use crate::memory::Pool;
use crate::metrics::{Metrics, Reasons, read};
use crate::port::Port;
use crate::refusals::Reason;
use crate::target::Level;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};
use wrote::log::LogStats;

/// The prefix of all metric names.
const PREFIX: &str = "wrote_serve_";

#[derive(Debug, Default)]
struct Page(String);

/// The help texts of all families, by kind and name.
static FAMILIES: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
    LazyLock::new(|| toml::from_str(include_str!("families.toml")).expect("valid families"));

/// Returns the page. Reads the folder of each log.
pub(super) fn write(shown: &Shown) -> String {
    let mut page = Page::default();
    page.connections(shown);
    page.messages(shown);
    page.ack_durations(shown);
    page.settings(shown);
    page.logs(&shown.channels);
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
        self.reasons(shown, "refused_total", |of| &of.refused);
    }

    fn messages(&mut self, shown: &Shown) {
        self.begin("messages_total");
        for port in &shown.ports {
            let answers = port.listen.answers();
            let level = answers.map_or("none", Level::as_str);
            let messages = port.metrics.messages(answers);
            self.of_listener(port, "messages_total", Some(("level", level)), messages);
        }
        self.counts(shown, "bytes_total", |of| &of.bytes_total);
        self.counts(shown, "cut_messages_total", |of| &of.cut_messages_total);
        self.reasons(shown, "rejected_messages_total", |of| &of.rejected);
        self.begin("acks_total");
        for port in &shown.ports {
            if let Some(level) = port.listen.answers() {
                let acks = read(&port.metrics.acks_total[level as usize]);
                self.of_listener(port, "acks_total", Some(("level", level.as_str())), acks);
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
        for port in shown.ports.iter().filter(|port| port.listen.answers().is_some()) {
            let durations = &port.metrics.ack_durations;
            let mut count = 0;
            for (bound, up_to) in durations.cumulated() {
                let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                let bucket = format!("{NAME}_bucket");
                self.of_listener(port, &bucket, Some(("le", &bound)), up_to);
                count = up_to;
            }
            self.of_listener(port, &format!("{NAME}_sum"), None, durations.sum_s());
            self.of_listener(port, &format!("{NAME}_count"), None, count);
        }
    }

    /// Writes the families about certificates and reloads.
    fn settings(&mut self, shown: &Shown) {
        let name = "certificate_expiry_timestamp_seconds";
        self.begin(name);
        for port in &shown.ports {
            if let Some(expires_s) = port.settings.borrow().expires_s.filter(|_| port.listen.is_tls)
            {
                self.of_listener(port, name, None, expires_s);
            }
        }
        let totals = &shown.totals;
        let is_reloaded = totals.is_reloaded.load(Ordering::Relaxed);
        self.gauge("reload_successful", u64::from(is_reloaded));
        let reloaded = *lock(&totals.reloaded);
        self.gauge("reload_success_timestamp_seconds", seconds(reloaded));
    }

    /// Writes a family with one count per listener.
    fn counts(&mut self, shown: &Shown, name: &str, count: fn(&Metrics) -> &AtomicU64) {
        self.begin(name);
        for port in &shown.ports {
            self.of_listener(port, name, None, read(count(&port.metrics)));
        }
    }

    /// Writes a family with one value per listener and reason.
    fn reasons(&mut self, shown: &Shown, name: &str, counts: fn(&Metrics) -> &Reasons) {
        self.begin(name);
        for port in &shown.ports {
            for reason in Reason::ALL {
                let label = ("reason", reason.as_str());
                self.of_listener(
                    port,
                    name,
                    Some(label),
                    read(&counts(&port.metrics)[reason as usize]),
                );
            }
        }
    }

    fn of_listener(
        &mut self,
        port: &Port,
        name: &str,
        label: Option<(&str, &str)>,
        value: impl Display,
    ) {
        let listener = port.listen.to_string();
        let mut labels = vec![("listener", listener.as_str()), ("log", &port.channel.config.name)];
        labels.extend(label);
        self.sample(name, &labels, value);
    }

    fn logs(&mut self, channels: &[Arc<Channel>]) {
        let values: Vec<_> = channels.iter().map(|channel| log_values(channel)).collect();
        for (index, (name, _)) in values[0].iter().enumerate() {
            if values.iter().all(|of_log| of_log[index].1.is_none()) && name.contains("ship") {
                // No log has a store, so the family is left out.
                continue;
            }
            self.begin(name);
            for (channel, of_log) in channels.iter().zip(&values) {
                if let Some(value) = of_log[index].1 {
                    self.sample(name, &[("log", &channel.config.name)], value);
                }
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

/// Returns the families of a log and their values. A failed log has no statistics until it is
/// reopened.
fn log_values(channel: &Channel) -> [(&'static str, Option<f64>); 15] {
    let stats = channel.log().map(|log| log.stats());
    let of = |value: fn(&LogStats) -> u64| stats.as_ref().map(|stats| value(stats) as f64);
    let shipping = channel.config.store.as_ref().map(|_| &channel.shipping);
    let of_shipping =
        |count: fn(&Shipping) -> &AtomicU64| shipping.map(|shipping| read(count(shipping)) as f64);
    let free_bytes = Some(channel.free_bytes()).filter(|bytes| *bytes < u64::MAX);
    [
        ("log_first_sequence", of(|stats| stats.first_sequence)),
        ("log_next_sequence", of(|stats| stats.next_sequence)),
        ("log_written_sequence", of(|stats| stats.written_sequence)),
        ("log_durable_sequence", of(|stats| stats.durable_sequence)),
        ("log_flushes_total", of(|stats| stats.flushes)),
        ("log_batches_total", of(|stats| stats.batches)),
        ("log_written_bytes_total", of(|stats| stats.written_bytes)),
        ("log_flushed_bytes_total", of(|stats| stats.flushed_bytes)),
        ("log_bytes", Some(file_bytes(&channel.config.folder) as f64)),
        ("log_failed", Some(f64::from(u8::from(!channel.takes_messages())))),
        ("disk_free_bytes", free_bytes.map(|bytes| bytes as f64)),
        ("log_shipped_sequence", of_shipping(|of| &of.shipped_sequence)),
        ("log_unshipped_segments", of_shipping(|of| &of.waiting_segments)),
        ("log_ship_failures_total", of_shipping(|of| &of.failures)),
        ("log_flush_seconds_total", stats.map(|stats| stats.flush_time.as_secs_f64())),
    ]
}

/// Returns the total size of the files in a folder. Files that retention removes during the call
/// are not counted.
fn file_bytes(folder: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else {
        // The path may lead to a line file.
        return folder.metadata().map_or(0, |metadata| metadata.len());
    };
    let lens = files.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len());
    lens.sum()
}

/// Escapes a label value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the part of the page about the process, without figures that are unavailable.
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
    let limit = getrlimit(Resource::Nofile).current.map(|limit| limit as f64);
    let bytes = pages.map(|bytes| bytes as f64);
    let started = Some(seconds(started) as f64);
    let families = [
        ("cpu_seconds_total", "counter", "Processor time.", ticks.map(seconds_of_ticks)),
        ("resident_memory_bytes", "gauge", "Memory in RAM.", bytes),
        ("open_fds", "gauge", "Open file descriptors.", open.map(|open| open as f64)),
        ("max_fds", "gauge", "The limit of open file descriptors.", limit),
        ("start_time_seconds", "gauge", "When the server was started.", started),
    ];
    let known = families.into_iter().filter_map(|(name, kind, help, value)| {
        let name = format!("process_{name}");
        Some(format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {}\n", value?))
    });
    known.collect()
}

/// Returns a time as seconds since 1970.
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
