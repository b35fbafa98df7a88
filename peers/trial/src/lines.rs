//! A burst of lines to a server that does not answer. Each connection shuts down its sending side,
//! and waits until the server has closed the connection.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

/// The length of a line with its line feed, in bytes.
const LINE_BYTES: u64 = 500;
/// The number of lines in one write of a connection.
const LINES: u64 = 128;

/// Sends lines, `bytes` in total, over concurrent `connections` to the server at this port.
pub fn lines(connections: u64, bytes: u64, port: u16) -> Result<Outcome> {
    let mut block = vec![b'x'; (LINE_BYTES * LINES) as usize];
    for end in block.chunks_exact_mut(LINE_BYTES as usize) {
        end[LINE_BYTES as usize - 1] = b'\n';
    }
    let blocks = bytes / block.len() as u64 / connections.max(1);
    let open = |_| TcpStream::connect(("127.0.0.1", port));
    let streams: Vec<TcpStream> = (0..connections).map(open).collect::<Result<_, _>>()?;
    let clock = Clock::start()?;
    let sent = thread::scope(|scope| {
        let senders: Vec<_> =
            streams.iter().map(|stream| scope.spawn(|| send(stream, &block, blocks))).collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("a sender"))
    });
    sent?;
    let lines = connections * blocks * LINES;
    clock.stop(lines * LINE_BYTES, lines)
}

/// Sends the block `blocks` times, and waits until the server closes the connection.
fn send(mut stream: &TcpStream, block: &[u8], blocks: u64) -> std::io::Result<()> {
    (0..blocks).try_for_each(|_| stream.write_all(block))?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn each_connection_sends_its_share_of_whole_lines_until_the_server_has_read_all() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = thread::spawn(move || {
            let read = |_| {
                let mut text = String::new();
                let (mut stream, _) = listener.accept().expect("a client");
                stream.read_to_string(&mut text).map(|_| text).expect("text")
            };
            (0..3).map(read).collect::<Vec<String>>()
        });
        let outcome = lines(3, 500_000, port).expect("a burst");
        let texts = server.join().expect("a server");
        assert_eq!((outcome.bytes, outcome.operations), (384_000, 768));
        assert!(texts.iter().all(|text| text.lines().count() == 256 && text.ends_with("x\n")));
    }
}
