//! Binds sockets, and accepts connections within the limits.

use crate::config::{Door, Listen, Socket};
use crate::connection::Connection;
use crate::datagrams::Datagrams;
use crate::doors::{Frames, Relp, Resp, http};
use crate::port::{Admission, Port};
use crate::refusals::{Reason, Throttle};
use crate::sockets::{BACKLOG, Inherited, SocketFile};
use crate::stream::{self, Sessions, Stream};
use rustix::net::SocketType;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The idle time after which the kernel probes whether the client is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// The time limit for a handshake that is in progress when the server drains.
const HANDSHAKE_GRACE: Duration = Duration::from_secs(1);
/// The pause after a failed accept. Without free descriptors, the next accept would fail, too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Bound {
    kind: Kind,
    /// Whether a service manager keeps the socket open.
    is_kept: bool,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    /// A Unix socket, and its file unless a service manager owns that.
    Unix(UnixListener, Option<SocketFile>),
    Datagrams(Datagrams),
}

impl Bound {
    /// Binds a listener's socket, or takes the sockets that a service manager has bound. Several of
    /// them may share a name.
    pub(crate) async fn bind_all(
        listen: &Listen,
        inherited: &mut Inherited,
    ) -> io::Result<Vec<Bound>> {
        let mut all = vec![Bound::bind(listen, inherited).await?];
        while inherited.has_more_of(listen) {
            all.push(Bound::bind(listen, inherited).await?);
        }
        Ok(all)
    }

    /// Binds a listener's socket, or takes the next one that a service manager has bound.
    async fn bind(listen: &Listen, inherited: &mut Inherited) -> io::Result<Bound> {
        let passed = inherited.take(listen)?;
        let is_kept = passed.is_some();
        if is_kept && listen.mode.is_some() {
            let what = "mode= has no effect on a socket that was passed in: set its SocketMode=";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let kind = match (&listen.socket, passed) {
            (Socket::Tcp(_), Some(passed)) => Kind::Tcp(TcpListener::from_std(passed.into())?),
            (Socket::Tcp(address), None) => {
                let listener = TcpListener::bind(address).await?;
                rustix::net::listen(&listener, BACKLOG)?;
                Kind::Tcp(listener)
            }
            (Socket::Unix(_), Some(passed)) => {
                Kind::Unix(UnixListener::from_std(passed.into())?, None)
            }
            (Socket::Unix(path), None) => {
                let (listener, file) = SocketFile::bind(path, listen.mode, SocketType::STREAM)?;
                Kind::Unix(UnixListener::from_std(listener)?, Some(file))
            }
            (_, passed) => Kind::Datagrams(Datagrams::bind(listen, passed).await?),
        };
        Ok(Bound { kind, is_kept })
    }

    /// Returns the listener with the port that the kernel chose.
    pub(crate) fn listen(&self, asked: &Listen) -> Listen {
        let socket = match &self.kind {
            Kind::Tcp(listener) => match listener.local_addr() {
                Ok(address) => Socket::Tcp(address.to_string()),
                Err(_) => asked.socket.clone(),
            },
            Kind::Unix(..) => asked.socket.clone(),
            Kind::Datagrams(datagrams) => datagrams.socket(&asked.socket),
        };
        Listen { socket, ..asked.clone() }
    }

    /// Accepts connections until the server drains, and then the connections already queued.
    /// Datagrams are received in the same way. On an inherited socket, queued connections are left
    /// for the next server.
    pub(crate) async fn accept(self, mut port: Port) {
        let Bound { kind, is_kept } = self;
        if let Kind::Datagrams(datagrams) = kind {
            return datagrams.receive(port).await;
        }
        if port.listen.answers().is_some() {
            for (worker, acks) in port.workers.iter().zip(&*port.acks) {
                worker.runtime.spawn(acks.clone().run());
            }
        }
        let drains = port.drains();
        tokio::select! {
            () = kind.accept_all(&mut port) => {}
            () = drains => {}
        }
        let listen = port.listen.clone();
        if !is_kept && let Err(error) = kind.accept_rest(port) {
            log::warn!("{listen}: {error}");
        }
    }
}

impl Kind {
    async fn accept_all(&self, port: &mut Port) {
        let failures = Throttle::default();
        let holds = port.listen.answers().is_none();
        loop {
            while holds && !port.channel.takes_messages() {
                port.channel.next_good_look().await;
            }
            let accepted = match self {
                Kind::Tcp(listener) => listener.accept().await.and_then(|(stream, from)| {
                    admit(stream.into_std()?, prepared, Some(from.ip()), port);
                    Ok(())
                }),
                Kind::Unix(listener, _) => listener.accept().await.and_then(|(stream, _)| {
                    admit(stream.into_std()?, UnixStream::from_std, None, port);
                    Ok(())
                }),
                Kind::Datagrams(_) => return,
            };
            if let Err(error) = accepted {
                failures.warn(format_args!("{}: {error}", port.listen));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Accepts the connections in the kernel's queue, because their clients may already have sent
    /// everything. The runtime may not know of them yet.
    fn accept_rest(self, mut port: Port) -> io::Result<()> {
        match self {
            Kind::Tcp(listener) => {
                let listener = listener.into_std()?;
                rest(|| {
                    let (stream, from) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    admit(stream, prepared, Some(from.ip()), &mut port);
                    Ok(())
                })
            }
            Kind::Unix(listener, _file) => {
                let listener = listener.into_std()?;
                rest(|| {
                    let (stream, _) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    admit(stream, UnixStream::from_std, None, &mut port);
                    Ok(())
                })
            }
            Kind::Datagrams(_) => Ok(()),
        }
    }
}

/// Accepts connections until the queue is empty.
fn rest(mut accept: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match accept() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // The client has already disconnected (`accept(2)`).
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
}

fn prepared(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    // These options are not essential.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
    TcpStream::from_std(stream)
}

/// Serves a stream in a new task, if the limits allow it. `make` registers the stream with that
/// task's runtime.
fn admit<T, S: Stream>(
    stream: T,
    make: fn(T) -> io::Result<S>,
    from: Option<IpAddr>,
    port: &mut Port,
) {
    port.renew();
    let Some(admission) = Admission::of(port, from) else { return };
    let runtime = admission.seat.worker().runtime.clone();
    let _entered = runtime.enter();
    let stream = match make(stream) {
        Ok(stream) => stream,
        Err(error) => return log::warn!("{}: {error}", port.listen),
    };
    let port = port.clone();
    match port.tls.clone() {
        None => serve(stream, admission, port),
        Some(tls) => _ = tokio::spawn(serve_tls(stream, tls, admission, port)),
    }
}

/// Serves a stream after its TLS handshake.
async fn serve_tls<S: Stream>(stream: S, tls: Sessions, admission: Admission, port: Port) {
    let (client, drains) = (admission.client(), port.drains());
    let problem = tokio::select! {
        session = stream::handshake(stream, tls) => match session {
            Ok(stream) => return serve(stream, admission, port),
            // This is how rustls reports a client that uses plain TCP.
            Err(error) if error.to_string().contains("InvalidContentType") => {
                "the client sent plain bytes".to_owned()
            }
            Err(error) => error.to_string(),
        },
        () = tokio::time::sleep(port.limits.handshake) => "it took too long".to_owned(),
        () = async {
            drains.await;
            tokio::time::sleep(HANDSHAKE_GRACE).await;
        } => "the server is stopping".to_owned(),
    };
    let problem = problem.replace(['\n', '\r'], " ");
    port.refuse(client, Reason::Handshake, format_args!("TLS failed: {problem}"));
}

/// Serves a stream in a new task.
///
/// The task contains only a [`Connection`]. If an `async fn` contained it, the task would hold its
/// memory a second time while the client is connected.
fn serve<S: Stream>(stream: S, admission: Admission, port: Port) {
    let door = port.listen.door;
    if door == Door::Http {
        // HTTP has an answer for a failed log.
        tokio::spawn(http::serve(stream, admission, port));
        return;
    }
    let Some(target) = port.channel.target() else {
        if matches!(door, Door::Frames(_)) {
            tokio::spawn(serve_later(stream, admission, port));
        } else {
            port.refuse(admission.client(), Reason::Log, "");
        }
        return;
    };
    match door {
        Door::Frames(frame) => {
            let frames = Frames::new(frame, port.listen.oversize);
            tokio::spawn(Connection::new(stream, frames, admission, port, target));
        }
        Door::Relp => {
            let relp = Relp::new(port.listen.oversize);
            tokio::spawn(Connection::new(stream, relp, admission, port, target));
        }
        Door::Resp => {
            let log_of = Some((port.channel.clone(), port.listen.ack));
            let resp = Resp::new(log_of, port.access.clone());
            tokio::spawn(Connection::new(stream, resp, admission, port, target));
        }
        Door::Datagrams | Door::Http => {}
    }
}

/// Serves a stream without answers once the log is open again. If the server closed the stream
/// instead, the sender would not know that its data was never read.
async fn serve_later<S: Stream>(stream: S, admission: Admission, port: Port) {
    tokio::select! {
        () = port.channel.next_good_look() => serve(stream, admission, port),
        () = port.drains() => {
            port.refuse(admission.client(), Reason::Log, "");
        }
    }
}
