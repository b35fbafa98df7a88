//! Programs as steps, each of which is a verb and its files. Each step makes one call to the kernel
//! that changes a file, a name or their durability, or prepares such a call.

use super::queued::{Ring, aio};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, copy_file_range, fallocate,
    ioctl_ficlone, linkat, open, renameat_with, sendfile, symlinkat, syncfs, unlinkat,
};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, writev};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::null_mut;

const BLOCK_BYTES: usize = 4096;
/// The sizes of a large and a small write.
pub const WRITE_BYTES: usize = 2 * BLOCK_BYTES;
const MAP_BYTES: usize = BLOCKS.len() * BLOCK_BYTES;
const NOTE_BYTES: usize = 100;

/// The files that exist before a drawn program, and the folder of one of them.
const OLD: [&str; 3] = ["a", "b", "d/a"];
const OLD_FOLDER: &str = "d";
const NAMES: [&str; 8] = ["a", "b", "d/a", "n", "m", "d/n", "e/n", "e/f/n"];
const FOLDERS: [&str; 5] = ["", "d", "e", "e", "e/f"];
const BLOCKS: [&str; 3] = ["0", "1", "2"];

/// The verbs of drawn programs, grouped by their arguments: a name (`n`), an open file (`o`), a
/// folder (`f`), a block of a mapped file (`b`).
const CHANGES: [(&str, &str); 12] = [
    ("n", "open make make creat empty append dsync osync direct over truncate unlink"),
    ("f", "tmp mkdir mkdir rmdir rmdir"),
    ("nn", "link symlink rename rename exchange"),
    ("ff", "rename"),
    ("on", "name"),
    ("n", "ring-make ring-unlink"),
    ("nn", "ring-rename ring-link"),
    ("o", "ring-put ring-later ring-later ring-dsync aio-put"),
    ("o", "ring-both ring-chain ring-drain aio-both aio-save"),
    ("oo", "copy sendfile clone"),
    (
        "o",
        "write write note zeros pwrite writev pwritev2 clear cut grow allocate keep punch zero \
         collapse insert store unmap",
    ),
    ("ob", "poke poke poke poke"),
];
const FLUSHES: [(&str, &str); 3] = [
    ("o", "fsync fsync fdatasync fdatasync range msync syncfs ring-fsync ring-fdatasync"),
    ("f", "folder folder ring-folder"),
    ("ob", "push push"),
];
/// The operations of a ring that have names as arguments instead of an open file.
const OF_NAMES: [&str; 5] = ["ring-make", "ring-unlink", "ring-rename", "ring-link", "ring-folder"];
/// The steps during which a ring's write may stay in flight, because they change no bytes. If two
/// operations change the same bytes concurrently, the trace can't determine their order.
const BESIDE: &str = "open make tmp link name symlink rename exchange unlink mkdir rmdir fsync \
                      fdatasync range syncfs sync push folder ring-fsync ring-fdatasync \
                      ring-make ring-folder";
const STEPS_MAX: usize = 14;

/// Returns each verb with its kinds of arguments.
fn verbs(table: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let of = |(about, verbs): &(&'static str, &'static str)| {
        let about = *about;
        verbs.split(' ').map(move |verb| (verb, about))
    };
    table.iter().flat_map(of).collect()
}

/// Returns the steps of a program that is drawn from a seed.
pub fn drawn(seed: u64) -> Vec<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let random = &mut random;
    let mut open: Vec<&str> = Vec::new();
    let count = random.random_range(2..=STEPS_MAX);
    let (changes, flushes) = (verbs(&CHANGES), verbs(&FLUSHES));
    let mut step = || {
        let known = if random.random_ratio(1, 3) { &flushes } else { &changes };
        let (mut verb, mut about) = *known.choose(random).expect("there are some");
        if about.contains('o') && open.is_empty() {
            (verb, about) = ("make", "n");
        }
        let mut words = vec![verb];
        for kind in about.chars() {
            words.extend(match kind {
                'n' => NAMES.choose(random),
                'o' => open.choose(random),
                'b' => BLOCKS.choose(random),
                _ => FOLDERS.choose(random),
            });
        }
        if flags(verb).is_some() || matches!(verb, "creat" | "ring-make") {
            open.push(words[1]);
        }
        words.join(" ").trim_end().to_owned()
    };
    (0..count).map(|_| step()).collect()
}

/// Creates the files that exist before drawn programs, in a new folder.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join(OLD_FOLDER))?;
    OLD.iter().try_for_each(|name| fs::write(folder.join(name), [b'O'; WRITE_BYTES]))
}

/// Returns the content of a file, or the target of a symbolic link.
pub fn content(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read_link(path) {
        Ok(to) => Ok(to.into_os_string().into_encoded_bytes()),
        Err(_) => fs::read(path),
    }
}

/// The files that a program has opened, each by its name at that time, and the number of writes.
#[derive(Debug, Default)]
pub struct Opened {
    files: HashMap<String, File>,
    ring: Ring,
    /// The addresses of mappings, which exist until the program ends or a step removes them.
    maps: HashMap<String, usize>,
    writes: u8,
}

/// Returns the `open(2)` flags of a verb that opens a file; `None` for other verbs.
fn flags(verb: &str) -> Option<OFlags> {
    Some(match verb {
        "open" => OFlags::empty(),
        "make" => OFlags::CREATE,
        "create" => OFlags::CREATE | OFlags::EXCL,
        "empty" => OFlags::CREATE | OFlags::TRUNC,
        "append" => OFlags::CREATE | OFlags::APPEND,
        "dsync" => OFlags::CREATE | OFlags::APPEND | OFlags::DSYNC,
        "osync" => OFlags::CREATE | OFlags::SYNC,
        "direct" => OFlags::CREATE | OFlags::EXCL | OFlags::DIRECT,
        "over" => OFlags::DIRECT,
        "tmp" => OFlags::TMPFILE,
        _ => return None,
    })
}

impl Opened {
    /// Performs a step in a folder.
    pub fn take(&mut self, step: &str, folder: &Path) -> io::Result<()> {
        let words: Vec<&str> = step.split(' ').collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let (verb, name, other) = (words[0], word(1), word(2));
        let path = |name: &str| match name {
            "" => folder.to_owned(),
            name => folder.join(name),
        };
        if !BESIDE.split(' ').any(|beside| beside == verb) {
            self.ring.wait()?;
        }
        if let Some(flags) = flags(verb) {
            let file = open(path(name), flags | OFlags::RDWR | OFlags::CLOEXEC, mode())?;
            self.add(name, file.into());
            return Ok(());
        }
        self.writes += 1;
        let byte = b'n' + self.writes % 12;
        let mut room = [0; WRITE_BYTES + BLOCK_BYTES];
        let data = aligned(&mut room, byte);
        let file = |name: &str| self.files.get(name).ok_or(io::ErrorKind::NotFound);
        let allocate = |flags: FallocateFlags, from: usize, count: usize| -> io::Result<()> {
            Ok(fallocate(file(name)?, flags, from as u64, count as u64)?)
        };
        if let (Some(operation), false) = (verb.strip_prefix("ring-"), OF_NAMES.contains(&verb)) {
            let file = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
            return self.ring.on_file(operation, file, data);
        } else if let Some(operation) = verb.strip_prefix("ring-") {
            let made = self.ring.on_names(operation, &path(name), &path(other))?;
            self.files.extend(made.map(|made| (name.to_owned(), made)));
            return Ok(());
        } else if let Some(operation) = verb.strip_prefix("aio-") {
            return aio(operation, file(name)?, data);
        }
        match verb {
            "creat" => {
                let file = creat(&path(name))?;
                self.add(name, file);
            }
            "close" => drop(self.files.remove(name)),
            "backup" => fs::write(path(other), fs::read(path(name))?)?,
            "write" => file(name)?.write_all(data)?,
            "note" => file(name)?.write_all(&data[..NOTE_BYTES])?,
            "zeros" => file(name)?.write_all(&[0; WRITE_BYTES])?,
            "pwrite" => file(name)?.write_all_at(&data[..BLOCK_BYTES], BLOCK_BYTES as u64)?,
            "writev" => {
                let pieces = [IoSlice::new(&data[..NOTE_BYTES]), IoSlice::new(data)];
                writev(file(name)?, &pieces)?;
            }
            "pwritev2" => {
                let pieces = [IoSlice::new(&data[..BLOCK_BYTES])];
                pwritev2(file(name)?, &pieces, BLOCK_BYTES as u64, ReadWriteFlags::DSYNC)?;
            }
            "copy" => {
                let [from, to] = [file(name)?, file(other)?];
                copy_file_range(from, Some(&mut 0), to, None, WRITE_BYTES)?;
            }
            "sendfile" => {
                let [from, to] = [file(name)?, file(other)?];
                sendfile(to, from, Some(&mut 0), WRITE_BYTES)?;
            }
            "clone" => ioctl_ficlone(file(other)?, file(name)?)?,
            "clear" => file(name)?.set_len(0)?,
            "cut" => file(name)?.set_len(BLOCK_BYTES as u64)?,
            "grow" => file(name)?.set_len(5 * BLOCK_BYTES as u64)?,
            "truncate" => truncate(&path(name), BLOCK_BYTES)?,
            "allocate" => allocate(FallocateFlags::empty(), 4 * BLOCK_BYTES, BLOCK_BYTES)?,
            "keep" => allocate(FallocateFlags::KEEP_SIZE, 4 * BLOCK_BYTES, BLOCK_BYTES)?,
            "punch" => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                allocate(flags, 0, BLOCK_BYTES)?;
            }
            "zero" => allocate(FallocateFlags::ZERO_RANGE, BLOCK_BYTES, WRITE_BYTES)?,
            "collapse" => allocate(FallocateFlags::COLLAPSE_RANGE, 0, BLOCK_BYTES)?,
            "insert" => allocate(FallocateFlags::INSERT_RANGE, BLOCK_BYTES, BLOCK_BYTES)?,
            "store" => store(file(name)?, byte, false)?,
            "msync" => store(file(name)?, byte, true)?,
            "poke" => self.poke(name, other, byte)?,
            "push" => self.push(name, other)?,
            "unmap" => {
                let start = self.maps.remove(name).ok_or(io::ErrorKind::NotFound)?;
                // SAFETY: the mapping is as long, and nothing else uses it.
                unsafe { munmap(start as *mut c_void, MAP_BYTES)? }
            }
            "mkdir" => fs::create_dir(path(name))?,
            "rmdir" => fs::remove_dir(path(name))?,
            "link" => linkat(CWD, path(name), CWD, path(other), AtFlags::empty())?,
            "name" => {
                let own = format!("/proc/self/fd/{}", file(name)?.as_raw_fd());
                linkat(CWD, own, CWD, path(other), AtFlags::SYMLINK_FOLLOW)?;
            }
            "symlink" => symlinkat(name, CWD, path(other))?,
            "unlink" => unlinkat(CWD, path(name), AtFlags::empty())?,
            "rename" => fs::rename(path(name), path(other))?,
            "exchange" => {
                renameat_with(CWD, path(name), CWD, path(other), RenameFlags::EXCHANGE)?;
            }
            "fsync" => file(name)?.sync_all()?,
            "fdatasync" => file(name)?.sync_data()?,
            "range" => write_back(file(name)?)?,
            "syncfs" => syncfs(file(name)?)?,
            "sync" => rustix::fs::sync(),
            "folder" => File::open(path(name))?.sync_all()?,
            _ => return Err(io::Error::other(format!("no such step: {step}"))),
        }
        Ok(())
    }
}

impl Opened {
    /// Adds an opened file. An earlier file of this name keeps its mapping, but no later step can
    /// find it.
    fn add(&mut self, name: &str, file: File) {
        self.files.insert(name.to_owned(), file);
        self.maps.remove(name);
    }

    /// Stores into a block of a file through a mapping, which is kept.
    fn poke(&mut self, name: &str, block: &str, byte: u8) -> io::Result<()> {
        let file = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let at = block_at(block)?;
        // A store beyond the end of the file would cause a SIGBUS.
        if file.metadata()?.len() < (at + BLOCK_BYTES) as u64 {
            return Err(Errno::INVAL.into());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let start = match self.maps.get(name) {
            Some(start) => *start,
            // SAFETY: the mapping is new, and overlaps no other memory of this process.
            None => unsafe {
                mmap(null_mut(), MAP_BYTES, access, MapFlags::SHARED, file, 0)? as usize
            },
        };
        self.maps.insert(name.to_owned(), start);
        // SAFETY: the block is within the mapping and within the file.
        unsafe { ((start + at) as *mut u8).write_bytes(byte, BLOCK_BYTES) };
        Ok(())
    }

    /// Flushes a block of a mapping.
    fn push(&self, name: &str, block: &str) -> io::Result<()> {
        let start = self.maps.get(name).ok_or(io::ErrorKind::NotFound)?;
        let memory = (start + block_at(block)?) as *mut c_void;
        // SAFETY: the block is in the mapping.
        unsafe { msync(memory, BLOCK_BYTES, MsyncFlags::SYNC)? };
        Ok(())
    }
}

fn block_at(block: &str) -> io::Result<usize> {
    let number: usize = block.parse().map_err(io::Error::other)?;
    Ok(number * BLOCK_BYTES)
}

fn mode() -> Mode {
    Mode::from_raw_mode(0o644)
}

/// Returns content at an address that is suitable for direct writes.
fn aligned(room: &mut [u8], byte: u8) -> &[u8] {
    let start = room.as_ptr().align_offset(BLOCK_BYTES);
    let data = &mut room[start..start + WRITE_BYTES];
    data.fill(byte);
    data
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Opens a file by the separate call `creat`, which the standard library does not use.
fn creat(path: &Path) -> io::Result<File> {
    let path = c_path(path)?;
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::creat(path.as_ptr(), 0o644) };
    match file {
        // SAFETY: the descriptor is new, and nothing else owns it.
        0.. => Ok(unsafe { File::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn truncate(path: &Path, size_bytes: usize) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path ends in NUL.
    checked(unsafe { libc::truncate(path.as_ptr(), size_bytes as libc::off_t) })
}

/// Writes all pages back without flushing the device.
fn write_back(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call reads no memory of this process.
    checked(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) })
}

fn checked(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Stores into the first page of a file through a shared mapping.
fn store(file: &File, byte: u8, flushes: bool) -> io::Result<()> {
    // A store beyond the end of the file would cause a SIGBUS.
    if file.metadata()?.len() < BLOCK_BYTES as u64 {
        return Err(Errno::INVAL.into());
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the mapping is new, overlaps no other memory of this process, contains a page of the
    // file, and is not used after its removal.
    unsafe {
        let memory = mmap(null_mut(), BLOCK_BYTES, access, MapFlags::SHARED, file, 0)?;
        memory.cast::<u8>().write_bytes(byte, BLOCK_BYTES);
        if flushes {
            msync(memory, BLOCK_BYTES, MsyncFlags::SYNC)?;
        }
        Ok(munmap(memory, BLOCK_BYTES)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_verb_is_drawn_and_succeeds_in_some_program() {
        // The folder is on a disk, because memory may refuse direct writes.
        let place = crate::fixtures::folder();
        let mut taken = HashSet::new();
        for seed in 0..1000 {
            let folder = place.path().join(seed.to_string());
            prepare(&folder).unwrap();
            let mut opened = Opened::default();
            for step in drawn(seed) {
                if opened.take(&step, &folder).is_ok() {
                    taken.insert(step.split(' ').next().unwrap().to_owned());
                }
            }
        }
        // ext4 does not support clones.
        let mut missed = [verbs(&CHANGES), verbs(&FLUSHES)].concat();
        missed.retain(|(verb, _)| *verb != "clone" && !taken.contains(*verb));
        // Sandboxes refuse these operations.
        let refuses = |queue: &str| !taken.iter().any(|verb| verb.starts_with(queue));
        let (ring, aio) = (refuses("ring-"), refuses("aio-"));
        missed.retain(|(verb, _)| !(ring && verb.starts_with("ring-")));
        missed.retain(|(verb, _)| !(aio && verb.starts_with("aio-")));
        assert!(missed.is_empty(), "{missed:?}");
    }
}
