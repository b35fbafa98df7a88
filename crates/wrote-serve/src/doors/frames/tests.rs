//! Tests of framing: each stream in one piece, and split at any point.

use super::*;
use crate::fuzzing::{Outcome, drive};
use crate::refusals::Reason;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write;

const MAX: usize = 32;
const FRAMES: [Frame; 5] = [Frame::Auto, Frame::Lines, Frame::Octets, Frame::Nul, Frame::U32];

fn of(frame: Frame, stream: &[u8]) -> Outcome {
    with(frame, Oversize::Refuse, stream)
}

fn with(frame: Frame, oversize: Oversize, stream: &[u8]) -> Outcome {
    let frames = || Frames::new(frame, oversize);
    let whole = drive(frames(), stream, &[], MAX);
    assert_eq!(drive(frames(), stream, &[(1, 0)], MAX), whole, "byte by byte");
    whole
}

/// Asserts the messages of `stream`, and how it ends.
#[track_caller]
fn assert_is(frame: Frame, stream: &[u8], messages: &[&[u8]], refused: Option<Reason>) {
    let outcome = of(frame, stream);
    assert_eq!((outcome.records, outcome.refused), (owned(messages), refused));
}

fn owned(messages: &[&[u8]]) -> Vec<Vec<u8>> {
    messages.iter().map(|message| message.to_vec()).collect()
}

/// Frames messages as a sender does.
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
            Frame::U32 => {
                stream.extend_from_slice(&(message.len() as u32).to_be_bytes());
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
    let stream = framed(Frame::U32, &[inside.to_vec(), Vec::new(), b"end\n".to_vec()]);
    assert_is(Frame::U32, &stream, &[inside, b"end\n"], None);
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
    // Removed bytes do not count.
    assert_is(Frame::Lines, &[&[b'x'; MAX][..], b"\r\n"].concat(), &[&[b'x'; MAX]], None);
    assert_is(Frame::Lines, &[b'x'; MAX + 1], &[], Some(Reason::TooLong));
    let stream = framed(Frame::Octets, &[[&[b'x'; MAX][..], b"\r\n"].concat()]);
    assert_is(Frame::Octets, &stream, &[&[b'x'; MAX]], None);
}

#[test]
fn a_message_over_the_limit_leaves_its_beginning_or_nothing_and_blocks_none() {
    for frame in FRAMES {
        for len in [MAX + 1, MAX + 2, MAX + 3, 10 * MAX] {
            let stream = framed(frame, &[b"first".to_vec(), vec![b'x'; len], b"behind".to_vec()]);
            let truncated = with(frame, Oversize::Truncate, &stream);
            assert_eq!(truncated.records, owned(&[b"first", &[b'x'; MAX], b"behind"]), "{len}");
            let skipped = with(frame, Oversize::Skip, &stream);
            let split = with(frame, Oversize::Split, &stream);
            let whole: Vec<u8> = split.records[1..split.records.len() - 1].concat();
            assert!(whole == vec![b'x'; len] && split.records.len() == 2 + len.div_ceil(MAX));
            assert_eq!(split.records.last().unwrap(), b"behind");
            assert_eq!(skipped.records, owned(&[b"first", b"behind"]), "{len}");
            assert_eq!((truncated.refused, skipped.refused), (None, None));
        }
    }
    for len in [MAX + 1, MAX + 2, 3 * MAX] {
        let ended = with(Frame::Lines, Oversize::Truncate, &vec![b'x'; len]);
        assert_eq!((ended.records, ended.refused), (owned(&[&[b'x'; MAX]]), None), "{len}");
    }
    // A count that no sender means.
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
    assert_is(Frame::U32, b"\0\0\0\x02ok\xff\xff\xff\xffforged", &[b"ok"], Some(Reason::TooLong));
    assert_is(Frame::U32, b"\0\0\0\x02ok\0\0\0", &[b"ok"], Some(Reason::Malformed));
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
    for rest in ["7", "7 ", "7 z", "7 x"] {
        assert_is(Frame::Auto, rest.as_bytes(), &[rest.as_bytes()], None);
    }
}

fn compressed(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(b"z".to_vec(), flate2::Compression::best());
    encoder.write_all(message).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_messages_are_taken_as_they_were_and_bounded() {
    let not_compressed = b"zx\x9c?".to_vec();
    let messages =
        [compressed(b"<13>one\n"), b"two".to_vec(), not_compressed, compressed(&[b'x'; 40_000])];
    let stream = framed(Frame::Octets, &messages);
    let bomb = compressed(&[b'x'; 40_000]).len();
    let frames = |oversize| Frames::new(Frame::Octets, oversize);
    for (oversize, kept, refused) in [
        (Oversize::Truncate, Some(vec![b'x'; 200]), None),
        (Oversize::Skip, None, None),
        (Oversize::Refuse, None, Some(Reason::TooLong)),
    ] {
        assert!(bomb < 200);
        let outcome = drive(frames(oversize), &stream, &[], 200);
        let mut records = owned(&[b"<13>one", b"two", b"zx\x9c?"]);
        records.extend(kept);
        assert_eq!((outcome.records, outcome.refused), (records, refused), "{oversize:?}");
    }
    // The last byte belongs to a checksum and may look like a trailer.
    let trailed = (10_000..99_999)
        .map(|number| format!("{number}"))
        .find(|text| compressed(text.as_bytes()).ends_with(b"\n"));
    let trailed = trailed.expect("its bytes add up to 265");
    let stream = framed(Frame::Octets, &[compressed(trailed.as_bytes())]);
    assert_is(Frame::Octets, &stream, &[trailed.as_bytes()], None);
    let counted = framed(Frame::Octets, &[compressed(b"a line\n")]);
    assert_is(Frame::Auto, &counted, &[b"a line"], None);
    let whole = [&compressed(b"<13>one\n")[1..], b"\n"].concat();
    assert_is(Frame::Auto, &whole, &[], Some(Reason::Malformed));
    assert_is(Frame::Auto, b"x^2\n", &[b"x^2"], None);
}

#[test]
fn a_compressed_message_over_the_limit_is_split_to_its_last_byte() {
    let message: Vec<u8> = (0..1000u32).flat_map(|number| (number / 8).to_be_bytes()).collect();
    let mut broken = compressed(&[b'x'; 3 * 800]);
    broken.truncate(broken.len() - 5);
    let messages = [compressed(&message), b"behind".to_vec(), broken, b"last".to_vec()];
    let stream = framed(Frame::Octets, &messages);
    let frames = || Frames::new(Frame::Octets, Oversize::Split);
    let outcome = drive(frames(), &stream, &[], 800);
    let (parts, rest) = outcome.records.split_at(5);
    assert!(parts.concat() == message && rest[0] == b"behind" && outcome.refused.is_none());
    // The valid part of a corrupt message is kept, and later messages are not blocked.
    assert!(rest[1..].starts_with(&[vec![b'x'; 800]]) && rest.ends_with(&[b"last".to_vec()]));
    assert!(drive(frames(), &stream, &[(7, 1)], 800) == outcome);
}

struct Room(std::cell::Cell<usize>);

impl crate::doors::Store for Room {
    fn try_append(&self, _: &[&[u8]]) -> Result<Option<u64>, wrote::Error> {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.unwrap_or(0));
        Ok(left.map(|_| 0))
    }

    fn is_well(&self) -> bool {
        true
    }
}

#[test]
fn inflating_ends_its_turn_after_a_bounded_number_of_bytes_and_is_never_done_twice() {
    const LONG: usize = 300 << 10;
    let message = compressed(&[b'x'; LONG]);
    let stream = framed(Frame::Octets, &vec![message.clone(); 10]);
    let bytes = stream.len() / 10;
    let (store, mut answers) = (Room(10.into()), crate::answers::Answers::default());
    let mut frames = Frames::new(Frame::Octets, Oversize::Skip);
    let mut turn = |store: &Room, at: usize| {
        let mut intake = Intake::new(store, &mut answers, LONG);
        let done = frames.take(&stream[at..], &mut intake).unwrap();
        (done, intake.yields, intake.is_full, frames.held_bytes())
    };
    let (done, yields, _, held) = turn(&store, 0);
    assert!(done == 3 * bytes && yields && held >= TURN_BYTES - 3 * LONG - 50_000, "{done} {held}");
    // It continues where it stopped.
    let (next, yields, ..) = turn(&store, done);
    assert!(next == 3 * bytes && yields, "{next}");
    // Without room the message is kept unchanged.
    let full = Room(0.into());
    let at = done + next;
    let (done, yields, is_full, held) = turn(&full, at);
    assert!(done == 0 && !yields && is_full && held >= LONG, "{held}");
    assert_eq!(turn(&full, at), (0, false, true, held));
    assert_eq!(turn(&store, at).0, 4 * bytes);
}

#[test]
fn another_protocol_is_refused_for_one_reason() {
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_is(Frame::Octets, http, &[], Some(Reason::Malformed));
    assert_is(Frame::U32, http, &[], Some(Reason::TooLong));
    let tls = b"\x16\x03\x01\x02\x00\x01\n\x01\xfc\x03\x03\0random\n\0";
    for frame in [Frame::Lines, Frame::Nul, Frame::Octets] {
        assert_is(frame, tls, &[], Some(Reason::Malformed));
    }
    assert_is(Frame::U32, tls, &[], Some(Reason::TooLong));
    // Only at the start of a stream, and only both bytes together.
    assert_is(Frame::Lines, b"\x16\n\x16\x03\n", &[b"\x16", b"\x16\x03"], None);
    assert_is(Frame::Lines, b"\x16", &[b"\x16"], None);
}

proptest! {
    #[test]
    fn the_messages_of_a_stream_are_the_same_however_it_is_split(
        stream in vec(prop_oneof![
            any::<u8>(),
            proptest::sample::select(&b"\n\r\0 0123 <zx\x9c\x16\x03"[..]),
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
            let has_ends = Frames::new(frame, Oversize::Refuse).has_ends();
            let clean = |message: &Vec<u8>| {
                // Bytes that a line-based sender cannot send.
                let is_clean = |byte: &u8| !has_ends || !b"\n\r\0\x16xz0123456789".contains(byte);
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
