//! RELP: a numbered frame per message, each answered with `200` (librelp, doc/relp.md).

use super::{Answers, Client, put_number, shown};

/// The largest number; 1 follows it (librelp, src/relpsess.c).
const TXNR_MAX: u32 = 999_999_999;
const OFFERS: &[u8] = b"relp_version=1\nrelp_software=wrote\ncommands=syslog";

#[derive(Default)]
pub(super) struct Relp {
    /// The last number sent, and the last answered.
    sent: u32,
    answered: u32,
    is_open: bool,
}

impl Relp {
    fn command(&mut self, command: &[u8], data: &[u8], out: &mut Vec<u8>) {
        self.sent = after(self.sent);
        put_number(self.sent as usize, out);
        out.extend_from_slice(command);
        put_number(data.len(), out);
        out.push(b' ');
        out.extend_from_slice(data);
        out.push(b'\n');
    }
}

fn after(txnr: u32) -> u32 {
    txnr % TXNR_MAX + 1
}

impl Client for Relp {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.command(b" open ", OFFERS, out);
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn put(&mut self, message: &[u8], out: &mut Vec<u8>) {
        self.command(b" syslog ", message, out);
    }

    fn answers(&mut self, input: &[u8]) -> Result<Answers, String> {
        let mut answers = Answers::default();
        while let Some(response) = Response::read(&input[answers.used_bytes..])? {
            let expected = after(self.answered);
            if response.txnr != expected || !response.data.starts_with(b"200") {
                let answer = shown(response.data);
                return Err(format!("frame {expected} got {} {answer:?}", response.txnr));
            }
            self.answered = expected;
            answers.used_bytes += response.bytes;
            if std::mem::replace(&mut self.is_open, true) {
                answers.acknowledged += 1;
            }
        }
        Ok(answers)
    }
}

/// A complete frame `TXNR rsp DATALEN DATA`.
struct Response<'a> {
    txnr: u32,
    data: &'a [u8],
    bytes: usize,
}

impl Response<'_> {
    /// Parses the frame at the start of `input`; `None` if incomplete.
    fn read(input: &[u8]) -> Result<Option<Response<'_>>, String> {
        /// `999999999 rsp 999999999` is shorter.
        const HEAD_BYTES_MAX: usize = 32;
        let bad = || format!("no frame of RELP: {}", shown(input));
        let head = &input[..input.len().min(HEAD_BYTES_MAX)];
        let mut words = head.splitn(4, |byte| matches!(byte, b' ' | b'\n'));
        let (Some(txnr), Some(command), Some(len), Some(_)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return if head.len() < HEAD_BYTES_MAX { Ok(None) } else { Err(bad()) };
        };
        let number = |word: &[u8]| str::from_utf8(word).ok()?.parse::<u32>().ok();
        let (Some(number_of_frame), Some(len_bytes), b"rsp") = (number(txnr), number(len), command)
        else {
            return Err(bad());
        };
        let begin = txnr.len() + 1 + command.len() + 1 + len.len() + usize::from(len_bytes > 0);
        let end = begin + len_bytes as usize;
        match input.get(end) {
            None => Ok(None),
            Some(b'\n') => Ok(Some(Response {
                txnr: number_of_frame,
                data: &input[begin..end],
                bytes: end + 1,
            })),
            Some(_) => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: &[u8] = b"1 rsp 30 200 OK\nrelp_version=1\ncommands\n";

    fn opened() -> Relp {
        let (mut relp, mut out) = (Relp::default(), Vec::new());
        relp.open(&mut out);
        assert!(out.starts_with(b"1 open 50 relp_version=1\n") && out.ends_with(b"syslog\n"));
        assert!(!relp.is_open());
        let answers = relp.answers(OPENED).unwrap();
        assert_eq!(answers, Answers { used_bytes: OPENED.len(), acknowledged: 0 });
        assert!(relp.is_open());
        relp
    }

    #[test]
    fn messages_are_numbered_behind_the_open() {
        let (mut relp, mut out) = (opened(), Vec::new());
        relp.put(b"one", &mut out);
        relp.put(b"three", &mut out);
        assert_eq!(out, b"2 syslog 3 one\n3 syslog 5 three\n");
    }

    #[test]
    fn answers_count_once_they_are_whole() {
        let input = b"2 rsp 6 200 OK\n3 rsp 6 200 OK\n";
        for cut in 0..=input.len() {
            let mut relp = opened();
            let first = relp.answers(&input[..cut]).unwrap();
            let rest = relp.answers(&input[first.used_bytes..]).unwrap();
            assert_eq!(first.acknowledged + rest.acknowledged, 2, "{cut}");
            assert_eq!(first.used_bytes + rest.used_bytes, input.len(), "{cut}");
        }
    }

    #[test]
    fn a_refusal_a_gap_and_garbage_are_errors() {
        for bad in [
            &b"2 rsp 9 500 never\n"[..],
            b"3 rsp 6 200 OK\n",
            b"0 serverclose 0\n",
            b"2 rsp 6 200 OKX",
            b"HTTP/1.1 400 Bad Request and so on\r\n",
        ] {
            assert!(opened().answers(bad).is_err(), "{}", shown(bad));
        }
    }

    #[test]
    fn the_greatest_number_is_followed_by_one() {
        assert_eq!((after(0), after(TXNR_MAX - 1), after(TXNR_MAX)), (1, TXNR_MAX, 1));
    }
}
