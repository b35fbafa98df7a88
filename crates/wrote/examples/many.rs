//! Saves ten thousand small files durably: together, and one by one.
//!
//! `cargo run --release -p wrote --example many -- NEW_FOLDER [FILES]`

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn pages(folder: &Path, files: u64) -> impl Iterator<Item = (PathBuf, String)> {
    let page = |number| format!("<h1>Page {number}</h1>\n").repeat(20);
    (0..files).map(move |number| (folder.join(format!("{number}.html")), page(number)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: many NEW_FOLDER [FILES]")?);
    let files = arguments.next().map_or(Ok(10_000), |files| files.to_string_lossy().parse())?;
    fs::create_dir(&folder)?;
    for name in ["write_many", "write"] {
        let folder = folder.join(name);
        fs::create_dir(&folder)?;
        let (mut pages, begin) = (pages(&folder, files), Instant::now());
        match name {
            "write_many" => wrote::write_many(pages)?,
            _ => pages.try_for_each(|(path, page)| wrote::write(path, page))?,
        }
        let files_per_s = files as f64 / begin.elapsed().as_secs_f64();
        println!("{name:12} {files_per_s:8.0} files a second");
    }
    Ok(())
}
