//! Common methods of writing a file in Rust.

use super::Kind;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use wrote::{CopyOptions, Effective, Ioengine, Method, Writer};
use wrote_result::document::Settings;
use wrote_result::{Error, Stop};

const CONSTANT: u8 = 0xAB;

pub(super) struct Task<'a> {
    pub input: &'a Path,
    /// The bytes of the source, if they were read before the clock started.
    pub bytes: &'a [u8],
    pub size_bytes: u64,
    pub output: &'a Path,
    pub stop: &'a Stop,
}

impl Task<'_> {
    pub(super) fn pieces(&self, bytes: u64) -> std::slice::Chunks<'_, u8> {
        self.bytes.chunks(bytes as usize)
    }

    /// Returns a function that converts the error of a call on the output.
    fn failed<E: Display>(&self, what: &str) -> impl Fn(E) -> Error + Copy {
        Error::at(self.output, what)
    }

    fn create(&self) -> Result<File, Error> {
        // Every method creates its file as `File::create` does. W7: an existing file belongs to
        // another program.
        File::create_new(self.output).map_err(self.failed("create"))
    }

    /// Flushes the file and its folder. Without the folder, a power loss may remove the name of a
    /// new file.
    fn sync(&self, file: &File) -> Result<(), Error> {
        file.sync_all().map_err(self.failed("fsync"))?;
        self.sync_name()
    }

    pub(super) fn sync_name(&self) -> Result<(), Error> {
        let folder = self.output.parent().expect("a file of the scratch folder");
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(self.failed("fsync of its folder"))
    }
}

/// Writes the file by one of the standard library's methods, and flushes it unless the method is
/// `fs::write`. Fails if a stop is requested between two pieces.
pub(super) fn write(kind: Kind, task: &Task) -> Result<(), Error> {
    let result = match kind {
        Kind::FsWrite => {
            return std::fs::write(task.output, task.bytes).map_err(task.failed("write"));
        }
        Kind::WriteAll => pieces(task, task.create()?, task.size_bytes.max(1)),
        Kind::BufWriter(bytes) => {
            pieces(task, BufWriter::new(task.create()?), bytes).and_then(|writer| {
                writer.into_inner().map_err(|error| task.failed("write")(error.error()))
            })
        }
        Kind::Chunks(bytes) => pieces(task, task.create()?, bytes),
        Kind::Stream(bytes, _) => stream(task, bytes),
        Kind::Constant(bytes) => constant(task, bytes),
        Kind::Dd { .. } | Kind::Writer(_) | Kind::CopyFile(_) => unreachable!("not of this room"),
    };
    task.sync(&result?)
}

fn pieces<W: Write>(task: &Task, mut writer: W, bytes: u64) -> Result<W, Error> {
    for piece in task.pieces(bytes) {
        task.stop.check()?;
        writer.write_all(piece).map_err(task.failed("write"))?;
    }
    Ok(writer)
}

fn stream(task: &Task, bytes: u64) -> Result<File, Error> {
    let read = Error::at(task.input, "read");
    let mut input = File::open(task.input).map_err(read)?;
    let mut output = task.create()?;
    let mut buffer = vec![0; bytes as usize];
    loop {
        task.stop.check()?;
        let count = input.read(&mut buffer).map_err(read)?;
        if count == 0 {
            return Ok(output);
        }
        output.write_all(&buffer[..count]).map_err(task.failed("write"))?;
    }
}

fn constant(task: &Task, bytes: u64) -> Result<File, Error> {
    let block = vec![CONSTANT; bytes as usize];
    let mut output = task.create()?;
    let mut left_bytes = task.size_bytes;
    while left_bytes > 0 {
        task.stop.check()?;
        let count = left_bytes.min(bytes);
        output.write_all(&block[..count as usize]).map_err(task.failed("write"))?;
        left_bytes -= count;
    }
    Ok(output)
}

/// The settings in effect while `Writer` or `copy` ran.
pub(crate) struct Done {
    pub effective: Effective,
    /// Whether the page cache was bypassed.
    pub direct: bool,
}

impl Done {
    /// Records the settings in effect, in the terms of the result.
    pub(crate) fn tell(&self, effective: &mut Settings) {
        let done = &self.effective;
        let ring = |is: bool| (done.ioengine == Ioengine::IoUring).then_some(is);
        effective.ioengine = done.ioengine.into();
        effective.iodepth = done.iodepth_reached.max(1);
        effective.direct = self.direct;
        effective.registered_buffers = ring(done.registered_buffers);
        effective.registered_files = ring(done.registered_files);
        effective.huge_pages = Some(done.huge_pages);
        let flags = done.ring_flags.iter().map(|flag| (*flag).to_owned());
        effective.ring_flags = ring(true).map(|_| flags.collect());
    }
}

/// Writes all bytes through a `Writer`, in pieces of `bytes`, and makes the file durable.
pub(super) fn writer(task: &Task, bytes: u64) -> Result<Done, Error> {
    let mut writer = Writer::create(task.output)?;
    for piece in task.pieces(bytes) {
        task.stop.check()?;
        writer.write_all(piece).map_err(task.failed("write"))?;
    }
    let written = writer.finish()?;
    let direct = written.method == Method::Direct;
    Ok(Done { effective: written.effective, direct })
}

/// Copies the source durably. Reflinks are off, because they would move no data.
pub(super) fn copy(task: &Task) -> Result<Done, Error> {
    let stopped = || task.stop.is_requested();
    let mut watch =
        |_, _| if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = CopyOptions::new().reflink(Some(false)).watch(&mut watch);
    let copied = options.copy(task.input, task.output);
    let copied = copied.map_err(|error| match stopped() {
        true => Error::Interrupted,
        false => error.into(),
    })?;
    let direct = copied.method == Method::Direct;
    Ok(Done { effective: copied.effective, direct })
}
