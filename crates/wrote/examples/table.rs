//! Writes a table of comma-separated values through a `Writer`, and measures it beside the ways
//! that a program would use otherwise.
//!
//! `cargo run --release -p wrote --example table -- NEW_FILE [ROWS]`

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote::Writer;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: table NEW_FILE [ROWS]")?);
    let rows = match arguments.next() {
        Some(rows) => rows.to_str().ok_or("ROWS is a number")?.parse()?,
        None => 5_000_000,
    };

    // Nothing that exists is overwritten.
    let writer = Writer::options().create_new(true).open(&path)?;
    let start = Instant::now();
    let mut table = csv::Writer::from_writer(writer);
    fill(&mut table, rows)?;
    let written = table.into_inner().map_err(|error| error.into_error())?.finish()?;
    report("wrote::Writer, durable", written.bytes, start);

    let other = path.with_extension("other");
    let start = Instant::now();
    let mut table = csv::Writer::from_writer(BufWriter::new(File::create_new(&other)?));
    fill(&mut table, rows)?;
    let file = table.into_inner().map_err(|error| error.into_error())?.into_inner()?;
    file.sync_all()?;
    File::open(folder_of(&other))?.sync_all()?;
    report("BufWriter, sync_all, the folder's sync", file.metadata()?.len(), start);

    let same = wrote::read(&path)? == wrote::read(&other)?;
    std::fs::remove_file(&other)?;
    if same { Ok(()) } else { Err("the two files differ".into()) }
}

fn fill(table: &mut csv::Writer<impl Write>, rows: u64) -> Result<(), csv::Error> {
    table.write_record(["number", "square", "word"])?;
    for number in 0..rows {
        let word = if number % 2 == 0 { "even" } else { "odd, or \"uneven\"" };
        table.write_record([&number.to_string(), &(number * number).to_string(), word])?;
    }
    Ok(())
}

fn report(way: &str, bytes: u64, start: Instant) {
    let elapsed_s = start.elapsed().as_secs_f64();
    println!("{way}: {bytes} bytes in {elapsed_s:.2} s");
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
