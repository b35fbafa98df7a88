//! A stream through the page cache that is durable at its end.

use std::io::{Result, Write};

pub fn stream<I>(path: &str, pieces: I) -> Result<()>
where
    I: IntoIterator<Item = Vec<u8>>,
{
    let options = wrote::Writer::options().direct(false);
    let mut writer = options.open(path)?;
    for piece in pieces {
        writer.write_all(&piece)?; // of any size
    }
    writer.finish()?; // survives a power loss, with the file's name
    Ok(())
}
