//! Advice on how many threads or tasks should append short messages to one file, and findings on
//! messages that a method lost or reordered.

#[cfg(test)]
mod examples;

use crate::choice::{Choice, body_of, per_s};
use crate::names::is_below;
use std::ops::Add;
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Advice, Finding, Records, Row, Severity, View, fastest};
use wrote_result::units::nanoseconds;

const EXAMPLES: &str = include_str!("advice/examples.rs");

/// The rows that may be recommended: the first part of the name, the advice, and the function whose
/// body is shown. The other methods are slower variants of these methods, and a loop serves only
/// one producer.
const WAYS: [(&str, &str, &str); 6] = [
    ("append/log-no", "Append to a wrote::Log, and sync as often as durability requires", "log_no"),
    ("append/log-everysec", "Append to a wrote::Log that is synced each second", "log_everysec"),
    ("append/log-always", "Append to a wrote::Log, and wait for each ticket", "log_always"),
    ("append/mutex", "Write to one tokio file behind a lock", "mutex"),
    ("append/mpsc", "Send to one task that writes, through tokio's mpsc channel", "mpsc"),
    (
        "append/flume-bufwriter",
        "Send to one thread that writes through a BufWriter, through a flume channel",
        "flume_bufwriter",
    ),
];

/// Recommends a method of the safest level that kept every message, and states its lead over the
/// usual methods and the speed of messages that may be lost. `None` if fewer than two methods can
/// be recommended.
pub(crate) fn advise(evidence: &Evidence) -> Option<Advice> {
    let usable =
        |row: &&Row| row.view() == View::Messages && row.has_all_records() && way(row).is_some();
    let rows: Vec<&Row> = evidence.rows.iter().filter(usable).collect();
    if rows.len() < 2 {
        return None;
    }
    let safest = rows.iter().map(|row| row.survives).max()?;
    let of_level = || rows.iter().copied().filter(|row| row.survives == safest);
    let Choice { row, .. } = Choice::of(of_level())?;
    let (action, function) = way(row)?;
    let level = safest.map_or(String::new(), |level| format!(" (survives {level})"));
    let mut because = format!("{}{level}: {}", row.name, told(row));
    let usual = fastest(of_level().filter(|row| !row.name.starts_with("append/log-")));
    if let Some(usual) = usual.filter(|usual| usual.name != row.name) {
        because += &format!(
            "; {} times {} ({}), the fastest of the usual ways",
            row.times(usual),
            usual.name,
            messages_per_s(usual),
        );
    }
    if let Some(faster) = fastest(rows.iter().copied().filter(|of| of.survives < safest)) {
        because += &format!(
            ". Where messages may be lost, {} reaches \
                             {}",
            faster.name,
            told(faster)
        );
    }
    Some(Advice {
        purpose: "short messages from many threads or tasks".into(),
        action: action.into(),
        because,
        code: body_of(EXAMPLES, function),
        recipe: row.name.starts_with("append/log-").then(|| "Appending records".into()),
        ..Advice::default()
    })
}

fn way(row: &Row) -> Option<(&'static str, &'static str)> {
    let (_, action, function) = WAYS.iter().find(|(name, ..)| is_below(&row.name, name))?;
    Some((action, function))
}

fn messages_per_s(row: &Row) -> String {
    format!("{} messages/s", per_s(row))
}

/// Describes the speed and the latency of a row.
fn told(row: &Row) -> String {
    let speed = messages_per_s(row);
    match row.latency_ns.and_then(|of| of.known_p99()) {
        Some(p99) => format!("{speed}, P99 {}", nanoseconds(p99)),
        None => speed,
    }
}

/// The method whose writers overwrite each other's messages: an example not to follow.
const LOSES: &str = "append/flume-10-files";

/// Finds lost messages, and messages whose order has changed.
pub(super) fn find(evidence: &Evidence) -> [Option<Finding>; 3] {
    [records_lost(evidence, false), records_lost(evidence, true), records_out_of_order(evidence)]
}

fn total(rows: &[&Row]) -> Records {
    let runs = rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.records);
    runs.fold(Records::default(), Add::add)
}

/// Finds the rows that lost messages: the rows that are expected to if `as_expected`, otherwise all
/// other rows.
fn records_lost(evidence: &Evidence, as_expected: bool) -> Option<Finding> {
    let is_one = |row: &Row| !row.has_all_records() && is_below(&row.name, LOSES) == as_expected;
    let rows = evidence.rows_where(is_one)?;
    let Records { sent, lost, torn, doubled, .. } = total(&rows);
    let (claim, severity) = match as_expected {
        true => ("Not a fault of this disk, but of ten handles without O_APPEND", Severity::Info),
        false => ("Data loss", Severity::Critical),
    };
    let more = [
        (torn > 0).then(|| format!(", and {torn} places of the file hold pieces")),
        (doubled > 0).then(|| format!(", and {doubled} are there twice")),
    ];
    let more: String = more.into_iter().flatten().collect();
    let text = format!(
        "{claim}: {lost} of {sent} messages were lost or torn{more}. Such a speed is worthless. \
         Open the file once, and let one thread write"
    );
    Finding::new("records-lost", severity, text)
        .about(&rows)
        .with("sent", sent)
        .with("lost", lost)
        .with("torn", torn)
        .with("doubled", doubled)
        .into()
}

fn records_out_of_order(evidence: &Evidence) -> Option<Finding> {
    let is_turned = |row: &Row| row.has_all_records() && total(&[row]).out_of_order > 0;
    let rows = evidence.rows_where(is_turned)?;
    let Records { sent, out_of_order, .. } = total(&rows);
    let text = format!(
        "Order not kept: {out_of_order} of {sent} messages appear after a message submitted later. \
         Where order matters, let one thread write"
    );
    Finding::info("records-out-of-order", text)
        .about(&rows)
        .with("sent", sent)
        .with("out_of_order", out_of_order)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{appended, evidence, target};
    use std::fs;
    use wrote_result::document::Records;
    use wrote_result::document::Survives;

    const WHOLE: Records =
        Records { sent: 1000, whole: 1000, lost: 0, torn: 0, doubled: 0, out_of_order: 0 };

    fn way(name: &str, messages_per_s: f64) -> Row {
        appended(name, messages_per_s, WHOLE)
    }

    fn advice(rows: &[Row]) -> Option<Advice> {
        advise(&evidence(&target(), rows))
    }

    #[test]
    fn the_safest_is_advised_with_the_gain_of_messages_that_may_be_lost() {
        let always =
            Row { survives: Some(Survives::PowerLoss), ..way("append/log-always/64", 2e5) };
        let rows = [
            way("append/mutex", 1e5),
            way("append/flume-bufwriter", 4e5),
            way("append/log-no/4", 2e6),
            always,
        ];
        let safe = advice(&rows).unwrap();
        assert!(safe.action.ends_with("wait for each ticket"), "{safe:?}");
        assert!(safe.because.starts_with("append/log-always/64 (survives power-loss)"), "{safe:?}");
        assert!(safe.because.contains("may be lost, append/log-no/4 reaches 2.00 M"), "{safe:?}");
        assert!(safe.code.contains("log.append(message)?"), "{safe:?}");
        // Without a durable row, the reason names the level.
        let unsafe_one = advice(&rows[..3]).unwrap();
        assert!(unsafe_one.because.contains("(survives nothing)"), "{unsafe_one:?}");
        assert!(unsafe_one.because.contains("5.00 times append/flume-bufwriter"), "{unsafe_one:?}");
    }

    #[test]
    fn a_way_of_ours_that_does_not_win_is_not_advised() {
        let rows = [way("append/mpsc", 2e5), way("append/log-no/4", 1e5)];
        let advice = advice(&rows).unwrap();
        assert!(advice.action.starts_with("Send to one task"), "{advice:?}");
        assert!(!advice.because.contains("times"), "{advice:?}");
    }

    #[test]
    fn a_way_that_loses_messages_is_never_advised() {
        let torn = Records { whole: 999, lost: 1, ..WHOLE };
        let rows = [
            way("append/mutex", 1e5),
            way("append/mpsc", 9e4),
            appended("append/flume-bufwriter", 9e5, torn),
        ];
        let found = advice(&rows).unwrap();
        assert!(found.because.starts_with("append/mutex (survives nothing): "), "{found:?}");
        assert!(advice(&rows[..1]).is_none(), "there is nothing to choose");
    }

    #[test]
    fn the_lines_that_are_shown_write_the_message() {
        let folder = fixtures::folder();
        let (path, message) = (folder.path().join("file"), b"hello".to_vec());
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let written = || {
            assert_eq!(fs::read(&path).unwrap(), message);
            fs::remove_file(&path).unwrap();
        };
        runtime.block_on(examples::mutex(&path, &message)).unwrap();
        written();
        runtime.block_on(examples::mpsc(&path, message.clone())).unwrap();
        written();
        examples::flume_bufwriter(&path, message.clone()).unwrap();
        written();
        type Example = fn(&std::path::Path, &[u8]) -> Result<(), Box<dyn std::error::Error>>;
        let logs: [Example; 3] = [examples::log_no, examples::log_everysec, examples::log_always];
        for (number, append) in logs.into_iter().enumerate() {
            let log = folder.path().join(format!("log-{number}"));
            append(&log, &message).unwrap();
            let records: Vec<_> = wrote::LogReader::open(&log, 0).unwrap().collect();
            let [Ok(record)] = &records[..] else { panic!("{number}: {records:?}") };
            assert_eq!((record.sequence, &record.bytes), (0, &message), "{number}");
        }
        for (name, _, function) in WAYS {
            assert!(body_of(EXAMPLES, function).contains('?'), "{name}");
        }
    }
}

#[cfg(test)]
mod findings_tests {
    use super::*;
    use crate::sample::{appended, evidence, target};
    use serde_json::json;
    use wrote_result::finding::IDS;

    const WHOLE: Records =
        Records { sent: 1000, whole: 1000, lost: 0, torn: 0, doubled: 0, out_of_order: 0 };

    fn found(rows: &[Row], id: &str) -> Option<Finding> {
        assert!(IDS.contains(&id));
        find(&evidence(&target(), rows)).into_iter().flatten().find(|finding| finding.id == id)
    }

    #[test]
    fn a_way_that_loses_records_is_named_with_how_many() {
        let torn = Records { whole: 400, lost: 600, torn: 70, out_of_order: 9, ..WHOLE };
        let rows = [appended("append/mutex", 1e5, WHOLE), appended("append/ten", 2e5, torn)];
        let finding = found(&rows, "records-lost").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["append/ten"]));
        assert_eq!(finding.evidence["lost"], json!(3 * 600));
        assert!(finding.text.contains("1800 of 3000 messages"), "{}", finding.text);
        assert!(!finding.text.contains("twice") && finding.severity == Severity::Critical);
        // If records are lost, their order is not reported.
        assert!(found(&rows, "records-out-of-order").is_none());
        assert!(found(&rows[..1], "records-lost").is_none());
        let twice = Records { doubled: 1, ..WHOLE };
        let text = found(&[appended("append/mutex", 1e5, twice)], "records-lost").unwrap().text;
        assert!(text.contains("3 are there twice"), "{text}");
    }

    #[test]
    fn a_way_that_overwrites_its_own_records_by_design_is_no_warning() {
        let torn = Records { whole: 400, lost: 600, torn: 70, ..WHOLE };
        let rows = [appended(LOSES, 1e5, torn), appended("append/mutex", 2e5, torn)];
        let both = find(&evidence(&target(), &rows)).into_iter().flatten();
        let both: Vec<_> = both.map(|of| (of.severity, of.evidence["rows"].clone())).collect();
        let of = |severity, name: &str| (severity, json!([name]));
        let expected =
            [of(Severity::Critical, "append/mutex"), of(Severity::Info, "append/flume-10-files")];
        assert_eq!(both, expected);
        let text = found(&rows[..1], "records-lost").unwrap().text;
        assert!(text.contains("ten handles without O_APPEND: 1800 of"));
    }

    #[test]
    fn a_way_that_keeps_no_order_is_named() {
        let turned = Records { out_of_order: 12, ..WHOLE };
        let rows = [appended("append/mutex", 1e5, turned), appended("append/loop", 1e5, WHOLE)];
        let finding = found(&rows, "records-out-of-order").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["append/mutex"]));
        assert!(finding.text.contains("36 of 3000 messages"), "{}", finding.text);
        assert!(found(&rows[1..], "records-out-of-order").is_none());
    }
}
