//! One operation at a time, on the caller's own thread.

use super::backend::{Done, Request, Transfer};
use super::perform::perform;
use std::io;
use std::os::fd::RawFd;

/// Carries each request out when it is pushed.
#[derive(Default)]
pub(super) struct Psync {
    done: Vec<Done>,
}

impl Transfer for Psync {
    fn push(&mut self, request: Request, file: RawFd) {
        // SAFETY: the engine holds the request's buffer and file until the request is done, and
        // `perform` is over when it returns.
        self.done.push(unsafe { perform(&request, file) });
    }

    fn wait(&mut self, _min: usize, done: &mut Vec<Done>) -> io::Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}
