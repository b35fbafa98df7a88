//! Writes a file in chunks from tokio tasks, and reads it back in another order, all through one
//! handle.
//!
//! `cargo run --release -p wrote --example chunks -- FILE [CHUNKS]`

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use tokio::task::JoinSet;
use wrote::engine::Options;
use wrote::file::DirectFile;
use wrote::{Disk, FileOptions, Ioengine};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const CHUNK_BYTES: usize = 256 << 10;
/// Chunks in flight, and buffers; a task that finds none free waits.
const DEPTH: u32 = 32;

#[tokio::main]
async fn main() -> Result<()> {
    let usage = "usage: chunks FILE [CHUNKS]";
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or(usage)?);
    let chunks = arguments.next().map_or(Some(1024), |text| text.to_str()?.parse().ok());
    let chunks: u64 = chunks.ok_or(usage)?;

    let disk = Disk::open(&Options::new(Ioengine::IoUring, DEPTH, CHUNK_BYTES))?;
    let options = FileOptions::new().create_new(true).write(true).direct(true);
    let file = disk.open_file(&path, &options)?;
    let gigabytes = (chunks * CHUNK_BYTES as u64) as f64 / 1e9;

    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for chunk in 0..chunks {
        tasks.spawn(write(disk.clone(), file.clone(), chunk));
    }
    while let Some(written) = tasks.join_next().await {
        written??;
    }
    file.start_sync_data().await?; // every chunk survives a power loss
    println!("written durably: {:.2} GB/s", gigabytes / start.elapsed().as_secs_f64());

    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for chunk in (0..chunks).rev() {
        tasks.spawn(read(file.clone(), chunk));
    }
    while let Some(read) = tasks.join_next().await {
        read??;
    }
    println!("read by tasks: {:.2} GB/s", gigabytes / start.elapsed().as_secs_f64());
    Ok(())
}

async fn write(disk: Disk, file: DirectFile, chunk: u64) -> Result<()> {
    let mut buffer = disk.start_lease().await?;
    buffer.fill(chunk as u8);
    file.start_write(buffer, chunk * CHUNK_BYTES as u64).await?;
    Ok(())
}

async fn read(file: DirectFile, chunk: u64) -> Result<()> {
    let bytes = file.start_read(chunk * CHUNK_BYTES as u64, CHUNK_BYTES).await?;
    check(&bytes, chunk)
}

fn check(bytes: &[u8], chunk: u64) -> Result<()> {
    if bytes.len() != CHUNK_BYTES || bytes.iter().any(|&byte| byte != chunk as u8) {
        return Err(format!("chunk {chunk} is not as it was written").into());
    }
    Ok(())
}
