//! Reads the operator's files: configurations, tokens, certificates and keys.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use wrote_result::units;

/// Longer files are refused: a device or log named by mistake may be endless.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file. The error is one line that begins with the path.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    let shown = path.display();
    match read {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(_) if bytes.len() as u64 > BYTES_MAX => {
            let most = units::bytes(BYTES_MAX);
            Err(format!("{shown}: is longer than {most}, which no file of a server is"))
        }
        Ok(_) => Ok(bytes),
    }
}
