//! The tasks of `wrote langs` in Rust, using its standard library.
//!
//! A `File` has no buffer: every write is a system call. `BufWriter` and `BufReader` each have a
//! buffer of 8 KiB (the documentation of `BufWriter::new`). Dropping a file closes it without
//! reporting an error, so a `BufWriter` is flushed first.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

fn write_bytes(path: &Path, size: u64) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    for number in 0..size {
        writer.write_all(&[number as u8])?;
    }
    writer.flush()
}

/// Returns the number of bytes and their sum.
fn read_bytes(path: &Path) -> io::Result<(u64, u64)> {
    let reader = BufReader::new(File::open(path)?);
    let (mut count, mut sum) = (0, 0);
    for byte in reader.bytes() {
        count += 1;
        sum += u64::from(byte?);
    }
    Ok((count, sum))
}

/// Opens the file, writes once, and closes it.
fn save(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::write(path, text)
}

/// `fs::write` has no option to sync; `sync_all` is `fsync(2)`.
fn save_sync(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn append_lines(path: &Path, line: &[u8], count: u64) -> io::Result<()> {
    let mut writer = BufWriter::new(OpenOptions::new().create(true).append(true).open(path)?);
    for _ in 0..count {
        writer.write_all(line)?;
    }
    writer.flush()
}

/// Returns the letters a to z, repeated.
fn make_text(size: u64) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(size as usize).collect()
}

/// Returns the time of each of `count` runs, in nanoseconds.
fn timed(count: u64, mut run: impl FnMut() -> io::Result<()>) -> io::Result<Vec<u128>> {
    let mut elapsed_ns = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        run()?;
        elapsed_ns.push(start.elapsed().as_nanos());
    }
    Ok(elapsed_ns)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (task, path, size, count) = match arguments.as_slice() {
        [task, path, size, count] => (task, path, size, count),
        _ => return Err("usage: program TASK PATH SIZE COUNT".into()),
    };
    let number = |word: &std::ffi::OsString| word.to_string_lossy().parse::<u64>();
    let (path, size, count) = (Path::new(path), number(size)?, number(count)?);
    if size == 0 || count == 0 {
        return Err("SIZE and COUNT must be above 0".into());
    }

    let (mut bytes, mut sum) = (size, None);
    let elapsed_ns = match task.to_str() {
        Some("bytes-write") => timed(count, || write_bytes(path, size)),
        Some("bytes-read") => timed(count, || {
            let (found, found_sum) = read_bytes(path)?;
            (bytes, sum) = (found, Some(found_sum));
            Ok(())
        }),
        Some("save") => {
            let text = make_text(size);
            timed(count, || save(path, &text))
        }
        Some("save-sync") => {
            let text = make_text(size);
            timed(count, || save_sync(path, &text))
        }
        Some("lines") => {
            let mut line = make_text(size - 1);
            line.push(b'\n');
            bytes = size * count;
            timed(1, || append_lines(path, &line, count))
        }
        _ => return Err(format!("unknown task: {}", task.to_string_lossy()).into()),
    };
    let elapsed_ns = elapsed_ns.map_err(|error| format!("{}: {error}", path.display()))?;

    // The standard library does not support JSON, but a list of numbers prints as JSON.
    print!("{{\"elapsed_ns\": {elapsed_ns:?}, \"bytes\": {bytes}");
    sum.iter().for_each(|sum| print!(", \"sum\": {sum}"));
    println!("}}");
    Ok(())
}
