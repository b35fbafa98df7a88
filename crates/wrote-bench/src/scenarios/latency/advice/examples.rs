//! Example code for a small file. The body of the function is shown as advice.

use std::error::Error;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;

pub fn wrote_write(path: &Path, text: &str) -> Result {
    // durable; after a crash all of the old text or all of this one
    wrote::write(path, text)?;
    Ok(())
}
