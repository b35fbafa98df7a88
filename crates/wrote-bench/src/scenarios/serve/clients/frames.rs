//! Framed messages: lines, octet counts, NUL, four-byte lengths. No answers.

use super::{Answers, Client, put_number, shown};

/// How messages are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    /// Followed by a line feed.
    Lines,
    /// Preceded by the length in digits and a space (RFC 6587, 3.4.1).
    Octets,
    /// Followed by NUL.
    Nul,
    /// Preceded by a big-endian length of four bytes.
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
