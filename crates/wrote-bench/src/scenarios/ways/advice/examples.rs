//! Example code for whole files. The bodies of the functions are shown as advice.

use std::error::Error;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;

pub fn write_all(path: &Path, folder: &Path, bytes: &[u8]) -> Result {
    let mut file = std::fs::File::create(path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?; // fsync, once, at the end
    std::fs::File::open(folder)?.sync_all()?; // the new file's name
    Ok(())
}

pub fn bufwriter(path: &Path, folder: &Path, pieces: &[&[u8]]) -> Result {
    let file = std::fs::File::create(path)?;
    let mut writer = std::io::BufWriter::new(file);
    for piece in pieces {
        std::io::Write::write_all(&mut writer, piece)?;
    }
    writer.into_inner()?.sync_all()?; // fsync, once, at the end
    std::fs::File::open(folder)?.sync_all()?; // the new file's name
    Ok(())
}

pub fn chunks(path: &Path, folder: &Path, bytes: &[u8]) -> Result {
    let mut file = std::fs::File::create(path)?;
    for chunk in bytes.chunks(8 << 20) {
        std::io::Write::write_all(&mut file, chunk)?;
    }
    file.sync_all()?; // fsync, once, at the end
    std::fs::File::open(folder)?.sync_all()?; // the new file's name
    Ok(())
}

pub fn writer(path: &Path, pieces: &[&[u8]]) -> Result {
    let mut writer = wrote::Writer::create(path)?;
    for piece in pieces {
        std::io::Write::write_all(&mut writer, piece)?;
    }
    writer.finish()?; // durable, with the new file's name
    Ok(())
}

pub fn stream(from: &Path, to: &Path, folder: &Path) -> Result {
    let mut source = std::fs::File::open(from)?;
    let mut target = std::fs::File::create(to)?;
    let mut buffer = vec![0; 8 << 20];
    loop {
        let count = std::io::Read::read(&mut source, &mut buffer)?;
        if count == 0 {
            break;
        }
        std::io::Write::write_all(&mut target, &buffer[..count])?;
    }
    target.sync_all()?; // fsync, once, at the end
    std::fs::File::open(folder)?.sync_all()?; // the new file's name
    Ok(())
}

pub fn copy(from: &Path, to: &Path) -> Result {
    wrote::copy(from, to)?; // durable, with the new file's name
    Ok(())
}
