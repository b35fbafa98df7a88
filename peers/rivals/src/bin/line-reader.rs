//! The program `line-reader PORT [FILE [flushed]]`: reads lines from connections as `wrote serve`
//! does. Without a FILE, it discards them, so no server that keeps lines can be faster. With a
//! FILE, it appends them through the page cache, as the simplest collector does. With `flushed`, it
//! flushes the file every second and at the end, as `wrote serve` does by default.

use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

/// The maximum number of bytes in one read, as in `wrote serve`.
const READ_BYTES: usize = 128 << 10;

thread_local! {
    /// The read buffer that all connections of a thread share.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port: u16 =
        port.ok_or_else(|| std::io::Error::other("line-reader PORT [FILE [flushed]]"))?;
    let file = std::env::args().nth(2).map(File::create).transpose()?;
    if let (Some(file), Some(_)) = (&file, std::env::args().nth(3)) {
        flush(file.try_clone()?)?;
    }
    let file = Arc::new(file.map(Mutex::new));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(read(stream, Arc::clone(&file)));
    }
}

/// Flushes the file every second, and once more when SIGTERM arrives, before the program exits.
fn flush(file: File) -> std::io::Result<()> {
    let last = file.try_clone()?;
    std::thread::spawn(move || {
        while file.sync_data().is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let mut term = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        term.recv().await;
        std::process::exit(i32::from(last.sync_data().is_err()));
    });
    Ok(())
}

/// Reads until the client closes the connection. Keeps the bytes of an unfinished line for the next
/// read.
async fn read(stream: TcpStream, file: Arc<Option<Mutex<File>>>) {
    let (mut kept, mut lines) = (Vec::new(), 0_u64);
    while stream.readable().await.is_ok() {
        let outcome = SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(scratch.len().max(kept.len() + READ_BYTES), 0);
            scratch[..kept.len()].copy_from_slice(&kept);
            let bytes = stream.try_read(&mut scratch[kept.len()..])?;
            let filled = &scratch[..kept.len() + bytes];
            let mut done = 0;
            for end in memchr::memchr_iter(b'\n', filled) {
                std::hint::black_box(&filled[done..end]);
                (done, lines) = (end + 1, lines + 1);
            }
            if let Some(file) = &*file {
                file.lock().expect("no writer panics").write_all(&filled[..done])?;
            }
            kept = filled[done..].to_vec();
            std::io::Result::Ok(bytes)
        });
        match outcome {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    std::hint::black_box(lines);
}
