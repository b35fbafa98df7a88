//! The operators' listener: metrics that add up, liveness and readiness.

use crate::certificates::{Authority, write};
use crate::http::client::{Answer, Client};
use crate::serving::Serving;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use wrote_serve::{Config, Server};

fn start(url: &str, change: impl FnOnce(&mut Config)) -> Serving {
    Serving::start(url, |config| {
        config.metrics = Some("127.0.0.1:0".to_owned());
        change(config);
    })
}

fn get(serving: &Serving, path: &str) -> Answer {
    Client::connect(&serving.metrics_address()).get(path)
}

/// Returns the page's samples by name and labels, without the prefix.
fn metrics(serving: &Serving) -> BTreeMap<String, f64> {
    let page = get(serving, "/metrics");
    let samples = page.text().lines().filter(|line| line.starts_with("wrote_serve_"));
    let of = format!("listener=\"{}\",log=\"log\"", serving.listen);
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let name = name.strip_prefix("wrote_serve_").unwrap();
        // Each test has one listener.
        let name = name.replace(&format!("{of},"), "").replace(&format!("{{{of}}}"), "");
        assert!(!name.contains("listener="), "{name}");
        (name, value.parse().unwrap())
    };
    samples.map(sample).collect()
}

/// Returns the sum of all samples with a name, whatever their labels.
fn sum(metrics: &BTreeMap<String, f64>, name: &str) -> f64 {
    let is_of = |key: &str| key.split('{').next() == Some(name);
    metrics.iter().filter(|(key, _)| is_of(key)).map(|(_, value)| value).sum()
}

#[test]
fn each_message_is_acknowledged_or_rejected_or_in_flight() {
    let serving = start("http://127.0.0.1:0", |_| ());
    let mut client = Client::connect(serving.address());
    for number in 0..10 {
        assert_eq!(client.append(&format!("{number}\nmore\n")).code, 200);
    }
    assert_eq!(client.post("/append", "", &[b'x'; 9000]).code, 413);
    let found = metrics(&serving);
    assert_eq!(sum(&found, "messages_total"), 20.0);
    assert_eq!(found["messages_total{level=\"durable\"}"], 20.0);
    assert_eq!(found["acks_total{level=\"durable\"}"], 20.0);
    assert_eq!(found["rejected_messages_total{reason=\"too_long\"}"], 1.0);
    assert_eq!((found["unacked_messages"], found["unanswered_messages_total"]), (0.0, 0.0));
    assert_eq!(found["ack_duration_seconds_count"], 10.0);
    assert!(found["ack_duration_seconds_sum"] > 0.0);

    // The metrics are checked during a request, and after its client has disconnected.
    let mut client = Client::connect(serving.address());
    client.send(
        b"POST /append?by=lines HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\na\nb\nc\n",
    );
    serving.wait_until(|figures| figures.messages == 23);
    let found = metrics(&serving);
    assert_eq!((found["unacked_messages"], sum(&found, "acks_total")), (3.0, 20.0));
    drop(client);
    serving.wait_until(|figures| figures.unanswered == 3);
    let found = metrics(&serving);
    assert_eq!((found["unacked_messages"], sum(&found, "acks_total")), (0.0, 20.0));
    serving.stop();
}

#[test]
fn each_door_adds_up() {
    let relp =
        "1 open 14 relp_version=0\n2 syslog 2 hi\n0 syslog 4 hint\n3 syslog 2 hi\n4 close 0\n";
    let resp = "RPUSH key a b c\r\nXADD key * f v\r\nQUIT\r\n";
    for (url, stream, messages, acks) in [
        ("relp://127.0.0.1:0", relp, 3.0, 3.0),
        ("resp://127.0.0.1:0?ack=written", resp, 4.0, 4.0),
        ("tcp://127.0.0.1:0", "a\nb\n", 2.0, 0.0),
    ] {
        let serving = start(url, |_| ());
        let mut client = serving.connect();
        client.write_all(stream.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
        serving.wait_until(|figures| figures.connections == 0);
        let found = metrics(&serving);
        assert_eq!(sum(&found, "messages_total"), messages, "{url}");
        assert_eq!(sum(&found, "acks_total"), acks, "{url}");
        assert_eq!(found["unacked_messages"] + found["unanswered_messages_total"], 0.0, "{url}");
        assert_eq!(sum(&found, "ack_duration_seconds_count") > 0.0, acks > 0.0, "{url}");
        serving.stop();
    }
}

#[test]
fn every_metric_has_its_help_its_type_and_a_proper_name() {
    let serving = start("http://127.0.0.1:0", |_| ());
    Client::connect(serving.address()).append("one\n");
    let page = get(&serving, "/metrics");
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let (mut name, mut kind, mut families) = (String::new(), String::new(), Vec::new());
    for line in page.text().lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (of, help) = help.split_once(' ').unwrap();
            let is_prefixed = of.starts_with("wrote_serve_") || of.starts_with("process_");
            assert!(help.ends_with('.') && is_prefixed, "{line}");
            assert!(!families.contains(&of.to_owned()), "{of} comes twice");
            name = of.to_owned();
            families.push(name.clone());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (of, of_kind) = rest.split_once(' ').unwrap();
            assert_eq!(of, name);
            assert_eq!(of.ends_with("_total"), of_kind == "counter", "{line}");
            kind = of_kind.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let of = series.split('{').next().unwrap();
            let tail = of.strip_prefix(name.as_str()).unwrap_or_else(|| panic!("{line}"));
            let tails = ["_bucket", "_sum", "_count"];
            assert_eq!(tails.contains(&tail), kind == "histogram", "{line}");
            assert!(kind == "histogram" || tail.is_empty(), "{line}");
            assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
        }
    }
    // The names in the documentation are checked below. The following metrics have no listener.
    for wanted in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds"] {
        assert!(families.contains(&format!("process_{wanted}")), "{wanted}");
    }
    let found = metrics(&serving);
    assert_eq!(found["log_durable_sequence{log=\"log\"}"], 1.0);
    assert!(found["log_bytes{log=\"log\"}"] > 0.0);
    serving.stop();
}

#[test]
fn a_server_lives_and_is_ready_unless_its_log_takes_nothing_or_it_drains() {
    let serving = start("http://127.0.0.1:0", |_| ());
    assert_eq!((get(&serving, "/livez").code, get(&serving, "/readyz").code), (200, 200));
    assert_eq!(get(&serving, "/").code, 404);
    let mut client = Client::connect(&serving.metrics_address());
    assert_eq!(client.post("/metrics", "", b"x").code, 405);
    // An unfinished request keeps the server running while it drains.
    let mut busy = Client::connect(serving.address());
    busy.send(b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
    let mut idle = Client::connect(serving.address());
    assert_eq!(idle.append("x").code, 200);
    serving.handle().stop();
    let ready = get(&serving, "/readyz");
    assert_eq!((ready.code, ready.text()), (503, "the server is draining\n"));
    assert_eq!(get(&serving, "/livez").code, 200);
    busy.send(b" done");
    assert_eq!(busy.answer().code, 200);
    serving.stop();

    let serving = start("http://127.0.0.1:0", |config| config.limits.free_bytes = u64::MAX);
    // The server's first check of the disk is still in progress.
    while get(&serving, "/readyz").code == 200 {}
    let ready = get(&serving, "/readyz");
    assert!(ready.text().starts_with("log accepts no messages: "), "{}", ready.text());
    assert_eq!(metrics(&serving)["log_failed{log=\"log\"}"], 1.0);
    serving.stop();
}

#[test]
fn a_web_page_reads_no_metrics() {
    let serving = start("http://127.0.0.1:0", |_| ());
    for (host, code) in [("127.0.0.1:9600", 200), ("evil.example", 403)] {
        let mut client = Client::connect(&serving.metrics_address());
        client.send(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(client.answer().code, code, "{host}");
    }
    serving.stop();
}

#[test]
fn clients_that_hold_on_to_connections_delay_no_others() {
    let serving = start("http://127.0.0.1:0", |_| ());
    let began = Instant::now();
    let mut held: Vec<_> = (0..17).map(|_| Client::connect(&serving.metrics_address())).collect();
    assert_eq!(get(&serving, "/livez").code, 200);
    assert!(held[0].is_over(), "the oldest makes room");
    held[16].stream().set_nonblocking(true).unwrap();
    let youngest = held[16].stream().read(&mut [0]).map_err(|error| error.kind());
    // Each connection lives for five seconds. Unless that time has passed, the youngest connection
    // is still open.
    assert!(youngest == Err(ErrorKind::WouldBlock) || began.elapsed() > Duration::from_secs(5));
    drop(held);
    serving.stop();
}

#[test]
fn an_address_that_other_machines_reach_is_refused_in_one_line() {
    let folder = fixtures::folder();
    let listen = vec!["http://127.0.0.1:0".parse().unwrap()];
    let mut config = Config::of_log(&folder.path().join("log"), listen);
    config.metrics = Some("0.0.0.0:0".to_owned());
    let error = Server::start(config.clone()).unwrap_err().to_string();
    assert!(
        error.starts_with("metrics: other machines can reach 0.0.0.0:0: ")
            && error.lines().count() == 1,
        "{error}"
    );
    config.access.is_insecure = true;
    assert!(Server::start(config.clone()).unwrap().metrics_address().is_some());
    config.access.is_insecure = false;
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "secret\n").unwrap();
    config.access.token_file = Some(tokens.clone());
    let serving = start("http://127.0.0.1:0", |own| {
        (own.metrics, own.access) = (config.metrics.clone(), config.access.clone());
    });
    let port = serving.metrics_address();
    let port = port.rsplit(':').next().unwrap();
    let ask = |header: &str| {
        let mut client = Client::connect(&format!("127.0.0.1:{port}"));
        client.send(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n").as_bytes());
        client.answer().code
    };
    let began = Instant::now();
    assert_eq!((ask(""), ask("Authorization: Bearer others\r\n")), (401, 401));
    assert!(began.elapsed() >= Duration::from_millis(300), "a wrong token is not guessed fast");
    assert_eq!(ask("Authorization: Bearer secret\r\n"), 200);
    std::fs::write(&tokens, "new\n").unwrap();
    serving.reload().unwrap();
    assert_eq!(ask("Authorization: Bearer secret\r\n"), 401);
    assert_eq!(ask("Authorization: Bearer new\r\n"), 200);
    serving.stop();
    config.metrics = Some("nowhere".to_owned());
    let error = Server::start(config).unwrap_err().to_string();
    assert!(error.starts_with("http://nowhere: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn each_listener_has_its_own_figures_and_the_document_names_only_what_is_there() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign_until(2090), None);
    let mut serving = start("https://127.0.0.1:0", |config| {
        config.tls = Some(files);
        config.logs[0].listeners.push("resp://127.0.0.1:0".parse().unwrap());
    });
    let page = get(&serving, "/metrics");
    let page = page.text();
    let of = |url: &str, family: &str| {
        let begin = format!("wrote_serve_{family}{{listener=\"{url}");
        let mut lines = page.lines().filter(|line| line.starts_with(&begin));
        let (line, next) = (lines.next(), lines.next());
        assert!(next.is_none(), "{line:?} {next:?}");
        line.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
    };
    assert_eq!((of("https", "connections"), of("resp", "connections")), (Some(0.0), Some(0.0)));
    let expiry = "certificate_expiry_timestamp_seconds";
    let year = of("https", expiry).unwrap() / (365.2425 * 86_400.0) + 1970.0;
    assert!((2089.0..2091.1).contains(&year) && of("resp", expiry).is_none(), "{year}");
    let successful = "\nwrote_serve_reload_successful";
    assert!(page.contains(&format!("{successful} 1\n")));
    serving.config.tls = None;
    serving.reload().unwrap_err();
    assert!(get(&serving, "/metrics").text().contains(&format!("{successful} 0\n")));

    for document in ["serve-operations.md", "serve-dashboard.json", "serve-alerts.yml"] {
        let path = format!("{}/../../docs/{document}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for prefix in ["wrote_serve_", "process_"] {
            for (at, _) in text.match_indices(prefix) {
                let end = text[at..].find(|c| !is_of_name(c)).unwrap();
                let name = &text[at..at + end];
                let is_there = page.contains(&format!("\n{name} "))
                    || page.contains(&format!("\n{name}{{"))
                    || name == prefix;
                assert!(is_there, "{document}: {name}");
            }
        }
    }
    serving.stop();
}
