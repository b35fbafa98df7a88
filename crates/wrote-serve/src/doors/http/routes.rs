//! The paths of the door.

use super::answer::{Answer, wrong, wrong_method};
use super::append::append;
use super::body::Upload;
use super::exchange::Exchange;
use super::read::records;
use crate::access::Access;
use crate::limits::Reason;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;

/// Answers a request.
pub(super) async fn answer(
    request: Request<Incoming>,
    exchange: Arc<Exchange>,
) -> Result<Answer, Infallible> {
    exchange.begin();
    let (parts, body) = request.into_parts();
    let mut body = Upload::new(body);
    let refuse = |reason, answer| {
        exchange.port.metrics.refuse(reason);
        answer
    };
    let mut answer = match (parts.uri.path(), &parts.method) {
        // A web page can make a browser send these to loopback; no other client names an origin.
        _ if parts.headers.contains_key(ORIGIN) => {
            let because = "requests of web pages are refused";
            refuse(Reason::Unauthorized, wrong(StatusCode::FORBIDDEN, because))
        }
        _ if !is_let_in(&parts, &exchange.port.access) => {
            let mut answer =
                wrong(StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN is missing");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            refuse(Reason::Unauthorized, answer)
        }
        ("/append", &Method::POST) => append(&parts, &mut body, &exchange).await,
        ("/records", &Method::GET) => records(&parts, &exchange).await,
        ("/append", _) => refuse(Reason::Malformed, wrong_method("POST")),
        ("/records", _) => refuse(Reason::Malformed, wrong_method("GET")),
        _ => {
            let because = "the paths are /append and /records";
            refuse(Reason::Malformed, wrong(StatusCode::NOT_FOUND, because))
        }
    };
    if body.has_ended() {
        answer.body_mut().then_ends(exchange);
    }
    Ok(answer)
}

/// Tells whether a request has a token (RFC 6750 section 2.1), if one is asked for.
fn is_let_in(parts: &Parts, access: &Access) -> bool {
    if !access.asks_for_token() {
        return true;
    }
    let value = parts.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    match value.split_at_checked("Bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => {
            access.accepts(token.trim_ascii())
        }
        _ => false,
    }
}
