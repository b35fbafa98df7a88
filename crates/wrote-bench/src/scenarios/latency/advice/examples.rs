//! Example code for a small file; the function bodies are shown as advice.

use std::error::Error;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;

pub fn wrote_write(path: &Path, text: &str) -> Result {
    // durable; after a crash all of the old text or all of this one
    wrote::write(path, text)?;
    Ok(())
}

pub fn rename_fsync(path: &Path, temporary: &Path, folder: &Path, text: &str) -> Result {
    // the temporary file lies in the same folder;
    // permissions and owner are the new file's own
    let mut file = std::fs::File::create(temporary)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()?; // the content, before it gets its name
    std::fs::rename(temporary, path)?;
    std::fs::File::open(folder)?.sync_all()?; // the name
    Ok(())
}
