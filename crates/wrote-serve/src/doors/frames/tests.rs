//! Tests of framing: each stream is passed in one piece, and split at any point.

use super::*;
use crate::fuzzing::{Outcome, drive};
use crate::refusals::Reason;
use proptest::collection::vec;
use proptest::prelude::*;

const MAX: usize = 32;
const FRAMES: [Frame; 4] = Frame::ALL;

fn of(frame: Frame, stream: &[u8]) -> Outcome {
    with(frame, Oversize::Refuse, stream)
}

fn with(frame: Frame, oversize: Oversize, stream: &[u8]) -> Outcome {
    let frames = || Frames::new(frame, oversize);
    let whole = drive(frames(), stream, &[], MAX);
    assert_eq!(drive(frames(), stream, &[(1, 0)], MAX), whole, "byte by byte");
    whole
}

/// Asserts which messages `stream` contains, and how it ends.
#[track_caller]
fn assert_is(frame: Frame, stream: &[u8], messages: &[&[u8]], refused: Option<Reason>) {
    let outcome = of(frame, stream);
    assert_eq!((outcome.records, outcome.refused), (owned(messages), refused));
}

fn owned(messages: &[&[u8]]) -> Vec<Vec<u8>> {
    messages.iter().map(|message| message.to_vec()).collect()
}

/// Frames messages in the way a sender does.
fn framed(frame: Frame, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = Vec::new();
    for message in messages {
        match frame {
            Frame::Lines | Frame::Auto => stream.extend_from_slice(&[message, &b"\n"[..]].concat()),
            Frame::Nul => stream.extend_from_slice(&[message, &b"\0"[..]].concat()),
            Frame::Octets => {
                stream.extend_from_slice(format!("{} ", message.len()).as_bytes());
                stream.extend_from_slice(message);
            }
        }
    }
    stream
}

#[test]
fn a_line_ends_with_lf_or_crlf_and_the_last_one_with_the_stream() {
    assert_is(Frame::Lines, b"one\ntwo\r\n\n\r\nthr\ree", &[b"one", b"two", b"thr\ree"], None);
    assert_is(Frame::Lines, b"cut in its CRLF\r", &[b"cut in its CRLF"], None);
    assert_is(Frame::Nul, b"one\0two\n\0three\nlines\n", &[b"one", b"two", b"three\nlines"], None);
}

#[test]
fn a_counted_message_is_taken_with_every_byte_but_one_trailer() {
    let inside = b"a\nb\0c\x1b[2Jd";
    let stream = framed(Frame::Octets, &[inside.to_vec(), b"crlf\r\n".to_vec(), b"nul\0".to_vec()]);
    assert_is(Frame::Octets, &stream, &[inside, b"crlf", b"nul"], None);
    assert_is(Frame::Octets, b"6 lf lf\n1 \n2 hi", &[b"lf lf", b"hi"], None);
}

#[test]
fn a_message_of_the_limit_is_taken_and_one_byte_more_is_refused() {
    for frame in FRAMES {
        let stream = |len: usize| framed(frame, &[b"first".to_vec(), vec![b'x'; len]]);
        assert_is(frame, &stream(MAX), &[b"first", &[b'x'; MAX]], None);
        for len in [MAX + 1, MAX + 2, MAX + 3, 10 * MAX] {
            assert_is(frame, &stream(len), &[b"first"], Some(Reason::TooLong));
        }
    }
    // Bytes that are removed do not count towards the length.
    assert_is(Frame::Lines, &[&[b'x'; MAX][..], b"\r\n"].concat(), &[&[b'x'; MAX]], None);
    assert_is(Frame::Lines, &[b'x'; MAX + 1], &[], Some(Reason::TooLong));
    let stream = framed(Frame::Octets, &[[&[b'x'; MAX][..], b"\r\n"].concat()]);
    assert_is(Frame::Octets, &stream, &[&[b'x'; MAX]], None);
}

#[test]
fn a_message_over_the_limit_leaves_its_beginning_and_blocks_none() {
    for frame in FRAMES {
        for len in [MAX + 1, MAX + 2, MAX + 3, 10 * MAX] {
            let stream = framed(frame, &[b"first".to_vec(), vec![b'x'; len], b"behind".to_vec()]);
            let truncated = with(frame, Oversize::Truncate, &stream);
            assert_eq!(truncated.records, owned(&[b"first", &[b'x'; MAX], b"behind"]), "{len}");
            assert_eq!(truncated.refused, None);
        }
    }
    for len in [MAX + 1, MAX + 2, 3 * MAX] {
        let ended = with(Frame::Lines, Oversize::Truncate, &vec![b'x'; len]);
        assert_eq!((ended.records, ended.refused), (owned(&[&[b'x'; MAX]]), None), "{len}");
    }
    // No sender would use these counts.
    for stream in [&b"2 ok999999999 forged\n"[..], b"2 ok1234567890 forged\n"] {
        let outcome = with(Frame::Octets, Oversize::Truncate, stream);
        assert_eq!((outcome.records, outcome.refused), (owned(&[b"ok"]), Some(Reason::TooLong)));
    }
}

#[test]
fn a_wrong_count_ends_the_connection_and_its_payload_is_no_message() {
    for (stream, reason) in [
        (&b"2 ok0 \nforged\n"[..], Reason::Malformed),
        (b"2 ok00000000002 ab", Reason::Malformed),
        (b"2 ok1234567890 forged\n", Reason::TooLong),
        (b"2 ok18446744073709551616 forged\n", Reason::TooLong),
        (b"2 ok18446744073709551618 forged\n", Reason::TooLong),
        (b"2 ok35 forged\n", Reason::TooLong),
        (b"2 ok-1 forged\n", Reason::Malformed),
        (b"2 ok forged\n", Reason::Malformed),
        (b"2 ok12\nforged\n", Reason::Malformed),
        (b"2 ok<13>forged\n", Reason::Malformed),
        (b"2 ok9 forged\n", Reason::Malformed),
        (b"2 ok9", Reason::Malformed),
    ] {
        assert_is(Frame::Octets, stream, &[b"ok"], Some(reason));
    }
}

#[test]
fn each_message_is_framed_as_its_first_bytes_say() {
    let stream =
        b"one\n9 <13>\xe4 b\nc10 <13>in all\n\nfour\r\n<13>five\0<13>six\n\x002026-11-27 7\n\
        12 monkeys\n05 <a>\n99 <too many>\n12345678901 <\n6 <last>";
    let messages: [&[u8]; 12] = [
        b"one",
        b"<13>\xe4 b\nc",
        b"<13>in all",
        b"four",
        b"<13>five",
        b"<13>six",
        b"2026-11-27 7",
        b"12 monkeys",
        b"05 <a>",
        b"99 <too many>",
        b"12345678901 <",
        b"<last>",
    ];
    assert_is(Frame::Auto, stream, &messages, None);
    // A forged count at the start of a line swallows at most the length of one message.
    assert_is(Frame::Auto, b"9 <b>forged\nnext\n", &[b"<b>forged", b"next"], None);
    assert_is(Frame::Auto, b"20 <b>a\nb\nc\nd\ne", &[], Some(Reason::Malformed));
    for rest in ["7", "7 ", "7 x"] {
        assert_is(Frame::Auto, rest.as_bytes(), &[rest.as_bytes()], None);
    }
}

#[test]
fn another_protocol_is_refused_for_one_reason() {
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_is(Frame::Octets, http, &[], Some(Reason::Malformed));
    let tls = b"\x16\x03\x01\x02\x00\x01\n\x01\xfc\x03\x03\0random\n\0";
    for frame in [Frame::Lines, Frame::Nul, Frame::Octets] {
        assert_is(frame, tls, &[], Some(Reason::Malformed));
    }
    assert_is(Frame::Lines, b"x\x9cstream\n", &[], Some(Reason::Malformed));
    let pickle = b"\0\0\0\x1b}q\0(X\x03\0\0\0msgq\x01X\x01\0\0\0aq\x02u.";
    for frame in [Frame::Auto, Frame::Lines, Frame::Nul] {
        assert_is(frame, pickle, &[], Some(Reason::Malformed));
    }
    assert_is(Frame::Auto, b"\0\0a\0bcd\n", &[b"a", b"bcd"], None);
    assert_is(Frame::Lines, b"x^2\n", &[b"x^2"], None);
    // These bytes are refused only at the start of a stream, and only both together.
    assert_is(Frame::Lines, b"\x16\n\x16\x03\n", &[b"\x16", b"\x16\x03"], None);
    assert_is(Frame::Lines, b"\x16", &[b"\x16"], None);
}

proptest! {
    #[test]
    fn the_messages_of_a_stream_are_the_same_however_it_is_split(
        stream in vec(prop_oneof![
            any::<u8>(),
            proptest::sample::select(&b"\n\r\0 0123 <x\x9c\x16\x03"[..]),
        ], 0..300),
        cuts in vec((1usize..40, 0usize..4), 1..20),
    ) {
        for frame in FRAMES {
            for oversize in Oversize::ALL {
                let whole = with(frame, oversize, &stream);
                prop_assert_eq!(drive(Frames::new(frame, oversize), &stream, &cuts, MAX), whole);
            }
        }
    }

    #[test]
    fn framed_messages_come_out_as_they_were(
        messages in vec(vec(any::<u8>(), 1..MAX), 0..20),
        cuts in vec((1usize..40, 0usize..4), 1..20),
    ) {
        for frame in FRAMES {
            let has_ends = frame != Frame::Octets;
            let clean = |message: &Vec<u8>| {
                // The filter removes bytes that a line-based sender cannot send.
                let is_clean = |byte: &u8| !has_ends || !b"\n\r\0\x16x0123456789".contains(byte);
                let mut message: Vec<u8> = message.iter().copied().filter(is_clean).collect();
                message.push(b'.');
                message
            };
            let messages: Vec<Vec<u8>> = messages.iter().map(clean).collect();
            let stream = framed(frame, &messages);
            let outcome = drive(Frames::new(frame, Oversize::Refuse), &stream, &cuts, MAX);
            prop_assert_eq!(outcome, Outcome { records: messages, ..Outcome::default() });
        }
    }
}
