//! Kernel AIO: the contexts of a process, and their operations from `io_submit(2)` until they
//! appear in the ring that the kernel maps into the process.

use super::queue::{Operation, Work};
use super::queued::Kernel;
use super::{AIO_UNSEEN, At, Begin, Reader};
use crate::watch::aio::Context;
use crate::watch::maps::Tasks;
use crate::watch::memory;
use crate::watch::ring::{long, word};
use libc::{c_long, pid_t};

/// The size of `struct iocb` in `linux/aio_abi.h`.
const CONTROL_BYTES: usize = 64;

impl Reader {
    /// Handles the end of `io_setup(2)`, which has stored the context's address at `place`.
    pub fn add_context(&mut self, process: pid_t, place: u64) {
        match memory::number(process, place).and_then(|at| Context::open(process, at)) {
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
        // The kernel refuses entries that can't be read, but accepts those before them.
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
        let operation = word(control, 16) as u16;
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
            0 | 5..=7 => return Work::Nothing,
            _ => return Work::Unknown,
        };
        match self.effect(process, task, number, arguments, tasks) {
            Some(Begin::Await(begun)) => Work::Call(begun),
            _ => Work::Nothing,
        }
    }
}
