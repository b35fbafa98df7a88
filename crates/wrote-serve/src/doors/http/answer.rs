//! Answers: a code, a body of JSON, and whether to come again.

use super::body::Body;
use crate::limits::Refusal;
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

pub(super) type Answer = Response<Body>;

/// The seconds after which a client is asked to try again.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Makes an answer in JSON, a line as it is read in a terminal.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from(format!("{value}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// Makes an answer of a line of text.
pub(super) fn text_answer(status: StatusCode, line: &'static str) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from_static(line.as_bytes())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}

/// Makes an answer that says what is wrong with the request.
pub(super) fn wrong(status: StatusCode, because: &str) -> Answer {
    json_answer(status, &json!({ "error": because }))
}

/// Makes an answer that asks to send the same request again later.
pub(super) fn not_now(because: &str) -> Answer {
    later(wrong(StatusCode::SERVICE_UNAVAILABLE, because))
}

pub(super) fn wrong_method(allowed: &'static str) -> Answer {
    let because = format!("this path takes {allowed} only");
    let mut answer = wrong(StatusCode::METHOD_NOT_ALLOWED, &because);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Makes the answer to a request whose records are refused. Those before, `appended` of them, are
/// in the log without a promise.
pub(super) fn refused(refusal: &Refusal, appended: u64) -> Answer {
    let status = status(refusal);
    let value = json!({ "error": refusal.to_string(), "appended": appended });
    let answer = json_answer(status, &value);
    if status == StatusCode::SERVICE_UNAVAILABLE { later(answer) } else { answer }
}

/// Makes the answer to a request of which these lines are refused, and all others are safe.
pub(super) fn partly(refusal: &Refusal, mut taken: Value, count: u64, lines: &[u64]) -> Answer {
    taken["error"] = format!("line {}: {refusal}", lines[0]).into();
    taken["refused"] = count.into();
    taken["refused_lines"] = lines.into();
    json_answer(status(refusal), &taken)
}

/// The code of a refusal. Clients such as fluent-bit (`plugins/out_http/http.c`) and vector's sink
/// drop their records at codes from 400 to 499, but for 408 and 429.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Malformed(_) | Refusal::Unfit(_) => StatusCode::BAD_REQUEST,
        Refusal::Reused => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::Revoked => StatusCode::UNAUTHORIZED,
        Refusal::Silent | Refusal::Slow | Refusal::Unread => StatusCode::REQUEST_TIMEOUT,
        Refusal::Memory | Refusal::Log(_) | Refusal::Closed => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
    answer
}
