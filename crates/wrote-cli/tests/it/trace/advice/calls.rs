use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;

fn main() -> io::Result<()> {
    replace("a", b"new\n")?;
    let mut buffer = BufWriter::new(File::create("f")?);
    buffer.write_all(b"new\n")?;
    flush(&mut buffer)?;
    flush_folder(".")?;
    std::fs::remove_file("d")?;
    flush_folder(".")?;
    let record = format!("record{}\n", " ".repeat(400));
    append("log", &[record.as_bytes(); 3])?;
    flush_folder(".")
}
