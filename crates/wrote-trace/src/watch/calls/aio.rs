//! Kernel AIO: the contexts of a process, and their operations from `io_submit(2)` until they are
//! in the ring that the kernel maps into the process.

use super::queue::{Operation, Work};
use super::queued::Kernel;
use super::{AIO_UNSEEN, At, Begin, Reader};
use crate::watch::maps::Tasks;
use crate::watch::memory;
use crate::watch::ring::{Completion, number};
use libc::{c_long, pid_t};

/// `fs/aio.c`: the header of `struct aio_ring`, with its mark, and `struct io_event`.
const HEADER_BYTES: u64 = 32;
const MAGIC: u32 = 0xa10a_10a1;
const EVENT_BYTES: u64 = 32;
/// `struct iocb` of `linux/aio_abi.h`.
const CONTROL_BYTES: usize = 64;

/// A context, whose identity is the address of its ring.
#[derive(Debug)]
pub struct Context {
    pub address: u64,
    /// The number of events for which the ring has room.
    count: u32,
    /// The place of the next event.
    seen: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(number(bytes, at))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(number(bytes, at))
}

impl Context {
    /// Returns a context with this ring; `None` for a kernel whose rings are different.
    fn of(address: u64, header: &[u8]) -> Option<Context> {
        let is_known = (word(header, 16), word(header, 24)) == (MAGIC, 0)
            && u64::from(word(header, 28)) == HEADER_BYTES;
        let (count, seen) = (word(header, 4), word(header, 12));
        (is_known && seen < count).then_some(Context { address, count, seen })
    }

    /// Adds the events since; returns `false` if they can't be read.
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

impl Reader {
    /// Handles the end of `io_setup(2)`, which has put the context's address here.
    pub fn add_context(&mut self, process: pid_t, place: u64) {
        let made = || {
            let address = memory::number(process, place)?;
            Context::of(address, &memory::read(process, address, HEADER_BYTES as usize)?)
        };
        match made() {
            Some(context) => self.queues.add(process, Kernel::Aio(context)),
            None => self.queues.doubt = Some(AIO_UNSEEN),
        }
    }

    /// Handles the start of `io_submit(2)`.
    pub fn submit(
        &mut self,
        process: pid_t,
        task: pid_t,
        [context, count, list, ..]: [u64; 6],
        tasks: Tasks,
    ) -> Begin {
        let mut known = self.queues.all.iter();
        let known = known.find(|(_, of)| of.process == process && of.kernel.is_context(context));
        let Some(id) = known.map(|(id, _)| *id) else { return Begin::Unseen(AIO_UNSEEN) };
        let mut operations = || {
            let list = memory::read(task, list, usize::try_from(count).ok()?.checked_mul(8)?)?;
            let controls = list.as_chunks().0.iter().map(|address| {
                let address = u64::from_ne_bytes(*address);
                let control = memory::read(task, address, CONTROL_BYTES)?;
                let work = self.work_of_control(process, task, &control, tasks);
                let (owner, after) = (process, Vec::new());
                let operation =
                    Operation { work, owner, waits: 0, after, at_ns: 0, place: None, task };
                Some((address, operation))
            });
            controls.collect::<Option<Vec<_>>>()
        };
        // The kernel refuses what can't be read, and takes what comes before it.
        operations().map_or(Begin::Unseen(AIO_UNSEEN), |operations| Begin::Queued(id, operations))
    }

    fn work_of_control(
        &mut self,
        process: pid_t,
        task: pid_t,
        control: &[u8],
        tasks: Tasks,
    ) -> Work {
        let flags = word(control, 12) as i32;
        let operation = u16::from_ne_bytes(number(control, 16));
        let file = u64::from(word(control, 20));
        let (address, count, offset) = (long(control, 24), long(control, 32), long(control, 40));
        let call = |number: c_long| (number, [file, address, count, offset, 0, 0]);
        let (number, arguments) = match operation {
            // PWRITE, PWRITEV.
            1 | 8 => {
                let pieces = match operation {
                    1 => Some(vec![(address, count)]),
                    _ => memory::pieces(task, address, count),
                };
                let Some(pieces) = pieces else { return Work::Unknown };
                let at = At::Byte(offset);
                let begun = self.write_pieces(process, task, file, &pieces, at, flags);
                return begun.map_or(Work::Nothing, Work::Call);
            }
            2 => call(libc::SYS_fsync),
            3 => call(libc::SYS_fdatasync),
            // PREAD, PREADV.
            0 | 7 if self.wanted.reads => call(libc::SYS_pread64),
            0 | 5..=7 => return Work::Nothing,
            _ => return Work::Unknown,
        };
        match self.effect(process, task, number, arguments, tasks) {
            Some(Begin::Await(begun)) => Work::Call(begun),
            _ => Work::Nothing,
        }
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
