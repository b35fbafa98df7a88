//! Receives datagrams. Each is a message, and none is answered.
//!
//! Nothing is received while the log has no room. Senders to a Unix socket then have to wait,
//! whereas the kernel drops UDP datagrams once its buffer is full. These drops are counted.

use crate::channel::Turn;
use crate::config::{Limits, Listen, Socket};
use crate::doors::{Store, without_trailer};
use crate::metrics::{Metrics, Paused, add};
use crate::port::Port;
use crate::refusals::{Client, Reason};
use crate::sockets::{Passed, SocketFile};
use crate::target::Target;
use rustix::net::{RecvFlags, SocketType};
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::{UdpSocket, UnixDatagram};
use tokio::time::sleep;

/// The receive buffer requested from the kernel: about 60 ms of 500-byte messages at 100,000 per
/// second.
const BUFFER_BYTES: usize = 4 << 20;
/// The number of bytes that are received before other tasks get to run.
const TURN_BYTES: usize = 128 << 10;
/// The longest line ending that is removed.
const TRAILER_BYTES_MAX: usize = 2;
/// The interval at which the kernel's drop count is read, which requires a walk through all
/// sockets.
const DROPS_PAUSE: Duration = Duration::from_secs(1);
/// The pause after an error of the socket or the log.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket for datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// A socket of either kind: the server only calls recv(2), which is the same for both.
    socket: UnixDatagram,
    is_udp: bool,
    _file: Option<SocketFile>,
    buffer_bytes: usize,
    /// The kernel's drop count at the last reading. It wraps at 32 bits.
    drops: AtomicU32,
}

impl Datagrams {
    /// Binds a socket, or uses the one that the service manager has bound.
    pub(crate) async fn bind(listen: &Listen, passed: Option<Passed>) -> io::Result<Datagrams> {
        match (&listen.socket, passed) {
            (_, Some(passed)) => Datagrams::prepare(listen, passed.into(), None),
            (Socket::UnixDatagram(path), None) => {
                let (socket, file) = SocketFile::bind(path, listen.mode, SocketType::DGRAM)?;
                Datagrams::prepare(listen, socket, Some(file))
            }
            (Socket::Udp(address), None) => {
                let socket = UdpSocket::bind(address).await?.into_std()?;
                Datagrams::prepare(listen, socket.into(), None)
            }
            (Socket::Tcp(_) | Socket::Unix(_), None) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Sets up a non-blocking socket.
    fn prepare(
        listen: &Listen,
        socket: OwnedFd,
        file: Option<SocketFile>,
    ) -> io::Result<Datagrams> {
        let is_udp = matches!(listen.socket, Socket::Udp(_));
        if is_udp {
            // If the kernel refuses the size, the buffer size read back below is smaller.
            let _ = SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
        }
        let buffer_bytes = SockRef::from(&socket).recv_buffer_size()?;
        if is_udp {
            // The kernel doubles the size for its own needs, and reports the doubled size
            // (socket(7)).
            let given = buffer_bytes / 2;
            log::info!("{listen}: the receive buffer has {given} bytes");
            if given < BUFFER_BYTES {
                log::warn!("{listen}: asked for {BUFFER_BYTES} bytes; raise net.core.rmem_max");
            }
        }
        let (socket, drops) = (UnixDatagram::from_std(socket.into())?, AtomicU32::new(0));
        let datagrams = Datagrams { socket, is_udp, _file: file, buffer_bytes, drops };
        datagrams.drops.store(datagrams.dropped().unwrap_or(0), Ordering::Relaxed);
        Ok(datagrams)
    }

    /// Returns the address with the port that the kernel chose.
    pub(crate) fn socket(&self, asked: &Socket) -> Socket {
        let address = SockRef::from(&self.socket).local_addr();
        match address.ok().and_then(|address| address.as_socket()) {
            Some(address) => Socket::Udp(address.to_string()),
            None => asked.clone(),
        }
    }

    /// Receives until the server drains, and then receives everything that has already arrived.
    pub(crate) async fn receive(self, mut port: Port) {
        let metrics = port.metrics.clone();
        tokio::select! {
            () = self.receive_all(&mut port) => {}
            () = self.count_drops_repeatedly(&metrics) => {}
        }
        self.count_drops(&metrics);
    }

    async fn receive_all(&self, port: &mut Port) {
        let mut draining = port.draining.clone();
        let mut buffer = Vec::new();
        loop {
            port.renew();
            buffer.resize(port.limits.message_bytes + TRAILER_BYTES_MAX + 1, 0);
            tokio::select! {
                _ = self.socket.readable() => {}
                _ = draining.wait_for(|&draining| draining) => break,
            }
            self.receive_some(UnixDatagram::try_recv, &mut buffer, TURN_BYTES, port).await;
            tokio::task::yield_now().await;
        }
        // At most one kernel buffer of data has arrived. Without this bound, a persistent sender
        // could keep the server running forever.
        self.receive_some(recv_now, &mut buffer, self.buffer_bytes, port).await;
    }

    /// Receives available data by `receive`, up to about `bytes_max` bytes.
    async fn receive_some(
        &self,
        receive: fn(&UnixDatagram, &mut [u8]) -> io::Result<usize>,
        buffer: &mut [u8],
        bytes_max: usize,
        port: &Port,
    ) {
        let (mut received, mut turn) = (0, None);
        while received < bytes_max {
            let bytes = match receive(&self.socket, buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    log::warn!("{}: {error}", port.listen);
                    return sleep(RETRY_PAUSE).await;
                }
            };
            received += bytes.max(1);
            let message = self.cut(without_trailer(&buffer[..bytes]), &port.limits, &port.metrics);
            if !message.is_empty() {
                self.append(message, &mut turn, port).await;
            }
        }
    }

    /// Truncates a message that is too long, as other servers do, because losing its end is better
    /// than losing all of it.
    fn cut<'a>(&self, message: &'a [u8], limits: &Limits, metrics: &Metrics) -> &'a [u8] {
        if message.len() > limits.message_bytes {
            add(&metrics.udp_truncated_total, 1);
        }
        &message[..message.len().min(limits.message_bytes)]
    }

    /// Appends a message in its turn, once there is room. While the log has failed, UDP datagrams
    /// are refused and counted, but senders to a Unix socket have to wait.
    async fn append(&self, message: &[u8], turn: &mut Option<Turn>, port: &Port) {
        loop {
            if port.channel.takes_messages()
                && let Some(target) = port.channel.target()
            {
                match append_in_turn(&target, message, turn, port).await {
                    Ok(()) => return port.metrics.take(None, 1, message.len() as u64),
                    // This message can never fit into the log.
                    Err(wrote::Error::Refused { .. } | wrote::Error::TooLong { .. }) => {
                        let because = "the log cannot hold a datagram";
                        return port.reject(Client(None), Reason::Malformed, because);
                    }
                    Err(_) => {}
                }
            }
            *turn = None;
            if self.is_udp || *port.draining.borrow() {
                return port.reject(Client(None), Reason::Log, "");
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn count_drops_repeatedly(&self, metrics: &Metrics) {
        loop {
            sleep(DROPS_PAUSE).await;
            self.count_drops(metrics);
        }
    }

    /// Counts the datagrams that the kernel has dropped since the last call.
    fn count_drops(&self, metrics: &Metrics) {
        if let Some(dropped) = self.dropped() {
            let before = self.drops.swap(dropped, Ordering::Relaxed);
            add(&metrics.udp_dropped_total, dropped.wrapping_sub(before).into());
        }
    }

    /// Returns the kernel's drop count for this socket; `None` if there is none.
    fn dropped(&self) -> Option<u32> {
        if !self.is_udp {
            return None;
        }
        let inode = rustix::fs::fstat(&self.socket).ok()?.st_ino;
        let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
        tables.iter().find_map(|table| drops_in(&std::fs::read_to_string(table).ok()?, inode))
    }
}

/// Waits for a turn after all other senders, then for room, and appends. The turn lasts for one
/// batch.
async fn append_in_turn(
    target: &Target,
    message: &[u8],
    turn: &mut Option<Turn>,
    port: &Port,
) -> Result<(), wrote::Error> {
    let turns = &port.channel.turns;
    loop {
        if turns.lets(turn.as_ref()) && target.try_append(&[message])?.is_some() {
            return Ok(());
        }
        let _paused = Paused::of(&port.metrics);
        turns.wait(turn, target).await?;
    }
}

/// Receives a datagram that the kernel has, even if the runtime does not know of it yet.
fn recv_now(socket: &UnixDatagram, buffer: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT)?;
    Ok(bytes)
}

/// Returns a socket's drop count from the kernel's table (proc(5)); `None` if the table does not
/// contain the socket. Field 10 is the inode, and the last field is the drop count.
fn drops_in(table: &str, inode: u64) -> Option<u32> {
    let mut lines = table.lines().map(|line| line.split_whitespace());
    lines.find_map(|mut fields| {
        let is_it = fields.nth(9)?.parse() == Ok(inode);
        if is_it { fields.last()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_found_by_the_sockets_inode() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
             retrnsmt   uid  timeout inode ref pointer drops             \n\
             2437: 0100007F:1538 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
             0        0 7007 2 0000000000000000 4294967295         \n\
             2438: 0100007F:1539 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
             0        0 7008 2 0000000000000000 12         \n";
        assert_eq!(drops_in(table, 7007), Some(u32::MAX));
        assert_eq!(drops_in(table, 7008), Some(12));
        assert_eq!(drops_in(table, 2), None);
    }
}
