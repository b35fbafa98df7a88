//! HTTP answers: a code, a JSON body, and whether to retry.

use super::body::Body;
use crate::refusals::Refusal;
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

pub(super) type Answer = Response<Body>;

/// Seconds after which the client should retry.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a JSON answer on one line, for reading in a terminal.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from(format!("{value}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

pub(super) fn text_answer(status: StatusCode, line: &'static str) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from_static(line.as_bytes())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}

/// Returns an answer that explains what is wrong with the request.
pub(super) fn wrong(status: StatusCode, because: &str) -> Answer {
    json_answer(status, &json!({ "error": because }))
}

/// Returns an answer that asks for the same request again later.
pub(super) fn not_now(because: &str) -> Answer {
    later(wrong(StatusCode::SERVICE_UNAVAILABLE, because))
}

pub(super) fn wrong_method(allowed: &'static str) -> Answer {
    let because = format!("this path takes {allowed} only");
    let mut answer = wrong(StatusCode::METHOD_NOT_ALLOWED, &because);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Returns the answer to a request whose records are refused. The `appended` records before them
/// are in the log, but were not acknowledged.
pub(super) fn refused(refusal: &Refusal, appended: u64) -> Answer {
    let status = status(refusal);
    let value = json!({ "error": refusal.to_string(), "appended": appended });
    let answer = json_answer(status, &value);
    if status == StatusCode::SERVICE_UNAVAILABLE { later(answer) } else { answer }
}

/// Returns the answer to a request if only these lines were refused; all others are safe.
pub(super) fn partly(refusal: &Refusal, mut taken: Value, count: u64, lines: &[u64]) -> Answer {
    taken["error"] = format!("line {}: {refusal}", lines[0]).into();
    taken["refused"] = count.into();
    taken["refused_lines"] = lines.into();
    json_answer(status(refusal), &taken)
}

/// Returns the code of a refusal. Clients such as fluent-bit (`plugins/out_http/http.c`) and
/// vector's sink drop their records on codes 400 to 499, except 408 and 429.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Malformed(_) | Refusal::Unfit(_) => StatusCode::BAD_REQUEST,
        Refusal::Revoked => StatusCode::UNAUTHORIZED,
        Refusal::Silent | Refusal::Slow | Refusal::Unread => StatusCode::REQUEST_TIMEOUT,
        Refusal::Memory | Refusal::Log(_) | Refusal::Closed => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
    answer
}
