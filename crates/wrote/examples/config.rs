//! Saves a configuration and a big index so that no crash leaves a partial file.
//!
//! `cargo run --release -p wrote --example config -- NEW_FOLDER`

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use wrote::{Reader, Writer};

const ENTRIES: u64 = 500_000;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Config {
    colour: String,
    size: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    key: String,
    offset: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: config NEW_FOLDER")?);
    fs::create_dir(&folder)?;
    let path = folder.join("config.json");
    let config = Config { colour: "red".into(), size: 3 };
    wrote::write(&path, serde_json::to_vec_pretty(&config)?)?;
    let found: Config = serde_json::from_slice(&wrote::read(&path)?)?;
    assert_eq!(found, config);

    // Content that does not fit into memory twice is streamed. The file is private, as it holds
    // secrets.
    let path = folder.join("index.json");
    let entries: Vec<Entry> =
        (0..ENTRIES).map(|number| Entry { key: format!("{number:x}"), offset: number }).collect();
    let mut writer = Writer::options().replace(true).mode(0o600).open(&path)?;
    serde_json::to_writer(&mut writer, &entries)?;
    let written = writer.finish()?; // the old index or the new one, after any crash
    println!("{} bytes in {:?}", written.bytes, written.elapsed);
    let found: Vec<Entry> = serde_json::from_reader(Reader::open(&path)?)?;
    assert!(found == entries);
    Ok(())
}
