//! Saves ten thousand small files so that all survive a power loss: together, and one by one.
//!
//! `cargo run --release -p wrote --example many -- NEW_FOLDER [FILES]`

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

fn pages(folder: &Path, files: u64) -> impl Iterator<Item = (PathBuf, String)> {
    let page = |number| format!("<h1>Page {number}</h1>\n").repeat(20);
    (0..files).map(move |number| (folder.join(format!("{number}.html")), page(number)))
}

/// The same by hand, for one file: a new file beside it, flushed, renamed; and its folder flushed.
fn by_hand(path: &Path, page: &str) -> std::io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, page)?;
    File::open(&part)?.sync_all()?;
    fs::rename(&part, path)?;
    File::open(path.parent().expect("it is in a folder"))?.sync_all()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: many NEW_FOLDER [FILES]")?);
    let files = arguments.next().map_or(Ok(10_000), |files| files.to_string_lossy().parse())?;
    fs::create_dir(&folder)?;
    let time = |name: &str, save: &dyn Fn(&Path) -> Result<(), Box<dyn Error>>| {
        let folder = folder.join(name);
        fs::create_dir(&folder)?;
        let begin = Instant::now();
        save(&folder)?;
        let files_per_s = files as f64 / begin.elapsed().as_secs_f64();
        println!("{name:12} {files_per_s:8.0} files a second");
        Ok::<(), Box<dyn Error>>(())
    };
    time("write_many", &|folder| Ok(wrote::write_many(pages(folder, files))?))?;
    time("write", &|folder| {
        pages(folder, files).try_for_each(|(path, page)| Ok(wrote::write(path, page)?))
    })?;
    time("by hand", &|folder| {
        pages(folder, files).try_for_each(|(path, page)| Ok(by_hand(&path, &page)?))
    })
}
