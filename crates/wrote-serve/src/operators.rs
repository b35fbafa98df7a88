//! The operators' listener, which serves metrics, liveness and readiness.
//!
//! It is separate from the doors, because it keeps running while they drain and its connections are
//! not counted.

mod page;

use crate::Error;
use crate::channel::Channel;
use crate::config::access::{self, AccessConfig, WRONG_TOKEN_PAUSE};
use crate::config::settings::Settings;
use crate::metrics::Totals;
use crate::port::Port;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

/// The maximum number of connections. A further connection replaces the oldest.
const CONNECTIONS_MAX: usize = 16;
/// The maximum lifetime of a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(5);
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The pause after a failed accept. Without free descriptors, the next accept would fail, too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The content type of the Prometheus text format.
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

#[derive(Debug)]
pub(crate) struct Operators {
    listener: TcpListener,
    /// Whether other hosts can reach the listener, so that it requires a token.
    asks_for_token: bool,
    /// The configured name or address.
    host: Arc<str>,
}

/// The data that the listener reports.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub totals: Arc<Totals>,
    pub ports: Vec<Port>,
    pub channels: Vec<Arc<Channel>>,
    pub settings: watch::Receiver<Settings>,
    pub draining: watch::Receiver<bool>,
}

type Answer = Response<Full<Bytes>>;

impl Operators {
    pub(crate) async fn bind(address: &str, rule: &AccessConfig) -> Result<Operators, Error> {
        let (found, asks_for_token) =
            access::operators_addresses(address, rule).map_err(Error::Config)?;
        let failed = |source| Error::Listen { url: format!("http://{address}"), source };
        let listener = TcpListener::bind(&found[..]).await.map_err(failed)?;
        Ok(Operators { listener, asks_for_token, host: access::host(address).into() })
    }

    /// Returns the listener's address with the port that the kernel chose; `None` if the kernel
    /// does not report it.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub(crate) async fn serve(self, shown: Shown) {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    open.retain(|connection| !connection.is_finished());
                    if open.len() == CONNECTIONS_MAX {
                        // The oldest connection has had enough time, because an answer takes
                        // milliseconds.
                        open.pop_front().iter().for_each(AbortHandle::abort);
                    }
                    // A client that is slow or has disconnected can ask again.
                    let conversation =
                        converse(stream, shown.clone(), self.asks_for_token, self.host.clone());
                    let served = timeout(CONNECTION_TIME, conversation);
                    open.push_back(tokio::spawn(served).abort_handle());
                }
                Err(error) => {
                    log::warn!("metrics: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn converse(
    stream: TcpStream,
    shown: Shown,
    asks_for_token: bool,
    host: Arc<str>,
) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let (shown, host) = (shown.clone(), host.clone());
        async move {
            if asks_for_token && !shown.lets_in(&request).await {
                return Ok(unauthorized());
            }
            let mark = access::mark_of_page(request.headers(), Some(&host));
            if let Some(mark) = mark.filter(|_| !asks_for_token) {
                return Ok(text(StatusCode::FORBIDDEN, format!("{mark}\n")));
            }
            Ok::<_, Infallible>(answer(&request, shown).await)
        }
    });
    Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .half_close(true)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: &Request<Incoming>, shown: Shown) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match request.uri().path() {
        "/metrics" => {
            // Writing the page blocks, because it reads each log's folder.
            let written = spawn_blocking(move || page::write(&shown)).await;
            let mut answer = match written {
                Ok(page) => text(StatusCode::OK, page),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics failed\n"),
            };
            answer.headers_mut().insert(CONTENT_TYPE, METRICS);
            answer
        }
        "/livez" => text(StatusCode::OK, "alive\n"),
        "/readyz" => match shown.troubles() {
            troubles if troubles.is_empty() => text(StatusCode::OK, "ready\n"),
            troubles => text(StatusCode::SERVICE_UNAVAILABLE, troubles),
        },
        _ => text(StatusCode::NOT_FOUND, "not found: use /metrics, /livez or /readyz\n"),
    }
}

fn unauthorized() -> Answer {
    let mut answer = text(StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN is missing\n");
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}

impl Shown {
    /// Returns whether a request has a valid token. After a wrong token, waits before it returns.
    async fn lets_in(&self, request: &Request<Incoming>) -> bool {
        let token = access::bearer(request.headers());
        let is_right = self.settings.borrow().access.accepts(token);
        if !is_right && !token.is_empty() {
            sleep(WRONG_TOKEN_PAUSE).await;
        }
        is_right
    }

    /// Returns why messages are not accepted, one line per log.
    fn troubles(&self) -> String {
        let mut lines = String::new();
        if *self.draining.borrow() {
            lines += "the server is draining\n";
        }
        for channel in &self.channels {
            if let Some(trouble) = channel.trouble() {
                lines += &format!("{} accepts no messages: {trouble}\n", channel.config.name);
            }
        }
        lines
    }
}
