//! Messages one behind the other: lines, octet counts, NUL, lengths of four bytes. No answers.

use super::{Answers, Client, put_number, shown};

/// The ends of messages on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    /// A line feed ends a message.
    Lines,
    /// The length in digits and a space begin it (RFC 6587, 3.4.1).
    Octets,
    /// A NUL ends it.
    Nul,
    /// The length in four bytes begins it, the greatest first.
    U32,
}

pub(super) struct Frames(pub(super) Frame);

impl Client for Frames {
    fn put(&mut self, message: &[u8], out: &mut Vec<u8>) {
        match self.0 {
            Frame::Octets => {
                put_number(message.len(), out);
                out.push(b' ');
            }
            Frame::U32 => out.extend_from_slice(&(message.len() as u32).to_be_bytes()),
            Frame::Lines | Frame::Nul => {}
        }
        out.extend_from_slice(message);
        match self.0 {
            Frame::Lines => out.push(b'\n'),
            Frame::Nul => out.push(0),
            Frame::Octets | Frame::U32 => {}
        }
    }

    fn answers(&mut self, input: &[u8]) -> Result<Answers, String> {
        match input {
            [] => Ok(Answers::default()),
            _ => Err(format!("an answer where none was expected: {}", shown(input))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_says_where_a_message_ends() {
        for (frame, expected) in [
            (Frame::Lines, &b"one\nthree\n"[..]),
            (Frame::Octets, b"3 one5 three"),
            (Frame::Nul, b"one\0three\0"),
            (Frame::U32, b"\0\0\0\x03one\0\0\0\x05three"),
        ] {
            let mut out = Vec::new();
            Frames(frame).put(b"one", &mut out);
            Frames(frame).put(b"three", &mut out);
            assert_eq!(out, expected, "{frame:?}");
        }
    }

    #[test]
    fn an_answer_to_frames_is_an_error() {
        assert!(Frames(Frame::Lines).answers(b"").is_ok());
        assert!(Frames(Frame::Lines).answers(b"-ERR no\r\n").unwrap_err().contains("-ERR no"));
    }
}
