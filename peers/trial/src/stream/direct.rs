//! A handwritten direct writer: three threads write aligned buffers.

use super::{PIECE_BYTES, durable};
use crate::Result;
use crate::data::Ring;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

const BUFFER_BYTES: usize = 2 << 20;
const THREADS: usize = 3;
/// Every device takes transfers that are multiples of this.
const ALIGN_BYTES: usize = 4096;

/// A buffer with an aligned part, and the bytes in use.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
}

impl Aligned {
    fn new() -> Aligned {
        let bytes = vec![0; BUFFER_BYTES + ALIGN_BYTES];
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES);
        Aligned { bytes, start, filled: 0 }
    }

    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start + self.filled..self.start + BUFFER_BYTES]
    }

    fn whole_blocks(&self) -> &[u8] {
        let len = self.filled.next_multiple_of(ALIGN_BYTES);
        &self.bytes[self.start..self.start + len]
    }
}

type Full = (u64, Aligned);

/// Writes pieces of `bytes` bytes in total to a new file.
pub(super) fn write(ring: &Ring, bytes: u64, path: &Path) -> Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(path)?;
    if bytes > 0 {
        fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    }
    let (full, filled) = channel::<Full>();
    let (empty, emptied) = channel::<Aligned>();
    // One more than the threads use, to be filled while they write.
    (0..=THREADS).try_for_each(|_| empty.send(Aligned::new()))?;
    let filled = Mutex::new(filled);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (file, filled, empty) = (&file, &filled, empty.clone());
                scope.spawn(move || write_full(file, filled, &empty))
            })
            .collect();
        drop(empty);
        let given = fill(ring, bytes, full, &emptied);
        for writer in writers {
            writer.join().map_err(|_| "a thread that writes panicked")??;
        }
        given
    })?;
    file.set_len(bytes)?;
    Ok(durable(file, path)?)
}

/// Copies the pieces into buffers, as a `write_all` would.
fn fill(ring: &Ring, bytes: u64, full: Sender<Full>, emptied: &Receiver<Aligned>) -> Result<()> {
    const GONE: &str = "every thread that writes has ended";
    let mut offset = 0;
    let mut buffer = emptied.recv().map_err(|_| GONE)?;
    for number in 0..bytes.div_ceil(PIECE_BYTES as u64) {
        let left = bytes - number * PIECE_BYTES as u64;
        let mut piece = &ring.piece(number, PIECE_BYTES)[..left.min(PIECE_BYTES as u64) as usize];
        while !piece.is_empty() {
            let room = buffer.room();
            let len = piece.len().min(room.len());
            room[..len].copy_from_slice(&piece[..len]);
            piece = &piece[len..];
            buffer.filled += len;
            if buffer.filled == BUFFER_BYTES {
                full.send((offset, buffer)).map_err(|_| GONE)?;
                offset += BUFFER_BYTES as u64;
                buffer = emptied.recv().map_err(|_| GONE)?;
            }
        }
    }
    full.send((offset, buffer)).map_err(|_| GONE)?;
    Ok(())
}

/// Writes full buffers until there are no more.
fn write_full(
    file: &File,
    filled: &Mutex<Receiver<Full>>,
    empty: &Sender<Aligned>,
) -> io::Result<()> {
    loop {
        let next = filled.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((offset, mut buffer)) = next else { return Ok(()) };
        file.write_all_at(buffer.whole_blocks(), offset)?;
        buffer.filled = 0;
        // The producer may have ended.
        let _ = empty.send(buffer);
    }
}
