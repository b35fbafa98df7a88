//! Redis's protocol: `XADD log * message VALUE`, answered by the ID as a bulk string.

use super::{Answers, Client, line, put_number, shown};

const BEFORE: &[u8] = b"*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$7\r\nmessage\r\n$";

pub(super) struct Resp;

impl Client for Resp {
    fn put(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(BEFORE);
        put_number(message.len(), out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(message);
        out.extend_from_slice(b"\r\n");
    }

    fn answers(&mut self, input: &[u8]) -> Result<Answers, String> {
        let mut answers = Answers::default();
        while let Some((head, rest)) = line(&input[answers.used_bytes..]) {
            let refused = || shown(head);
            let len = head.strip_prefix(b"$").ok_or_else(refused)?;
            let len: usize =
                str::from_utf8(len).ok().and_then(|len| len.parse().ok()).ok_or_else(refused)?;
            if rest.len() < len + 2 {
                break;
            }
            if &rest[len..len + 2] != b"\r\n" {
                return Err(shown(rest));
            }
            answers.used_bytes = input.len() - rest.len() + len + 2;
            answers.acknowledged += 1;
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_an_xadd() {
        let mut out = Vec::new();
        Resp.put(b"one", &mut out);
        let expected =
            b"*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$7\r\nmessage\r\n$3\r\none\r\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn answers_count_once_they_are_whole() {
        let input = b"$3\r\n0-1\r\n$15\r\n1526919030474-5\r\n";
        for cut in 0..=input.len() {
            let first = Resp.answers(&input[..cut]).unwrap();
            let rest = Resp.answers(&input[first.used_bytes..]).unwrap();
            assert_eq!(first.acknowledged + rest.acknowledged, 2, "{cut}");
            assert_eq!(first.used_bytes + rest.used_bytes, input.len(), "{cut}");
        }
    }

    #[test]
    fn an_error_is_told_in_the_servers_words() {
        let refused = Resp.answers(b"$3\r\n0-1\r\n-OOM out of memory\r\n").unwrap_err();
        assert_eq!(refused, "-OOM out of memory");
        for bad in [&b"$-1\r\n"[..], b"$x\r\n", b"$3\r\n0-12\r\n", b"+OK\r\n"] {
            assert!(Resp.answers(bad).is_err(), "{}", shown(bad));
        }
    }
}
