//! rsyslog with `omrelp`, and with `omfwd` in both framings.

use super::programs::{provided, unpacked};
use super::{COUNT, assert_same, lines};
use crate::serving::Serving;
use fixtures::Running;
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

/// A running rsyslog that forwards its input unchanged.
pub struct Rsyslog {
    running: Running,
    input: PathBuf,
    _folder: TempDir,
}

impl Rsyslog {
    /// Starts rsyslog with an action. The error is the reason to skip a test.
    pub fn start(action: &str) -> Result<Rsyslog, String> {
        let mut command = unpacked("usr/sbin/rsyslogd")?;
        let folder = tempfile::tempdir().expect("a folder");
        let (input, configuration) = (folder.path().join("input"), folder.path().join("conf"));
        let (work, socket) = (folder.path().display(), input.display());
        let text = format!(
            r#"global(workDirectory="{work}" maxMessageSize="64k"
                      parser.escapeControlCharactersOnReceive="off")
               module(load="imptcp")
               module(load="omrelp")
               template(name="raw" type="string" string="%rawmsg%")
               input(type="imptcp" path="{socket}" supportOctetCountedFraming="off")
               action({action} target="127.0.0.1" template="raw" action.resumeRetryCount="-1"
                      action.resumeInterval="1")"#
        );
        std::fs::write(&configuration, text).expect("its configuration");
        let modules = format!("clients/usr/lib/{}-linux-gnu/rsyslog", std::env::consts::ARCH);
        let modules = provided(&modules)?;
        command.args(["-n", "-iNONE", "-f"]).arg(configuration).arg("-M").arg(modules);
        // rsyslog reports the server's restart on standard error.
        let mut running = Running::start(command.stderr(Stdio::piped()));
        running.until("rsyslog's socket", || UnixStream::connect(&input).ok());
        Ok(Rsyslog { running, input, _folder: folder })
    }

    pub fn give(&self, lines: &[String]) {
        let mut stream = UnixStream::connect(&self.input).expect("rsyslog listens");
        stream.write_all((lines.join("\n") + "\n").as_bytes()).expect("rsyslog reads");
    }

    /// Ends rsyslog as its operator would.
    pub fn end(mut self) {
        self.running.send(Signal::TERM);
        self.running.finish();
    }
}

fn relp(serving: &Serving) -> String {
    format!(r#"type="omrelp" port="{}""#, serving.port())
}

#[test]
#[ignore = "nightly"]
fn omrelp_delivers_and_says_goodbye() {
    let lines = lines();
    let serving = Serving::start("relp://127.0.0.1:0", |_| ());
    let rsyslog = fixtures::or_skip!(Rsyslog::start(&relp(&serving)));
    assert_delivers(rsyslog, serving, &lines);
}

/// Asserts that each line is acknowledged and stored exactly once, and that rsyslog then exits.
#[track_caller]
pub fn assert_delivers(rsyslog: Rsyslog, serving: Serving, lines: &[String]) {
    rsyslog.give(lines);
    serving.wait_until(|figures| figures.acks == COUNT as u64);
    rsyslog.end();
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.figures().refused, 0);
    assert_same(serving.stop(), lines);
}

#[test]
#[ignore = "nightly"]
fn omrelp_loses_nothing_when_the_server_is_restarted_in_the_middle() {
    let lines = lines();
    let serving = Serving::start("relp://127.0.0.1:0", |_| ());
    let rsyslog = fixtures::or_skip!(Rsyslog::start(&relp(&serving)));
    let (before, after) = lines.split_at(COUNT / 2);
    rsyslog.give(before);
    serving.wait_until(|figures| figures.messages > 100);
    let serving = serving.restart();
    rsyslog.give(after);
    // An unanswered message is resent, and may then occur twice in the log.
    let last = lines.last().unwrap().as_bytes();
    while !serving.records().iter().any(|message| message == last) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    rsyslog.end();
    let mut messages = serving.stop();
    messages.sort();
    messages.dedup();
    assert_same(messages, &lines);
}

#[test]
#[ignore = "nightly"]
fn omfwd_delivers_lines_and_octet_counts() {
    let lines = lines();
    for (frame, framing) in [
        ("lines", r#""traditional""#),
        ("octets", r#""octet-counted""#),
        ("octets", r#""octet-counted" zipLevel="9""#),
    ] {
        let serving = Serving::start(&format!("tcp://127.0.0.1:0?frame={frame}"), |_| ());
        let port = serving.port();
        let action = format!(r#"type="omfwd" port="{port}" protocol="tcp" tcp_framing={framing}"#);
        let rsyslog = fixtures::or_skip!(Rsyslog::start(&action));
        rsyslog.give(&lines);
        serving.wait_until(|figures| figures.messages == COUNT as u64);
        rsyslog.end();
        assert_eq!(serving.figures().refused, 0);
        assert_same(serving.stop(), &lines);
    }
}
