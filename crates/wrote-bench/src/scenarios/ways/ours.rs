//! The library's own ways: `wrote::Writer` and `wrote::copy`.

use super::write::Task;
use std::io::Write;
use std::ops::ControlFlow;
use wrote::{CopyOptions, Effective, Ioengine, Method, Reflink, Writer};
use wrote_result::Error;
use wrote_result::document::Settings;

/// The settings in effect while `Writer` or `copy` ran.
pub(crate) struct Done {
    pub effective: Effective,
    /// Whether the page cache was bypassed.
    pub direct: bool,
}

impl Done {
    /// Tells what was in effect, in the words of the result.
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

/// Everything through a `Writer`, in pieces of so many bytes; then durable.
pub(super) fn writer(task: &Task, bytes: u64) -> Result<Done, Error> {
    let mut writer = Writer::create(task.output)?;
    for piece in task.pieces(bytes) {
        task.stop.check()?;
        writer.write_all(piece).map_err(|error| task.failed("write", &error))?;
    }
    let written = writer.finish()?;
    Ok(Done { effective: written.effective, direct: written.direct })
}

/// A durable copy of the source. Blocks are never shared: that would move no byte.
pub(super) fn copy(task: &Task) -> Result<Done, Error> {
    let options = CopyOptions { reflink: Reflink::Never, ..CopyOptions::default() };
    let stopped = || task.stop.is_requested();
    let copied = wrote::copy(task.input, task.output, &options, &mut |_| {
        if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let copied = copied.map_err(|error| match stopped() {
        true => Error::Interrupted,
        false => error.into(),
    })?;
    let direct = copied.method == Method::Direct;
    Ok(Done { effective: copied.effective, direct })
}
