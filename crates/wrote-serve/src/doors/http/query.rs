//! Request options: the query, and the body's type.

use super::pieces::By;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;
use std::time::SystemTime;
use wrote_result::units;

/// Content types with one record per line.
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

/// Where an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At the record of this sequence.
    At(u64),
    /// At the first record written at or after this time.
    Since(SystemTime),
}

/// A request to read records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub begin: Begin,
    /// The most records to return.
    pub limit: u64,
    /// Continues with new records as they arrive.
    pub follows: bool,
    /// `None` selects the layout that suits the log.
    pub layout: Option<Layout>,
}

/// Returns how a body is split, as given by the query or else by its type.
pub(super) fn by(parts: &Parts) -> Result<By, String> {
    // Its sender would rely on a promise that nobody keeps.
    if parts.headers.contains_key("idempotency-key") {
        return Err("Idempotency-Key is not taken: a retry may append a record again".to_owned());
    }
    let mut by = None;
    for pair in pairs(parts) {
        by = match pair {
            ("by", "lines") => Some(By::Lines),
            ("by", "body") => Some(By::Body),
            (name, value) => return Err(format!("{name}={value} is none of by=lines, by=body")),
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

/// Returns whether the body has a transfer encoding other than chunked (RFC 9112 section 6).
pub(super) fn is_transformed(parts: &Parts) -> bool {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).into_iter();
    codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Parses a request to read.
pub(super) fn wanted(parts: &Parts) -> Result<Wanted, String> {
    let (mut from, mut since) = (None, None);
    let mut wanted = Wanted { begin: Begin::At(0), limit: u64::MAX, follows: false, layout: None };
    for (name, value) in pairs(parts) {
        let bad = || {
            let known = "from=N, since=TIME, limit=N, follow=1, as=lines, as=u32";
            format!("{name}={value} is none of {known}")
        };
        match (name, value) {
            ("from", number) => from = Some(number.parse().map_err(|_| bad())?),
            ("since", time) => since = Some(moment(time)?),
            ("limit", number) => wanted.limit = number.parse().map_err(|_| bad())?,
            ("follow", "0" | "false") => wanted.follows = false,
            ("follow", "" | "1" | "true") => wanted.follows = true,
            ("as", "lines") => wanted.layout = Some(Layout::Lines),
            ("as", "u32") => wanted.layout = Some(Layout::U32),
            _ => return Err(bad()),
        }
    }
    wanted.begin = match (from, since) {
        (Some(_), Some(_)) => return Err("from and since name two beginnings: send one".into()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
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
        let all = Wanted { begin: Begin::At(0), limit: u64::MAX, follows: false, layout: None };
        assert_eq!(of(""), Ok(all));
        let layout = Some(Layout::U32);
        let some = Wanted { begin: Begin::At(5), limit: 10, follows: true, layout };
        assert_eq!(of("from=5&limit=10&follow&as=u32"), Ok(some));
        for bad in ["from=-1", "from=", "limit=x", "follow=yes", "as=json", "form=5"] {
            assert!(of(bad).unwrap_err().contains("is none of"), "{bad}");
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
}
