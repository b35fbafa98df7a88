//! Listening: sockets are bound, connections accepted within the limits.

use crate::config::{Listen, Socket};
use crate::connection::Connection;
use crate::datagrams::Datagrams;
use crate::doors::{Door, Frames, Relp};
use crate::limits::Reason;
use crate::metrics::{add, sub};
use crate::port::Port;
use crate::socket_file::SocketFile;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use wrote::Log;

/// How long a silent client is left alone before the kernel asks whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// The pause after a failed accept: without descriptors the next would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
    Datagrams(Datagrams),
}

impl Bound {
    /// Binds the socket of a listener.
    pub(crate) async fn bind(listen: &Listen) -> io::Result<Bound> {
        match &listen.socket {
            Socket::Tcp(address) => TcpListener::bind(address).await.map(Bound::Tcp),
            Socket::Unix(path) => {
                let (listener, file) = SocketFile::bind(path, |path| UnixListener::bind(path))?;
                Ok(Bound::Unix(listener, file))
            }
            Socket::Udp(_) | Socket::UnixDatagram(_) => {
                Datagrams::bind(listen).await.map(Bound::Datagrams)
            }
        }
    }

    /// Returns the listener as it is: with the port that the kernel has chosen.
    pub(crate) fn listen(&self, asked: &Listen) -> Listen {
        let socket = match self {
            Bound::Tcp(listener) => match listener.local_addr() {
                Ok(address) => Socket::Tcp(address.to_string()),
                Err(_) => asked.socket.clone(),
            },
            Bound::Unix(..) => asked.socket.clone(),
            Bound::Datagrams(datagrams) => datagrams.socket(&asked.socket),
        };
        Listen { socket, ..asked.clone() }
    }

    /// Accepts connections, or receives datagrams, until the server drains.
    pub(crate) async fn accept(self, port: Port) {
        if let Bound::Datagrams(datagrams) = self {
            return datagrams.receive(port).await;
        }
        let mut draining = port.draining.clone();
        tokio::select! {
            () = self.accept_all(&port) => {}
            _ = draining.wait_for(|&draining| draining) => {}
        }
    }

    async fn accept_all(&self, port: &Port) {
        loop {
            let accepted = match self {
                Bound::Tcp(listener) => match listener.accept().await {
                    Ok((stream, _)) => {
                        prepare(&stream);
                        admit(stream, port);
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
                Bound::Unix(listener, _) => match listener.accept().await {
                    Ok((stream, _)) => {
                        admit(stream, port);
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
                Bound::Datagrams(_) => return,
            };
            if let Err(error) = accepted {
                log::warn!("{}: {error}", port.listen);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn prepare(stream: &TcpStream) {
    // A stream without these options serves as well.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
}

/// Serves a stream in a task of its own, if the limits allow one more.
fn admit<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, port: &Port) {
    let metrics = &port.metrics;
    let Some(log) = port.channel.log() else { return metrics.refuse(Reason::Log) };
    let open = metrics.connections.load(std::sync::atomic::Ordering::Relaxed);
    if open >= port.limits.connections as u64 {
        return metrics.refuse(Reason::Connections);
    }
    add(&metrics.connections, 1);
    add(&metrics.connections_total, 1);
    let port = port.clone();
    tokio::spawn(async move {
        let metrics = port.metrics.clone();
        serve(stream, port, log).await;
        sub(&metrics.connections, 1);
    });
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, port: Port, log: Log) {
    match port.listen.door {
        Door::Frames(frame) => Connection::new(stream, Frames::new(frame), port, log).serve().await,
        Door::Relp => Connection::new(stream, Relp::default(), port, log).serve().await,
        Door::Datagrams | Door::Resp | Door::Http => {}
    }
}
