//! `wrote_writer`: a file from start to end; and whole files by one call, saved and copied.

use crate::border::{
    self, Sized, alone, bytes, call, give, given, hand_over, options, path, policy, refused,
};
use crate::error::Error;
use library::{Error as Failure, WriterOptions as Builder};
use std::ffi::{c_char, c_int, c_void};
use std::io::{IoSlice, Write};
use std::path::Path;
use wrote_bindings::{Options, from_io};

/// Options of a writer: `wrote_writer_options options = { sizeof options };` and then the ones that
/// you want. 0 is the default of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WriterOptions {
    /// sizeof(wrote_writer_options).
    pub size: usize,
    /// The expected length in bytes. The space is reserved at once, so that a lack of it shows now.
    pub size_hint: u64,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new file, less the umask. 0 is 0666.
    pub mode: u32,
    /// An existing name is an error, EEXIST.
    pub create_new: bool,
    /// Write through the page cache, for a file that is soon read again and need not last.
    pub cached: bool,
    /// Let the file take the place of the one at its path when wrote_writer_finish() is called: a
    /// wrote_write() for content of any size. After a crash at any moment the file has either its
    /// old content or the new. A process that is killed before leaves a file
    /// ".NAME.wrote-PROCESS-NUMBER" in the folder, which `wrote clean` removes.
    pub replace: bool,
    /// Append to the file, or create it. It is locked (flock(2)): a second writer fails after a
    /// second. Programs that share a file should use a wrote_log.
    pub append: bool,
}

// SAFETY: numbers and booleans behind a size.
unsafe impl Sized for WriterOptions {}

/// Writes a file from start to end, in place of fopen(3), fwrite(3) and fclose(3).
///
/// Bytes go into buffers (8 MiB at most, for a file of any size), and from there to the file in the
/// background. An error there is returned by the next call and by every later one.
pub struct Writer {
    /// `None` after its end.
    writer: Option<library::Writer>,
}

/// The result of a writer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Written {
    /// The file's length, in bytes.
    pub bytes: u64,
    /// The time from the opening to the end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the file was written past the page cache.
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
        // Freed without an end after an error: nothing half is left, as far as that can be.
        .abandon_on_drop(true)
        .set(Builder::sync, policy(options.sync, options.sync_interval_ms)?)
        .set(Builder::mode, given(options.mode));
    Ok(Writer { writer: Some(builder.open(path)?) })
}

/// Opens a writer that creates the file, or empties an existing one, like fopen(3) with "w", unless
/// its options say `replace` or `append`.
///
/// After wrote_writer_flush() the bytes survive a crash of the process, after wrote_writer_sync()
/// and wrote_writer_finish() a power loss, with the name of a new file. A crash before leaves any
/// part of the file: with `replace` it has the old content until the new one is whole.
///
/// `options` may be NULL. Any thread may call it at any time.
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

/// Writes all bytes, into the writer's buffer at first. They survive nothing yet. Waits only while
/// all buffers are in flight.
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

/// Writes the bytes of all pieces in order, as if they were one. With WROTE_SYNC_ALWAYS it syncs
/// once.
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

/// Writes all bytes to the file, where other programs see them, and waits for that. They then
/// survive a crash of the process. A file that is to replace another is not there yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_flush(writer: *mut Writer, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(writer)?.writer()?.flush().map_err(from_io)) }
}

/// Makes earlier writes durable, with the name of a new file. Only wrote_writer_finish() puts a
/// file in another's place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_sync(writer: *mut Writer, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(writer)?.writer()?.sync_data()) }
}

/// Writes the rest, makes the file and its name durable, and puts it in the place of the one that
/// it replaces: the commit. Returns any error since the opening; then an old file is unchanged.
///
/// It ends the writer, also by an error. Call wrote_writer_free() afterwards. `written` may be
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_finish(
    writer: *mut Writer,
    written: *mut Written,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { end(writer, written, error, library::Writer::finish) }
}

/// Like wrote_writer_finish() without flushes of the device: the file survives a crash of the
/// process and nothing worse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_close(
    writer: *mut Writer,
    written: *mut Written,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { end(writer, written, error, library::Writer::close) }
}

/// Ends a writer.
///
/// # Safety
///
/// Its caller passes its own arguments, with the same promises.
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

/// Frees a writer. One that was not ended is abandoned: a file that it created is removed, an old
/// one that it was to replace stays, and in one that was there before, what was written until now
/// stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_writer_free(writer: *mut Writer) {
    // SAFETY: promised by the caller.
    unsafe { border::free(writer) };
}

/// Replaces the content of the file at `to`, or creates the file. The content is durable when this
/// returns.
///
/// After a crash of the process or the kernel or a power loss, at any moment, the file has either
/// its old content or the new, and other processes see one or the other. The new file gets the old
/// one's permissions, owner and attributes; symbolic links are followed and kept. EBUSY: the file
/// is a mount point, as single files in containers are, and nothing can replace it.
///
/// Any thread may call it at any time.
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

/// Creates a new file at `to` with this content, complete and durable. An existing name is an
/// error, EEXIST, and its file keeps its content.
///
/// Any thread may call it at any time.
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

/// Copies the file `from` to `to`, which must not exist yet. The copy is durable when this returns,
/// and has its name only once it is whole. It shares the blocks of `from` where the file system
/// can. The number of bytes goes to `len`, which may be NULL.
///
/// Any thread may call it at any time.
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

/// The writes to a file that a power loss leaves whole or not done (RWF_ATOMIC, pwritev2(2)). Their
/// length is a power of two, and divides their offset.
#[repr(C)]
pub struct AtomicWrites {
    /// The shortest and the longest, in bytes.
    pub bytes_min: u32,
    pub bytes_max: u32,
    /// The longest that the device itself keeps whole, in bytes; 0 if none.
    pub device_bytes_max: u32,
    /// The most buffers of one write.
    pub segments_max: u32,
}

/// Finds the atomic writes to the file at `path`. EOPNOTSUPP: there are none, and the error's
/// message has the reason.
///
/// Any thread may call it at any time.
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
