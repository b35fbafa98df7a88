//! The system calls of steps on the files of a job.

use super::{FileSpec, Start, Step, Steps};
use crate::data::Data;
use hdrhistogram::Histogram;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::{ReadWriteFlags, pwritev2};
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote_result::Error;

/// The memory alignment for direct I/O.
const ALIGN_BYTES: usize = 4096;
/// The maximum number of bytes per write. A longer write is split into several calls, which write
/// the same buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// The number of calls in a run, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of calls of `write(2)` and `pwrite(2)`.
    pub writes: u64,
    /// The number of bytes that these calls wrote.
    pub written_bytes: u64,
    /// The number of calls of `fdatasync(2)` and `fsync(2)` on files and folders.
    pub flushes: u64,
    /// The number of calls that create, rename or remove a name.
    pub names: u64,
}

impl Counts {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: Counts) {
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.flushes += other.flushes;
        self.names += other.names;
    }
}

/// One thread's handles of the files, and the data that it writes.
pub struct Calls {
    files: Vec<Handle>,
    folder: File,
    data: Data,
    buffer: Vec<u8>,
    random: Xoshiro256PlusPlus,
    pub counts: Counts,
    /// The times of the flushes of files.
    pub flushes_ns: Histogram<u64>,
}

struct Handle {
    spec: FileSpec,
    path: PathBuf,
    open: Option<File>,
    /// The offset of the next write.
    end: u64,
}

impl Calls {
    /// Opens the files, which [`Calls::lay_out`] then prepares. `path` returns the path of a file,
    /// given its name.
    pub fn new(steps: &Steps, path: &dyn Fn(&str) -> PathBuf, seed: u64) -> Result<Calls, Error> {
        let files = steps.files.iter().map(|spec| {
            let path = path(&spec.name);
            let open = match spec.start {
                Start::Absent => None,
                _ => Some(open(spec, &path)?),
            };
            Ok(Handle { spec: spec.clone(), path, open, end: 0 })
        });
        let files: Vec<Handle> = files.collect::<Result<_, Error>>()?;
        let parent = files[0].path.parent().expect("a file lies in a folder");
        let folder = File::open(parent).map_err(Error::at(parent, "open"))?;
        let mut data = Data::new(0, seed);
        // The additional bytes leave room for the alignment.
        let mut buffer = vec![0; BUFFER_BYTES + ALIGN_BYTES];
        data.fill(&mut buffer);
        Ok(Calls {
            files,
            folder,
            data,
            buffer,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            counts: Counts::default(),
            flushes_ns: crate::histogram(),
        })
    }

    /// Brings the files into the state in which a run begins, and flushes them.
    pub fn lay_out(&mut self) -> Result<(), Error> {
        for number in 0..self.files.len() {
            let spec = self.files[number].spec.clone();
            let is_there = |of: &File| of.metadata().is_ok_and(|of| of.len() == spec.bytes);
            // The content is written in pieces that are longer than an atomic write may be.
            self.files[number].spec.atomic = false;
            match spec.start {
                Start::Empty | Start::Absent => {}
                Start::Allocated => self.allocate(number, false)?,
                Start::Zeros => self.zeros(number, None)?,
                Start::Kept if self.files[number].open.as_ref().is_some_and(is_there) => {}
                Start::Written | Start::Kept => self.put(number, 0, spec.bytes, u64::MAX)?,
            }
            self.files[number].spec.atomic = spec.atomic;
            if let Some(open) = &self.files[number].open {
                open.sync_all().map_err(self.failed(number, "fsync"))?;
            }
        }
        self.folder.sync_all().ok();
        self.counts = Counts::default();
        Ok(())
    }

    /// Performs the steps of `list` for a group of `transactions`. `steps` contains the steps for a
    /// full file.
    pub fn make(&mut self, list: &[Step], steps: &Steps, transactions: u64) -> Result<(), Error> {
        list.iter().try_for_each(|step| self.step(step, steps, transactions))
    }

    fn step(&mut self, step: &Step, steps: &Steps, transactions: u64) -> Result<(), Error> {
        match step {
            Step::Open { file } => {
                let number = self.number(file);
                let of = &mut self.files[number];
                of.open = Some(open(&of.spec, &of.path)?);
                of.end = 0;
                self.counts.names += 1;
            }
            Step::Close { file } => {
                let number = self.number(file);
                self.files[number].open = None;
            }
            Step::Write { .. } => self.write(step, steps, transactions)?,
            Step::Fdatasync { file } => self.flush(file, File::sync_data)?,
            Step::Fsync { file } => self.flush(file, File::sync_all)?,
            Step::SyncFileRange { file } => self.begin_writing(self.number(file))?,
            Step::FsyncFolder => self.flush_folder(File::sync_all)?,
            Step::FdatasyncFolder => self.flush_folder(File::sync_data)?,
            Step::Rename { file, to } => self.rename(file, to)?,
            Step::Unlink { file } => {
                let number = self.number(file);
                let of = &mut self.files[number];
                of.open = None;
                of.end = 0;
                self.counts.names += 1;
                std::fs::remove_file(&of.path).map_err(Error::at(&of.path, "unlink"))?;
            }
            Step::Truncate { file, bytes } => {
                let number = self.number(file);
                let bytes = bytes.unwrap_or(self.files[number].end);
                let cut = self.file(number)?.set_len(bytes);
                cut.map_err(self.failed(number, "ftruncate"))?;
                let end = &mut self.files[number].end;
                *end = (*end).min(bytes);
            }
            Step::Fallocate { file, keep_size } => {
                self.allocate(self.number(file), *keep_size)?;
            }
            Step::Zeros { file, split } => self.zeros(self.number(file), *split)?,
            Step::Rewind { file } => {
                let number = self.number(file);
                self.files[number].end = 0;
            }
        }
        Ok(())
    }

    fn write(&mut self, step: &Step, steps: &Steps, transactions: u64) -> Result<(), Error> {
        let Step::Write { file, bytes, at, random, page, times, split } = step else {
            return Ok(());
        };
        let number = self.number(file);
        let split = split.unwrap_or(u64::MAX);
        let repeat = u64::from(times.unwrap_or(1));
        if *random {
            let blocks = self.files[number].spec.bytes / bytes;
            return (0..repeat).try_for_each(|_| {
                let at = self.random.random_range(0..blocks) * bytes;
                self.put(number, at, *bytes, split)
            });
        }
        if let Some(at) = at {
            return (0..repeat)
                .try_for_each(|turn| self.put(number, at + turn * bytes, *bytes, split));
        }
        // With `times`, each write is a separate call. Otherwise, a single call writes all bytes of
        // the group.
        let (calls, bytes) = match times {
            Some(_) => (repeat, *bytes),
            None => (1, bytes * transactions),
        };
        for _ in 0..calls {
            let unit = page.unwrap_or(1);
            let pages = |end: u64| (end / unit * unit, (end + bytes).next_multiple_of(unit));
            let (mut from, mut until) = pages(self.files[number].end);
            if until > self.files[number].spec.bytes {
                match steps.full.iter().find(|full| full.file == *file) {
                    Some(full) => self.make(&full.steps, steps, 1)?,
                    None => self.files[number].end = 0,
                }
                (from, until) = pages(self.files[number].end);
            }
            self.put(number, from, until - from, split)?;
            self.files[number].end += bytes;
        }
        Ok(())
    }

    /// Writes `bytes` bytes, with one call for each `split` bytes.
    fn put(&mut self, number: usize, at: u64, bytes: u64, split: u64) -> Result<(), Error> {
        let (end, most) = (at + bytes, split.min(BUFFER_BYTES as u64));
        let mut at = at;
        while at < end {
            let length = (end - at).min(most) as usize;
            let begin = self.buffer.as_ptr().align_offset(ALIGN_BYTES);
            let part = &mut self.buffer[begin..begin + length];
            self.data.make(part, &crate::spec::Data::Random);
            let of = &self.files[number];
            let open = of.open.as_ref().ok_or_else(|| not_open(&of.path))?;
            let written = match of.spec {
                FileSpec { atomic: true, .. } => write_whole(open, part, at),
                FileSpec { dontcache: true, .. } => write_dropping(open, part, at),
                _ => open.write_all_at(part, at),
            };
            written.map_err(Error::at(&of.path, "write"))?;
            self.counts.writes += 1;
            self.counts.written_bytes += length as u64;
            at += length as u64;
        }
        Ok(())
    }

    fn flush(&mut self, file: &str, flush: fn(&File) -> io::Result<()>) -> Result<(), Error> {
        let number = self.number(file);
        let began = Instant::now();
        // W2: a failed flush ends the run.
        flush(self.file(number)?).map_err(self.failed(number, "flush"))?;
        self.flushes_ns.saturating_record(began.elapsed().as_nanos() as u64);
        self.counts.flushes += 1;
        Ok(())
    }

    fn begin_writing(&self, number: usize) -> Result<(), Error> {
        let fd = self.file(number)?.as_raw_fd();
        // SAFETY: the descriptor is open, and the call touches no memory.
        match unsafe { libc::sync_file_range(fd, 0, 0, libc::SYNC_FILE_RANGE_WRITE) } {
            0 => Ok(()),
            _ => Err(self.failed(number, "sync_file_range")(io::Error::last_os_error())),
        }
    }

    fn flush_folder(&mut self, flush: fn(&File) -> io::Result<()>) -> Result<(), Error> {
        self.counts.flushes += 1;
        flush(&self.folder).map_err(Error::at(&self.files[0].path, "fsync of its folder"))
    }

    fn rename(&mut self, file: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (self.number(file), self.number(to));
        let (old, new) = (self.files[from].path.clone(), self.files[to].path.clone());
        std::fs::rename(&old, &new).map_err(Error::at(&old, "rename"))?;
        self.counts.names += 1;
        // The handle moves with its file.
        self.files[to].open = self.files[from].open.take();
        (self.files[to].end, self.files[from].end) = (self.files[from].end, 0);
        Ok(())
    }

    fn allocate(&mut self, number: usize, keep_size: bool) -> Result<(), Error> {
        let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        let open = self.file(number)?;
        match fallocate(open, flags, 0, self.files[number].spec.bytes) {
            // Programs, too, ignore the error if the file system does not support this call.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            done => done.map_err(self.failed(number, "fallocate")),
        }
    }

    /// Fills a file with zeros up to its maximum length. Uses a separate buffer, because zeros in
    /// the usual buffer would remain between the stamps of later writes (M2).
    fn zeros(&mut self, number: usize, split: Option<u64>) -> Result<(), Error> {
        let bytes = self.files[number].spec.bytes;
        let most = split.unwrap_or(BUFFER_BYTES as u64);
        let zeros = vec![0; most as usize + ALIGN_BYTES];
        let begin = zeros.as_ptr().align_offset(ALIGN_BYTES);
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(most);
            let part = &zeros[begin..begin + length as usize];
            let written = self.file(number)?.write_all_at(part, at);
            written.map_err(self.failed(number, "write"))?;
            self.counts.writes += 1;
            self.counts.written_bytes += length;
            at += length;
        }
        Ok(())
    }

    fn number(&self, name: &str) -> usize {
        self.files.iter().position(|file| file.spec.name == name).expect("the steps are checked")
    }

    fn file(&self, number: usize) -> Result<&File, Error> {
        let of = &self.files[number];
        of.open.as_ref().ok_or_else(|| not_open(&of.path))
    }

    fn failed<E: Display>(&self, number: usize, what: &str) -> impl Fn(E) -> Error {
        Error::at(&self.files[number].path, what)
    }
}

fn open(spec: &FileSpec, path: &Path) -> Result<File, Error> {
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, spec.direct);
    flags.set(OFlags::DSYNC, spec.dsync);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(flags.bits() as i32).open(path).map_err(Error::at(path, "open"))
}

/// Writes all bytes with a single atomic call: after a power loss, the write is either complete or
/// was not done at all.
fn write_whole(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let flags = ReadWriteFlags::from_bits_retain(libc::RWF_ATOMIC as _);
    match pwritev2(file, &[IoSlice::new(bytes)], at, flags)? {
        written if written == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Writes all bytes, and drops their pages from the page cache once they have been written.
fn write_dropping(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let flags = ReadWriteFlags::from_bits_retain(libc::RWF_DONTCACHE as _);
    let mut written = 0;
    while written < bytes.len() {
        let rest = &[IoSlice::new(&bytes[written..])];
        written += pwritev2(file, rest, at + written as u64, flags)?;
    }
    Ok(())
}

fn not_open(path: &Path) -> Error {
    Error::Failed(format!("{}: a step uses it while it is closed", path.display()))
}
