//! Transfers executed by another engine: many engines, each with its own files and buffers, on one
//! ring.

use super::Effective;
use super::backend::{Backend, Files, OpenedFile, holds_files};
use super::op::FileId;
use super::request::{Reply, Request};
use super::slots::Requests;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

/// One try of an operation, executed for another engine, which judges the result (W4).
pub(crate) struct CarriedRequest {
    pub(super) file: FileId,
    pub(super) request: Request,
}

impl CarriedRequest {
    /// Returns the number that its reply repeats.
    pub(crate) fn token(&self) -> u32 {
        self.request.token
    }
}

/// The result of a [`CarriedRequest`]: bytes moved, or a negative error number.
#[derive(Clone, Copy)]
pub(crate) struct CarriedReply {
    pub(crate) token: u32,
    pub(crate) result: i64,
}

/// The connection to the engine that executes requests. It uses their memory and files until the
/// reply; the requesting engine holds these until then (W5).
pub(crate) trait Carrier {
    /// Creates a file available for requests; it stays open until [`Carrier::release`].
    fn adopt(&mut self, file: RawFd, path: &Path) -> FileId;
    /// Ends the use of a file with nothing in flight.
    fn release(&mut self, file: FileId);
    fn push(&mut self, request: CarriedRequest);
    /// Submits the queue without waiting.
    fn submit(&mut self) -> io::Result<()>;
    /// Submits the queue, waits for `min` replies, and collects all that have arrived.
    fn wait(&mut self, min: usize, done: &mut Vec<CarriedReply>) -> io::Result<()>;
}

/// Passes every request to a [`Carrier`].
pub(super) struct Carried {
    carrier: Box<dyn Carrier>,
    /// The carrier's file IDs, by slot.
    adopted: Vec<Option<FileId>>,
    replies: Vec<CarriedReply>,
    files: Files,
}

impl Carried {
    pub(super) fn new(carrier: Box<dyn Carrier>) -> Carried {
        let (adopted, replies) = (Vec::new(), Vec::new());
        Carried { carrier, adopted, replies, files: Files::default() }
    }
}

impl Backend for Carried {
    holds_files!();

    fn opened(&mut self, file: &OpenedFile, _effective: &mut Effective) {
        let slot = file.slot as usize;
        self.adopted.resize(self.adopted.len().max(slot + 1), None);
        self.adopted[slot] = Some(self.carrier.adopt(file.file, file.path));
    }

    fn closing(&mut self, slot: u32) {
        if let Some(file) = self.adopted[slot as usize].take() {
            self.carrier.release(file);
        }
    }

    fn push(&mut self, requests: Requests) {
        for &request in requests {
            let file = self.adopted[request.slot as usize].expect("the engine has it open");
            self.carrier.push(CarriedRequest { file, request });
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        self.carrier.submit()
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        let waited = self.carrier.wait(min, &mut self.replies);
        let reply = |CarriedReply { token, result }| Reply { token, result };
        done.extend(self.replies.drain(..).map(reply));
        waited
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.adopted.drain(..).flatten().for_each(|file| self.carrier.release(file));
    }
}
