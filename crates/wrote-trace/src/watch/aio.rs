//! The contexts of kernel AIO. For each, the kernel maps a ring into the process.

use super::memory;
use super::ring::{Completion, long, word};
use libc::pid_t;

/// From `fs/aio.c`: the size and the magic number of the header of `struct aio_ring`, and the size
/// of `struct io_event`.
const HEADER_BYTES: u64 = 32;
const MAGIC: u32 = 0xa10a_10a1;
const EVENT_BYTES: u64 = 32;
/// A context, identified by the address of its ring.
#[derive(Debug)]
pub struct Context {
    pub address: u64,
    /// The number of events for which the ring has room.
    count: u32,
    /// The index of the next event to be read.
    seen: u32,
}

impl Context {
    /// Returns the context at an address in a process; `None` if it can't be read or has another
    /// layout.
    pub fn open(process: pid_t, address: u64) -> Option<Context> {
        Context::of(address, &memory::read(process, address, HEADER_BYTES as usize)?)
    }

    /// Returns the context with this ring header; `None` if the kernel's rings have another layout.
    fn of(address: u64, header: &[u8]) -> Option<Context> {
        let is_known = (word(header, 16), word(header, 24)) == (MAGIC, 0)
            && u64::from(word(header, 28)) == HEADER_BYTES;
        let (count, seen) = (word(header, 4), word(header, 12));
        (is_known && seen < count).then_some(Context { address, count, seen })
    }

    /// Adds the new events to `to`; returns `false` if they can't be read.
    pub fn complete(&mut self, process: pid_t, to: &mut impl Extend<Completion>) -> bool {
        self.complete_by(to, |address, count| memory::read(process, address, count)).is_some()
    }

    fn complete_by(
        &mut self,
        to: &mut impl Extend<Completion>,
        read: impl Fn(u64, usize) -> Option<Vec<u8>>,
    ) -> Option<()> {
        let tail = word(&read(self.address, HEADER_BYTES as usize)?, 12);
        if tail >= self.count {
            return None;
        }
        while self.seen != tail {
            let end = if tail > self.seen { tail } else { self.count };
            let from = self.address + HEADER_BYTES + u64::from(self.seen) * EVENT_BYTES;
            let events = read(from, (u64::from(end - self.seen) * EVENT_BYTES) as usize)?;
            to.extend(events.chunks_exact(EVENT_BYTES as usize).map(|event| Completion {
                key: long(event, 8),
                result: long(event, 16) as i64,
                is_partial: false,
            }));
            self.seen = end % self.count;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_once_and_around_the_end_of_the_ring() {
        const COUNT: u32 = 5;
        let mut memory = vec![0; (HEADER_BYTES + EVENT_BYTES * u64::from(COUNT)) as usize];
        let put = |memory: &mut [u8], at: usize, value: u32| {
            memory[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        };
        for (at, value) in [(4, COUNT), (12, 3), (16, MAGIC), (28, HEADER_BYTES as u32)] {
            put(&mut memory, at, value);
        }
        for place in 0..COUNT as usize {
            let at = HEADER_BYTES as usize + place * EVENT_BYTES as usize;
            put(&mut memory, at + 8, 100 + place as u32);
            memory[at + 16..at + 24].copy_from_slice(&(-(place as i64)).to_ne_bytes());
        }
        let mut context = Context::of(4096, &memory[..32]).unwrap();
        let mut read = |tail: u32| {
            put(&mut memory, 12, tail);
            let mut all = Vec::new();
            let part = |at: u64, count: usize| {
                Some(memory.get(at as usize - 4096..)?.get(..count)?.to_vec())
            };
            context.complete_by(&mut all, part)?;
            Some(all.into_iter().map(|of| (of.key, of.result)).collect::<Vec<_>>())
        };
        assert_eq!(read(3), Some(vec![]));
        assert_eq!(read(1), Some(vec![(103, -3), (104, -4), (100, 0)]));
        assert_eq!(read(2), Some(vec![(101, -1)]));
        assert_eq!(read(7), None, "no place of the ring");
        memory[16] = 0;
        assert!(Context::of(4096, &memory[..32]).is_none());
    }
}
