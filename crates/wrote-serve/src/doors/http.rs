//! HTTP/1.1: `POST /append` appends records to the log, and `GET /records` reads them.
//!
//! The `hyper` crate implements the protocol. A status of 200 is sent once every record of the
//! request has reached the listener's [`Level`](crate::Level) (W1). Temporary conditions are
//! answered with 503, because common clients drop their records after most other codes.

mod append;
mod body;
mod exchange;
mod query;
mod read;
mod session;
mod wire;

use crate::config::access::{self, WRONG_TOKEN_PAUSE};
use crate::refusals::Reason;
use append::append;
use body::{Answer, Upload, wrong, wrong_method};
use exchange::Exchange;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};
use read::records;
pub(crate) use session::serve;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::time::sleep;

const WRONG_METHOD: &str = "this path has another method";

/// Answers a request according to its path.
async fn answer(request: Request<Incoming>, exchange: Arc<Exchange>) -> Result<Answer, Infallible> {
    exchange.begin();
    let (parts, body) = request.into_parts();
    let mut body = Upload::new(body);
    let refuse = |reason, because, answer| {
        exchange.port.refuse(exchange.client(), reason, because);
        answer
    };
    let token = access::bearer(&parts.headers);
    let mark_of_page = exchange.mark_of_page(&parts.headers);
    let mut answer = match (mark_of_page, parts.uri.path(), &parts.method) {
        (Some(mark), ..) => refuse(Reason::Unauthorized, mark, wrong(StatusCode::FORBIDDEN, mark)),
        _ if !exchange.lets_in(token) => {
            if !token.is_empty() {
                sleep(WRONG_TOKEN_PAUSE).await;
            }
            let mut answer =
                wrong(StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN is missing");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            let because = if token.is_empty() { "no token" } else { "wrong token" };
            refuse(Reason::Unauthorized, because, answer)
        }
        (_, "/append", &Method::POST) => append(&parts, token, &mut body, &exchange).await,
        (_, "/records", &Method::GET | &Method::HEAD) => records(&parts, token, &exchange).await,
        (_, "/append", _) => refuse(Reason::Malformed, WRONG_METHOD, wrong_method("POST")),
        (_, "/records", _) => refuse(Reason::Malformed, WRONG_METHOD, wrong_method("GET, HEAD")),
        _ => {
            let because = "not found: use POST /append or GET /records";
            refuse(Reason::Malformed, because, wrong(StatusCode::NOT_FOUND, because))
        }
    };
    if body.has_ended {
        answer.body_mut().then_ends(exchange);
    }
    Ok(answer)
}
