//! Writes the metrics in Prometheus's text format.
//!
//! The format is <https://prometheus.io/docs/instrumenting/exposition_formats/>. Labels have few
//! values: reasons, levels, and log names.

use super::{Shown, process};
use crate::channel::Channel;
use crate::intake::Level;
use crate::limits::Reason;
use crate::memory::Pool;
use crate::metrics::{Counted, Metrics, read};
use crate::shipping::Shipping;
use std::fmt::{Display, Write};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
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

/// Writes the page. Reads the folder of each log.
pub(super) fn write(shown: &Shown) -> String {
    let mut page = Page::default();
    page.connections(shown);
    page.messages(shown);
    page.ack_durations(shown);
    page.settings(shown);
    page.logs(&shown.channels.iter().map(|channel| LogState::of(channel)).collect::<Vec<_>>());
    page.begin("build_info", "gauge", "The version of this program; always 1.");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.0 += &process::figures(shown.totals.started);
    page.0
}

/// The name of a family, its help, and its value for a listener.
type Family = (&'static str, &'static str, fn(&Metrics) -> u64);

impl Page {
    fn connections(&mut self, shown: &Shown) {
        self.each(
            shown,
            "gauge",
            &[
                ("connections", "Connections that are open.", |metrics| read(&metrics.connections)),
                ("paused_connections", "Connections that wait for room in their log.", |metrics| {
                    read(&metrics.paused_connections)
                }),
            ],
        );
        self.each(
            shown,
            "counter",
            &[("connections_total", "Connections accepted so far.", |metrics| {
                read(&metrics.connections_total)
            })],
        );
        let help =
            "Bytes of unfinished messages, of unsent answers, and of clients without a token.";
        self.begin("in_flight_bytes", "gauge", help);
        for pool in Pool::ALL {
            let held = shown.totals.memory.held(pool);
            self.sample("in_flight_bytes", &[("pool", pool.as_str())], held);
        }
        let help = "Connections and requests refused so far, by reason.";
        self.reasons(shown, "refused_total", help, Metrics::refused);
    }

    fn messages(&mut self, shown: &Shown) {
        let help = "Messages that logs have taken so far, by the level of their answers.";
        self.begin("messages_total", "counter", help);
        for counted in &*shown.counted {
            let answers = counted.listen.answers();
            let level = answers.map_or("none", Level::as_str);
            let messages = counted.metrics.messages(answers);
            self.of_listener(counted, "messages_total", Some(("level", level)), messages);
        }
        self.each(
            shown,
            "counter",
            &[
                ("bytes_total", "Bytes of the messages that logs have taken so far.", |metrics| {
                    read(&metrics.bytes_total)
                }),
                (
                    "cut_messages_total",
                    "Messages over the limit of which a part was taken so far.",
                    |metrics| read(&metrics.cut_messages_total),
                ),
                (
                    "repeated_messages_total",
                    "Messages that came again with their key so far, and were not taken again.",
                    |metrics| read(&metrics.repeated_messages_total),
                ),
            ],
        );
        let help = "Messages refused by themselves so far, by reason.";
        self.reasons(shown, "rejected_messages_total", help, Metrics::rejected);
        self.begin("acks_total", "counter", "Messages answered so far, by level.");
        for counted in &*shown.counted {
            if let Some(level) = counted.listen.answers() {
                let acks = counted.metrics.acks(level);
                self.of_listener(counted, "acks_total", Some(("level", level.as_str())), acks);
            }
        }
        self.each(
            shown,
            "gauge",
            &[(
                "unacked_messages",
                "Messages that a log has taken and that wait for their answer.",
                Metrics::unacked_messages,
            )],
        );
        self.each(
            shown,
            "counter",
            &[
                (
                    "unanswered_messages_total",
                    "Messages that a log has taken and whose connection ended before their answer.",
                    |metrics| read(&metrics.unanswered_messages_total),
                ),
                (
                    "udp_dropped_total",
                    "Datagrams dropped by the kernel so far, for want of room in its buffer.",
                    |metrics| read(&metrics.udp_dropped_total),
                ),
                (
                    "udp_truncated_total",
                    "Datagrams cut so far, since they were longer than a message may be.",
                    |metrics| read(&metrics.udp_truncated_total),
                ),
            ],
        );
    }

    fn ack_durations(&mut self, shown: &Shown) {
        const NAME: &str = "ack_duration_seconds";
        let help = "Times from a log's taking of messages to their answer, of one batch of each \
                    connection at a time.";
        self.begin(NAME, "histogram", help);
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
        self.begin(name, "gauge", "When the certificate of a listener expires.");
        for counted in &*shown.counted {
            if let Some(expires_s) = counted.settings.borrow().expires_s {
                self.of_listener(counted, name, None, expires_s);
            }
        }
        let totals = &shown.totals;
        let is_reloaded = totals.is_reloaded.load(Ordering::Relaxed);
        let help = "Whether the last reload of the settings found nothing wrong.";
        self.gauge("reload_successful", help, u64::from(is_reloaded));
        let reloaded = *totals.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        let help = "When the settings in force were read.";
        self.gauge("reload_success_timestamp_seconds", help, process::seconds(reloaded));
    }

    /// Writes families with one value per listener.
    fn each(&mut self, shown: &Shown, kind: &str, families: &[Family]) {
        for (name, help, value) in families {
            self.begin(name, kind, help);
            for counted in &*shown.counted {
                self.of_listener(counted, name, None, value(&counted.metrics));
            }
        }
    }

    /// Writes a family with one value per listener and reason.
    fn reasons(
        &mut self,
        shown: &Shown,
        name: &str,
        help: &str,
        value: fn(&Metrics, Reason) -> u64,
    ) {
        self.begin(name, "counter", help);
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
        type Value = fn(&LogState<'_>) -> Option<u64>;
        let families: [(&str, &str, &str, Value); 14] = [
            (
                "log_first_sequence",
                "gauge",
                "The sequence of the first record that is there.",
                |log| log.stats.as_ref().map(|stats| stats.first_sequence),
            ),
            ("log_next_sequence", "gauge", "The sequence that a log gives next.", |log| {
                log.stats.as_ref().map(|stats| stats.next_sequence)
            }),
            (
                "log_written_sequence",
                "gauge",
                "The sequence before which every record survives a crash of the server.",
                |log| log.stats.as_ref().map(|stats| stats.written_sequence),
            ),
            (
                "log_durable_sequence",
                "gauge",
                "The sequence before which every record survives a power loss.",
                |log| log.stats.as_ref().map(|stats| stats.durable_sequence),
            ),
            ("log_flushes_total", "counter", "Flushes of a log since it was opened.", |log| {
                log.stats.as_ref().map(|stats| stats.flushes)
            }),
            (
                "log_batches_total",
                "counter",
                "Batches of records written since a log was opened.",
                |log| log.stats.as_ref().map(|stats| stats.batches),
            ),
            (
                "log_written_bytes_total",
                "counter",
                "Bytes written to segments, with the padding of blocks, since a log was opened.",
                |log| log.stats.as_ref().map(|stats| stats.written_bytes),
            ),
            (
                "log_flushed_bytes_total",
                "counter",
                "The part of the written bytes that a power loss can't take.",
                |log| log.stats.as_ref().map(|stats| stats.flushed_bytes),
            ),
            ("log_bytes", "gauge", "Bytes of the files of a log.", |log| Some(log.file_bytes)),
            ("log_failed", "gauge", "Whether a log takes no messages now.", |log| {
                Some(u64::from(!log.takes_messages))
            }),
            ("disk_free_bytes", "gauge", "Bytes that are free on the disk of a log.", |log| {
                log.disk_free_bytes
            }),
            (
                "log_shipped_sequence",
                "gauge",
                "The sequence before which every record is in the store of a log.",
                |log| log.shipping.map(Shipping::shipped_sequence),
            ),
            (
                "log_unshipped_segments",
                "gauge",
                "Sealed segments of a log that were not in its store at the last look.",
                |log| log.shipping.map(Shipping::waiting_segments),
            ),
            (
                "log_ship_failures_total",
                "counter",
                "Failed attempts to ship segments of a log so far.",
                |log| log.shipping.map(Shipping::failures),
            ),
        ];
        for (name, kind, help, value) in families {
            // No log has a store.
            if logs.iter().all(|log| log.shipping.is_none()) && name.contains("ship") {
                continue;
            }
            self.begin(name, kind, help);
            for log in logs {
                if let Some(value) = value(log) {
                    self.sample(name, &[("log", log.name)], value);
                }
            }
        }
        let name = "log_flush_seconds_total";
        self.begin(name, "counter", "The time that the flushes of a log took.");
        for log in logs {
            if let Some(stats) = &log.stats {
                self.sample(name, &[("log", log.name)], stats.flush_time.as_secs_f64());
            }
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.begin(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn begin(&mut self, name: &str, kind: &str, help: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_hold_any_text() {
        let mut page = Page::default();
        page.sample("x", &[("log", "a\"b\\c\nd"), ("le", "1")], 5);
        assert_eq!(page.0, "wrote_serve_x{log=\"a\\\"b\\\\c\\nd\",le=\"1\"} 5\n");
    }
}
