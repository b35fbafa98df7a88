//! Messages that are each waited for until they are durable.

use super::super::ratio::Asked;
use super::super::ways::contest::{Asks, Contender, Contest};
use super::super::ways::table::Unit;
use super::{Appends, LatencyLine, Measured, Work};
use crate::failure::Failure;

/// Ours, of many producers and of one.
const MESSAGES: u64 = 50_000;
const MESSAGES_OF_ONE: u64 = 3_000;
const PRODUCERS: u32 = 64;
/// By hand, one flush after the other: rates are compared, so fewer will do.
const BY_HAND: u64 = 2_000;
/// The logs of others, with as many messages as they take in a second or less.
const LOGS: [(&str, &str, u64); 7] = [
    ("okaywal", "okaywal", 20_000),
    ("fjall", "fjall, `persist` each", 500),
    ("fjall-gathered", "fjall, gathered", 30_000),
    ("sqlite", "SQLite, a transaction each", 500),
    ("sqlite-gathered", "SQLite, gathered", 20_000),
    ("redis", "redis-server, 64 connections", 20_000),
    ("redis-gathered", "redis-server, gathered", 5_000),
];
/// How long the slowest of a hundred waits, against one flush.
const P99: Asked = Asked::AtMost(2.5);

/// Against a file by hand, by as many producers.
pub fn one_flush_at_a_time(appends: &Appends) -> Result<Measured, Failure> {
    let contest = Contest {
        what: what(PRODUCERS),
        unit: Unit::Messages,
        ours: ours(appends, MESSAGES, PRODUCERS),
        peers: by_hand(appends, BY_HAND, PRODUCERS),
        asks: Asks::OfEach(vec![Asked::AtLeast(20.0); 2]),
    };
    measure(appends, &contest, Some(P99))
}

/// Against the logs of others, at the same promise.
pub fn logs(appends: &Appends) -> Result<Measured, Failure> {
    let peer = |&(by, name, messages): &(&str, &str, u64)| {
        appends.by_rivals(by, name, Work::usual(messages, PRODUCERS))
    };
    let contest = Contest {
        what: what(PRODUCERS),
        unit: Unit::Messages,
        ours: ours(appends, MESSAGES, PRODUCERS),
        peers: LOGS.iter().map(peer).collect(),
        asks: Asks::OfBest(Asked::AtLeast(2.0)),
    };
    measure(appends, &contest, None)
}

/// Against a file by hand, by a single producer.
pub fn one_producer(appends: &Appends) -> Result<Measured, Failure> {
    let contest = Contest {
        what: what(1),
        unit: Unit::Messages,
        ours: ours(appends, MESSAGES_OF_ONE, 1),
        peers: by_hand(appends, MESSAGES_OF_ONE, 1),
        asks: Asks::OfEach(vec![Asked::AtLeast(1.0); 2]),
    };
    measure(appends, &contest, None)
}

/// The lines, with those of the latencies; `p99` is asked against the flush of each peer.
fn measure(appends: &Appends, contest: &Contest, p99: Option<Asked>) -> Result<Measured, Failure> {
    let measured = Measured::from(contest.measure(appends.rounds)?);
    let latency = |line| LatencyLine::of(line, p99);
    let latencies = measured.lines.iter().map(latency).collect();
    Ok(Measured { latencies, ..measured })
}

fn ours<'a>(appends: &Appends<'a>, messages: u64, producers: u32) -> Contender<'a> {
    let work = Work::usual(messages, producers);
    appends.by_trial("log-durable", "`Log`, `Sync::Always`", work)
}

fn by_hand<'a>(appends: &Appends<'a>, messages: u64, producers: u32) -> Vec<Contender<'a>> {
    let by = [("file", "write, `fdatasync`"), ("file-prepared", "write over zeros, `fdatasync`")];
    let work = Work::usual(messages, producers);
    by.iter().map(|(by, name)| appends.by_trial(by, name, work)).collect()
}

fn what(producers: u32) -> String {
    let s = if producers == 1 { "" } else { "s" };
    format!("300 to 2000 bytes, {producers} producer{s}, each durable")
}
