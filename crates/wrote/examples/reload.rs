//! A server's settings: saved atomically by any program, and reloaded when the file is replaced.
//!
//! `cargo run -p wrote --example reload -- FILE`, then change FILE with an editor.

use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    listen: String,
    workers: u32,
}

/// A file's state. A replacement has a different inode, even if the times are the same.
type State = (u64, i64, i64, u64);

fn state(path: &Path) -> std::io::Result<State> {
    let found = std::fs::metadata(path)?;
    Ok((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: reload FILE")?);
    if !path.exists() {
        let settings = Settings { listen: "127.0.0.1:8080".into(), workers: 4 };
        // Readers, and this program after a crash, find either the complete file or none.
        wrote::write_new(&path, serde_json::to_vec_pretty(&settings)?)?;
    }
    let mut last = None;
    loop {
        // The state is read before the content, so that a concurrent change is noticed next time.
        let now = state(&path)?;
        if last != Some(now) {
            match serde_json::from_slice::<Settings>(&wrote::read(&path)?) {
                Ok(settings) => println!("{settings:?}"),
                // An editor that writes in place may be in the middle of saving.
                Err(error) => eprintln!("{}: {error}; the last settings stay", path.display()),
            }
            last = Some(now);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
