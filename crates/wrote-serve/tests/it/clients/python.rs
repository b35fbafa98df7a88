//! `SysLogHandler` from Python's standard library.

use super::programs::feed;
use super::{assert_same, lines};
use crate::serving::{Serving, socket_path};
use std::process::Command;

const SCRIPT: &str = "
import logging, sys
from logging.handlers import SysLogHandler
from socket import SOCK_DGRAM, SOCK_STREAM
kind, address = sys.argv[1:]
host, _, port = address.rpartition(':')
handler = SysLogHandler(address if address.startswith('/') else (host, int(port)),
                        socktype=SOCK_STREAM if kind == 'stream' else SOCK_DGRAM)
log = logging.getLogger()
log.addHandler(handler)
log.setLevel(logging.INFO)
for line in open(0, encoding='utf-8', newline='\\n'):
    log.info('%s', line.rstrip('\\n'))
";

#[test]
fn python_delivers_by_every_socket() {
    fixtures::or_skip!(fixtures::is_installed("python3"));
    let lines = lines();
    // 14 is the priority of user.info.
    let sent: Vec<String> = lines.iter().map(|line| format!("<14>{line}")).collect();
    let (_folder, path) = socket_path();
    let path = path.display();
    for (url, kind) in [
        ("tcp://127.0.0.1:0".to_owned(), "stream"),
        ("udp://127.0.0.1:0".to_owned(), "datagram"),
        (format!("unix://{path}?frame=nul"), "stream"),
        (format!("unixgram://{path}"), "datagram"),
    ] {
        let serving = Serving::start(&url, |_| ());
        let address =
            if url.contains(":0") { serving.address().to_owned() } else { path.to_string() };
        feed(&serving, Command::new("python3").args(["-c", SCRIPT, kind, &address]), &lines);
        assert_same(serving.stop(), &sent);
    }
}
