//! The tasks of `wrote langs` in Rust, using the library `wrote`.
//!
//! A `Writer` has two buffers of 4 MiB: one is in flight, bypassing the page cache, while the other
//! is being filled. For writes through the page cache, the buffers have 192 KiB
//! (crates/wrote/src/writer/options.rs). A `Reader` reads 128 KiB at a time from a cached file, and
//! has up to seven reads of 1 MiB in flight for a file that is not cached
//! (crates/wrote/src/reader.rs).

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use wrote::{Reader, Writer};

type Failure = Box<dyn Error>;

/// Writes and closes. `close` makes the same promise as in other languages: the bytes survive a
/// crash of this process. `finish` would flush them to stable storage, which no other language
/// does.
fn write_bytes(path: &Path, size: u64, direct: bool) -> Result<(), Failure> {
    let mut writer = Writer::options().direct(direct).open(path)?;
    for number in 0..size {
        writer.write_all(&[number as u8])?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the number of bytes and their sum.
fn read_bytes(path: &Path) -> Result<(u64, u64), Failure> {
    let (mut count, mut sum) = (0, 0);
    for byte in Reader::open(path)?.bytes() {
        count += 1;
        sum += u64::from(byte?);
    }
    Ok((count, sum))
}

/// Creates a new file and renames it over the old one, whereas the other languages overwrite the
/// old file.
fn save(path: &Path, text: &[u8]) -> Result<(), Failure> {
    Ok(wrote::write_unflushed(path, text)?)
}

/// Saves with two flushes: one of the content, and one of the folder, for the name.
fn save_sync(path: &Path, text: &[u8]) -> Result<(), Failure> {
    Ok(wrote::write(path, text)?)
}

fn append_lines(path: &Path, line: &[u8], count: u64, direct: bool) -> Result<(), Failure> {
    let mut writer = Writer::options().append(true).direct(direct).open(path)?;
    for _ in 0..count {
        writer.write_all(line)?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the letters a to z, repeated.
fn make_text(size: u64) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(size as usize).collect()
}

/// Returns the time of each of `count` runs, in nanoseconds.
fn timed(count: u64, mut run: impl FnMut() -> Result<(), Failure>) -> Result<Vec<u128>, Failure> {
    let mut elapsed_ns = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        run()?;
        elapsed_ns.push(start.elapsed().as_nanos());
    }
    Ok(elapsed_ns)
}

/// Does the task given by the arguments: `TASK PATH SIZE COUNT [cached]`.
pub fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let (task, path, size, count, direct) = match arguments {
        [task, path, size, count] => (task, path, size, count, true),
        [task, path, size, count, way] if way == "cached" => (task, path, size, count, false),
        _ => return Err("usage: wrote language-program TASK PATH SIZE COUNT [cached]".into()),
    };
    let (path, size, count) = (Path::new(path), number(size)?, number(count)?);

    let (mut bytes, mut sum) = (size, None);
    let elapsed_ns = match task.to_str() {
        Some("bytes-write") => timed(count, || write_bytes(path, size, direct))?,
        Some("bytes-read") => timed(count, || {
            let (found, found_sum) = read_bytes(path)?;
            (bytes, sum) = (found, Some(found_sum));
            Ok(())
        })?,
        Some("save") => {
            let text = make_text(size);
            timed(count, || save(path, &text))?
        }
        Some("save-sync") => {
            let text = make_text(size);
            timed(count, || save_sync(path, &text))?
        }
        Some("lines") => {
            let mut line = make_text(size - 1);
            line.push(b'\n');
            bytes = size * count;
            timed(1, || append_lines(path, &line, count, direct))?
        }
        _ => return Err(format!("unknown task: {}", task.to_string_lossy()).into()),
    };

    let sum = sum.map(|sum| format!(", \"sum\": {sum}")).unwrap_or_default();
    let mut out = std::io::stdout();
    writeln!(out, "{{\"elapsed_ns\": {elapsed_ns:?}, \"bytes\": {bytes}{sum}}}")?;
    Ok(())
}

fn number(word: &OsString) -> Result<u64, String> {
    let word = word.to_string_lossy();
    let number = word.parse().ok().filter(|&number: &u64| number > 0);
    number.ok_or_else(|| format!("not a number above 0: {word}"))
}
