//! A session: the successive requests of one connection.
//!
//! Between requests, a session holds only the stream, and has neither a buffer nor a deadline.

use super::exchange::Exchange;
use super::wire::Wire;
use super::{answer, body};
use crate::doors::frames::{TLS, is_tls};
use crate::port::{Admission, Port};
use crate::refusals::Refusal;
use crate::stream::Stream;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The maximum number of bytes that hyper buffers per connection. Also the maximum length of a
/// request head.
const BUFFER_BYTES_MAX: usize = 16 << 10;
/// How long a refused client may continue to send. Without this time, the kernel would send a
/// reset, and the client might never read the refusal.
const LINGER: Duration = Duration::from_secs(2);

/// Serves a client until it disconnects or is refused, or the server drains. Refusals are counted.
pub(crate) async fn serve<S: Stream>(stream: S, admission: Admission, port: Port) {
    let exchange = Arc::new(Exchange::new(admission, port, stream.certificate_name()));
    let mut session = Session { draining: exchange.port.draining.clone(), exchange };
    let (mut wire, outcome) = session.serve(stream).await;
    if let Err(refusal) = outcome {
        if session.exchange.awaits_head() {
            session.exchange.begin();
            let answer = body::to_no_request(&refusal);
            let _ = timeout(LINGER, wire.write_all(answer.as_bytes())).await;
        }
        let port = &session.exchange.port;
        port.refuse(session.exchange.client(), refusal.reason(), refusal);
    }
    // A client that has disconnected needs no shutdown.
    let _ = wire.shutdown().await;
    if session.exchange.is_cut_short() {
        let _ = timeout(LINGER, wire.discard()).await;
    }
}

struct Session {
    exchange: Arc<Exchange>,
    draining: watch::Receiver<bool>,
}

/// The state of a connection after hyper has served it for a while.
enum Served<S> {
    /// The next request has not begun.
    Idle(Wire<S>),
    /// There are no more requests.
    Ended(Wire<S>, Result<(), Refusal>),
}

impl Session {
    /// Serves all requests. Returns the stream, and the refusal, if any, that terminated the
    /// session.
    async fn serve<S: Stream>(&mut self, stream: S) -> (Wire<S>, Result<(), Refusal>) {
        let mut wire = Wire::new(stream, self.exchange.clone());
        let mut is_silent = true;
        loop {
            if !wire.has_ahead() {
                match self.request_begins(&mut wire, std::mem::take(&mut is_silent)).await {
                    Ok(true) => {}
                    Ok(false) => return (wire, Ok(())),
                    Err(refusal) => return (wire, Err(refusal)),
                }
            }
            wire = match Box::pin(self.converse(wire)).await {
                Served::Idle(wire) => wire,
                Served::Ended(wire, outcome) => return (wire, outcome),
            };
        }
    }

    /// Waits for the first bytes of a request; `false` if the client sends no more requests.
    async fn request_begins<S: Stream>(
        &mut self,
        wire: &mut Wire<S>,
        is_silent: bool,
    ) -> Result<bool, Refusal> {
        let exchange = self.exchange.clone();
        let crowds_out = async move {
            loop {
                sleep(exchange.limits().first_byte).await;
                if exchange.port.is_crowded() {
                    break;
                }
            }
        };
        tokio::select! {
            biased;
            has_more = wire.fill() => return Ok(has_more),
            _ = self.draining.wait_for(|&draining| draining) => {}
            () = crowds_out, if is_silent => return Err(Refusal::Silent),
        }
        // A request that arrived before draining began is still served.
        Ok(wire.has_unread() && wire.fill().await)
    }

    /// Lets hyper serve requests until the client pauses, disconnects, or is refused.
    async fn converse<S: Stream>(&mut self, wire: Wire<S>) -> Served<S> {
        self.exchange.await_head();
        let shared = self.exchange.clone();
        let service = service_fn(move |request| Box::pin(answer(request, shared.clone())));
        let mut connection = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.exchange.limits().message_time)
            .max_buf_size(BUFFER_BYTES_MAX)
            // A client may close its sending side after a request. The wire notices when a client
            // that follows records has left.
            .half_close(true)
            .serve_connection(TokioIo::new(wire), service);
        let mut drains = pin!(self.draining.wait_for(|&draining| draining));
        let (mut has_begun, mut is_draining) = (false, false);
        let outcome = poll_fn(|context| {
            // An answer may be completed within one poll, and must announce that it is the last. If
            // hyper were shut down before it starts on the request, it would end without an answer.
            if has_begun && !is_draining && drains.as_mut().poll(context).is_ready() {
                is_draining = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            has_begun = true;
            loop {
                if let Poll::Ready(outcome) = connection.poll_without_shutdown(context) {
                    return Poll::Ready(Some(outcome));
                }
                if self.exchange.is_idle() {
                    return Poll::Ready(None);
                }
                if is_draining || drains.as_mut().poll(context).is_pending() {
                    let held = self.exchange.hold_head();
                    self.exchange.account().watch(context);
                    // The connection may have been closed before its waker was registered.
                    return match held.and(self.exchange.account().check()) {
                        Ok(()) => Poll::Pending,
                        Err(refusal) => {
                            self.exchange.refuse(refusal);
                            Poll::Ready(Some(Ok(())))
                        }
                    };
                }
                // The current answer is the last one, and announces that.
                is_draining = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        })
        .await;
        let parts = connection.into_parts();
        let mut wire = parts.io.into_inner();
        match outcome {
            None => {
                wire.put_back(&parts.read_buf);
                Served::Idle(wire)
            }
            Some(outcome) => {
                let cut = self.exchange.refusal().map_or(Ok(()), Err);
                Served::Ended(wire, cut.and(outcome.or_else(|it| refusal(&it, &parts.read_buf))))
            }
        }
    }
}

/// Converts an error of hyper to a refusal. A client that has disconnected is not refused.
fn refusal(error: &hyper::Error, unread: &[u8]) -> Result<(), Refusal> {
    if error.is_parse_too_large() {
        Err(Refusal::LongHead)
    } else if is_tls(unread) {
        Err(TLS)
    } else if error.is_parse() {
        Err(Refusal::Malformed(wrong_in_head(error)))
    } else if error.is_timeout() {
        Err(Refusal::SlowHead)
    } else {
        Ok(())
    }
}

/// Returns what hyper could not read in a request's head. Its errors differ only in their texts.
fn wrong_in_head(error: &hyper::Error) -> &'static str {
    match &*error.to_string() {
        _ if error.is_parse_version_h2() => "HTTP/2 is not served: send HTTP/1.1",
        "invalid content-length parsed" => "Content-Length must be one number",
        "invalid transfer-encoding parsed" | "unexpected transfer-encoding parsed" => {
            "Transfer-Encoding must be chunked"
        }
        "invalid HTTP header parsed" => "a header is not a name, a colon and a value",
        "invalid URI" | "invalid HTTP version parsed" => {
            "the request line is not a method, a path without spaces, and HTTP/1.1"
        }
        _ => "not an HTTP request",
    }
}
