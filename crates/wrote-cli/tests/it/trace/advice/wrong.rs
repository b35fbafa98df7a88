use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;

fn replace(path: &str, data: &[u8]) -> io::Result<()> {
    std::fs::write("a.tmp", data)?;
    std::fs::rename("a.tmp", path)
}

fn flush(buffer: &mut BufWriter<File>) -> io::Result<()> {
    buffer.flush()
}

fn flush_folder(_: &str) -> io::Result<()> {
    Ok(())
}

fn append(path: &str, records: &[&[u8]]) -> io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    records.concat().iter().try_for_each(|byte| file.write_all(&[*byte]))
}
