//! TLS: sessions, refused certificates, and renewed ones.

use crate::certificates::{Authority, session, write};
use crate::refused::send;
use crate::serving::Serving;
use crate::warnings;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wrote_serve::{Config, Server, TlsFiles};

/// The first bytes that a TLS client sends.
const CLIENT_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n";

fn start(url: &str, files: &TlsFiles) -> Serving {
    Serving::start(url, |config| config.tls = Some(files.clone()))
}

#[test]
fn ten_thousand_lines_over_tls_arrive_byte_for_byte() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let serving = start("tls://127.0.0.1:0", &write(folder.path(), &authority.sign(), None));
    let line = |number: usize| format!("{number} {}", "ä€".repeat(number % 300)).into_bytes();
    let lines: Vec<_> = (0..10_000).map(line).collect();
    let mut session = session(&authority.client(None), serving.connect());
    for line in &lines {
        session.write_all(line).unwrap();
        session.write_all(b"\n").unwrap();
    }
    session.conn.send_close_notify();
    session.flush().unwrap();
    // The server says goodbye with close_notify.
    assert_eq!(session.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(serving.figures().refused, 0);
    assert!(serving.stop() == lines);
}

#[test]
fn a_server_that_drains_answers_and_ends_the_session() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let serving = start("resps://127.0.0.1:0", &write(folder.path(), &authority.sign(), None));
    let mut session = session(&authority.client(None), serving.connect());
    let mut pong = [0; 7];
    session.write_all(b"PING\r\n").unwrap();
    session.read_exact(&mut pong).unwrap();
    session.write_all(b"RPUSH log one two\r\n").unwrap();
    // The requests may not have arrived yet, but the kernel already has them.
    serving.wait_until(|figures| figures.messages == 2);
    let records = serving.stop();
    let mut answers = Vec::new();
    // Without a close_notify, the end would be an error.
    session.read_to_end(&mut answers).unwrap();
    assert_eq!((answers.as_slice(), records.len()), (&b":2\r\n"[..], 2));
}

#[test]
fn the_last_bytes_of_an_answer_leave_whatever_its_length() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), None);
    let serving = Serving::start("resps://127.0.0.1:0", |config| {
        config.tls = Some(files);
        config.limits.unsent_bytes = 1 << 30;
    });
    // One of these lengths is about what the kernel's buffers hold. The last bytes then wait in the
    // session's 16 KiB buffer, and no more data follows.
    let ask = |len: usize| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        let address: SocketAddr = serving.address().parse().unwrap();
        socket.connect(&address.into()).unwrap();
        let mut session = session(&authority.client(None), socket.into());
        let word = "x".repeat(len);
        write!(session, "*2\r\n$4\r\nECHO\r\n${len}\r\n{word}\r\n").unwrap();
        session.flush().unwrap();
        (session, format!("${len}\r\n{word}\r\n"))
    };
    let asked: Vec<_> = (1000_usize..1300).step_by(12).map(|len| ask(len << 10)).collect();
    std::thread::sleep(Duration::from_millis(500));
    for (mut session, answer) in asked {
        let mut bytes = vec![0; answer.len()];
        session.read_exact(&mut bytes).unwrap();
        assert!(bytes == answer.as_bytes(), "{} bytes", answer.len());
    }
    serving.stop();
}

#[test]
fn a_client_with_a_wrong_certificate_or_none_is_refused_with_one_line_and_counted() {
    warnings::collect();
    let (folder, authority, other) = (fixtures::folder(), Authority::new(), Authority::new());
    let files = write(folder.path(), &authority.sign(), Some(&authority));
    let (valid, expired, foreign) = (authority.sign(), authority.sign_until(2010), other.sign());
    for (own, said) in [
        (None, "peer sent no certificates"),
        (Some(&expired), "certificate expired"),
        (Some(&foreign), "invalid peer certificate"),
    ] {
        let serving = start("tls://127.0.0.1:0", &files);
        let mut refused = session(&authority.client(own), serving.connect());
        let sent = refused.write_all(b"refused\n").and_then(|()| refused.flush());
        // The client completes the handshake before the server does.
        let outcome = sent.and_then(|()| refused.read(&mut [0; 1]));
        assert!(outcome.is_err(), "{said}: {outcome:?}");
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.refused(), [("handshake", 1)], "{said}");
        let lines = warnings::about(&serving.listen.to_string());
        assert!(lines.len() == 1 && lines[0].contains(said), "{said}: {lines:?}");
        assert!(!lines[0].contains('\n'), "{lines:?}");
        let mut welcome = session(&authority.client(Some(&valid)), serving.connect());
        welcome.write_all(b"taken\n").unwrap();
        serving.wait_until(|figures| figures.messages == 1);
        drop(welcome);
        assert_eq!(serving.stop(), [b"taken"]);
    }
}

#[test]
fn half_a_handshake_ends_in_time_and_blocks_no_other() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), None);
    let mut serving = Serving::start("tls://127.0.0.1:0", |config| {
        config.tls = Some(files);
        config.limits.handshake = Duration::from_millis(500);
    });
    let mut halves: Vec<_> = (0..20).map(|_| serving.connect()).collect();
    for half in &mut halves[..10] {
        half.write_all(&CLIENT_HELLO[..7]).unwrap();
    }
    serving.wait_until(|figures| figures.connections + figures.refused == 20);
    // This is enough time even on a slow machine.
    serving.config.limits.handshake = Duration::from_secs(60);
    serving.reload().unwrap();
    let mut whole = session(&authority.client(None), serving.connect());
    whole.write_all(b"taken\n").unwrap();
    serving.wait_until(|figures| figures.messages == 1 && figures.connections == 1);
    assert_eq!(serving.refused(), [("handshake", 20)]);
    for mut half in halves {
        // A reset has the same meaning.
        assert!(half.read(&mut [0; 1]).map_or(true, |bytes| bytes == 0));
    }
    drop(whole);
    assert_eq!(serving.stop(), [b"taken"]);
}

#[test]
fn plain_text_sent_to_tls_is_counted_once_and_leaves_no_record() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), None);
    for (scheme, plain) in
        [("tls", "a line\n"), ("relps", "1 open 0\n"), ("resps", "RPUSH log message\r\n")]
    {
        let serving = start(&format!("{scheme}://127.0.0.1:0"), &files);
        send(&serving, plain.as_bytes());
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.refused(), [("handshake", 1)], "{scheme}");
        assert_eq!(serving.stop().len(), 0, "{scheme}");
    }
}

#[test]
fn certificates_are_renewed_and_no_connection_is_lost() {
    let (folder, authority, later) = (fixtures::folder(), Authority::new(), Authority::new());
    let files = write(folder.path(), &authority.sign(), None);
    let serving = start("tls://127.0.0.1:0", &files);
    let greet = |authority: &Authority, line: &str| {
        let mut session = session(&authority.client(None), serving.connect());
        session.write_all(line.as_bytes()).and_then(|()| session.flush()).map(|()| session)
    };
    let mut before = greet(&authority, "one\n").unwrap();
    serving.wait_until(|figures| figures.messages == 1);

    // The key belongs to another certificate, so nothing changes.
    fs::write(&files.cert_file, &later.sign().pem).unwrap();
    let error = serving.reload().unwrap_err().to_string();
    assert!(error.contains("is not the key of") && error.lines().count() == 1, "{error}");
    drop(greet(&authority, "two\n").unwrap());
    serving.wait_until(|figures| figures.messages == 2);

    write(folder.path(), &later.sign(), None);
    assert_eq!(serving.reload().unwrap(), [""; 0]);
    assert!(greet(&authority, "refused\n").is_err(), "the new certificate is another's");
    drop(greet(&later, "three\n").unwrap());
    serving.wait_until(|figures| figures.messages == 3);
    before.write_all(b"four\n").unwrap();
    serving.wait_until(|figures| figures.messages == 4);
    drop(before);
    assert_eq!(serving.stop(), [&b"one"[..], b"two", b"three", b"four"]);
}

#[test]
fn a_file_that_cannot_be_used_is_named_in_one_line() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let path = |name: &str| folder.path().join(name);
    let files = write(folder.path(), &authority.sign(), Some(&authority));
    let other = authority.sign();
    for (name, text) in [
        ("no.pem", "no PEM"),
        ("other.pem", &other.key),
        ("half.pem", "-----BEGIN CERTIFICATE-----\nMII"),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let with = |change: fn(&mut TlsFiles, std::path::PathBuf), name: &str| {
        let mut files = files.clone();
        change(&mut files, path(name));
        let mut config = Config::of_log(&path("log"), vec!["tls://127.0.0.1:0".parse().unwrap()]);
        config.tls = Some(files);
        Server::start(config).unwrap_err().to_string()
    };
    for (change, name, said) in [
        (
            (|files, path| files.cert_file = path) as fn(&mut TlsFiles, _),
            "none.pem",
            "No such file",
        ),
        (|files, path| files.cert_file = path, "no.pem", "has no certificate"),
        (|files, path| files.cert_file = path, "half.pem", "is not PEM"),
        (|files, path| files.key_file = path, "cert.pem", "has no private key"),
        (|files, path| files.key_file = path, "other.pem", "is not the key of"),
        (|files, path| files.client_ca_file = Some(path), "key.pem", "has no certificate"),
    ] {
        let error = with(change, name);
        assert!(error.contains(name) && error.contains(said), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let config = Config::of_log(&path("log"), vec!["tls://127.0.0.1:0".parse().unwrap()]);
    let error = Server::start(config).unwrap_err().to_string();
    assert_eq!(error, "tls://127.0.0.1:0: has no cert_file");
    assert!(!path("log").exists(), "nothing is made before");
}

#[test]
fn an_own_certificate_that_has_expired_is_a_warning() {
    warnings::collect();
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign_until(2010), None);
    let serving = start("tls://127.0.0.1:0", &files);
    let name = files.cert_file.display().to_string();
    assert_eq!(warnings::about(&name), [format!("{name}: the certificate has expired")]);
    assert!(TcpStream::connect(serving.address()).is_ok());
    serving.stop();
}

#[test]
fn a_stamp_has_the_name_in_the_certificate_of_the_client() {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), Some(&authority));
    let serving = start("tls://127.0.0.1:0?stamp=prefix", &files);
    let mut client = session(&authority.client(Some(&authority.sign())), serving.connect());
    client.write_all(b"a message\n").unwrap();
    client.flush().unwrap();
    serving.wait_until(|figures| figures.messages == 1);
    drop(client);
    let record = String::from_utf8(serving.stop().remove(0)).unwrap();
    assert!(record.ends_with("?stamp=prefix localhost a message"), "{record}");
}
