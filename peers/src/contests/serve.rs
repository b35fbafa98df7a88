//! Many connections and one server: `wrote serve` in turn with servers that take the same messages.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::outcome::{Outcome, Percentiles, Unit};
use super::served::{Kind, Place, Served};
use super::site::Site;
use super::wrote;
use lab::tools::failure::{Failure, Tried};

/// Bytes of a message.
const MESSAGE_BYTES: u64 = 500;
/// Runs of redis-benchmark: connections, commands in flight on each, and messages.
const REDIS: [(u32, u32, u32); 6] = [
    (1, 1, 5_000),
    (1, 16, 50_000),
    (1, 128, 300_000),
    (64, 1, 150_000),
    (64, 16, 500_000),
    (64, 128, 1_000_000),
];

/// Compares lines on TCP with rsyslog and syslog-ng: none syncs.
pub fn lines() -> Vec<Contest> {
    let peers = [("rsyslog, imptcp", Kind::Rsyslog), ("syslog-ng, network", Kind::SyslogNg)];
    let against = |place| lines_against(&peers, place, 5.0);
    [Place::Disk, Place::Memory].into_iter().flat_map(against).collect()
}

/// Compares lines on TCP with a reader that throws them away.
pub fn floor() -> Vec<Contest> {
    lines_against(&[("the lines read alone", Kind::Reader)], Place::Disk, 0.6)
}

fn lines_against(peers: &[(&str, Kind)], place: Place, asked: f64) -> Vec<Contest> {
    let contest = |connections| {
        let all = [&[("wrote serve", Kind::Wrote)], peers].concat();
        let contender = |(name, kind)| generated(name, kind, "tcp", connections, None, place);
        let on = if place == Place::Memory { ", on tmpfs" } else { "" };
        Contest::new(
            format!("lines of {MESSAGE_BYTES} B, {connections} connections, not synced{on}"),
            Unit::Messages,
            all.into_iter().map(contender).collect(),
            Requirement::of_best(Condition::AtLeast(asked)),
        )
    };
    [1, 64, 1000].map(contest).into()
}

/// Compares RELP with rsyslog, which syncs its file: wrote acknowledges what is durable.
pub fn relp() -> Vec<Contest> {
    let contenders = [("wrote serve", Kind::Wrote), ("rsyslog, imrelp", Kind::Rsyslog)];
    let contest = Contest::new(
        format!("RELP, {MESSAGE_BYTES} B, 64 connections, window 128, synced"),
        Unit::Messages,
        contenders
            .map(|(name, kind)| generated(name, kind, "relp", 64, Some(128), Place::Disk))
            .into(),
        Requirement::of_best(Condition::AtLeast(5.0)),
    );
    vec![contest]
}

/// Compares `XADD` with redis-server, each message durable before its answer.
pub fn resp() -> Vec<Contest> {
    let contest = |(connections, window, messages)| {
        let rate = if connections == 1 { 1.0 } else { 1.5 };
        let asked = [
            (Comparison::Rate, Condition::AtLeast(rate)),
            (Comparison::P99, Condition::AtMost(1.0)),
        ];
        Contest::new(
            format!(
                "XADD, {MESSAGE_BYTES} B, connections: {connections}, window: {window}, durable"
            ),
            Unit::Messages,
            [("wrote serve", Kind::Wrote), ("redis-server", Kind::Redis)]
                .map(|(name, kind)| redis_benchmark(name, kind, connections, window, messages))
                .into(),
            asked.map(|(of, asked)| Requirement { of, asked, contender: Some(1) }).into(),
        )
    };
    REDIS.map(contest).into()
}

/// Compares requests of HTTP with nats-server, each message durable before its answer.
pub fn http() -> Vec<Contest> {
    let contest = Contest::new(
        format!("{MESSAGE_BYTES} B, 64 connections, 100 messages at a time, durable"),
        Unit::Messages,
        vec![
            generated("wrote serve, HTTP", Kind::Wrote, "http", 64, Some(100), Place::Disk),
            nats_load("nats-server, JetStream", 64, 100, 4_000),
        ],
        Requirement::of_best(Condition::AtLeast(5.0)),
    );
    vec![contest]
}

/// nats-server under the load of a program of its own.
fn nats_load(name: &str, connections: u32, window: u32, messages: u32) -> Contender {
    let load = format!(
        "nats-load -url nats://127.0.0.1:PORT -connections {connections} -window {window} \
         -messages {messages} -size {MESSAGE_BYTES}"
    );
    let command = format!("{} &\n{load}", Kind::Nats.line("nats"));
    Contender::new(name, command, move |site: &Site, _: &str| {
        let served = Served::start(site, Kind::Nats, "nats")?;
        let line = served.told(&load);
        let mut outcome = Outcome::of_line(&site.run(&line)?.stdout, &line)?;
        let used = served.used()?;
        (outcome.cpu_s, outcome.memory_bytes) = (used.cpu_s, Some(used.memory_bytes));
        Ok(outcome)
    })
}

/// A server under the load of `wrote bench`. The clock runs until everything is in its file.
fn generated(
    name: &str,
    kind: Kind,
    scheme: &'static str,
    connections: u32,
    window: Option<u32>,
    place: Place,
) -> Contender {
    let window = window.map(|window| format!(" --window {window}")).unwrap_or_default();
    let load = format!(
        "wrote bench . --only serve --server-url {scheme}://127.0.0.1:PORT --server-pid PID \
         --connections {connections}{window} --time 2s --runs 1 --format json"
    );
    let command = format!("{} &\n{load}", kind.line(scheme));
    Contender::new(name, command, move |site: &Site, _: &str| {
        let served = Served::start_in(place, site, kind, scheme)?;
        let stdout = site.run(&served.told(&load))?.stdout;
        let mut outcome = generator(&stdout)?;
        // Its queues hold messages yet.
        outcome.elapsed_s += served.finish()?.as_secs_f64();
        Ok(outcome)
    })
}

/// Reads the only row of the scenario `serve`.
fn generator(stdout: &str) -> Result<Outcome, Failure> {
    let document = wrote::parse(stdout)?;
    let row = wrote::rows(&document).next().ok_or_else(|| wrote::lacks("serve", "row"))?;
    let run = &row["runs"][0];
    let percentile = |key: &str| run["latency_ns"][key].as_u64();
    let latency_ns = percentile("p50").zip(percentile("p99"));
    let outcome = wrote::outcome(row, "serve")?;
    Ok(Outcome {
        operations: outcome.bytes / MESSAGE_BYTES,
        memory_bytes: run["max_rss_bytes"].as_u64(),
        latency_ns: latency_ns.map(|(p50, p99)| Percentiles { p50, p99 }),
        ..outcome
    })
}

/// A server under the load of redis-benchmark.
fn redis_benchmark(
    name: &str,
    kind: Kind,
    connections: u32,
    window: u32,
    messages: u32,
) -> Contender {
    let value = "x".repeat(MESSAGE_BYTES as usize);
    let load = format!(
        "redis-benchmark -p PORT -c {connections} -P {window} -n {messages} --csv \
         XADD log '*' message"
    );
    let command = format!("{} &\n{load} VALUE", kind.line("resp"));
    Contender::new(name, command, move |site: &Site, _: &str| {
        let served = Served::start(site, kind, "resp")?;
        let line = format!("{} {value}", served.told(&load));
        let mut outcome = benchmark(&site.run(&line)?.stdout, messages)?;
        let used = served.used()?;
        (outcome.cpu_s, outcome.memory_bytes) = (used.cpu_s, Some(used.memory_bytes));
        served.finish()?;
        Ok(outcome)
    })
}

/// Reads the last line of `redis-benchmark --csv`: the command, requests a second, and latencies in
/// milliseconds, the average, least, 50th, 95th and 99th percentile and the most.
fn benchmark(stdout: &str, messages: u32) -> Result<Outcome, Failure> {
    let line = stdout.trim_end().lines().last().unwrap_or_default();
    let figures: Vec<&str> = line.rsplit(',').map(|field| field.trim_matches('"')).collect();
    let [_, p99, _, p50, _, _, rate, ..] = figures[..] else {
        return Err(Failure::Failed(format!("redis-benchmark printed '{line}'")));
    };
    let number = |text: &str| text.parse::<f64>().tried("redis-benchmark's figures");
    let ns = |text: &str| number(text).map(|ms| (ms * 1e6) as u64);
    Ok(Outcome {
        bytes: u64::from(messages) * MESSAGE_BYTES,
        operations: messages.into(),
        elapsed_s: f64::from(messages) / number(rate)?,
        latency_ns: Some(Percentiles { p50: ns(p50)?, p99: ns(p99)? }),
        ..Outcome::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_redis_benchmark_are_read() {
        let stdout = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                      \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                      \"XADD log * message x\",\"50000.00\",\"1.5\",\"0.1\",\
                      \"1.250\",\"2.0\",\"3.5\",\"9.0\"\n";
        let outcome = benchmark(stdout, 100_000).expect("figures");
        assert_eq!((outcome.operations, outcome.elapsed_s), (100_000, 2.0));
        assert_eq!(outcome.latency_ns, Some(Percentiles { p50: 1_250_000, p99: 3_500_000 }));
        let message = benchmark("Could not connect\n", 1).expect_err("no figures").to_string();
        assert_eq!(message, "redis-benchmark printed 'Could not connect'");
    }

    #[test]
    fn the_row_of_the_generator_is_read() {
        let stdout = r#"{"scenarios": [{"rows": [{"runs": [{"bytes": 5000, "elapsed_s": 0.5,
            "cpu_user_s": 0.1, "cpu_system_s": 0.2, "max_rss_bytes": 1048576,
            "latency_ns": {"p50": 10, "p99": 20}}]}]}]}"#;
        let outcome = generator(stdout).expect("a row");
        assert_eq!((outcome.operations, outcome.memory_bytes), (10, Some(1 << 20)));
        assert_eq!(outcome.latency_ns, Some(Percentiles { p50: 10, p99: 20 }));
    }
}
