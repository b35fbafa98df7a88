//! `RawWriter` and `RawReader`: the library's writer and reader for files of Python; and whole
//! files, saved and copied by one call.

use crate::border::{FsPath, policy, raise, waiting, with_bytes, with_room, with_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyString;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wrote::{Error, Method, WriterOptions};
use wrote_bindings::{Collected, Options, from_io};

/// The size of a direct write of text, in bytes. Python produces at most 0.6 GB/s of text. The
/// library's larger buffers, 8 MiB in total, suit faster programs: allocating that memory took a
/// third of the time for a file of 19 MB when the host of a virtual machine had to provide it.
const TEXT_BYTES: usize = 1 << 20;

/// The result of a writer.
#[pyclass(frozen, get_all, module = "wrote")]
pub struct Written {
    /// The file's length, in bytes.
    bytes: u64,
    /// The time from opening the file until it was finished, in seconds.
    elapsed: f64,
    /// Whether the file was written bypassing the page cache.
    direct: bool,
    /// Whether the file and its name are on stable storage.
    durable: bool,
}

#[pymethods]
impl Written {
    fn __repr__(&self) -> String {
        let Written { bytes, elapsed, direct, durable } = self;
        let word = |yes: &bool| if *yes { "True" } else { "False" };
        let (direct, durable) = (word(direct), word(durable));
        format!("Written(bytes={bytes}, elapsed={elapsed}, direct={direct}, durable={durable})")
    }
}

/// The library's writer. `wrote.Writer` and `wrote.TextWriter` are files based on it.
#[pyclass(frozen, module = "wrote._wrote")]
pub struct RawWriter {
    writer: Mutex<Collected>,
    /// Whether this is a copy in the child of a fork.
    is_forked: AtomicBool,
    /// Whether the program has dropped the file without closing it.
    is_forgotten: AtomicBool,
}

impl RawWriter {
    /// Returns the writer. Fails if the file is closed, or if this process is the child of a fork.
    fn open(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Collected>> {
        if self.is_forked.load(Ordering::Relaxed) {
            return Err(raise(py, &Error::Forked));
        }
        let writer = self.writer.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        match writer.is_open() {
            true => Ok(writer),
            false if self.is_forgotten.load(Ordering::Relaxed) => {
                let text =
                    "the file was abandoned, because nothing refers to it: keep it by `with`";
                Err(PyValueError::new_err(text))
            }
            false => Err(PyValueError::new_err("I/O operation on closed file.")),
        }
    }

    fn put(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let mut writer = self.open(py)?;
        if writer.collect(bytes) {
            return Ok(());
        }
        let writer = &mut *writer;
        waiting(py, || writer.put(bytes))
    }

    /// Calls `act` with the library's writer, after all collected bytes have been passed to it.
    fn on_writer<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut wrote::Writer) -> Result<T, Error> + Send,
    ) -> PyResult<Option<T>> {
        let mut writer = self.open(py)?;
        let writer = &mut *writer;
        waiting(py, || writer.on_writer(act))
    }
}

#[pymethods]
impl RawWriter {
    #[new]
    #[pyo3(signature = (path, purpose, *, permissions, sync, size_hint, create_new, direct, text))]
    #[expect(clippy::too_many_arguments, reason = "the package alone calls it")]
    fn new(
        py: Python<'_>,
        path: FsPath,
        purpose: &str,
        permissions: Option<u32>,
        sync: Option<&Bound<'_, PyAny>>,
        size_hint: u64,
        create_new: bool,
        direct: bool,
        text: bool,
    ) -> PyResult<RawWriter> {
        let sync = sync.map(policy).transpose()?.unwrap_or_default();
        let options = wrote::Writer::options()
            .sync(sync)
            .size_hint(size_hint)
            .create_new(create_new)
            .direct(direct)
            .replace(purpose == "replace")
            .append(purpose == "append")
            .abandon_on_drop(true)
            .set(WriterOptions::mode, permissions)
            // Writes through the page cache are shorter than this anyway.
            .set(WriterOptions::bs, (text && direct).then_some(TEXT_BYTES));
        let writer = Collected::new(waiting(py, || options.open(path.0))?, sync);
        let (is_forked, is_forgotten) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(RawWriter { writer: Mutex::new(writer), is_forked, is_forgotten })
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        with_bytes(data, |bytes| {
            self.put(py, bytes)?;
            Ok(bytes.len())
        })
    }

    /// Writes text as UTF-8, and returns the number of characters.
    fn write_text(&self, py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<usize> {
        self.put(py, text.to_str()?.as_bytes())?;
        text.len()
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.on_writer(py, |writer| writer.flush().map_err(from_io)).map(drop)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.on_writer(py, wrote::Writer::sync_data).map(drop)
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.open(py)?.position().map_err(|error| raise(py, &error))
    }

    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: u32) -> PyResult<u64> {
        let to = match whence {
            0 => SeekFrom::Start(
                u64::try_from(offset)
                    .map_err(|_| PyValueError::new_err(format!("negative seek value {offset}")))?,
            ),
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            _ => return Err(PyValueError::new_err(format!("invalid whence ({whence})"))),
        };
        let place = self.on_writer(py, |writer| writer.seek(to).map_err(from_io))?;
        Ok(place.unwrap_or_default())
    }

    /// Finishes the file. After an error, a file that was to be replaced is unchanged.
    fn finish(&self, py: Python<'_>, durable: bool) -> PyResult<Option<Written>> {
        let mut writer = self.open(py)?;
        let writer = &mut *writer;
        let written = waiting(py, || writer.finish(durable))?;
        Ok(written.map(|written| Written {
            bytes: written.bytes,
            elapsed: written.elapsed.as_secs_f64(),
            direct: written.method == Method::Direct,
            durable: written.durable,
        }))
    }

    /// Abandons the file, without writing the rest.
    fn abandon(&self, py: Python<'_>) {
        if self.is_forked.load(Ordering::Relaxed) {
            return;
        }
        let mut writer = self.writer.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let writer = &mut *writer;
        py.detach(|| writer.abandon());
    }

    /// Makes later calls fail with an error that explains the reason: in
    /// `wrote.replace(path).write(text)`, the program keeps the method but not the file.
    fn forget(&self) {
        self.is_forgotten.store(true, Ordering::Relaxed);
    }

    /// Makes every later call fail, in the child of a fork. It takes no lock, because a thread of
    /// the parent may have held the lock.
    fn fork(&self) {
        self.is_forked.store(true, Ordering::Relaxed);
    }
}

/// The library's reader. `wrote.reader()` creates a file based on it.
#[pyclass(frozen, module = "wrote._wrote")]
pub struct RawReader(Mutex<wrote::Reader>);

#[pymethods]
impl RawReader {
    #[new]
    fn new(py: Python<'_>, path: FsPath) -> PyResult<RawReader> {
        waiting(py, || wrote::Reader::open(path.0)).map(|reader| RawReader(Mutex::new(reader)))
    }

    fn readinto(&self, py: Python<'_>, room: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut reader = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        with_room(room, |room| waiting(py, || reader.read(room).map_err(from_io)))
    }

    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: u32) -> PyResult<u64> {
        let mut reader = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let to = match (whence, u64::try_from(offset)) {
            (0, Ok(offset)) => SeekFrom::Start(offset),
            (1, _) => SeekFrom::Current(offset),
            (2, _) => SeekFrom::End(offset),
            _ => return Err(PyValueError::new_err("invalid place or whence")),
        };
        reader.seek(to).map_err(|error| raise(py, &from_io(error)))
    }
}

/// Replaces the content of the file at `path`, or creates the file. A `str` is written as UTF-8.
///
/// After a crash of the process or the kernel, or a power loss, at any moment, the file has either
/// its old content or the new, and other processes see one or the other. When this returns, the new
/// content survives a power loss; with `durable=False`, it survives only a crash of the process.
///
/// The new file gets the permissions, owner and attributes of the old one; symbolic links are
/// followed and kept.
#[pyfunction]
#[pyo3(signature = (path, data, *, durable=true))]
pub fn write(py: Python<'_>, path: FsPath, data: &Bound<'_, PyAny>, durable: bool) -> PyResult<()> {
    with_text(data, |bytes| {
        waiting(py, || match durable {
            true => wrote::write(path.0, bytes),
            false => wrote::write_unflushed(path.0, bytes),
        })
    })
}

/// Creates a new file at `path` with this content, complete and durable. If the name exists, raises
/// `FileExistsError` and leaves that file unchanged.
#[pyfunction]
pub fn write_new(py: Python<'_>, path: FsPath, data: &Bound<'_, PyAny>) -> PyResult<()> {
    with_text(data, |bytes| waiting(py, || wrote::write_new(path.0, bytes)))
}

/// Copies the file `source` to `target`, which must not exist yet, and returns the number of bytes.
/// The copy gets its name only once it is complete, and is durable when this returns.
#[pyfunction]
pub fn copy(py: Python<'_>, source: FsPath, target: FsPath) -> PyResult<u64> {
    waiting(py, || wrote::copy(source.0, target.0)).map(|copied| copied.bytes)
}

/// The limits of atomic writes to a file (`RWF_ATOMIC`): after a power loss, each is either
/// complete or absent. The length of an atomic write is a power of two, and divides its offset.
#[pyclass(frozen, get_all, module = "wrote")]
pub struct AtomicWrites {
    /// The minimum length, in bytes.
    bytes_min: u32,
    /// The maximum length, in bytes.
    bytes_max: u32,
    /// The maximum length that the device itself writes atomically, in bytes; 0 if it can't.
    device_bytes_max: u32,
    /// The maximum number of buffers in one write.
    segments_max: u32,
}

/// Returns the limits of atomic writes to the file at `path`. If there are none, raises `Refused`
/// with `EOPNOTSUPP` and the reason.
#[pyfunction]
pub fn atomic_writes(py: Python<'_>, path: FsPath) -> PyResult<AtomicWrites> {
    let found = waiting(py, || wrote::device::AtomicWrites::of(path.0))?;
    let wrote::device::AtomicWrites { bytes_min, bytes_max, .. } = found;
    let wrote::device::AtomicWrites { device_bytes_max, segments_max, .. } = found;
    Ok(AtomicWrites { bytes_min, bytes_max, device_bytes_max, segments_max })
}
