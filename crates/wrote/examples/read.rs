//! Copies a byte range of a file to standard output with direct reads, eight pieces in flight.
//!
//! `cargo run --release -p wrote --example read -- FILE OFFSET LENGTH`

use std::collections::VecDeque;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use wrote::engine::Options;
use wrote::{Disk, FileOptions, Ioengine};

const PIECE_BYTES: u64 = 256 << 10;
/// A piece, plus room for alignment.
const BUFFER_BYTES: usize = (PIECE_BYTES + (64 << 10)) as usize;
const DEPTH: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: read FILE OFFSET LENGTH";
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (offset, length) = number().zip(number()).ok_or(usage)?;

    let disk = Disk::open(&Options::new(Ioengine::IoUring, DEPTH, BUFFER_BYTES))?;
    let file = disk.open_file(&path, &FileOptions::new().direct(true))?;
    let end = offset.saturating_add(length).min(file.len()?);

    let mut stdout = std::io::stdout().lock();
    let mut under_way = VecDeque::new();
    let mut next = offset;
    while next < end || !under_way.is_empty() {
        while next < end && under_way.len() < DEPTH as usize {
            let piece_bytes = PIECE_BYTES.min(end - next);
            under_way.push_back(file.start_read(next, piece_bytes as usize));
            next += piece_bytes;
        }
        if let Some(read) = under_way.pop_front() {
            stdout.write_all(&read.wait()?)?;
        }
    }
    Ok(())
}
