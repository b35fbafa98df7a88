//! Counts the bytes and lines of a file, one byte at a time, with a `Reader` and with a
//! `BufReader`.
//!
//! `cargo run --release -p wrote --example bytes -- FILE`

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Instant;
use wrote::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: bytes FILE")?);
    // The first count reads from the disk, unless the file is in the page cache.
    let bytes_by_reader = timed("Reader, bytes", || count(Reader::open(&path)?.bytes()))?;
    let bytes_by_peer =
        timed("BufReader, bytes", || count(BufReader::new(File::open(&path)?).bytes()))?;
    let lines_by_reader = timed("Reader, lines", || lines(Reader::open(&path)?))?;
    let lines_by_peer = timed("BufReader, lines", || lines(BufReader::new(File::open(&path)?)))?;
    println!("{} lines, {} bytes", bytes_by_reader.1, bytes_by_reader.0);
    if (bytes_by_reader, lines_by_reader) == (bytes_by_peer, lines_by_peer) {
        return Ok(());
    }
    Err("the file changed meanwhile".into())
}

fn count(bytes: impl Iterator<Item = io::Result<u8>>) -> io::Result<(u64, u64)> {
    let (mut count, mut lines) = (0, 0);
    for byte in bytes {
        count += 1;
        lines += u64::from(byte? == b'\n');
    }
    Ok((count, lines))
}

fn lines(mut reader: impl BufRead) -> io::Result<(u64, u64)> {
    let (mut count, mut lines) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line)? {
            0 => return Ok((count, lines)),
            len => count += len as u64,
        }
        lines += u64::from(line.ends_with(b"\n"));
    }
}

fn timed<T>(way: &str, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    let result = work()?;
    println!("{way}: {:.3} s", start.elapsed().as_secs_f64());
    Ok(result)
}
