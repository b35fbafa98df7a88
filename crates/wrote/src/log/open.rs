//! Opens a log: recovers it, prepares a segment, and assembles the log.

use super::ahead::AHEAD_BYTES_MIN;
use super::claim::{CAPACITY_MAX, SLOTS_MAX};
use super::driver::LogDriver;
use super::flusher::Flusher;
use super::input::LogFiles;
use super::lock::{LOCK, Lock};
use super::prepare::Preparation;
use super::recovery::{Recovery, recover};
use super::retention::Retention;
use super::segment::{self, BLOCK_BYTES, Layout, OpenSegment, Ramp};
use super::space::Space;
use super::state::{LogState, Promise, Terms};
use crate::engine::{Folder, Options, System, folder_of};
use crate::error::Tried;
use crate::file::calibrate;
use crate::{Action, Disk, Engine, Error, Ioengine, SyncPolicy};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const BUFFER_BYTES_MIN: usize = 4096;
/// The maximum length of a segment in bytes. No file system has files of this length, and adding a
/// buffer to it does not overflow.
const SEGMENT_BYTES_MAX: u64 = 1 << 62;
/// The number of operations besides batches that can be in flight: flushes of segments, and steps
/// that prepare the next segment.
const OTHER_OPERATIONS: u32 = 6;
/// The number of writes per method in the calibration that chooses how records are made durable.
const CALIBRATION_ROUNDS: u32 = 4;

/// The settings of [`LogOptions`](super::LogOptions).
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub sync: SyncPolicy,
    pub segment_bytes: u64,
    pub segment_age: Option<Duration>,
    pub retain_bytes: Option<u64>,
    pub retain_age: Option<Duration>,
    pub buffers: u32,
    pub buffer_bytes: usize,
    pub zeros: Option<bool>,
    pub prepared_bytes: u64,
    pub dsync: Option<bool>,
    pub mode: Option<u32>,
    pub disk: Option<Disk>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sync: SyncPolicy::Always,
            segment_bytes: 64 << 20,
            segment_age: None,
            retain_bytes: None,
            retain_age: None,
            buffers: 8,
            buffer_bytes: 1 << 20,
            zeros: None,
            prepared_bytes: 0,
            dsync: None,
            mode: None,
            disk: None,
        }
    }
}

/// Opens the log in `folder`, and creates the folder if it is missing.
pub(super) fn open(options: &Settings, folder: &Path) -> Result<Arc<LogDriver>, Error> {
    let system = Disk::system_of(options.disk.as_ref());
    let mut held = system.hold(folder, || make_folder(folder, options.mode))?;
    if let Some(mode) = options.mode {
        held = held.with_mode(mode);
    }
    // A folder that the kernel does not know, on a simulated disk, needs no lock: no other process
    // can write to it.
    let lock = held.is_held().then(|| Lock::take(&held)).transpose()?;
    if let Some(lock) = &lock {
        let path = std::path::absolute(folder).tried(folder, Action::Examine)?;
        held = held.with_mode(lock.mode()?).known_as(&path);
    }
    let (state, flusher) = assemble(&within_bounds(options), held)?;
    let driver = Arc::new(LogDriver::new(state, flusher, options.disk.clone(), lock));
    if system.has_time() {
        let started = driver.start_thread(options.segment_age);
        started.inspect_err(|_| driver.drop_handle())?;
    }
    Ok(driver)
}

/// Creates the folder and makes its name durable, unless the folder already has a log. The name is
/// made durable even if the folder exists, because it may have been created only recently.
fn make_folder(folder: &Path, mode_of_files: Option<u32>) -> Result<(), Error> {
    if folder.join(LOCK).exists() {
        return Ok(());
    }
    check_place(folder)?;
    let mut engine = Engine::open(&Options::new(Ioengine::Psync, 1, 4096))?;
    if let Some(mode) = mode_of_files {
        // An error, or a file with the folder's name, is reported by the engine below.
        let _ = DirBuilder::new().mode(mode | (mode & 0o444) >> 2).create(folder);
    }
    engine.make_folder(folder)?;
    engine.sync_folder(folder_of(folder))
}

/// Refuses a path that is not a folder, and a folder that has other files but no log.
pub fn check_place(folder: &Path) -> Result<(), Error> {
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Error::refused(folder, "is not a folder, so it can't be a log"));
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    let is_a_logs = |name: &OsString| {
        let digits = name.as_bytes().iter().take_while(|byte| byte.is_ascii_digit());
        name == LOCK || digits.count() == 20
    };
    // The root folder of a new file system contains only this entry.
    let is_other = |name: &&OsString| *name != "lost+found";
    match names.iter().find(is_other).filter(|_| !names.iter().any(is_a_logs)) {
        None => Ok(()),
        Some(other) => {
            let new = folder.join("log");
            let because = format!(
                "has other files (such as {other:?}) and no log: name a new folder for the log, \
                 such as {}",
                new.display()
            );
            Err(Error::refused(folder, because))
        }
    }
}

fn within_bounds(options: &Settings) -> Settings {
    let mut options = options.clone();
    options.buffers = options.buffers.clamp(2, SLOTS_MAX);
    let blocks = options.buffer_bytes.min(CAPACITY_MAX).next_multiple_of(BLOCK_BYTES as usize);
    options.buffer_bytes = blocks.clamp(BUFFER_BYTES_MIN, CAPACITY_MAX);
    let least = 2 * options.buffer_bytes as u64;
    let segment_bytes = options.segment_bytes.clamp(least, SEGMENT_BYTES_MAX);
    options.segment_bytes = segment_bytes.next_multiple_of(BLOCK_BYTES);
    options.prepared_bytes = options.prepared_bytes.min(options.segment_bytes);
    options
}

fn engine_options(options: &Settings) -> Options {
    let depth = options.buffers + OTHER_OPERATIONS;
    // A write into the page cache only copies memory. With io_uring, the kernel would let its own
    // threads do the copying, which costs more processor time.
    let is_copied = options.sync != SyncPolicy::Always;
    let ioengine = if is_copied { Ioengine::Threads } else { Ioengine::IoUring };
    Options {
        // One additional buffer is for zeros, and one for the batch that closes the log.
        buffers: options.buffers + 2,
        transfers_itself: is_copied,
        ..Options::new(ioengine, depth, options.buffer_bytes)
    }
}

/// Recovers the log in `folder`, and returns its state and its flusher.
fn assemble(options: &Settings, folder: Folder) -> Result<(LogState, Flusher), Error> {
    let engine = Disk::engine_of(options.disk.as_ref(), &engine_options(options))?;
    let files = LogFiles::new(engine, folder.clone());
    let system = Disk::system_of(options.disk.as_ref());
    let target = system.examine(folder.path())?;
    let found = recover(&files)?;
    let mut engine = files.into_engine();
    let is_direct = options.sync == SyncPolicy::Always;
    let zeros = options.zeros.unwrap_or(is_direct && !target.copies_on_write());
    let may_omit_zeros = options.zeros.is_none();
    let active = found.active.as_ref();
    let block_bytes = active.map_or(BLOCK_BYTES, |active| u64::from(active.block_bytes));
    if !(options.buffer_bytes as u64).is_multiple_of(block_bytes) {
        let because = format!(
            "the log's blocks have {block_bytes} bytes; open it with LogOptions::buffer_bytes a \
             multiple of that"
        );
        return Err(Error::refused(folder.path(), because));
    }
    let layout = Layout {
        capacity: options.buffer_bytes as u64,
        block_bytes,
        segment_bytes: options.segment_bytes,
        ramp: zeros.then(|| ramp(&found, options)),
        log_id: found.log_id,
    };
    let start = found.start(&layout);
    let (mut segment, mut first) = (None, None);
    if let Some(active) = &found.active {
        let mut continued = active.open(&mut engine, &layout, is_direct)?;
        if start.segment == active.number {
            let bytes = options.prepared_bytes;
            prepare_ahead(&mut engine, &mut continued, &layout, zeros, bytes)?;
        }
        segment = Some(continued);
    } else {
        let path = segment::path(folder.path(), 1);
        let bytes = options.prepared_bytes.max(AHEAD_BYTES_MIN).min(layout.segment_bytes);
        let bytes = bytes.next_multiple_of(block_bytes);
        let begun = Preparation::new(&mut engine, &path, 1, zeros, bytes, is_direct)?;
        first = Some(begun.finish(&mut engine)?);
    }
    let file = segment.as_ref().map(|segment| segment.file);
    let file = file.or(first.as_ref().map(|first| first.file));
    let is_direct = is_direct && file.is_some_and(|file| engine.is_direct(file));
    let is_settled = options.zeros == Some(true) && target.writes_in_place();
    let promise = Promise::new(&target, is_direct && is_settled);
    let dsync = chosen_dsync(options, system, &folder)?;
    // The target and the calibration were found by path, so the folder must still be at its path.
    if !folder.is_at_its_path().tried(folder.path(), Action::Examine)? {
        let because = "the folder was renamed while its log was opened; open it again";
        return Err(Error::refused(folder.path(), because));
    }
    let Settings { retain_bytes, retain_age, .. } = *options;
    let retention = Retention::new(retain_bytes, retain_age, found.sealed);
    let written_at_ns = found.active.as_ref().map_or(0, |active| active.written_at_ns);
    let space = Space::new(segment, first, written_at_ns, retention);
    let terms = Terms { folder, layout, sync: options.sync, dsync, zeros, may_omit_zeros, promise };
    let state = LogState::new(terms, options.buffers, start, found.recovered);
    let after_cut = found.active.is_some_and(|active| active.after_cut);
    let flusher = Flusher::new(engine, &state, options.buffers, space, after_cut)?;
    Ok((state, flusher))
}

/// Returns whether records are made durable by the write itself, rather than by a flush after it.
fn chosen_dsync(options: &Settings, system: &System, folder: &Folder) -> Result<bool, Error> {
    match options.dsync {
        Some(dsync) => Ok(dsync),
        None if options.sync == SyncPolicy::Always && system.has_time() => {
            let disk = Disk::open(&Options::new(Ioengine::IoUring, 1, BLOCK_BYTES as usize))?;
            let rounds = CALIBRATION_ROUNDS;
            Ok(calibrate(&disk, folder.path(), BLOCK_BYTES as usize, rounds)?.dsync)
        }
        None => Ok(true),
    }
}

/// Returns the ramp that starts with the first segment of a new log, or continues from the last
/// segment of an existing log.
fn ramp(found: &Recovery, options: &Settings) -> Ramp {
    let active = found.active.as_ref();
    let (segment, bytes) = active.map_or((1, 0), |active| (active.number, active.bytes));
    Ramp::to(options.segment_bytes, segment, bytes, options.prepared_bytes)
}

/// Prepares `bytes` more of the segment's space, but not beyond the segment's end.
fn prepare_ahead(
    engine: &mut Engine,
    segment: &mut OpenSegment,
    layout: &Layout,
    zeros: bool,
    bytes: u64,
) -> Result<(), Error> {
    let OpenSegment { file, number, prepared, .. } = *segment;
    let end = prepared.saturating_add(bytes).min(layout.bytes_of(number));
    let end = end.next_multiple_of(layout.block_bytes);
    let rest = Preparation::rest_of(file, &segment.path, number, zeros, prepared, end);
    let rest = rest.finish(engine)?;
    (segment.prepared, segment.written) = (prepared.max(end), rest.written);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::segment::SegmentHeader;
    use crate::log::testing::{LOG_ID, disk, folder, read};
    use crate::{Log, Sim};

    /// Returns a disk with a log whose only segment consists of its header.
    fn log_of_blocks(block_bytes: u32) -> Sim {
        let header =
            SegmentHeader { log_id: LOG_ID, segment_id: 1, block_bytes, ..Default::default() };
        let mut bytes = vec![0; segment::HEADER_BYTES];
        header.encode(&mut bytes);
        disk(1, &[(segment::path(folder(), 1), bytes)])
    }

    #[test]
    fn a_batch_longer_than_a_segment_says_it_has_begins_the_next_segment() {
        let sim = Sim::new(1);
        let options = Log::options().sync(SyncPolicy::No).buffers(2).segment_bytes(1 << 20);
        for (buffer_bytes, segments) in [(8192, 1), (4096, 1), (8192, 1), (16384, 2), (8192, 2)] {
            let log = options.clone().buffer_bytes(buffer_bytes).on(&sim.disk()).open(folder());
            let log = log.unwrap();
            log.append(b"hello").unwrap().wait().unwrap();
            log.close().unwrap();
            assert_eq!(sim.names().len(), segments, "{buffer_bytes}");
        }
        assert_eq!(read(&sim, 0).0.len(), 5);
    }

    #[test]
    fn an_opening_prepares_room_in_a_new_log_and_in_one_that_exists() {
        let sim = Sim::new(1);
        let options = Log::options().buffers(2).buffer_bytes(4096).segment_bytes(1 << 20);
        let options = options.zeros(true);
        let len = |kib: u64| {
            let log = options.clone().prepared_bytes(kib << 10).on(&sim.disk()).open(folder());
            let log = log.unwrap();
            let path = segment::path(folder(), 1);
            let len = sim.contents(&path).unwrap().len() as u64 >> 10;
            let record = log.append(b"hello").unwrap();
            record.wait().unwrap();
            log.close().unwrap();
            len
        };
        // A record and the batch that closes the log take one block each, and closing truncates the
        // file after them.
        assert_eq!([256, 128, 0, u64::MAX >> 10].map(len), [256, 8 + 128, 12, 1024]);
        assert_eq!(read(&sim, 0).0.len(), 4);
    }

    #[test]
    fn a_log_of_larger_blocks_is_written_in_them_or_refused_where_buffers_do_not_hold_any() {
        for (block_bytes, buffer_bytes) in
            [(512, 4096), (16384, 32768), (16384, 4096), (1 << 31, 8192)]
        {
            let sim = log_of_blocks(block_bytes);
            let options = Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(buffer_bytes);
            let opened = options.segment_bytes(1 << 20).on(&sim.disk()).open(folder());
            if buffer_bytes < block_bytes as usize {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("LogOptions::buffer_bytes"), "{error}");
                continue;
            }
            let log = opened.unwrap();
            log.append(b"hello").unwrap().wait().unwrap();
            log.close().unwrap();
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert_eq!((records.len(), &records[0].bytes[..]), (1, &b"hello"[..]));
        }
    }
}
