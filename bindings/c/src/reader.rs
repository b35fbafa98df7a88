//! `wrote_reader`: a file read from start to end, by bytes or lines.

use crate::border::{self, alone, call, give, hand_over, path, refused};
use crate::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::io::{BufRead, Read, Seek, SeekFrom};
use wrote_bindings::from_io;

/// Reads a file from start to end, in place of fopen(3) and fread(3): past the page cache where
/// that does not hold a long file, with several reads in flight.
pub struct Reader {
    reader: library::Reader,
    /// The line that was lent last.
    line: Vec<u8>,
}

/// Opens a file for reading. Any thread may call it at any time.
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
/// file. A file that has grown since is read on.
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
            // C's memory may never have been written; the reader only writes to it.
            let into = std::slice::from_raw_parts_mut(into.cast(), room);
            give(len, reader.read(into).map_err(from_io)?);
            Ok(())
        })
    }
}

/// Reads one line, without its line feed. `line` is NULL at the end of the file; else it lives
/// until the reader's next call. It has no NUL at its end, and may have some in it.
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

/// Continues at this byte of the file.
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
