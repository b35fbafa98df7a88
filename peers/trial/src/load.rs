//! A server under load: a single thread keeps every connection busy with lines for a given time,
//! and then waits until the server has read everything from each connection.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The length of a message, including the line feed at its end, in bytes.
const MESSAGE_BYTES: usize = 500;
/// The number of random messages, which are sent repeatedly. Together they are longer than a
/// compressor's window.
const MESSAGES: usize = 8192;
/// The maximum number of messages in one write of a connection.
const BATCH: usize = 131;

/// The load.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Work {
    /// Connections at once.
    #[arg(long, value_name = "N")]
    pub connections: usize,
    /// Seconds for which messages are sent.
    #[arg(long, value_name = "S")]
    pub seconds: f64,
    /// The port on this machine.
    pub port: u16,
}

/// Sends messages for the requested time, and returns when all have arrived.
pub fn load(work: &Work) -> Result<Outcome> {
    let text: Arc<[u8]> = text().into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..work.connections {
            let stream = TcpStream::connect(("127.0.0.1", work.port)).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let clock = Clock::start()?;
        let until = Instant::now() + Duration::from_secs_f64(work.seconds);
        // Each connection starts with a different message.
        let senders = streams.into_iter().zip((0..MESSAGES).step_by(BATCH).cycle());
        let senders =
            senders.map(|(stream, first)| tokio::spawn(send(stream, text.clone(), first, until)));
        let mut messages = 0;
        for sender in senders.collect::<Vec<_>>() {
            messages += sender.await??;
        }
        clock.stop(messages * MESSAGE_BYTES as u64, messages)
    })
}

/// Returns lines of random bytes. The bytes contain no control characters, because a line feed
/// would end a line.
fn text() -> Vec<u8> {
    let mut text = vec![0; MESSAGES * MESSAGE_BYTES];
    Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(&mut text);
    text.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte |= 0xC0);
    text.chunks_exact_mut(MESSAGE_BYTES).for_each(|line| line[MESSAGE_BYTES - 1] = b'\n');
    text
}

/// Sends messages until `until`, waits until all have arrived, and returns their number.
async fn send(
    mut stream: TcpStream,
    text: Arc<[u8]>,
    mut next: usize,
    until: Instant,
) -> Result<u64> {
    let mut messages = 0;
    while Instant::now() < until {
        let end = MESSAGES.min(next + BATCH);
        stream.write_all(&text[next * MESSAGE_BYTES..end * MESSAGE_BYTES]).await?;
        messages += (end - next) as u64;
        next = end % MESSAGES;
    }
    stream.shutdown().await?;
    match stream.read(&mut [0]).await? {
        0 => Ok(messages),
        _ => Err("an answer to lines".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn every_message_that_is_counted_has_arrived() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = thread::spawn(move || {
            let accept = |_| {
                let (stream, _) = listener.accept().expect("a client");
                thread::spawn(|| BufReader::new(stream).split(b'\n').count() as u64)
            };
            let served: Vec<_> = (0..2).map(accept).collect();
            served.into_iter().map(|served| served.join().expect("served")).collect::<Vec<_>>()
        });
        let outcome = load(&Work { connections: 2, seconds: 0.05, port }).expect("a load");
        let arrived = server.join().expect("a server");
        assert!(arrived.iter().all(|messages| *messages > 0), "{arrived:?}");
        assert_eq!(outcome.operations, arrived.iter().sum::<u64>());
        assert_eq!(outcome.bytes, 500 * outcome.operations);
    }
}
