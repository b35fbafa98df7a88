//! `wrote_reader`: a file read from start to end, by bytes or lines. `wrote_log_reader`: the
//! records of a log in order, while any process writes to it.

use crate::border::{self, alone, call, give, hand_over, path, refused};
use crate::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::time::{Duration, UNIX_EPOCH};
use wrote_bindings::{from_io, log_reader, unix_ns};

/// A reader of a file from start to end, as a replacement for fopen(3) and fread(3). If a long file
/// is not in the page cache, reads bypass the cache, with several of them in flight.
pub struct Reader {
    reader: library::Reader,
    /// The most recently returned line, to which the caller has a pointer.
    line: Vec<u8>,
}

/// Opens a file for reading. Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_reader_open(
    from: *const c_char,
    reader: *mut *mut Reader,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            hand_over(reader, || {
                Ok(Reader { reader: library::Reader::open(path(from)?)?, line: Vec::new() })
            })
        })
    }
}

/// Reads up to `room` bytes into `into`, and stores their number in `len`: 0 at the end of the
/// file. If the file has grown, a later call continues there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_reader_read(
    reader: *mut Reader,
    into: *mut c_void,
    room: usize,
    len: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            if len.is_null() || (into.is_null() && room > 0) {
                return Err(refused("there is no place for the bytes or for their number"));
            }
            let reader = &mut alone(reader)?.reader;
            if room == 0 {
                give(len, 0);
                return Ok(());
            }
            // The caller's memory may be uninitialized; the reader only writes to it.
            let into = std::slice::from_raw_parts_mut(into.cast(), room);
            give(len, reader.read(into).map_err(from_io)?);
            Ok(())
        })
    }
}

/// Reads a line, without its line feed. At the end of the file, `line` is set to NULL; otherwise,
/// the line lives until the reader's next call. It is not terminated by a NUL, and may contain
/// NULs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_reader_line(
    reader: *mut Reader,
    line: *mut *const c_char,
    len: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let Reader { reader, line: own } = alone(reader)?;
            own.clear();
            let read = reader.read_until(b'\n', own).map_err(from_io)?;
            if own.last() == Some(&b'\n') {
                own.pop();
            }
            give(line, if read == 0 { std::ptr::null() } else { own.as_ptr().cast() });
            give(len, own.len());
            Ok(())
        })
    }
}

/// Continues at this offset in the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_reader_seek(
    reader: *mut Reader,
    offset: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            alone(reader)?.reader.seek(SeekFrom::Start(offset)).map_err(from_io).map(drop)
        })
    }
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_reader_free(reader: *mut Reader) {
    // SAFETY: promised by the caller.
    unsafe { border::free(reader) };
}

/// A reader of the records of a log, in order. It takes no lock, and sees the records of every
/// process.
pub struct LogReader {
    reader: library::LogReader,
    follows: bool,
    /// The most recently returned record, if the wait for it had a time limit.
    record: Vec<u8>,
}

/// A record that is lent until the reader's next call.
#[repr(C)]
pub struct Record {
    /// The bytes, which are not terminated by a NUL. NULL if there is no record.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
    /// The record's sequence: 0 for the first record ever.
    pub sequence: u64,
    /// When the log submitted the record to the disk, in nanoseconds since 1970, by the writer's
    /// clock. 0 if unknown, as after a repair.
    pub written_at_ns: u64,
}

/// Opens the log in a folder for reading, from record `from`, or from the first later one that
/// exists, to its end. If `follows` is set, the reader waits at the end for further records, and
/// waits for the log to be created if it does not exist yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_open(
    folder: *const c_char,
    from: u64,
    follows: bool,
    reader: *mut *mut LogReader,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            hand_over(reader, || {
                let reader = log_reader(path(folder)?, from, follows)?;
                Ok(LogReader { reader, follows, record: Vec::new() })
            })
        })
    }
}

/// Reads the next record. At the end, `record->data` is NULL and `record->len` is 0. A reader that
/// follows first waits up to `timeout_ms` milliseconds, or without a limit if that is negative. The
/// pointer to an empty record is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_next(
    reader: *mut LogReader,
    timeout_ms: i64,
    record: *mut Record,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            if record.is_null() {
                return Err(refused("there is no place for the record"));
            }
            record.write(next(alone(reader)?, timeout_ms)?);
            Ok(())
        })
    }
}

fn next(reader: &mut LogReader, timeout_ms: i64) -> Result<Record, library::Error> {
    let LogReader { reader, follows, record } = reader;
    let found = match u64::try_from(timeout_ms) {
        Ok(timeout_ms) if *follows => {
            reader.next_within(Duration::from_millis(timeout_ms))?.map(|found| {
                *record = found.bytes;
                (&record[..], found.sequence, found.written_at)
            })
        }
        _ => reader.next_lent()?.map(|found| (found.bytes, found.sequence, found.written_at)),
    };
    Ok(match found {
        Some((bytes, sequence, written_at)) => {
            let (data, written_at_ns) = (bytes.as_ptr().cast(), written_at.map_or(0, unix_ns));
            Record { data, len: bytes.len(), sequence, written_at_ns }
        }
        None => Record { data: std::ptr::null(), len: 0, sequence: 0, written_at_ns: 0 },
    })
}

/// Continues with record `sequence`, or with the first later one that exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_seek(
    reader: *mut LogReader,
    sequence: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(reader)?.reader.seek(sequence)) }
}

/// Continues with the first record written at this time or later, in nanoseconds since 1970.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_seek_time(
    reader: *mut LogReader,
    time_ns: u64,
    error: *mut *mut Error,
) -> c_int {
    let time = UNIX_EPOCH + Duration::from_nanos(time_ns);
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(reader)?.reader.seek_time(time)) }
}

/// Returns the number of records that the reader has skipped since it was opened, because
/// retention, a trim or a repair had removed them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_passed_over(reader: *const LogReader) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { reader.as_ref() }.map_or(0, |reader| reader.reader.passed_over())
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_reader_free(reader: *mut LogReader) {
    // SAFETY: promised by the caller.
    unsafe { border::free(reader) };
}
