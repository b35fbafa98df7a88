//! loggen from syslog-ng: lines, octet counts, datagrams.

use super::programs::unpacked;
use super::{COUNT, assert_same, lines};
use crate::serving::{Serving, socket_path};
use std::path::Path;
use std::process::{Command, Stdio};

/// loggen's datagrams per second; a busy server's buffer holds one second of them.
const DATAGRAM_RATE: u32 = 5_000;

pub fn run(command: &mut Command) {
    command.arg("-n").arg(COUNT.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = fixtures::finish(command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

/// Returns the sorted sequence numbers that loggen put into its messages.
pub fn sequences(messages: &[Vec<u8>]) -> Vec<usize> {
    let sequence = |message: &Vec<u8>| -> Option<usize> {
        let (_, behind) = str::from_utf8(message).ok()?.split_once("seq: ")?;
        behind.split_once(',')?.0.parse().ok()
    };
    let mut all: Vec<_> = messages.iter().map(|message| sequence(message).unwrap()).collect();
    all.sort_unstable();
    all
}

#[test]
#[ignore = "nightly"]
fn loggen_delivers_a_file_as_it_is() {
    let lines = lines();
    let file = fixtures::file();
    std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let mut loggen = fixtures::or_skip!(unpacked("usr/bin/loggen"));
    loggen.args(["-i", "-S", "-d", "-r", "100000", "-R"]).arg(file.path());
    run(loggen.args(["127.0.0.1", serving.port()]));
    serving.wait_until(|figures| figures.messages == COUNT as u64);
    assert_same(serving.stop(), &lines);
}

#[test]
#[ignore = "nightly"]
fn loggen_delivers_what_it_makes_up() {
    let (_folder, path) = socket_path();
    let unix = |scheme: &str| format!("{scheme}://{}", path.display());
    let target = |path: &Path| path.display().to_string();
    for (url, flags) in [
        ("tcp://127.0.0.1:0".to_owned(), &["-i", "-S"][..]),
        ("tcp://127.0.0.1:0?frame=octets".to_owned(), &["-i", "-S", "-P"]),
        ("udp://127.0.0.1:0".to_owned(), &["-i", "-D"]),
        (unix("unix"), &["-x", "-S"]),
        (unix("unixgram"), &["-x", "-D"]),
    ] {
        let serving = Serving::start(&url, |_| ());
        let mut loggen = fixtures::or_skip!(unpacked("usr/bin/loggen"));
        loggen.args(flags).args(["-s", "300", "-r"]);
        loggen.arg(if flags.contains(&"-D") { DATAGRAM_RATE } else { 100_000 }.to_string());
        match flags[0] {
            "-i" => run(loggen.args(["127.0.0.1", serving.port()])),
            _ => run(loggen.arg(target(&path))),
        }
        serving.wait_until(|figures| figures.messages == COUNT as u64);
        assert_eq!(serving.figures().refused, 0, "{url}");
        let messages = serving.stop();
        assert_eq!(sequences(&messages), (0..COUNT).collect::<Vec<_>>(), "{url}");
    }
}
