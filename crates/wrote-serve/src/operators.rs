//! The operators' listener: metrics, and whether the server lives and takes messages.
//!
//! It is apart from the doors: it goes on while they drain, and none of its connections counts.

mod page;

use crate::channel::Channel;
use crate::error::Error;
use crate::metrics::Metrics;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

/// Connections at a time. One more takes the place of the oldest.
const CONNECTIONS_MAX: usize = 16;
/// The time of a connection, from its beginning to its end.
const CONNECTION_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request at most.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The pause after a failed accept: without descriptors the next would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The format of Prometheus's text.
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The bound listener.
#[derive(Debug)]
pub(crate) struct Operators(TcpListener);

/// The things that are shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub metrics: Arc<Metrics>,
    pub channels: Vec<Arc<Channel>>,
    pub draining: watch::Receiver<bool>,
}

type Answer = Response<Full<Bytes>>;

impl Operators {
    /// Binds the listener.
    pub(crate) async fn bind(address: &str, insecure: bool) -> Result<Operators, Error> {
        let found = addresses(address, insecure).map_err(Error::Config)?;
        let failed = |source| Error::Listen { url: format!("http://{address}"), source };
        TcpListener::bind(&found[..]).await.map(Operators).map_err(failed)
    }

    /// Returns its address, with the port that the kernel has chosen.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }

    /// Answers for as long as the server lives.
    pub(crate) async fn serve(self, shown: Shown) {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => {
                    open.retain(|connection| !connection.is_finished());
                    if open.len() == CONNECTIONS_MAX {
                        // The oldest has had its time: an answer takes milliseconds.
                        open.pop_front().iter().for_each(AbortHandle::abort);
                    }
                    // A client that is slow, or gone, asks again.
                    let served = timeout(CONNECTION_TIME, converse(stream, shown.clone()));
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

/// Returns where the listener is going to listen. Without `insecure` that must be on this machine
/// alone: anybody who reaches it may read.
pub(crate) fn addresses(address: &str, insecure: bool) -> Result<Vec<SocketAddr>, String> {
    let found = address.to_socket_addrs();
    let found: Vec<_> = found.map_err(|error| format!("http://{address}: {error}"))?.collect();
    if insecure || found.iter().all(|address| address.ip().is_loopback()) {
        return Ok(found);
    }
    Err(format!(
        "metrics: {address} can be reached from other machines, and asks for no password: listen \
         on 127.0.0.1"
    ))
}

async fn converse(stream: TcpStream, shown: Shown) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let shown = shown.clone();
        async move { Ok::<_, Infallible>(answer(&request, shown).await) }
    });
    Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
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
            // It looks at each log's folder.
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
        _ => text(StatusCode::NOT_FOUND, "the paths are /metrics, /livez and /readyz\n"),
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}

impl Shown {
    /// Says in a line each why messages are not taken.
    fn troubles(&self) -> String {
        let mut lines = String::new();
        if *self.draining.borrow() {
            lines += "the server is draining\n";
        }
        for channel in &self.channels {
            if let Some(trouble) = channel.trouble() {
                lines += &format!("{} takes no messages: {trouble}\n", channel.config.name);
            }
        }
        lines
    }
}
