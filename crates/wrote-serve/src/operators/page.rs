//! The metrics as a page of Prometheus's text format.
//!
//! The format is <https://prometheus.io/docs/instrumenting/exposition_formats/>. Labels have few
//! values: reasons, levels, and the names of logs.

use super::Shown;
use crate::channel::Channel;
use crate::intake::Level;
use crate::limits::Reason;
use crate::memory::Pool;
use crate::metrics::read;
use crate::shipping::Shipping;
use std::fmt::{Display, Write};
use std::path::Path;
use wrote::log::LogStats;

/// The prefix of every name.
const PREFIX: &str = "wrote_serve_";

/// A page that is being written.
#[derive(Debug, Default)]
struct Page(String);

/// The state of a log.
struct LogState<'a> {
    name: &'a str,
    /// `None` while it has failed and is not open again.
    stats: Option<LogStats>,
    takes_messages: bool,
    /// Bytes of the files in its folder.
    file_bytes: u64,
    disk_free_bytes: Option<u64>,
    /// The figures of its shipping, if it has a store.
    shipping: Option<&'a Shipping>,
}

/// Writes the page. It looks at the files of each log.
pub(super) fn write(shown: &Shown) -> String {
    let mut page = Page::default();
    page.connections(shown);
    page.messages(shown);
    page.ack_durations(shown);
    page.logs(&shown.channels.iter().map(|channel| LogState::of(channel)).collect::<Vec<_>>());
    page.begin("build_info", "gauge", "The version of this program; always 1.");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.0
}

impl Page {
    fn connections(&mut self, shown: &Shown) {
        let metrics = &shown.metrics;
        self.gauge("connections", "Connections that are open.", read(&metrics.connections));
        let help = "Connections accepted so far.";
        self.counter("connections_total", help, read(&metrics.connections_total));
        let help = "Connections that wait for room in their log.";
        self.gauge("paused_connections", help, read(&metrics.paused_connections));
        let help =
            "Bytes of unfinished messages, of unsent answers, and of clients without a token.";
        self.begin("in_flight_bytes", "gauge", help);
        for pool in Pool::ALL {
            self.sample("in_flight_bytes", &[("pool", pool.as_str())], metrics.memory.held(pool));
        }
        let help = "Connections and requests refused so far, by reason.";
        self.begin("refused_total", "counter", help);
        for reason in Reason::ALL {
            self.sample("refused_total", &[("reason", reason.as_str())], metrics.refused(reason));
        }
    }

    fn messages(&mut self, shown: &Shown) {
        let metrics = &shown.metrics;
        let help = "Messages that logs have taken so far, by the level of their answers.";
        self.begin("messages_total", "counter", help);
        self.sample("messages_total", &[("level", "none")], metrics.messages(None));
        for level in Level::ALL {
            let labels = [("level", level.as_str())];
            self.sample("messages_total", &labels, metrics.messages(Some(level)));
        }
        let help = "Bytes of the messages that logs have taken so far.";
        self.counter("bytes_total", help, read(&metrics.bytes_total));
        let help = "Messages over the limit of which a part was taken so far.";
        self.counter("cut_messages_total", help, read(&metrics.cut_messages_total));
        let help = "Messages refused by themselves so far, by reason.";
        self.begin("rejected_messages_total", "counter", help);
        for reason in Reason::ALL {
            let labels = [("reason", reason.as_str())];
            self.sample("rejected_messages_total", &labels, metrics.rejected(reason));
        }
        let help = "Messages answered so far, by level.";
        self.begin("acks_total", "counter", help);
        for level in Level::ALL {
            self.sample("acks_total", &[("level", level.as_str())], metrics.acks(level));
        }
        let help = "Messages that a log has taken and that wait for their answer.";
        self.gauge("unacked_messages", help, metrics.unacked_messages());
        let help = "Messages that a log has taken and whose connection ended before their answer.";
        let unanswered = read(&metrics.unanswered_messages_total);
        self.counter("unanswered_messages_total", help, unanswered);
        let help = "Datagrams dropped by the kernel so far, for want of room in its buffer.";
        self.counter("udp_dropped_total", help, read(&metrics.udp_dropped_total));
        let help = "Datagrams cut so far, since they were longer than a message may be.";
        self.counter("udp_truncated_total", help, read(&metrics.udp_truncated_total));
    }

    fn ack_durations(&mut self, shown: &Shown) {
        let durations = &shown.metrics.ack_durations;
        let help = "Times from a log's taking of messages to their answer, of one batch of each \
                    connection at a time.";
        self.begin("ack_duration_seconds", "histogram", help);
        let mut count = 0;
        for (bound, up_to) in durations.cumulated() {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            self.sample("ack_duration_seconds_bucket", &[("le", &bound)], up_to);
            count = up_to;
        }
        self.sample("ack_duration_seconds_sum", &[], durations.sum_s());
        self.sample("ack_duration_seconds_count", &[], count);
    }

    fn logs(&mut self, logs: &[LogState<'_>]) {
        type Value = fn(&LogState<'_>) -> Option<u64>;
        let families: [(&str, &str, &str, Value); 10] = [
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
            // No log is shipped.
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
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.begin(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.begin(name, "counter", help);
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

/// Returns the bytes of the files in a folder. Retention may remove one meanwhile.
fn file_bytes(folder: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    let lens = files.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len());
    lens.sum()
}

/// Escapes the value of a label, as the format wants it.
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
