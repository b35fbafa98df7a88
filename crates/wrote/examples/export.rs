//! Exports a table with the `csv` crate. Readers always find a complete file, old or new, even if
//! the export fails midway.
//!
//! `cargo run --release -p wrote --example export -- FILE [ROWS]`

use std::error::Error;
use std::path::Path;
use wrote::{Writer, Written};

fn export(path: &Path, rows: u64) -> Result<Written, Box<dyn Error>> {
    let mut table = csv::Writer::from_writer(Writer::replace(path)?);
    table.write_record(["number", "square"])?;
    for number in 0..rows {
        // On an error, `?` leaves the old file unchanged and removes the new one.
        let square = number.checked_mul(number).ok_or("too many rows")?;
        table.write_record([number.to_string(), square.to_string()])?;
    }
    // The crate's `flush` saves nothing: only `finish` replaces the file.
    let writer = table.into_inner().map_err(|error| error.into_error())?;
    Ok(writer.finish()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("usage: export FILE [ROWS]")?;
    let rows = arguments.next().map_or(Ok(1_000_000), |rows| rows.to_string_lossy().parse())?;
    let written = export(Path::new(&path), rows)?;
    println!("{} bytes, on stable storage, in {:?}", written.bytes, written.elapsed);
    Ok(())
}
