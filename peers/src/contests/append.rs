//! Many producers and one log: `wrote::Log` in turn with the other ways of a program to append.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::outcome::{Outcome, Unit};
use super::site::Site;
use super::ways::cell_contender;
use lab::tools::failure::{Failure, Tried};

const MESSAGES: u64 = 1_000_000;
/// The bytes of [`MESSAGES`] of the mean length, in whole MiB.
const STREAM: &str = "1096m";

/// A way to append: the program, its option `--by`, its name in the table, and the messages of a
/// run. Rates are compared: a slow way has the number that takes a second or two.
type Way = (&'static str, &'static str, &'static str, u64);

const LOG: Way = ("trial append", "log", "`Log`, `SyncPolicy::No`", MESSAGES);
/// Ways that sync once in the end.
const STRATEGIES: [Way; 7] = [
    LOG,
    ("rivals", "loop", "one task, tokio's `File`", 20_000),
    ("rivals", "mutex", "`Arc<Mutex<File>>`", 20_000),
    ("rivals", "mpsc", "tokio's channel, one writer", 20_000),
    ("rivals", "flume", "flume, `BufWriter`", 500_000),
    ("rivals", "flume-ten", "flume, 10 writers", 500_000),
    ("rivals", "rendezvous", "flume, rendezvous", 50_000),
];

const DURABLE_PRODUCERS: u32 = 64;
const LOG_DURABLE: Way = ("trial append", "log-durable", "`Log`, `SyncPolicy::Always`", 50_000);
const FJALL_GATHERED: Way = ("rivals", "fjall-gathered", "fjall, gathered", 30_000);
const SQLITE_GATHERED: Way = ("rivals", "sqlite-gathered", "SQLite, gathered", 20_000);
/// Logs in which each message is durable.
const LOGS: [Way; 8] = [
    LOG_DURABLE,
    ("rivals", "okaywal", "okaywal", 20_000),
    ("rivals", "fjall", "fjall, `persist` each", 500),
    FJALL_GATHERED,
    ("rivals", "sqlite", "SQLite, a transaction each", 500),
    SQLITE_GATHERED,
    ("rivals", "redis", "redis-server, 64 connections", 20_000),
    ("rivals", "redis-gathered", "redis-server, gathered", 5_000),
];
/// Files by hand, one flush after the other.
const FILE: Way = ("trial append", "file", "write, `fdatasync`", 2_000);
const FILE_PREPARED: Way =
    ("trial append", "file-prepared", "write over zeros, `fdatasync`", 2_000);
/// The messages of every way of one producer.
const MESSAGES_OF_ONE: u64 = 3_000;
/// The condition on wrote's 99th percentile against one flush.
const P99: Condition = Condition::AtMost(2.5);
const CPUINFO: &str = "/proc/cpuinfo";

/// Compares `Log` with the usual strategies, synced once in the end.
pub fn strategies(producers: u32) -> Contest {
    let requirements = Requirement::of_best(Condition::AtLeast(15.0));
    contest(end_words(producers), producers, &STRATEGIES, requirements)
}

/// Compares `Log` with the device's own stream of an equal number of bytes.
pub fn device(site: &Site) -> Result<Vec<Contest>, Failure> {
    let contest = |producers| -> Result<Contest, Failure> {
        let mut contenders = vec![contender(&LOG, producers)];
        for iodepth in [1, 4, 8] {
            let name = format!("append-device-{iodepth}");
            let cell = format!("1m-{iodepth}-registered");
            contenders.push(cell_contender(&name, &cell, STREAM, site)?);
        }
        let asked = Condition::AtLeast(0.95);
        let four_in_flight = Requirement { of: Comparison::Rate, asked, contender: Some(2) };
        Ok(Contest::new(end_words(producers), Unit::Stream, contenders, vec![four_in_flight]))
    };
    [4, 64].into_iter().map(contest).collect()
}

/// Measures short messages by `Log` alone.
pub fn small() -> Result<Contest, Failure> {
    let cpu_hz = cpu_mhz()? * 1e6;
    let command = "trial append --by log --messages 10000000 --producers 4 --shortest 64 \
                   --longest 64 appended";
    let Contender { name, command, run, .. } = Contender::timed(LOG.2, command.to_owned());
    let ours = Contender::new(&name, command, move |site, line| {
        let outcome = run(site, line)?;
        Ok(Outcome { cycles: Some(outcome.cpu_s * cpu_hz), ..outcome })
    });
    let asked = Condition::AtLeast(5000.0);
    Ok(Contest::new(
        "10 M of 64 bytes, 4 producers, one sync",
        Unit::Messages,
        vec![ours],
        vec![Requirement { of: Comparison::Own, asked, contender: Some(0) }],
    ))
}

/// Compares `Log` with a file by hand, by 64 producers, each message durable.
pub fn one_flush_at_a_time() -> Contest {
    let mut requirements = Requirement::of_each(Comparison::Rate, &[Condition::AtLeast(20.0); 2]);
    requirements.extend(Requirement::of_each(Comparison::Wait, &[P99; 2]));
    durable(DURABLE_PRODUCERS, &[LOG_DURABLE, FILE, FILE_PREPARED], requirements)
}

/// Compares `Log` with other logs, each message durable: a new one with all of them, and one with
/// retention, in use, with those that a thread gathers for.
pub fn logs() -> Vec<Contest> {
    let new = durable(DURABLE_PRODUCERS, &LOGS, Requirement::of_best(Condition::AtLeast(2.0)));
    let in_use = ("trial append", "log-recycled", "`Log` with retention", 50_000);
    let asked = Requirement::of_each(Comparison::Rate, &[Condition::AtLeast(2.5); 2]);
    vec![new, durable(DURABLE_PRODUCERS, &[in_use, FJALL_GATHERED, SQLITE_GATHERED], asked)]
}

/// Compares `Log` with a file by hand, by one producer, each message durable.
pub fn one_producer() -> Contest {
    let requirements = Requirement::of_each(Comparison::Rate, &[Condition::AtLeast(1.0); 2]);
    let of_one = |(program, by, name, _)| (program, by, name, MESSAGES_OF_ONE);
    durable(1, &[LOG_DURABLE, FILE, FILE_PREPARED].map(of_one), requirements)
}

/// Compares `Log` with a thread that gathers: tasks of tokio, and threads, each message durable.
pub fn gathered() -> Vec<Contest> {
    let contest = |what, producers: u32, messages: u64, ways: [(&str, &str); 2], rate| {
        let contenders = ways.map(|(by, name)| {
            let sizes = "--shortest 500 --longest 500";
            let work = format!("--messages {messages} --producers {producers} {sizes}");
            Contender::timed(name, format!("trial append --by {by} {work} appended"))
        });
        let requirements = [
            Requirement::of_each(Comparison::Rate, &[Condition::AtLeast(rate)]),
            Requirement::of_each(Comparison::P99, &[Condition::AtMost(1.0)]),
        ];
        let what = format!("500 bytes, {what}, each durable");
        Contest::new(what, Unit::Messages, contenders.into(), requirements.concat())
    };
    let recycled = "`Log` with retention";
    let recycled_tasks =
        [("log-recycled-tasks", recycled), ("gathered-tasks", "gathered, awaited")];
    let tasks = [("log-tasks", "`Log`, awaited"), ("gathered-tasks", "gathered, awaited")];
    let threads = [("log-durable", "`Log`"), ("gathered", "gathered")];
    vec![
        contest("64 tasks of tokio", 64, 200_000, tasks, 1.3),
        contest("one task of tokio", 1, MESSAGES_OF_ONE, tasks, 1.0),
        contest("64 threads", 64, 200_000, threads, 1.0),
        contest("64 tasks, recycled segments", 64, 200_000, recycled_tasks, 1.3),
        contest("one task, recycled segments", 1, MESSAGES_OF_ONE, recycled_tasks, 1.0),
    ]
}

/// Measures the bytes for the device, each message durable: by a log that begins segments in the
/// files of removed ones, and by a new log.
pub fn device_bytes() -> Vec<Contest> {
    let contest = |producers, messages, most| {
        let ways = [("log-recycled", "`Log` with retention"), ("log-durable", "`Log`, new")];
        let ways = ways.map(|(by, name)| ("trial append", by, name, messages));
        let asked = Condition::AtMost(most);
        let requirement = Requirement { of: Comparison::Device, asked, contender: Some(0) };
        durable(producers, &ways, vec![requirement])
    };
    vec![contest(DURABLE_PRODUCERS, 50_000, 1.2), contest(1, MESSAGES_OF_ONE, 5.0)]
}

fn durable(producers: u32, ways: &[Way], requirements: Vec<Requirement>) -> Contest {
    let s = if producers == 1 { "" } else { "s" };
    let what = format!("300 to 2000 bytes, {producers} producer{s}, each durable");
    contest(what, producers, ways, requirements)
}

fn end_words(producers: u32) -> String {
    format!("1 M of 300 to 2000 bytes, {producers} producers, one sync")
}

fn contest(what: String, producers: u32, ways: &[Way], requirements: Vec<Requirement>) -> Contest {
    let contenders = ways.iter().map(|way| contender(way, producers)).collect();
    Contest::new(what, Unit::Messages, contenders, requirements)
}

fn contender((program, by, name, messages): &Way, producers: u32) -> Contender {
    let work = format!("--messages {messages} --producers {producers}");
    Contender::timed(name, format!("{program} --by {by} {work} appended"))
}

/// Reads the first processor's frequency (`proc_cpuinfo(5)`). A guest shows its host's nominal one.
fn cpu_mhz() -> Result<f64, Failure> {
    let text = std::fs::read_to_string(CPUINFO).tried(CPUINFO)?;
    parse_mhz(&text).ok_or_else(|| Failure::Failed(format!("{CPUINFO} has no cpu MHz")))
}

fn parse_mhz(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::job;
    use super::super::site::fake;
    use super::*;

    fn measured(contest: Contest) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 1000);
        let table = contest.measure(&site).expect("scripts").table;
        (table, fake::calls(&site))
    }

    #[test]
    fn ours_comes_first_and_the_best_of_the_strategies_is_what_is_asked_against() {
        let (table, calls) = measured(strategies(64));
        let ours = "trial append --by log --messages 1000000 --producers 64 appended";
        assert_eq!(calls[0], ours);
        assert_eq!(calls.len(), 7);
        assert_eq!(calls[4], "rivals --by flume --messages 500000 --producers 64 appended");
        assert_eq!(table.matches("≥ 15.00").count(), 1, "{table}");
    }

    #[test]
    fn short_messages_are_measured_alone() {
        let (table, calls) = measured(small().expect("cpuinfo"));
        let expected = "trial append --by log --messages 10000000 --producers 4 --shortest 64 \
                        --longest 64 appended";
        assert_eq!(calls, [expected]);
        assert_eq!(table.lines().count(), 3, "{table}");
        assert!(table.contains("| cycles each |"), "{table}");
        assert!(table.ends_with("| k/s ≥ 5000.00, not met |"), "{table}");
    }

    #[test]
    fn durable_messages_have_a_line_of_latency_for_each_peer() {
        let [logs, in_use]: [_; 2] = logs().try_into().ok().expect("two");
        for (contest, by, peers) in [
            (one_flush_at_a_time(), "log-durable", 2),
            (logs, "log-durable", 7),
            (in_use, "log-recycled", 2),
            (one_producer(), "log-durable", 2),
        ] {
            let (table, calls) = measured(contest);
            assert_eq!(calls.len(), peers + 1);
            assert!(table.contains("| P50, µs | P99, µs | one flush, µs |"), "{table}");
            assert_eq!(table.matches("| 3000 |").count(), peers + 1, "{table}");
            assert!(calls[0].starts_with(&format!("trial append --by {by} ")), "{calls:?}");
        }
    }

    #[test]
    fn gathered_messages_are_compared_by_rate_and_by_latency() {
        let of = |contest: Contest| measured(contest);
        let [tasks, one, threads, recycled, _]: [_; 5] =
            gathered().into_iter().map(of).collect::<Vec<_>>().try_into().expect("five");
        assert!(tasks.1[0].starts_with("trial append --by log-tasks --messages 200000"));
        assert!(tasks.0.contains("| ≥ 1.30, met; P99 ≤ 1.00, met |"), "{}", tasks.0);
        assert!(one.1[1].contains("--by gathered-tasks --messages 3000 --producers 1 "));
        assert!(threads.1[1].contains("--by gathered --messages"), "{:?}", threads.1);
        assert!(recycled.1[0].contains("--by log-recycled-tasks --messages"), "{:?}", recycled.1);
    }

    #[test]
    fn the_bytes_for_the_device_are_asked_of_a_log_in_use() {
        let [many, one]: [Contest; 2] = device_bytes().try_into().ok().expect("two");
        let (table, calls) = measured(many);
        assert!(calls[0].contains("--by log-recycled --messages 50000 --producers 64 "));
        assert!(table.contains("| device bytes / byte (range) |"), "{table}");
        assert!(table.contains("| device bytes ≤ 1.20, met |"), "{table}");
        assert!(measured(one).1[1].contains("--by log-durable --messages 3000 --producers 1 "));
    }

    #[test]
    fn the_device_is_given_as_many_bytes_as_the_messages_have() {
        let mean_bytes = (300 + 2000) / 2;
        let off = job::bytes(STREAM).expect("a size").abs_diff(MESSAGES * mean_bytes);
        assert!(off < 1 << 20, "{off}");
    }

    #[test]
    fn the_clock_rate_is_the_first_processors() {
        let text = "processor\t: 0\ncpu MHz\t\t: 2649.998\n\nprocessor\t: 1\ncpu MHz\t\t: 1.0\n";
        assert_eq!(parse_mhz(text), Some(2649.998));
        assert_eq!(parse_mhz("processor : 0\n"), None);
    }
}
