//! Whole files by one call: saved and copied.

use crate::error::raise;
use crate::options::path;
use crate::work::{Work, work, work_with};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, BufferSlice};
use napi_derive::napi;
use std::path::Path;
use wrote::Error;

/// Saves a file; `how` is "durable", "unflushed" or "new".
#[napi]
pub fn write(to: BufferSlice<'_>, data: Buffer, how: String) -> AsyncTask<Work<()>> {
    let to = path(&to);
    work_with(vec![data], move |data| save(&to, &data[0], &how))
}

/// Saves a file on this thread.
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

/// Copies a file on this thread.
#[napi(catch_unwind)]
pub fn copy_sync(env: &Env, from: BufferSlice<'_>, to: BufferSlice<'_>) -> napi::Result<f64> {
    copied(&path(&from), &path(&to)).map_err(|error| raise(env, &error))
}

fn copied(from: &Path, to: &Path) -> Result<f64, Error> {
    Ok(wrote::copy(from, to)?.bytes as f64)
}
