//! The disk's thread: drives while tasks await operations and no caller drives.

use super::shared::Shared;
use std::io;
use std::sync::Arc;

/// Starts the thread. It sleeps while no task awaits an operation in flight, and ends with the
/// disk's last handle.
pub(super) fn start(disk: Arc<Shared>) -> io::Result<()> {
    let builder = std::thread::Builder::new().name("wrote-disk".to_owned());
    builder.spawn(move || disk.serve()).map(drop)
}
