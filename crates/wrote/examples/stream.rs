//! Writes a file at the device's speed, and makes it durable.
//!
//! `cargo run --release -p wrote --example stream -- NEW_FILE`

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use wrote::engine::{Engine, Op, Options};
use wrote::{FileOptions, Ioengine};

const WRITES: u64 = 512;
const WRITE_BYTES: u64 = 512 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: stream NEW_FILE")?);

    // 64 writes in flight with io_uring, or with a thread pool if io_uring is refused.
    let mut engine = Engine::open(&Options::new(Ioengine::IoUring, 64, WRITE_BYTES as usize))?;
    let options = FileOptions::new().create_new(true).write(true).direct(true);
    let file = engine.open_file(&path, &options)?;
    engine.queue(0, Op::Fallocate { file, offset: 0, len: WRITES * WRITE_BYTES });
    engine.drain()?;

    for number in 0..WRITES {
        let mut buffer = engine.lease()?; // waits while all are in flight
        buffer.fill(number as u8);
        let offset = number * WRITE_BYTES;
        engine.queue(number, Op::Write { file, offset, buffer, durable: false });
    }
    engine.flush(file)?; // waits for every write, then fdatasync: the bytes survive power loss
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?; // and now the new name does too

    for step in &engine.effective().fallbacks {
        println!("{} instead of {}: {}", step.got, step.wanted, step.because);
    }
    Ok(())
}
