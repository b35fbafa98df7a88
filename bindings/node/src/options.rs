//! Options as JavaScript passes them.

use crate::error::invalid;
use napi::Either;
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use wrote::SyncPolicy;

/// Returns the path of these bytes.
pub fn path(bytes: &BufferSlice<'_>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Returns a size, sequence or count.
pub fn size(name: &str, number: f64) -> napi::Result<u64> {
    let size = number as u64;
    match size as f64 == number {
        true => Ok(size),
        false => Err(invalid(format!("{name}={number}: not a whole number"))),
    }
}

/// Returns a time that is passed in milliseconds.
pub fn time(name: &str, milliseconds: f64) -> napi::Result<Duration> {
    wrote_bindings::interval(name, milliseconds / 1e3).map_err(invalid)
}

/// Returns a policy: a word, or milliseconds.
pub fn policy(sync: Option<Either<String, f64>>) -> napi::Result<Option<SyncPolicy>> {
    Ok(match sync {
        Some(Either::A(word)) => Some(wrote_bindings::sync(&word).map_err(invalid)?),
        Some(Either::B(milliseconds)) => Some(SyncPolicy::Interval(time("sync", milliseconds)?)),
        None => None,
    })
}

/// Options of a writer.
#[napi(object, object_to_js = false)]
pub struct WriterOptions {
    /// The permissions of a new file.
    pub mode: Option<u32>,
    /// Whether writes are durable by themselves, and how soon.
    pub sync: Option<Either<String, f64>>,
    /// The expected length in bytes.
    pub size_hint: Option<f64>,
    /// Whether an existing name is an error.
    pub exclusive: Option<bool>,
    /// Whether the page cache may be passed by.
    pub direct: Option<bool>,
}

impl WriterOptions {
    /// Returns the library's options for `purpose`, and the policy among them.
    pub fn read(self, purpose: &str) -> napi::Result<(wrote::WriterOptions, SyncPolicy)> {
        let sync = policy(self.sync)?.unwrap_or_default();
        let mut options = wrote::Writer::options()
            .sync(sync)
            .create_new(self.exclusive.unwrap_or(false))
            .direct(self.direct.unwrap_or(true))
            .replace(purpose == "replace")
            .append(purpose == "append")
            .abandon_on_drop(true);
        if let Some(bytes) = self.size_hint {
            options = options.size_hint(size("sizeHint", bytes)?);
        }
        if let Some(mode) = self.mode {
            options = options.mode(mode);
        }
        Ok((options, sync))
    }
}

/// Options of a log.
#[napi(object, object_to_js = false)]
pub struct LogOptions {
    /// The promise for a record: its policy.
    pub sync: Option<Either<String, f64>>,
    /// "framed" or "lines".
    pub format: Option<String>,
    /// The length of a segment.
    pub segment_bytes: Option<f64>,
    /// The length of all segments, beyond which the oldest go.
    pub retain_bytes: Option<f64>,
    /// The age in milliseconds at which segments go.
    pub retain_age: Option<f64>,
    /// The number of buffers.
    pub buffers: Option<u32>,
    /// The length of each.
    pub buffer_bytes: Option<f64>,
    /// The permissions of new files.
    pub mode: Option<u32>,
}

impl LogOptions {
    /// Returns the library's options.
    pub fn read(self) -> napi::Result<wrote::LogOptions> {
        let mut options = wrote::Log::options();
        if let Some(sync) = policy(self.sync)? {
            options = options.sync(sync);
        }
        if let Some(format) = self.format {
            options = options.format(wrote_bindings::format(&format).map_err(invalid)?);
        }
        if let Some(bytes) = self.segment_bytes {
            options = options.segment_bytes(size("segmentBytes", bytes)?);
        }
        if let Some(bytes) = self.retain_bytes {
            options = options.retain_bytes(size("retainBytes", bytes)?);
        }
        if let Some(age) = self.retain_age {
            options = options.retain_age(time("retainAge", age)?);
        }
        if let Some(buffers) = self.buffers {
            options = options.buffers(buffers);
        }
        if let Some(bytes) = self.buffer_bytes {
            options = options.buffer_bytes(size("bufferBytes", bytes)? as usize);
        }
        if let Some(mode) = self.mode {
            options = options.mode(mode);
        }
        Ok(options)
    }
}
