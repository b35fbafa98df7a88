//! A stream through the page cache, without a flush.

use std::io::{Result, Write};

pub fn stream(path: &str, pieces: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
    let mut writer = wrote::Writer::options().direct(false).open(path)?;
    for piece in pieces {
        writer.write_all(&piece)?; // of any size
    }
    writer.close()?; // whole, and not flushed
    Ok(())
}
