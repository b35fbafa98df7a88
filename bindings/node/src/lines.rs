//! `Lines`: a plain line file, with a promise for each line. It is a separate file because every
//! class of the package has one.

use crate::log::{length, path, policy};
use crate::{Work, raise, work};
use napi::bindgen_prelude::{AsyncTask, BufferSlice};
use napi::{Either, Env};
use napi_derive::napi;
use std::sync::Arc;
use wrote::LinesOptions as Builder;
use wrote_bindings::Options;

/// An open line file.
#[napi]
pub struct Lines(Arc<wrote::Lines>);

/// Options of a line file.
#[napi(object, object_to_js = false)]
pub struct LinesOptions {
    /// The policy, which decides what a line's promise means.
    pub sync: Option<Either<String, f64>>,
    /// The maximum number of bytes that are collected while others are written.
    pub buffer_bytes: Option<f64>,
    /// The permissions of a new file.
    pub mode: Option<u32>,
    /// Whether opening waits until another writer has closed the file.
    pub waits: Option<bool>,
}

/// Opens a line file.
#[napi]
pub fn open_lines(
    file: BufferSlice<'_>,
    options: LinesOptions,
) -> napi::Result<AsyncTask<Work<Lines>>> {
    let buffer_bytes = length("bufferBytes", options.buffer_bytes)?;
    let how = wrote::Lines::options()
        .waits(options.waits.unwrap_or(false))
        .set(Builder::sync, policy(options.sync)?)
        .set(Builder::buffer_bytes, buffer_bytes.map(|bytes| bytes as usize))
        .set(Builder::mode, options.mode);
    let file = path(&file);
    Ok(work(move || how.open(file).map(|lines| Lines(Arc::new(lines)))))
}

#[napi]
impl Lines {
    /// Appends a line now, and waits on another thread until it is safe. Lines that are appended
    /// during the wait share its flush.
    #[napi(catch_unwind)]
    pub fn append(&self, env: &Env, line: BufferSlice<'_>) -> napi::Result<AsyncTask<Work<()>>> {
        let ticket = self.0.append(&line).map_err(|error| raise(env, &error))?.into_owned();
        Ok(work(move || ticket.wait()))
    }

    /// Makes every line appended so far durable.
    #[napi]
    pub fn flush(&self) -> AsyncTask<Work<()>> {
        let lines = Arc::clone(&self.0);
        work(move || lines.flush())
    }

    /// Reopens the path.
    #[napi]
    pub fn reopen(&self) -> AsyncTask<Work<()>> {
        let lines = Arc::clone(&self.0);
        work(move || lines.reopen())
    }

    /// Makes all lines durable, and closes the file.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let lines = Arc::clone(&self.0);
        work(move || lines.close())
    }
}
