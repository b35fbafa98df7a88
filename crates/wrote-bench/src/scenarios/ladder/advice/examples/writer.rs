//! A stream that bypasses the page cache and is durable at its end.

use std::io::{Result, Write};

pub fn stream<I>(path: &str, pieces: I) -> Result<()>
where
    I: IntoIterator<Item = Vec<u8>>,
{
    // past the page cache
    let mut writer = wrote::Writer::create(path)?;
    for piece in pieces {
        writer.write_all(&piece)?; // of any size
    }
    writer.finish()?; // survives a power loss, with the file's name
    Ok(())
}
