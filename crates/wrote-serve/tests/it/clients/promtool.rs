//! promtool, the checker of metrics that comes with Prometheus.

use super::programs::unpacked;
use crate::serving::Serving;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
#[ignore = "nightly"]
fn promtool_finds_nothing_to_complain_of() {
    let mut promtool = fixtures::or_skip!(unpacked("usr/bin/promtool"));
    let serving = Serving::start("relp://127.0.0.1:0", |config| {
        config.metrics = Some("127.0.0.1:0".to_owned());
        config.logs[0].name = "a \"name\" of\\more\nlines".to_owned();
    });
    serving.connect().write_all(b"1 open 14 relp_version=0\n2 syslog 2 hi\n").unwrap();
    serving.wait_until(|figures| figures.messages == 1 && figures.connections == 0);
    let file = fixtures::file();
    std::fs::write(file.path(), page(&serving.metrics_address())).unwrap();
    promtool.args(["check", "metrics"]).stdin(std::fs::File::open(file.path()).unwrap());
    let finished = fixtures::finish(promtool.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    serving.stop();
}

#[test]
#[ignore = "nightly"]
fn promtool_takes_the_documented_alerts() {
    let mut promtool = fixtures::or_skip!(unpacked("usr/bin/promtool"));
    let alerts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve-alerts.yml");
    promtool.args(["check", "rules", alerts]);
    let finished = fixtures::finish(promtool.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.contains("SUCCESS: 10 rules found"), "{finished:?}");
}
