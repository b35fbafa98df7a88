//! The state of the machine and its disks, and the doctor's checks of them. This file declares the
//! modules, and contains a function that reads files for them.

use std::path::Path;

pub mod counters;
pub mod doctor;
pub mod foreign;
pub mod held_memory;
pub mod host;
pub mod target;
pub mod usage;
pub mod watch;

/// Returns the text of a file without whitespace and NUL bytes at its ends; `None` if the file is
/// missing, empty or unreadable.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!text.is_empty()).then(|| text.to_owned())
}
