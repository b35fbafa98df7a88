//! An in-memory key-value store with a write-ahead log for durability, and checkpoints that keep
//! the log short.
//!
//! `cargo run --release -p wrote --example store -- FOLDER set KEY VALUE`, `.. get KEY`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wrote::{Error, Log};

/// The number of records between two checkpoints.
const CHECKPOINT_EACH: u64 = 1000;

struct Store {
    values: BTreeMap<String, String>,
    log: Log,
    checkpoint: PathBuf,
}

impl Store {
    fn open(folder: &Path) -> Result<Store, Box<dyn std::error::Error>> {
        std::fs::create_dir_all(folder)?;
        let checkpoint = folder.join("checkpoint.json");
        // The checkpoint contains the sequence number of the first record that it does not cover,
        // and the values.
        let (next, mut values): (u64, BTreeMap<String, String>) = match wrote::read(&checkpoint) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.errno() == libc::ENOENT => Default::default(),
            Err(error) => return Err(error.into()),
        };
        let log = Log::options().mode(0o600).open(folder.join("log"))?;
        let mut reader = log.reader(next)?;
        while let Some(record) = reader.next_lent()? {
            let (key, value) = serde_json::from_slice(record.bytes)?;
            values.insert(key, value);
        }
        if reader.passed_over() > 0 {
            return Err(format!("{} changes are missing", reader.passed_over()).into());
        }
        Ok(Store { values, log, checkpoint })
    }

    /// Sets a value; the change is durable when this returns.
    fn set(&mut self, key: &str, value: &str) -> Result<(), Box<dyn std::error::Error>> {
        let ticket = self.log.append(&serde_json::to_vec(&(key, value))?)?;
        let sequence = ticket.sequence();
        match ticket.wait() {
            // The disk is full. The change is not lost; repeating it would apply it twice.
            Err(Error::NotYet { .. }) => eprintln!("waiting for room on the disk"),
            waited => waited?,
        }
        self.values.insert(key.to_owned(), value.to_owned());
        if (sequence + 1).is_multiple_of(CHECKPOINT_EACH) {
            wrote::write(&self.checkpoint, serde_json::to_vec(&(sequence + 1, &self.values))?)?;
            self.log.trim_before(sequence + 1)?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [folder, "get", key] => match Store::open(Path::new(folder))?.values.get(key) {
            Some(value) => println!("{value}"),
            None => return Err(format!("there is no {key}").into()),
        },
        [folder, "set", key, value] => Store::open(Path::new(folder))?.set(key, value)?,
        _ => return Err("usage: store FOLDER get KEY, or FOLDER set KEY VALUE".into()),
    }
    Ok(())
}
