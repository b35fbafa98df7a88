//! HTTP/1.1: `POST /append` with one message per line; an answer acknowledges a whole request.

use super::{Answers, Client, line, put_number, shown};
use std::collections::VecDeque;

const BEFORE: &[u8] = b"POST /append HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/x-ndjson\r\ncontent-length: ";

#[derive(Default)]
pub(super) struct Http {
    /// The number of messages of each unanswered request.
    unanswered: VecDeque<usize>,
}

impl Client for Http {
    fn begin(&mut self, messages: usize, message_bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(BEFORE);
        put_number(messages * (message_bytes + 1), out);
        out.extend_from_slice(b"\r\n\r\n");
        self.unanswered.push_back(messages);
    }

    fn put(&mut self, message: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(message);
        out.push(b'\n');
    }

    fn answers(&mut self, input: &[u8]) -> Result<Answers, String> {
        let mut answers = Answers::default();
        while let Some(bytes) = response_bytes(&input[answers.used_bytes..])? {
            let messages = self.unanswered.pop_front().ok_or("an answer without a request")?;
            answers.used_bytes += bytes;
            answers.acknowledged += messages;
        }
        Ok(answers)
    }
}

/// Returns the length of the response at the start of `input`, which must be a success; `None` if
/// incomplete.
fn response_bytes(input: &[u8]) -> Result<Option<usize>, String> {
    let Some((status, mut rest)) = line(input) else { return Ok(None) };
    if !(status.starts_with(b"HTTP/1.1 2")) {
        return Err(shown(status));
    }
    let mut body_bytes = 0;
    loop {
        let Some((header, behind)) = line(rest) else { return Ok(None) };
        rest = behind;
        if header.is_empty() {
            break;
        }
        let text = str::from_utf8(header).map_err(|_| shown(header))?;
        let (name, value) = text.split_once(':').ok_or_else(|| shown(header))?;
        if name.eq_ignore_ascii_case("content-length") {
            body_bytes = value.trim().parse().map_err(|_| shown(header))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(format!("an answer without a length: {text}"));
        }
    }
    Ok((rest.len() >= body_bytes).then_some(input.len() - rest.len() + body_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Http {
        let (mut http, mut out) = (Http::default(), Vec::new());
        http.begin(2, 3, &mut out);
        http.put(b"one", &mut out);
        http.put(b"two", &mut out);
        assert!(out.starts_with(b"POST /append HTTP/1.1\r\n"));
        assert!(out.ends_with(b"content-length: 8\r\n\r\none\ntwo\n"));
        http.begin(3, 3, &mut out);
        http
    }

    #[test]
    fn an_answer_acknowledges_its_whole_request() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\ndate: x\r\n\r\n0\n1\n\
            HTTP/1.1 204 No Content\r\n\r\n";
        for cut in 0..=input.len() {
            let mut http = asked();
            let first = http.answers(&input[..cut]).unwrap();
            let rest = http.answers(&input[first.used_bytes..]).unwrap();
            assert_eq!(first.acknowledged + rest.acknowledged, 5, "{cut}");
            assert_eq!(first.used_bytes + rest.used_bytes, input.len(), "{cut}");
        }
    }

    #[test]
    fn a_refusal_and_what_no_request_asked_for_are_errors() {
        let refused = asked().answers(b"HTTP/1.1 503 Service Unavailable\r\n").unwrap_err();
        assert_eq!(refused, "HTTP/1.1 503 Service Unavailable");
        assert!(Http::default().answers(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(asked().answers(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").is_err());
        assert!(asked().answers(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n").is_err());
    }
}
