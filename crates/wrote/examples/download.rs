//! Copies a source to a file. After any interruption, the copy resumes; the file gets its name once
//! it is complete.
//!
//! `cargo run --release -p wrote --example download -- SOURCE TARGET`

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use wrote::Writer;

fn download(source: &mut (impl Read + Seek), target: &Path) -> Result<u64, Box<dyn Error>> {
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    // A partial file is valid up to its length, even after a kill, so the download resumes at that
    // length.
    let mut writer = Writer::options().append(true).open(&part)?;
    let begun = std::fs::metadata(&part)?.len();
    source.seek(SeekFrom::Start(begun))?;
    let bytes = writer.read_from(source)?;
    writer.finish()?;
    // The content is on the device before the file gets its name.
    wrote::rename(&part, target)?;
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(source), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err("usage: download SOURCE TARGET".into());
    };
    let bytes = download(&mut File::open(source)?, &target)?;
    println!("{}: {bytes} bytes came in this run", target.display());
    Ok(())
}
