//! Tests with real clients, each of which must deliver its messages byte for byte.
//!
//! `cargo xtask nightly clients` installs the clients that are not Debian packages, or that
//! conflict with each other, in folders next to the build. It also runs their tests, which are
//! marked `nightly`.

mod curl;
mod logger;
mod programs;
mod promtool;
mod python;
mod redis;
mod rsyslog;
mod tls;

use crate::serving::Serving;
use std::process::Command;

const COUNT: usize = 10_000;

/// Returns distinct one-line messages, some with non-ASCII letters.
fn lines() -> Vec<String> {
    let mut state = 1_u64;
    let mut next = || {
        // Knuth's MMIX generator; any sequence with a long period would do.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut line = |number: usize| {
        let mut line = format!("{number:06} ");
        for _ in 0..next() % 390 {
            line.push(
                char::from_u32(next() as u32 % 0x100).filter(|c| !c.is_control()).unwrap_or('€'),
            );
        }
        // Some clients strip trailing spaces.
        line + "."
    };
    (0..COUNT).map(&mut line).collect()
}

/// Asserts that each message was received exactly once, byte for byte, in any order.
#[track_caller]
fn assert_same(mut messages: Vec<Vec<u8>>, lines: &[impl AsRef<[u8]>]) {
    messages.sort();
    assert_eq!(messages.len(), lines.len());
    for (message, line) in messages.iter().zip(lines) {
        let line = line.as_ref();
        assert!(message == line, "{} is not {}", message.escape_ascii(), line.escape_ascii());
    }
}

#[test]
fn a_shell_sends_a_file_through_its_own_socket() {
    let lines = lines();
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let script = format!("cat > /dev/tcp/127.0.0.1/{}", serving.port());
    programs::feed(&serving, Command::new("bash").args(["-c", &script]), &lines);
    assert_same(serving.stop(), &lines);
}
