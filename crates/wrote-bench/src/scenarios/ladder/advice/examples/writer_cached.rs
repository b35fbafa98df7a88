//! A stream through the page cache, durable at its end.

use std::io::{Result, Write};

pub fn stream(path: &str, pieces: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
    let mut writer = wrote::Writer::options().direct(false).open(path)?;
    for piece in pieces {
        writer.write_all(&piece)?; // of any size
    }
    writer.finish()?; // survives a power loss, with the file's name
    Ok(())
}
