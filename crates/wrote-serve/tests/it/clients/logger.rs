//! `logger` from util-linux.

use super::lines;
use super::programs::feed;
use crate::serving::{Serving, socket_path};
use std::process::Command;

#[test]
fn logger_delivers_by_every_socket() {
    fixtures::or_skip!(fixtures::is_installed("logger"));
    let lines = lines();
    let (_folder, path) = socket_path();
    let path = path.display();
    for (url, flags) in [
        ("tcp://127.0.0.1:0".to_owned(), &["-T"][..]),
        ("tcp://127.0.0.1:0".to_owned(), &["-T", "--octet-count"]),
        ("udp://127.0.0.1:0".to_owned(), &["-d"]),
        (format!("unixgram://{path}"), &["-d"]),
        (format!("unix://{path}"), &["-T"]),
    ] {
        let serving = Serving::start(&url, |_| ());
        let mut logger = Command::new("logger");
        logger.args(flags).args(["--id", "-t", "test"]);
        if url.contains(":0") {
            logger.args(["-n", "127.0.0.1", "-P", serving.port()]);
        } else {
            logger.arg("-u").arg(path.to_string());
        }
        feed(&serving, &mut logger, &lines);
        assert_eq!(serving.figures().refused, 0, "{url}");
        let mut messages = serving.stop();
        // Each message has a header that contains the time.
        for message in &mut messages {
            let line = message.windows(8).position(|part| {
                part[0] == b' ' && part[7] == b' ' && part[1..7].iter().all(u8::is_ascii_digit)
            });
            message.drain(..line.unwrap_or_else(|| panic!("{}", message.escape_ascii())) + 1);
        }
        super::assert_same(messages, &lines);
    }
}
