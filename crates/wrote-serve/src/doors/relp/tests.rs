//! Tests of RELP sessions as librelp sends them, passed in one piece and split at any point.

use super::*;
use crate::fuzzing::{Outcome, drive};
use crate::refusals::Reason;
use proptest::collection::vec;
use proptest::prelude::*;

const MAX: usize = 64;
/// An `open` command from librelp 1.11.
const OPEN: &str = "1 open 86 relp_version=0\n\
     relp_software=librelp,1.11.0,http://librelp.adiscon.com\n\
     commands=syslog\n";

fn of(stream: &[u8]) -> Outcome {
    let whole = drive(Relp::new(Oversize::Refuse), stream, &[], MAX);
    assert_eq!(drive(Relp::new(Oversize::Refuse), stream, &[(1, 0)], MAX), whole, "byte by byte");
    whole
}

fn opened(frames: &[u8]) -> Outcome {
    of(&[OPEN.as_bytes(), frames].concat())
}

/// Returns the answers after the answer to `open`, without the goodbye.
fn answers(outcome: &Outcome) -> &str {
    let answers = str::from_utf8(&outcome.answers).unwrap();
    let (_, behind) = answers.split_once("commands=syslog\n").unwrap();
    behind.strip_suffix("0 serverclose 0\n").unwrap_or(behind)
}

fn frame(transaction: usize, message: &[u8]) -> Vec<u8> {
    let head = format!("{transaction} syslog {}", message.len());
    let separator: &[u8] = if message.is_empty() { b"" } else { b" " };
    [head.as_bytes(), separator, message, b"\n"].concat()
}

#[test]
fn a_session_is_answered_as_librelp_expects() {
    let outcome = opened(b"2 syslog 5 hello\n3 syslog 3 a\nb\n4 close 0\n");
    assert_eq!(outcome.records, [&b"hello"[..], b"a\nb"]);
    let version = env!("CARGO_PKG_VERSION");
    let offers = format!("200 OK\nrelp_version=0\nrelp_software=wrote,{version}\ncommands=syslog");
    let expected = format!(
        "1 rsp {} {offers}\n2 rsp 6 200 OK\n3 rsp 6 200 OK\n4 rsp 6 200 OK\n0 serverclose 0\n",
        offers.len()
    );
    assert_eq!(String::from_utf8(outcome.answers).unwrap(), expected);
    assert_eq!(outcome.refused, None);
}

#[test]
fn the_answered_version_is_never_above_the_offered_one() {
    for (offered, answered) in [("0", "0"), ("1", "1"), ("2", "1"), ("4000000000", "1")] {
        let offers = format!("relp_version={offered}\nunknown=1,2\ncommands=syslog,eventlog");
        let outcome = of(format!("1 open {} {offers}\n", offers.len()).as_bytes());
        let answers = String::from_utf8(outcome.answers).unwrap();
        assert!(answers.contains(&format!("200 OK\nrelp_version={answered}\n")), "{answers}");
    }
    for offers in ["commands=syslog", "relp_version=one", "relp_version="] {
        let outcome = of(format!("1 open {} {offers}\n", offers.len()).as_bytes());
        assert_eq!((outcome.refused, outcome.answers), (Some(Reason::Malformed), Vec::new()));
    }
}

#[test]
fn a_hint_is_never_answered_and_counts_no_transaction() {
    let outcome =
        opened(b"0 greeting 5 hello\n0 syslog 3 one\n2 syslog 3 two\n0 close 0\n3 syslog 0\n");
    assert_eq!(outcome.records, [&b"one"[..], b"two", b""]);
    assert_eq!(answers(&outcome), "2 rsp 6 200 OK\n3 rsp 6 200 OK\n");
    assert_eq!(outcome.refused, None);
}

#[test]
fn after_the_last_number_comes_one() {
    let relp = Relp { next: TRANSACTION_MAX - 1, is_open: true, ..Relp::new(Oversize::Refuse) };
    let stream: Vec<u8> =
        [999_999_998, 999_999_999, 1, 2].iter().flat_map(|&number| frame(number, b"m")).collect();
    let outcome = drive(relp, &stream, &[], MAX);
    assert_eq!((outcome.records.len(), outcome.refused), (4, None));
}

#[test]
fn a_refused_message_has_no_answer_and_those_before_it_have() {
    for (bad, reason) in [
        // Only the next number is accepted.
        (&b"4 syslog 3 bad\n"[..], Reason::Malformed),
        (b"2 syslog 3 bad\n", Reason::Malformed),
        (b"1000000003 syslog 3 bad\n", Reason::Malformed),
        // A second open, commands that may carry a message, and invalid or overlong commands.
        (b"3 open 14 relp_version=0\n", Reason::Malformed),
        (b"3 eventlog 3 bad\n", Reason::Malformed),
        (b"3 rsp 6 200 OK\n", Reason::Malformed),
        (b"3 sys-log 3 bad\n", Reason::Malformed),
        (b"3  3 bad\n", Reason::Malformed),
        (b"3 abcdefghijklmnopqrstuvwxyzabcdefg 3 bad\n", Reason::Malformed),
        // Invalid lengths, which are refused immediately.
        (b"3 syslog 65 b", Reason::TooLong),
        (b"3 eventlog 1025 b", Reason::TooLong),
        (b"3 syslog 999999999 bad\n", Reason::TooLong),
        (b"3 syslog 1234567890 bad\n", Reason::Malformed),
        (b"3 syslog 18446744073709551619 bad\n", Reason::Malformed),
        (b"3 syslog -1 bad\n", Reason::Malformed),
        (b"3 syslog  bad\n", Reason::Malformed),
        (b"3 syslog 2 bad\n", Reason::Malformed),
        (b"3 syslog 0 \n", Reason::Malformed),
        (b"3 syslog 3 badX", Reason::Malformed),
        (b"GET / HTTP/1.1\r\n\r\n", Reason::Malformed),
        (b"\x16\x03\x01\x02\x00\x01\n", Reason::Malformed),
    ] {
        let outcome = opened(&[&b"2 syslog 4 good\n"[..], bad].concat());
        assert_eq!(outcome.refused, Some(reason), "{}", bad.escape_ascii());
        assert_eq!(outcome.records, [b"good"], "{}", bad.escape_ascii());
        assert_eq!(answers(&outcome), "2 rsp 6 200 OK\n", "{}", bad.escape_ascii());
    }
    // Without a session, no commands are accepted.
    for first in [&b"1 syslog 3 bad\n"[..], b"1 close 0\n", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01"]
    {
        let outcome = of(first);
        assert_eq!((outcome.records.len(), outcome.answers.len()), (0, 0));
        assert_eq!(outcome.refused, Some(Reason::Malformed));
    }
}

#[test]
fn a_message_of_the_limit_is_taken_and_one_byte_more_is_refused() {
    let outcome = opened(&frame(2, &[b'x'; MAX]));
    assert_eq!((outcome.records, outcome.refused), (vec![vec![b'x'; MAX]], None));
    let outcome = opened(&frame(2, &[b'x'; MAX + 1]));
    assert_eq!((outcome.records.len(), outcome.refused), (0, Some(Reason::TooLong)));
}

#[test]
fn a_message_over_the_limit_is_answered_and_what_stands_behind_it_is_taken() {
    let frames = [frame(2, &[b'x'; 3 * MAX]), frame(3, b"behind")].concat();
    let stream = [OPEN.as_bytes(), &frames].concat();
    let whole = drive(Relp::new(Oversize::Truncate), &stream, &[], MAX);
    assert_eq!(drive(Relp::new(Oversize::Truncate), &stream, &[(1, 0)], MAX), whole);
    assert_eq!(whole.records, [vec![b'x'; MAX], b"behind".to_vec()]);
    assert_eq!((whole.refused, answers(&whole)), (None, "2 rsp 6 200 OK\n3 rsp 6 200 OK\n"));
    // No sender would use this length.
    let forged = [OPEN.as_bytes(), b"2 syslog 999999999 bad\n"].concat();
    let outcome = drive(Relp::new(Oversize::Truncate), &forged, &[], MAX);
    assert_eq!((outcome.records.len(), outcome.refused), (0, Some(Reason::TooLong)));
}

#[test]
fn half_a_message_is_left_to_be_sent_again() {
    let outcome = opened(b"2 syslog 4 good\n3 syslog 4 hal");
    assert_eq!((outcome.records.len(), outcome.refused), (1, None));
    assert_eq!(answers(&outcome), "2 rsp 6 200 OK\n");
}

#[test]
fn a_line_ending_that_a_template_adds_is_no_part_of_the_message_and_nothing_is_cut() {
    // The messages of rsyslog's `RSYSLOG_SyslogProtocol23Format` end with a line feed.
    let outcome = opened(b"2 syslog 6 good\r\n\n3 syslog 4 lin\n\n");
    assert_eq!(outcome.records, [b"good".to_vec(), b"lin".to_vec()]);
}

proptest! {
    #[test]
    fn the_messages_and_answers_of_a_session_are_the_same_however_it_is_split(
        messages in vec(vec(any::<u8>(), 0..MAX), 0..20),
        damage in proptest::option::of((0usize..400, any::<u8>())),
        cuts in vec((1usize..80, 0usize..4), 1..20),
    ) {
        let mut stream = OPEN.as_bytes().to_vec();
        for (number, message) in (2..).zip(&messages) {
            stream.extend(frame(number, message));
        }
        if let Some((at, byte)) = damage
            && let Some(damaged) = stream.get_mut(at)
        {
            *damaged = byte;
        }
        let whole = of(&stream);
        if damage.is_none() {
            let messages = messages.iter().map(|message| without_trailer(message).to_vec());
            prop_assert_eq!(&whole.records, &messages.collect::<Vec<_>>());
        }
        prop_assert_eq!(drive(Relp::new(Oversize::Refuse), &stream, &cuts, MAX), whole);
    }

    #[test]
    fn garbage_is_refused_and_taken_for_no_message(
        stream in vec(
            prop_oneof![any::<u8>(), proptest::sample::select(&b"012 aopensyslog\n"[..])],
            0..200,
        ),
        cuts in vec((1usize..40, 0usize..4), 1..20),
    ) {
        let whole = of(&stream);
        prop_assert!(whole.records.is_empty());
        prop_assert_eq!(drive(Relp::new(Oversize::Refuse), &stream, &cuts, MAX), whole);
    }
}
