//! Files: `Writer`, the library's writer for a stream of Node.js, and functions that save or copy
//! an entire file in one call.

use crate::log::{WriterOptions, path};
use crate::{Work, raise, work, work_with};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, BufferSlice};
use napi_derive::napi;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wrote::{Error, Method};
use wrote_bindings::{Collected, from_io};

/// A writer. Its stream makes one call at a time, and may abandon the file during a call.
#[napi]
pub struct Writer(Arc<Mutex<Collected>>);

/// The result of a writer.
#[napi(object, object_from_js = false)]
pub struct Written {
    /// The file's length, in bytes.
    pub bytes: f64,
    /// The time from opening the file until it was finished, in milliseconds.
    pub elapsed: f64,
    /// Whether the file was written bypassing the page cache.
    pub direct: bool,
    /// Whether the file and its name are on stable storage.
    pub durable: bool,
}

/// Opens a writer; `purpose` is "replace", "create" or "append".
#[napi]
pub fn open_writer(
    to: BufferSlice<'_>,
    purpose: String,
    options: WriterOptions,
) -> napi::Result<AsyncTask<Work<Writer>>> {
    let (to, (options, sync)) = (path(&to), options.read(&purpose)?);
    Ok(work(move || {
        let writer = Collected::new(options.open(to)?, sync);
        Ok(Writer(Arc::new(Mutex::new(writer))))
    }))
}

#[napi]
impl Writer {
    /// Accepts the bytes if that is possible without waiting, and returns whether it did.
    #[napi(catch_unwind)]
    pub fn collect(&self, data: BufferSlice<'_>) -> bool {
        self.0.try_lock().is_ok_and(|mut writer| writer.collect(&data))
    }

    /// Writes the pieces in order.
    #[napi]
    pub fn write(&self, pieces: Vec<Buffer>) -> AsyncTask<Work<()>> {
        let writer = Arc::clone(&self.0);
        work_with(pieces, move |pieces| {
            let mut writer = lock(&writer);
            pieces.iter().try_for_each(|piece| writer.put(piece))
        })
    }

    /// Writes all bytes to the file.
    #[napi]
    pub fn flush(&self) -> AsyncTask<Work<()>> {
        self.on_writer(|writer| writer.flush().map_err(from_io))
    }

    /// Makes earlier writes durable.
    #[napi]
    pub fn sync(&self) -> AsyncTask<Work<()>> {
        self.on_writer(wrote::Writer::sync_data)
    }

    /// Finishes the file. After an error, a file that was to be replaced is unchanged.
    #[napi]
    pub fn finish(&self, durable: bool) -> AsyncTask<Work<Option<Written>>> {
        let writer = Arc::clone(&self.0);
        work(move || {
            let written = lock(&writer).finish(durable)?;
            Ok(written.map(|written| Written {
                bytes: written.bytes as f64,
                elapsed: written.elapsed.as_secs_f64() * 1e3,
                direct: written.method == Method::Direct,
                durable: written.durable,
            }))
        })
    }

    /// Ends without writing the rest.
    #[napi]
    pub fn abandon(&self) -> AsyncTask<Work<()>> {
        let writer = Arc::clone(&self.0);
        work(move || {
            lock(&writer).abandon();
            Ok(())
        })
    }

    /// Abandons the file, without writing the rest, on the calling thread.
    #[napi(catch_unwind)]
    pub fn abandon_sync(&self) {
        lock(&self.0).abandon();
    }

    fn on_writer(
        &self,
        act: impl FnOnce(&mut wrote::Writer) -> Result<(), Error> + Send + 'static,
    ) -> AsyncTask<Work<()>> {
        let writer = Arc::clone(&self.0);
        work(move || lock(&writer).on_writer(act).map(drop))
    }
}

fn lock(writer: &Mutex<Collected>) -> MutexGuard<'_, Collected> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Saves a file; `how` is "durable", "unflushed" or "new".
#[napi]
pub fn write(to: BufferSlice<'_>, data: Buffer, how: String) -> AsyncTask<Work<()>> {
    let to = path(&to);
    work_with(vec![data], move |data| save(&to, &data[0], &how))
}

/// Saves a file on the calling thread.
#[napi(catch_unwind)]
pub fn write_sync(
    env: &Env,
    to: BufferSlice<'_>,
    data: BufferSlice<'_>,
    how: String,
) -> napi::Result<()> {
    save(&path(&to), &data, &how).map_err(|error| raise(env, &error))
}

fn save(to: &Path, bytes: &[u8], how: &str) -> Result<(), Error> {
    match how {
        "new" => wrote::write_new(to, bytes),
        "unflushed" => wrote::write_unflushed(to, bytes),
        _ => wrote::write(to, bytes),
    }
}

/// Copies a file to a new name, and returns its length.
#[napi]
pub fn copy(from: BufferSlice<'_>, to: BufferSlice<'_>) -> AsyncTask<Work<f64>> {
    let (from, to) = (path(&from), path(&to));
    work(move || copied(&from, &to))
}

/// Copies a file on the calling thread.
#[napi(catch_unwind)]
pub fn copy_sync(env: &Env, from: BufferSlice<'_>, to: BufferSlice<'_>) -> napi::Result<f64> {
    copied(&path(&from), &path(&to)).map_err(|error| raise(env, &error))
}

fn copied(from: &Path, to: &Path) -> Result<f64, Error> {
    Ok(wrote::copy(from, to)?.bytes as f64)
}

/// The limits of atomic writes to a file, in bytes.
#[napi(object)]
pub struct AtomicWrites {
    pub bytes_min: u32,
    pub bytes_max: u32,
    pub device_bytes_max: u32,
    pub segments_max: u32,
}

/// Returns the limits of atomic writes to a file, on the calling thread.
#[napi(catch_unwind)]
pub fn atomic_writes(env: &Env, of: BufferSlice<'_>) -> napi::Result<AtomicWrites> {
    let found = wrote::device::AtomicWrites::of(path(&of)).map_err(|error| raise(env, &error))?;
    let wrote::device::AtomicWrites { bytes_min, bytes_max, .. } = found;
    let wrote::device::AtomicWrites { device_bytes_max, segments_max, .. } = found;
    Ok(AtomicWrites { bytes_min, bytes_max, device_bytes_max, segments_max })
}
