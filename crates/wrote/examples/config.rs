//! Saves a configuration and a big index so that no crash leaves a partial file, and compares both
//! with doing the steps by hand.
//!
//! `cargo run --release -p wrote --example config -- NEW_FOLDER`

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote::{Reader, Writer};

const SAVES: u32 = 200;
const ENTRIES: u64 = 500_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Config {
    colour: String,
    size: u32,
    saved: u32,
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
    let mut config = Config { colour: "red".into(), size: 3, saved: 0 };

    let start = Instant::now();
    for saved in 0..SAVES {
        config.saved = saved;
        wrote::write(&path, serde_json::to_vec_pretty(&config)?)?;
    }
    report(&format!("wrote::write, {SAVES} times"), start);
    let found: Config = serde_json::from_slice(&wrote::read(&path)?)?;
    assert_eq!(found, config);

    let start = Instant::now();
    for saved in 0..SAVES {
        config.saved = saved;
        by_hand(&path, |file| Ok(file.write_all(&serde_json::to_vec_pretty(&config)?)?))?;
    }
    report(&format!("write, sync_all, rename, the folder's sync, {SAVES} times"), start);

    // Content that does not fit into memory twice is streamed. The file is private, as it holds
    // secrets.
    let path = folder.join("index.json");
    let entries: Vec<Entry> =
        (0..ENTRIES).map(|number| Entry { key: format!("{number:x}"), offset: number }).collect();
    let start = Instant::now();
    let mut writer = Writer::options().replace(true).mode(0o600).open(&path)?;
    serde_json::to_writer(&mut writer, &entries)?;
    let written = writer.finish()?; // the old index or the new one, after any crash
    report(&format!("Writer::replace and finish, {} bytes", written.bytes), start);
    let found: Vec<Entry> = serde_json::from_reader(Reader::open(&path)?)?;
    assert!(found == entries);

    let start = Instant::now();
    by_hand(&path, |file| {
        let mut writer = BufWriter::new(file);
        serde_json::to_writer(&mut writer, &entries)?;
        Ok(writer.flush()?)
    })?;
    report("BufWriter, sync_all, rename, the folder's sync", start);

    let start = Instant::now();
    let found: Vec<Entry> = serde_json::from_reader(BufReader::new(File::open(&path)?))?;
    report("read by a BufReader", start);
    let start = Instant::now();
    let again: Vec<Entry> = serde_json::from_reader(Reader::open(&path)?)?;
    report("read by a Reader", start);
    assert!(found == again);
    Ok(())
}

type Failure = Box<dyn Error>;

fn by_hand(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    fill(&mut file)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(path.parent().ok_or("a path in a folder")?)?.sync_all()?;
    Ok(())
}

fn report(way: &str, start: Instant) {
    println!("{way}: {:.3} s", start.elapsed().as_secs_f64());
}
