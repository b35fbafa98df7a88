//! The ways of saving a text, as programs write them in Rust.

use super::{Kind, State};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wrote_result::Error;

#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub path: &'a Path,
    pub folder: &'a Path,
    /// The name under which a text is written that is to take the file's place.
    pub temporary: &'a Path,
}

/// Saves the text: opens, writes, flushes as far as the way flushes (M1), and closes.
pub(super) fn save(kind: Kind, state: State, place: Place, text: &[u8]) -> Result<(), Error> {
    let saved = match kind {
        Kind::WroteWrite => return Ok(wrote::write(place.path, text)?),
        Kind::FsWrite => std::fs::write(place.path, text),
        Kind::FsWriteFsync => fs_write_fsync(place.path, text),
        Kind::WriteFdatasync => write_fdatasync(state, place.path, text),
        Kind::ODsync => o_dsync(state, place.path, text),
        Kind::Rename => rename(place, text),
        Kind::RenameFsync => rename_fsync(place, text),
        Kind::Append => append(place.path, text).map(drop),
        Kind::AppendFdatasync => append(place.path, text).and_then(|file| file.sync_data()),
    };
    // Last in every way: after the content is flushed, and after the name is the file's.
    let saved = match kind.syncs_folder(state) {
        true => saved.and_then(|()| sync_folder(place.folder)),
        false => saved,
    };
    saved.map_err(|error| Error::Failed(format!("{}: {error}", place.path.display())))
}

/// The calls of `std::fs::write` and a flush, as most programs make them that know fsync.
fn fs_write_fsync(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Opens the file without cutting what is in it, or makes it.
fn options(state: State) -> OpenOptions {
    let mut options = File::options();
    options.write(true).create_new(state == State::New);
    options
}

fn write_fdatasync(state: State, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = options(state).open(path)?;
    file.write_all(text)?;
    file.sync_data()
}

fn o_dsync(state: State, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = options(state).custom_flags(OFlags::DSYNC.bits() as i32).open(path)?;
    file.write_all(text)
}

fn rename(place: Place, text: &[u8]) -> io::Result<()> {
    std::fs::write(place.temporary, text)?;
    std::fs::rename(place.temporary, place.path)
}

fn rename_fsync(place: Place, text: &[u8]) -> io::Result<()> {
    fs_write_fsync(place.temporary, text)?;
    std::fs::rename(place.temporary, place.path)
}

fn append(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(text)?;
    Ok(file)
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
