//! Datagrams: each is one message, drops are counted, and before the server shuts down, it receives
//! all that have arrived.

use crate::serving::{Serving, address, socket_path};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::thread;
use wrote_serve::Listen;

fn udp(listen: &Listen) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address(listen)).unwrap();
    client
}

#[test]
fn a_datagram_is_a_message_without_its_end_of_line() {
    let serving = Serving::start("udp://127.0.0.1:0", |_| ());
    let client = udp(&serving.listen);
    for datagram in [&b"one"[..], b"two\n", b"", b"\r\n", b"a\nb\0c\x1b[2J\0"] {
        client.send(datagram).unwrap();
    }
    serving.wait_until(|figures| figures.messages == 3);
    assert_eq!(serving.figures().bytes, 3 + 3 + 9);
    assert_eq!(serving.stop(), [&b"one"[..], b"two", b"a\nb\0c\x1b[2J"]);

    let (_folder, path) = socket_path();
    let serving = Serving::start(&format!("unixgram://{}", path.display()), |_| ());
    UnixDatagram::unbound().unwrap().send_to(b"three\r\n", &path).unwrap();
    serving.wait_until(|figures| figures.messages == 1);
    assert_eq!(serving.stop(), [b"three"]);
    assert!(!path.exists(), "the socket's file is removed");
}

#[test]
fn a_datagram_that_is_too_long_is_cut_and_counted() {
    let serving = Serving::start("udp://127.0.0.1:0", |config| config.limits.message_bytes = 10);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&b"0123456789"[..], b"0123456789\r\n", b"0123456789a", &[b'x'; 1000]] {
        client.send_to(datagram, serving.address()).unwrap();
    }
    serving.wait_until(|figures| figures.messages == 4);
    assert_eq!(serving.figures().udp_truncated, 2);
    let messages = serving.stop();
    assert_eq!(messages, [&b"0123456789"[..], b"0123456789", b"0123456789", b"xxxxxxxxxx"]);
}

#[test]
fn datagrams_that_the_kernel_drops_are_counted() {
    // This is more than the largest buffer can hold.
    const SENT: u64 = 40_000;
    let serving = Serving::start_after(
        "udp://127.0.0.1:0",
        |_| (),
        |listen, _| {
            let client = udp(listen);
            for _ in 0..SENT {
                client.send(&[b'x'; 500]).unwrap();
            }
        },
    );
    serving.wait_until(|figures| figures.udp_dropped > 0 && figures.messages > 0);
    let figures = serving.figures();
    // A busy kernel may drop more on the way to the socket.
    assert!(figures.udp_dropped + figures.messages <= SENT, "{figures:?}");
    serving.stop();
}

#[test]
fn datagrams_that_arrived_before_the_end_are_appended() {
    let (_folder, path) = socket_path();
    let mut sent = Vec::new();
    let serving = Serving::start_after(
        &format!("unixgram://{}", path.display()),
        |_| (),
        |_, handle| {
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
        },
    );
    assert!(!sent.is_empty());
    assert_eq!(serving.stop(), sent);
}

#[test]
fn senders_to_a_unix_socket_wait() {
    const SENT: u64 = 20_000;
    let (_folder, path) = socket_path();
    let url = format!("unixgram://{}", path.display());
    let mut sender = None;
    let serving = Serving::start_after(
        &url,
        |_| (),
        |_, _| {
            sender = Some(thread::spawn(move || {
                let client = UnixDatagram::unbound().unwrap();
                client.connect(&path).unwrap();
                for number in 0..SENT {
                    client.send(number.to_string().as_bytes()).unwrap();
                }
            }));
        },
    );
    sender.unwrap().join().unwrap();
    serving.wait_until(|figures| figures.messages == SENT);
    let sent = (0..SENT).map(|number| number.to_string().into_bytes());
    assert!(serving.stop().into_iter().eq(sent));
}

#[test]
fn the_file_of_a_socket_has_the_mode_that_the_listener_asks_for() {
    let (_folder, path) = socket_path();
    for scheme in ["unix", "unixgram"] {
        for mode in [0o600, 0o666] {
            let url = format!("{scheme}://{}?mode={mode:o}", path.display());
            let serving = Serving::start(&url, |_| ());
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, mode, "{url}");
            serving.stop();
        }
    }
}
