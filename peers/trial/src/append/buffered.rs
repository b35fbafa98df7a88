//! A program without a log, whose producers do not wait for their messages: they copy them into a
//! buffer of 1 MiB under a lock, and a thread writes full buffers through the page cache. There are
//! no checksums.

use super::Messages;
use super::crew::{self, Timing};
use crate::Result;
use crate::outcome::Outcome;
use crate::place::{Place, sync_folder};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

const BUFFER_BYTES: usize = 1 << 20;
/// The number of buffers: one is being filled, one is being written, and two wait in between.
const BUFFERS: usize = 4;

/// The buffer that producers fill, and the channels for full and for written buffers.
struct Filling {
    buffer: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    written: Receiver<Vec<u8>>,
}

impl Filling {
    fn append(&mut self, message: &[u8]) -> Result<()> {
        if self.buffer.len() + message.len() > BUFFER_BYTES {
            let next = self.written.recv().map_err(|_| "the writer failed")?;
            self.full.send(std::mem::replace(&mut self.buffer, next))?;
        }
        self.buffer.extend_from_slice(message);
        Ok(())
    }
}

/// Appends to a growing file, which is flushed at the end.
pub fn buffered(messages: &Messages, path: &Path) -> Result<Outcome> {
    let place = Place::take(path)?;
    let file = File::options().append(true).create_new(true).open(path)?;
    sync_folder(path)?;
    let ((full, to_write), (back, written)) = (mpsc::sync_channel(BUFFERS), mpsc::channel());
    for _ in 1..BUFFERS {
        back.send(Vec::with_capacity(BUFFER_BYTES))?;
    }
    let filling = Filling { buffer: Vec::with_capacity(BUFFER_BYTES), full, written };
    let filling = Mutex::new(Some(filling));
    let appended = thread::scope(|scope| {
        let writer = scope.spawn(|| write(&file, to_write, back));
        let step = |message: &[u8]| {
            let mut filling = filling.lock().unwrap_or_else(PoisonError::into_inner);
            filling.as_mut().ok_or("it has ended")?.append(message)
        };
        let steps = vec![step; messages.work.producers as usize];
        let appended = crew::append(messages, steps, Timing::None, || {
            let last = filling.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Filling { buffer, full, .. } = last.ok_or("it has ended")?;
            full.send(buffer)?;
            drop(full);
            writer.join().map_err(|_| "the writer panicked")??;
            Ok(file.sync_data()?)
        });
        // If a producer failed, this closes the thread's channel, so that the thread exits.
        filling.lock().unwrap_or_else(PoisonError::into_inner).take();
        appended
    })?;
    place.check_length(appended.bytes)?;
    Ok(appended)
}

/// Writes full buffers until all producers have finished.
fn write(mut file: &File, full: Receiver<Vec<u8>>, back: mpsc::Sender<Vec<u8>>) -> Result<()> {
    for mut buffer in full {
        file.write_all(&buffer)?;
        buffer.clear();
        // An error is ignored: at the end, no producer is left to receive the buffer.
        let _ = back.send(buffer);
    }
    Ok(())
}
