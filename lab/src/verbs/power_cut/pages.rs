//! A subject that overwrites the pages of one file. Each page becomes durable by a single write.

use crate::verbs::power_cut::content::{content, random, read};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use rand::RngExt;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wrote::engine::Options;
use wrote::{Disk, Error, FileOptions, Ioengine};

const PAGE_BYTES: usize = 16 << 10;
const PAGES: u64 = 64;

/// A subject that writes a file of pages, each of which contains its version.
#[derive(Debug)]
pub struct Pages {
    folder: PathBuf,
    /// Whether the kernel promises that no write is torn.
    is_atomic: bool,
}

impl Pages {
    /// Creates a subject whose file is put into a new folder.
    pub fn new(folder: &Path, is_atomic: bool) -> Pages {
        Pages { folder: folder.to_owned(), is_atomic }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("pages")
    }
}

/// Returns a page: its version, followed by bytes that are derived from its number and version.
fn page(number: u64, version: u64) -> Vec<u8> {
    let mut bytes = content(number << 32 | version, PAGE_BYTES..=PAGE_BYTES);
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes
}

impl Subject for Pages {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        let mut file = File::create_new(self.file())?;
        (0..PAGES).try_for_each(|number| file.write_all(&page(number, 0)))?;
        file.sync_all()?;
        sync_folder(&self.folder)
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let disk = Disk::open(&Options::new(Ioengine::IoUring, 2, PAGE_BYTES))?;
        let options = FileOptions::new().write(true).direct(true).atomic(self.is_atomic);
        let file = disk.open_file(self.file(), &options)?;
        let mut random = random(seed);
        let mut version = 0;
        loop {
            version += 1;
            let number = random.random_range(0..PAGES);
            let mut buffer = disk.lease()?;
            buffer.copy_from_slice(&page(number, version));
            file.write_durable(buffer, number * PAGE_BYTES as u64)?;
            say(&Line::Page { number, version })?;
        }
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        let mut faults = Vec::new();
        let found = read(&self.file(), &mut faults).unwrap_or_default();
        if found.len() != PAGES as usize * PAGE_BYTES {
            faults.push(format!("{} bytes, where {PAGES} pages belong", found.len()));
        }
        for (number, bytes) in (0..).zip(found.as_chunks::<PAGE_BYTES>().0) {
            let version = u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
            let promised = said.sure().iter().rev().find_map(|line| match line {
                Line::Page { number: of, version } if *of == number => Some(*version),
                _ => None,
            });
            if bytes[..] != page(number, version) {
                faults
                    .push(format!("page {number} is torn: not all of it is of version {version}"));
            } else if version < promised.unwrap_or(0) {
                let promised = promised.unwrap_or(0);
                faults.push(format!("page {number} has version {version}, not {promised}"));
            }
        }
        Ok(faults)
    }
}
