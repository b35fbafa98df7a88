//! A request's options, and the records of its body, regardless of how the body is chunked.

use crate::refusals::Refusal;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use memchr::memchr;
use percent_encoding::percent_decode_str;
use std::time::SystemTime;
use wrote_result::units;

/// The maximum capacity that is kept between records.
const KEPT_BYTES_MAX: usize = 4096;
/// The content types of bodies with one record per line.
const LINES_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// How an answer delimits records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A line feed after each record.
    Lines,
    /// A big-endian length of four bytes before each record.
    U32,
}

/// The position at which an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At the record with this sequence.
    At(u64),
    /// At the first record written at or after this time.
    Since(SystemTime),
}

/// A request to read records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub begin: Begin,
    /// The maximum number of records to return.
    pub limit: u64,
    /// Whether the answer continues with new records as they arrive.
    pub follows: bool,
    pub layout: Layout,
}

/// Returns how a body is split into records: as the query says, or else according to its type.
pub(super) fn by(parts: &Parts) -> Result<By, String> {
    // A sender of this header relies on a promise that the server does not make.
    if parts.headers.contains_key("idempotency-key") {
        return Err("Idempotency-Key unsupported: a retry may append a record again".to_owned());
    }
    let mut by = None;
    for pair in pairs(parts) {
        by = match pair {
            ("by", "lines") => Some(By::Lines),
            ("by", "body") => Some(By::Body),
            (name, value) => return Err(format!("{name}={value}: must be by=lines or by=body")),
        };
    }
    Ok(by.unwrap_or_else(|| if is_of_lines(parts) { By::Lines } else { By::Body }))
}

fn is_of_lines(parts: &Parts) -> bool {
    let value = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let name = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    LINES_TYPES.iter().any(|lines| name.eq_ignore_ascii_case(lines))
}

/// The content encoding of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    None,
    Gzip,
    /// An unsupported encoding.
    Other,
}

pub(super) fn coding(parts: &Parts) -> Coding {
    let mut codings = parts.headers.get_all(CONTENT_ENCODING).into_iter();
    let (first, second) = (codings.next(), codings.next());
    let first = first.map_or(&b""[..], |coding| coding.as_bytes()).trim_ascii();
    match first.to_ascii_lowercase().as_slice() {
        _ if second.is_some() => Coding::Other,
        b"" | b"identity" => Coding::None,
        b"gzip" | b"x-gzip" => Coding::Gzip,
        _ => Coding::Other,
    }
}

/// Returns whether the body has a transfer encoding other than chunked (RFC 9112, section 6).
pub(super) fn is_transformed(parts: &Parts) -> bool {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).into_iter();
    codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Parses the options of a request to read records.
pub(super) fn wanted(parts: &Parts) -> Result<Wanted, String> {
    let (mut from, mut since) = (None, None);
    let mut wanted =
        Wanted { begin: Begin::At(0), limit: u64::MAX, follows: false, layout: Layout::U32 };
    for (name, value) in pairs(parts) {
        let bad = || {
            let known = "from=N, since=TIME, limit=N, follow=1, as=lines, as=u32";
            format!("{name}={value}: must be one of {known}")
        };
        match (name, value) {
            ("from", number) => from = Some(number.parse().map_err(|_| bad())?),
            ("since", time) => since = Some(moment(time)?),
            ("limit", number) => wanted.limit = number.parse().map_err(|_| bad())?,
            ("follow", "0" | "false") => wanted.follows = false,
            ("follow", "" | "1" | "true") => wanted.follows = true,
            ("as", "lines") => wanted.layout = Layout::Lines,
            ("as", "u32") => wanted.layout = Layout::U32,
            _ => return Err(bad()),
        }
    }
    wanted.begin = match (from, since) {
        (Some(_), Some(_)) => return Err("from and since both set the beginning: send one".into()),
        (None, Some(since)) => Begin::Since(since),
        (from, None) => Begin::At(from.unwrap_or(0)),
    };
    Ok(wanted)
}

/// Parses a time whose colons and plus may be percent-encoded as `%3A` and `%2B` (RFC 3986).
fn moment(value: &str) -> Result<SystemTime, String> {
    let text = percent_decode_str(value).decode_utf8_lossy();
    let moment = units::parse_moment(&text).map_err(|because| format!("since={because}"))?;
    Ok(moment.into())
}

fn pairs(parts: &Parts) -> impl Iterator<Item = (&str, &str)> {
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// How a body is split into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The whole body is one record, unless it is empty.
    Body,
    /// Each record ends with LF or CRLF, which may be missing after the last one. Empty lines are
    /// skipped.
    Lines,
}

/// Splits a body into records. Keeps only an incomplete record.
#[derive(Debug)]
pub(super) struct Pieces {
    by: By,
    record_bytes_max: usize,
    kept: Vec<u8>,
    /// Whether the kept bytes have been returned as a record.
    is_given: bool,
    /// Whether the current line is too long, and is skipped up to its end.
    passes: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A complete record; empty for an empty line.
    Record(&'a [u8]),
    /// A line that is too long. Later lines are still records.
    TooLong,
}

impl Pieces {
    pub(super) fn new(by: By, record_bytes_max: usize) -> Pieces {
        Pieces { by, record_bytes_max, kept: Vec::new(), is_given: false, passes: false }
    }

    /// Returns the next record from the front of `chunk`. Returns `None` if no record ends in it,
    /// and keeps the rest of it.
    pub(super) fn next<'a, 'chunk: 'a>(
        &'a mut self,
        chunk: &mut &'chunk [u8],
    ) -> Result<Option<Piece<'a>>, Refusal> {
        self.forget_given();
        let end = if self.by == By::Lines { memchr(b'\n', chunk) } else { None };
        let Some(end) = end else {
            self.keep(chunk)?;
            *chunk = &[];
            return Ok(None);
        };
        let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
        *chunk = rest;
        if self.kept.is_empty() && !self.passes {
            return Ok(Some(self.checked(line)));
        }
        self.keep(line)?;
        Ok(Some(self.given()))
    }

    /// Returns the bytes that remain at the end of the body.
    pub(super) fn rest(&mut self) -> Piece<'_> {
        self.forget_given();
        self.given()
    }

    fn given(&mut self) -> Piece<'_> {
        if std::mem::take(&mut self.passes) {
            return Piece::TooLong;
        }
        self.is_given = true;
        self.checked(&self.kept)
    }

    /// Returns the memory that is kept, if it is significant.
    pub(super) fn kept_bytes(&self) -> usize {
        let bytes = self.kept.capacity();
        if bytes > KEPT_BYTES_MAX { bytes } else { self.kept.len() }
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.kept.clear();
            if self.kept.capacity() > KEPT_BYTES_MAX {
                self.kept = Vec::new();
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // A CR at the end may be removed later.
        let is_long = self.kept.len() + bytes.len() > self.record_bytes_max + 1;
        if is_long && self.by == By::Body {
            return Err(Refusal::TooLong);
        }
        if is_long || self.passes {
            (self.passes, self.kept) = (true, Vec::new());
        } else {
            self.kept.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn checked<'a>(&self, bytes: &'a [u8]) -> Piece<'a> {
        let record = match self.by {
            By::Lines => bytes.strip_suffix(b"\r").unwrap_or(bytes),
            By::Body => bytes,
        };
        if record.len() > self.record_bytes_max { Piece::TooLong } else { Piece::Record(record) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusals::Reason;
    use hyper::Request;
    use proptest::prelude::*;
    use std::time::Duration;

    fn parts(uri: &str, content_type: Option<&str>) -> Parts {
        let request = Request::builder().uri(uri);
        let request = match content_type {
            Some(name) => request.header(CONTENT_TYPE, name),
            None => request,
        };
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_query_or_else_the_type_says_how_a_body_is_cut() {
        for (uri, content_type, expected) in [
            ("/append", None, Ok(By::Body)),
            ("/append", Some("application/octet-stream"), Ok(By::Body)),
            ("/append", Some("Application/X-NDJSON; charset=utf-8"), Ok(By::Lines)),
            ("/append?by=body", Some("application/x-ndjson"), Ok(By::Body)),
            ("/append?by=lines", Some("text/plain"), Ok(By::Lines)),
            ("/append?by=words", None, Err(())),
            ("/append?lines", None, Err(())),
        ] {
            let found = by(&parts(uri, content_type)).map_err(drop);
            assert_eq!(found, expected, "{uri} {content_type:?}");
        }
        let keyed = Request::post("/append").header("Idempotency-Key", "7f3a").body(()).unwrap();
        assert!(by(&keyed.into_parts().0).unwrap_err().contains("may append a record again"));
    }

    #[test]
    fn a_request_to_read_is_read_and_a_wrong_one_is_refused() {
        let of = |query: &str| wanted(&parts(&format!("/records?{query}"), None));
        let layout = Layout::U32;
        let all = Wanted { begin: Begin::At(0), limit: u64::MAX, follows: false, layout };
        assert_eq!(of(""), Ok(all));
        let layout = Layout::Lines;
        let some = Wanted { begin: Begin::At(5), limit: 10, follows: true, layout };
        assert_eq!(of("from=5&limit=10&follow&as=lines"), Ok(some));
        for bad in ["from=-1", "from=", "limit=x", "follow=yes", "as=json", "form=5"] {
            assert!(of(bad).unwrap_err().contains(": must be one of "), "{bad}");
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_503_600);
        for since in [
            "2026-11-24T07:00Z",
            "2026-11-24T07%3A00%3A00Z",
            "2026-11-24T09:00+02:00",
            "2026-11-24T09%3A00%2b02%3A00",
        ] {
            let begin = of(&format!("since={since}")).unwrap().begin;
            assert_eq!(begin, Begin::Since(time), "{since}");
        }
        let Begin::Since(time) = of("since=10m").unwrap().begin else { panic!("a time") };
        assert!(time < SystemTime::now() - Duration::from_secs(599));
        for bad in ["since=", "since=yesterday", "since=%ff", "since=5"] {
            let refused = of(bad).unwrap_err();
            assert!(refused.contains("must be a time, as 2026-11-24T07:00Z"), "{refused}");
        }
        assert!(of("from=1&since=10m").unwrap_err().contains("send one"));
    }

    /// Returns the records of a body that arrives in chunks of these lengths.
    fn records(by: By, body: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Option<Reason>) {
        let record = |piece: Piece<'_>| match piece {
            Piece::Record(record) => record.to_vec(),
            Piece::TooLong => b"too long".to_vec(),
        };
        let (mut pieces, mut records, mut rest) = (Pieces::new(by, 10), Vec::new(), body);
        let mut cuts = cuts.iter().cycle();
        let mut take = || -> Result<(), Refusal> {
            while !rest.is_empty() {
                let cut = cuts.next().map_or(rest.len(), |&cut| cut.clamp(1, rest.len()));
                let (mut chunk, behind) = rest.split_at(cut);
                rest = behind;
                while let Some(piece) = pieces.next(&mut chunk)? {
                    records.push(record(piece));
                }
                assert!(pieces.kept_bytes() <= 11);
            }
            records.push(record(pieces.rest()));
            Ok(())
        };
        let refused = take().err().map(|refusal| refusal.reason());
        records.retain(|record| !record.is_empty());
        (records, refused)
    }

    #[test]
    fn lines_are_records_and_a_body_is_one() {
        let body = b"one\ntwo\r\n\n\r\nthree";
        let lines: Vec<_> = [&b"one"[..], b"two", b"three"].map(<[u8]>::to_vec).into();
        assert_eq!(records(By::Lines, body, &[]), (lines, None));
        assert_eq!(records(By::Body, b"a\nb\r\n", &[]), (vec![b"a\nb\r\n".to_vec()], None));
        assert_eq!(records(By::Body, b"", &[]), (vec![], None));
        let (kept, refused) = records(By::Lines, b"0123456789\r\n0123456789a\nafter", &[]);
        assert_eq!((&kept[1..], refused), (&[b"too long".to_vec(), b"after".to_vec()][..], None));
        assert_eq!(records(By::Body, &[b'x'; 12], &[]), (vec![], Some(Reason::TooLong)));
        assert_eq!(records(By::Body, &[b'x'; 11], &[]), (vec![b"too long".to_vec()], None));
    }

    proptest! {
        #[test]
        fn the_records_of_a_body_are_the_same_however_it_is_split(
            body in prop::collection::vec(prop::sample::select(b"abcdefgh\r\n\n".to_vec()), 0..80),
            cuts in prop::collection::vec(1..20usize, 1..10),
        ) {
            for by in [By::Body, By::Lines] {
                prop_assert_eq!(records(by, &body, &cuts), records(by, &body, &[]));
            }
        }
    }
}
