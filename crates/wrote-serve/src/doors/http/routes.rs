//! The paths of the door.

use super::answer::{Answer, wrong, wrong_method};
use super::append::append;
use super::body::Upload;
use super::exchange::Exchange;
use super::read::records;
use crate::limits::Reason;
use hyper::body::Incoming;
use hyper::header::ORIGIN;
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
