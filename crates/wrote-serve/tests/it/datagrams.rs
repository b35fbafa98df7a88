//! Datagrams: a message each, counted where the kernel drops them, taken to the last at the end.

use crate::support::{Served, address, config, socket_path};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::thread;
use wrote::{Format, Log};
use wrote_serve::{Server, Socket};

fn udp(socket: &Socket) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address(socket)).unwrap();
    client
}

#[test]
fn a_datagram_is_a_message_without_its_end_of_line() {
    let (_folder, path) = socket_path();
    let served = Served::after(
        &["udp://127.0.0.1:0", &format!("unixgram://{}", path.display())],
        |sockets, _| {
            let client = udp(&sockets[0]);
            for datagram in [&b"one"[..], b"two\n", b"", b"\r\n", b"a\nb\0c\x1b[2J\0"] {
                client.send(datagram).unwrap();
            }
            let client = UnixDatagram::unbound().unwrap();
            client.send_to(b"three\r\n", &path).unwrap();
        },
    );
    served.until(|figures| figures.messages == 4);
    assert_eq!(served.figures().bytes, 3 + 3 + 9 + 5);
    let mut messages = served.stop();
    messages.sort();
    assert_eq!(messages, [&b"a\nb\0c\x1b[2J"[..], b"one", b"three", b"two"]);
    assert!(!path.exists(), "the socket's file is removed");
}

#[test]
fn a_datagram_that_is_too_long_is_cut_and_counted() {
    let served = Served::with(&["udp://127.0.0.1:0"], |config| config.limits.message_bytes = 10);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&b"0123456789"[..], b"0123456789\r\n", b"0123456789a", &[b'x'; 1000]] {
        client.send_to(datagram, served.address()).unwrap();
    }
    served.until(|figures| figures.messages == 4);
    assert_eq!(served.figures().udp_truncated, 2);
    let messages = served.stop();
    assert_eq!(messages, [&b"0123456789"[..], b"0123456789", b"0123456789", b"xxxxxxxxxx"]);
}

#[test]
fn what_the_kernel_drops_is_counted() {
    // More than the greatest buffer holds.
    const SENT: u64 = 40_000;
    let served = Served::after(&["udp://127.0.0.1:0"], |sockets, _| {
        let client = udp(&sockets[0]);
        for _ in 0..SENT {
            client.send(&[b'x'; 500]).unwrap();
        }
    });
    served.until(|figures| figures.udp_dropped > 0 && figures.messages > 0);
    let figures = served.figures();
    // A busy kernel may drop more on the way to the socket.
    assert!(figures.udp_dropped + figures.messages <= SENT, "{figures:?}");
    served.stop();
}

#[test]
fn what_had_arrived_at_the_end_is_appended() {
    let (_folder, path) = socket_path();
    let mut sent = Vec::new();
    let served = Served::after(&[&format!("unixgram://{}", path.display())], |_, handle| {
        let client = UnixDatagram::unbound().unwrap();
        client.set_nonblocking(true).unwrap();
        client.connect(&path).unwrap();
        for number in 0.. {
            let message = format!("{number}").into_bytes();
            if client.send(&message).is_err() {
                break;
            }
            sent.push(message);
        }
        handle.stop();
    });
    assert!(!sent.is_empty());
    assert_eq!(served.stop(), sent);
}

#[test]
fn senders_to_a_unix_socket_wait() {
    const SENT: u64 = 20_000;
    let (_folder, path) = socket_path();
    let url = format!("unixgram://{}", path.display());
    let mut sender = None;
    let served = Served::after(&[&url], |_, _| {
        sender = Some(thread::spawn(move || {
            let client = UnixDatagram::unbound().unwrap();
            client.connect(&path).unwrap();
            for number in 0..SENT {
                client.send(number.to_string().as_bytes()).unwrap();
            }
        }));
    });
    sender.unwrap().join().unwrap();
    served.until(|figures| figures.messages == SENT);
    let sent = (0..SENT).map(|number| number.to_string().into_bytes());
    assert!(served.stop().into_iter().eq(sent));
}

#[test]
fn a_datagram_that_the_log_cannot_hold_is_counted_and_the_next_is_taken() {
    let served = Served::with(&["udp://127.0.0.1:0"], |config| {
        config.logs[0].options = Log::options().format(Format::Lines);
    });
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&b"two\nlines"[..], b"one line"] {
        client.send_to(datagram, served.address()).unwrap();
    }
    served.until(|figures| figures.messages == 1);
    assert_eq!(served.figures().refused, 1);
    assert_eq!(served.stop(), [b"one line"]);
}

#[test]
fn a_living_socket_or_another_file_is_not_replaced() {
    let (folder, path) = socket_path();
    let url = format!("unix://{}", path.display());
    let served = Served::start(&[&url]);
    let other = fixtures::folder();
    let error = Server::start(config(other.path(), &[&url], |_| ())).unwrap_err();
    assert!(error.to_string().starts_with(&url), "{error}");
    served.stop();
    std::fs::write(&path, "kept").unwrap();
    let other = fixtures::folder();
    let error = Server::start(config(other.path(), &[&url], |_| ())).unwrap_err();
    assert!(error.to_string().contains("a file is there that is no socket"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    drop(folder);
}
