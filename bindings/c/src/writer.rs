//! `wrote_writer`, which writes a file from start to end, and functions that save or copy an entire
//! file in one call.

use crate::border::{
    self, Sized, alone, bytes, call, give, given, hand_over, options, path, policy, refused,
};
use crate::error::Error;
use library::{Error as Failure, WriterOptions as Builder};
use std::ffi::{c_char, c_int, c_void};
use std::io::{IoSlice, Write};
use std::path::Path;
use wrote_bindings::{Options, from_io};

/// Options of a writer. Write `wrote_writer_options options = { sizeof options };`, and then set
/// the options that you want. 0 means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WriterOptions {
    /// sizeof(wrote_writer_options).
    pub size: usize,
    /// The expected length, in bytes. The space is reserved when the file is opened, so that a lack
    /// of space is detected at once.
    pub size_hint: u64,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new file, less the umask. 0 means 0666.
    pub mode: u32,
    /// Whether an existing name is an error (EEXIST).
    pub create_new: bool,
    /// Whether to write through the page cache, for a file that is soon read again and need not be
    /// durable.
    pub cached: bool,
    /// Whether wrote_writer_finish() replaces the file at the path with the new one, like
    /// wrote_write() but for content of any size. After a crash at any moment, the file has either
    /// its old content or the new. A process that is killed before it finishes the file leaves a
    /// file ".NAME.wrote-PROCESS-NUMBER" in the folder, which `wrote clean` removes.
    pub replace: bool,
    /// Whether to append to the file, or create it. The file is locked (flock(2)): opening a second
    /// writer fails after waiting for a second. Programs that share a file should use a wrote_log.
    pub append: bool,
}

// SAFETY: the struct consists of numbers and booleans after a size.
unsafe impl Sized for WriterOptions {}

/// A writer of a file from start to end, as a replacement for fopen(3), fwrite(3) and fclose(3).
///
/// Bytes go into buffers (at most 8 MiB, for a file of any size), and from there to the file in the
/// background. An error in the background is returned by the next call and by every later one.
pub struct Writer {
    /// The library's writer; `None` once it has been finished or closed.
    writer: Option<library::Writer>,
}

/// The result of a writer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Written {
    /// The file's length, in bytes.
    pub bytes: u64,
    /// The time from opening the file until it was finished, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the file was written bypassing the page cache.
    pub direct: bool,
    /// Whether the file and its name are on stable storage.
    pub durable: bool,
}

impl Writer {
    fn writer(&mut self) -> Result<&mut library::Writer, Failure> {
        self.writer.as_mut().ok_or_else(ended)
    }

    fn take(&mut self) -> Result<library::Writer, Failure> {
        self.writer.take().ok_or_else(ended)
    }
}

fn ended() -> Failure {
    refused("the writer has ended")
}

fn opened(path: &Path, options: WriterOptions) -> Result<Writer, Failure> {
    let builder = library::Writer::options()
        .create_new(options.create_new)
        .replace(options.replace)
        .append(options.append)
        .direct(!options.cached)
        .size_hint(options.size_hint)
        // If a writer is freed after an error, without having been finished or closed, no partial
        // file is left, if possible.
        .abandon_on_drop(true)
        .set(Builder::sync, policy(options.sync, options.sync_interval_ms)?)
        .set(Builder::mode, given(options.mode));
    Ok(Writer { writer: Some(builder.open(path)?) })
}

/// Opens a writer that creates the file, or truncates an existing one, like fopen(3) with "w",
/// unless `replace` or `append` is set in the options.
///
/// After wrote_writer_flush(), the bytes survive a crash of the process. After wrote_writer_sync()
/// and wrote_writer_finish(), they survive a power loss, with the name of a new file. A crash
/// before these calls may leave any part of the file. With `replace`, however, the old content is
/// kept until the new file is complete.
///
/// `options` may be NULL. Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_open(
    to: *const c_char,
    how: *const WriterOptions,
    writer: *mut *mut Writer,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || hand_over(writer, || opened(path(to)?, options(how)?))) }
}

/// Writes all bytes, at first only into the writer's buffer, where they survive nothing. Waits only
/// while all buffers are in flight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_write(
    writer: *mut Writer,
    data: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || alone(writer)?.writer()?.write_all(bytes(data, len)?).map_err(from_io))
    }
}

/// Writes the bytes of all pieces in order, as if they were one. With WROTE_SYNC_ALWAYS, there is
/// only one sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_writev(
    writer: *mut Writer,
    pieces: *const libc::iovec,
    count: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let slices = border::pieces(pieces, count)?;
            let slices: Vec<IoSlice> = slices.iter().map(|piece| IoSlice::new(piece)).collect();
            alone(writer)?.writer()?.write_vectored(&slices).map_err(from_io).map(drop)
        })
    }
}

/// Writes all bytes to the file, where other programs can read them, and waits until they have been
/// written. They then survive a crash of the process. A file that is to replace another does not
/// have its name yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_flush(writer: *mut Writer, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(writer)?.writer()?.flush().map_err(from_io)) }
}

/// Makes earlier writes durable, with the name of a new file. Only wrote_writer_finish() replaces
/// an existing file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_sync(writer: *mut Writer, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(writer)?.writer()?.sync_data()) }
}

/// Writes the rest, and makes the file and its name durable. With `replace`, this is the moment at
/// which the new file replaces the old one. Returns the first error since the file was opened;
/// after an error, the old file is unchanged.
///
/// After this call, even if it fails, the writer can't be used any more. Call wrote_writer_free()
/// afterwards. `written` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_finish(
    writer: *mut Writer,
    written: *mut Written,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { end(writer, written, error, library::Writer::finish) }
}

/// Like wrote_writer_finish(), but without flushing the device: the file survives only a crash of
/// the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_close(
    writer: *mut Writer,
    written: *mut Written,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { end(writer, written, error, library::Writer::close) }
}

/// Finishes or closes a writer by means of `how`.
///
/// # Safety
///
/// The caller passes its own arguments, with the same promises.
unsafe fn end(
    writer: *mut Writer,
    written: *mut Written,
    error: *mut *mut Error,
    how: fn(library::Writer) -> Result<library::Written, Failure>,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || how(alone(writer)?.take()?).map(|all| give(written, summed_up(&all)))) }
}

fn summed_up(written: &library::Written) -> Written {
    Written {
        bytes: written.bytes,
        elapsed_ns: u64::try_from(written.elapsed.as_nanos()).unwrap_or(u64::MAX),
        direct: written.method == library::Method::Direct,
        durable: written.durable,
    }
}

/// Frees a writer. If it has not been finished or closed, it is abandoned: a file that it created
/// is removed, a file that it was to replace is unchanged, and a file to which it appended keeps
/// what has been written so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_free(writer: *mut Writer) {
    // SAFETY: promised by the caller.
    unsafe { border::free(writer) };
}

/// Replaces the content of the file at `to`, or creates the file. The content is durable when this
/// returns.
///
/// After a crash of the process or the kernel, or a power loss, at any moment, the file has either
/// its old content or the new, and other processes see one or the other. The new file gets the
/// permissions, owner and attributes of the old one; symbolic links are followed and kept. EBUSY
/// means that the file is a mount point, as single files in containers sometimes are, and so can't
/// be replaced.
///
/// Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_write(
    to: *const c_char,
    data: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || library::write(path(to)?, bytes(data, len)?)) }
}

/// Creates a new file at `to` with this content, complete and durable. If the name exists, returns
/// EEXIST and leaves that file unchanged.
///
/// Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_write_new(
    to: *const c_char,
    data: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || library::write_new(path(to)?, bytes(data, len)?)) }
}

/// Copies the file `from` to `to`, which must not exist yet. The copy gets its name only once it is
/// complete, and is durable when this returns. It shares the blocks of `from` if the file system
/// supports that. Stores the number of bytes in `len`, which may be NULL.
///
/// Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_copy(
    from: *const c_char,
    to: *const c_char,
    len: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || library::copy(path(from)?, path(to)?).map(|copied| give(len, copied.bytes)))
    }
}

/// The limits of atomic writes to a file (RWF_ATOMIC, pwritev2(2)): after a power loss, each is
/// either complete or absent. The length of an atomic write is a power of two, and divides its
/// offset.
#[repr(C)]
pub struct AtomicWrites {
    /// The minimum and the maximum length, in bytes.
    pub bytes_min: u32,
    pub bytes_max: u32,
    /// The maximum length that the device itself writes atomically, in bytes; 0 if it can't.
    pub device_bytes_max: u32,
    /// The maximum number of buffers in one write.
    pub segments_max: u32,
}

/// Stores the limits of atomic writes to the file at `path`. EOPNOTSUPP means that atomic writes
/// are not supported; the error's message gives the reason.
///
/// Any thread may call this function at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_atomic_writes(
    path: *const c_char,
    writes: *mut AtomicWrites,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let found = library::device::AtomicWrites::of(self::path(path)?)?;
            let library::device::AtomicWrites { bytes_min, bytes_max, device_bytes_max, .. } =
                found;
            let segments_max = found.segments_max;
            give(writes, AtomicWrites { bytes_min, bytes_max, device_bytes_max, segments_max });
            Ok(())
        })
    }
}
