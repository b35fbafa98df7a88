//! The calls of io_uring. A ring is followed from its creation, and its operations are read when
//! they are submitted.

use super::queue::{Operation, Work};
use super::queued::{ANY_PLACE, Kernel, QueueId};
use super::{At, Begin, Begun, IO_URING_UNSEEN, Reader};
use crate::call::Act;
use crate::watch::descriptors::copied;
use crate::watch::maps::Tasks;
use crate::watch::memory;
use crate::watch::ring::{
    DRAIN, Entry, FIXED_FILE, FLAGS_AT, LINK, PARAMS_BYTES, Ring, SKIP_SUCCESS,
};
use libc::{c_long, pid_t};
use rustix::io::Errno;
use std::fs::File;

const REFUSED: &str = "io_uring was refused, so that the program falls back to calls that are seen";
const KIND_REFUSED: &str = "a mode of io_uring that cannot be followed (such as SQPOLL) was \
                            refused, so that the program falls back to another";
const LOST: &str = "not all operations of io_uring could be followed";

const SILENT: &str = "operations of io_uring had no completion (IOSQE_CQE_SKIP_SUCCESS)";

/// `IORING_ENTER_REGISTERED_RING`, `IORING_REGISTER_USE_REGISTERED_RING`.
const ENTER_REGISTERED: u32 = 1 << 4;
const REGISTER_REGISTERED: u32 = 1 << 31;
/// `IORING_RSRC_REGISTER_SPARSE`, `IORING_REGISTER_FILES_SKIP`.
const SPARSE: u32 = 1;
const SKIP: i32 = -2;
/// `IORING_MSG_SEND_FD`.
const SEND_FILE: u64 = 1;
/// The maximum number of registered files or rings in one call.
const FILES_MAX: u64 = 1 << 15;

/// A change to a ring that takes effect once the call succeeds.
#[derive(Debug)]
pub enum Change {
    Made { task: pid_t, params: u64 },
    Files { ring: QueueId, files: Vec<(u32, Option<File>)>, clears: bool },
    Rings { task: pid_t, list: u64, count: u64 },
}

impl Reader {
    /// Handles the start of `io_uring_setup(2)`; `None` if the call will fail.
    pub fn begin_ring(&self, process: pid_t, task: pid_t, params: u64) -> Option<Begin> {
        let flags = memory::number(task, params + FLAGS_AT)? as u32;
        // A sandbox may forbid copying descriptors.
        let may_copy = matches!(copied(process, i32::MAX), Err(Errno::BADF));
        Some(match Ring::refusal(flags) {
            _ if !self.wanted.io_uring || !may_copy => Begin::Refuse(libc::ENOSYS, REFUSED),
            Some(error) => Begin::Refuse(error, KIND_REFUSED),
            None => Begin::Await(Begun::Ring(Change::Made { task, params })),
        })
    }

    /// Handles the start of `io_uring_register(2)`; `None` if the call does not matter or will
    /// fail.
    pub fn register(
        &mut self,
        process: pid_t,
        task: pid_t,
        [ring, operation, list, count, ..]: [u64; 6],
    ) -> Option<Begin> {
        let operation = operation as u32;
        let is_registered = operation & REGISTER_REGISTERED != 0;
        let known = self.ring_of(process, task, ring, is_registered);
        let long = |at: u64| memory::number(task, list + at);
        let word = |at: u64| long(at).map(|long| long as u32);
        // From `linux/io_uring.h`: the layout of each operation's argument.
        let (from, files, count, clears) = match operation & !REGISTER_REGISTERED {
            2 => (0, list, count, true),
            3 => (0, 0, 0, true),
            6 => (word(0)?, long(8)?, count, false),
            13 if word(4)? & SPARSE != 0 => (0, 0, 0, true),
            13 => (0, long(16)?, u64::from(word(0)?), true),
            14 => (word(0)?, long(8)?, u64::from(word(24)?), false),
            20 => return Some(Begin::Await(Begun::Ring(Change::Rings { task, list, count }))),
            // The entries would move to other memory.
            33 => return Some(Begin::Refuse(libc::EINVAL, KIND_REFUSED)),
            _ => return None,
        };
        let Some(ring) = known else { return Some(Begin::Unseen(IO_URING_UNSEEN)) };
        let files = self.copies(process, task, files, count)?;
        let files = (from..).zip(files).filter_map(|(at, file)| Some((at, file?))).collect();
        Some(Begin::Await(Begun::Ring(Change::Files { ring, files, clears })))
    }

    /// Returns copies of the descriptors in a list; `None` for a skipped entry, `Some(None)` for a
    /// removed one.
    fn copies(
        &mut self,
        process: pid_t,
        task: pid_t,
        list: u64,
        count: u64,
    ) -> Option<Vec<Option<Option<File>>>> {
        let count = usize::try_from(count.min(FILES_MAX)).ok()?;
        let list = memory::read(task, list, count * size_of::<i32>())?;
        let numbers = list.as_chunks().0.iter().map(|number| i32::from_ne_bytes(*number));
        let copy = |number| (number != SKIP).then(|| copied(process, number).ok());
        Some(numbers.map(copy).collect())
    }

    /// Handles the end of a call that changes a ring.
    pub fn change_ring(&mut self, process: pid_t, change: Change, value: u64) {
        match change {
            Change::Made { task, params } => {
                let made = || {
                    let params = memory::read(task, params, PARAMS_BYTES)?;
                    let file = copied(process, value as i32).ok()?;
                    let ring = Ring::map(&file, &params.try_into().ok()?).ok()?;
                    Some(Kernel::Ring(ring, Some(value as i32), file))
                };
                match made() {
                    Some(ring) => self.queues.add(process, ring),
                    None => self.queues.doubt = Some(IO_URING_UNSEEN),
                }
            }
            Change::Files { ring, files, clears } => {
                let known = self.queues.all.get(&ring).filter(|_| clears);
                let places: Vec<u32> =
                    known.iter().flat_map(|of| of.files.keys()).copied().collect();
                places.into_iter().for_each(|at| self.put(ring, at, None));
                files.into_iter().for_each(|(at, file)| self.put(ring, at, file));
            }
            Change::Rings { task, list, count } => {
                /// The size of `struct io_uring_rsrc_update`.
                const UPDATE_BYTES: u64 = 16;
                for at in (0..count.min(FILES_MAX)).map(|number| list + number * UPDATE_BYTES) {
                    let place = memory::number(task, at).map(|place| place as u32);
                    let ring = memory::number(task, at + 8);
                    let ring = ring.and_then(|ring| self.queues.ring(process, ring as i32));
                    self.queues.registered.extend(place.zip(ring).map(|(at, of)| ((task, at), of)));
                }
            }
        }
    }

    fn ring_of(&self, process: pid_t, task: pid_t, of: u64, is_place: bool) -> Option<QueueId> {
        match is_place {
            true => self.queues.registered.get(&(task, of as u32)).copied(),
            false => self.queues.ring(process, of as i32),
        }
    }

    /// Handles the start of `io_uring_enter(2)`.
    pub fn enter(
        &mut self,
        process: pid_t,
        task: pid_t,
        [ring, count, _, flags, ..]: [u64; 6],
        tasks: Tasks,
    ) -> Begin {
        let is_registered = flags as u32 & ENTER_REGISTERED != 0;
        let Some(id) = self.ring_of(process, task, ring, is_registered) else {
            return if count == 0 { Begin::Pass } else { Begin::Unseen(IO_URING_UNSEEN) };
        };
        let queue = self.queues.all.get_mut(&id).expect("a known ring");
        let Kernel::Ring(ring, ..) = &mut queue.kernel else { return Begin::Pass };
        // A chain does not extend beyond the entries of one call.
        let is_whole = count as u32 >= ring.waiting();
        let Some(entries) = ring.added() else { return Begin::Unseen(LOST) };
        let (mut chain, mut operations) = (None, Vec::new());
        for (number, entry) in (queue.in_flight.count()..).zip(entries) {
            let first = if entry.flags & DRAIN != 0 { Some(0) } else { chain };
            let waits = number - first.unwrap_or(number);
            let is_linked = is_whole && entry.flags & LINK != 0;
            chain = is_linked.then_some(chain.unwrap_or(number));
            let (owner, mut work) = self.work(id, process, task, &entry, waits > 0, tasks);
            if let (Work::Call(begun), 1..) = (&mut work, waits) {
                begun.doubt_data();
            }
            if entry.flags & SKIP_SUCCESS != 0 {
                match work {
                    Work::Nothing => {}
                    Work::Close(file) => self.descriptors.forget(owner, file),
                    _ => self.queues.doubt = Some(SILENT),
                }
                work = Work::Silent;
            }
            let after = Vec::new();
            let operation = Operation { work, owner, waits, after, at_ns: 0, place: None, task };
            operations.push((entry.key, operation));
        }
        if operations.is_empty() { Begin::Pass } else { Begin::Queued(id, operations) }
    }

    /// Returns the effect that an operation will have, and the process whose descriptors it names.
    fn work(
        &mut self,
        id: QueueId,
        process: pid_t,
        task: pid_t,
        entry: &Entry,
        waits: bool,
        tasks: Tasks,
    ) -> (pid_t, Work) {
        let own = std::process::id() as pid_t;
        if entry.flags & FIXED_FILE == 0 {
            return (process, self.work_on(process, task, entry, entry.file, tasks));
        }
        let known = self.queues.all.get(&id).and_then(|of| of.files.get(&(entry.file as u32)));
        let known = known.filter(|_| !waits).map(std::os::fd::AsRawFd::as_raw_fd);
        match known {
            Some(file) => (own, self.work_on(own, task, entry, file, tasks)),
            None if may_change(entry.operation) => (process, Work::Later(*entry)),
            None => (process, Work::Nothing),
        }
    }

    /// Returns the effect that an operation on a file will have.
    pub fn work_on(
        &mut self,
        owner: pid_t,
        task: pid_t,
        entry: &Entry,
        file: i32,
        tasks: Tasks,
    ) -> Work {
        let Entry { offset, address, more, .. } = *entry;
        let (folder, length) = (file as i64 as u64, u64::from(entry.length));
        let (number, arguments): (c_long, _) = match entry.operation {
            // WRITEV, WRITE_FIXED, WRITE, WRITEV_FIXED.
            2 | 5 | 23 | 61 => {
                let pieces = match entry.operation {
                    2 | 61 => memory::pieces(task, address, length),
                    _ => Some(vec![(address, length)]),
                };
                let Some(pieces) = pieces else { return Work::Unknown };
                let at = at(offset);
                let told = self.tell(owner, folder, || memory::texts(task, &pieces));
                let begun = told
                    .or_else(|| self.write_pieces(owner, task, folder, &pieces, at, more as i32));
                return begun.map_or(Work::Nothing, Work::Call);
            }
            // SPLICE.
            30 => {
                let begun = self.write(owner, folder, length, at(offset), 0);
                return begun.map_or(Work::Nothing, Work::Call);
            }
            // FSYNC.
            3 if (offset, length) == (0, 0) && more & 1 != 0 => {
                (libc::SYS_fdatasync, [folder, 0, 0, 0, 0])
            }
            3 if (offset, length) == (0, 0) => (libc::SYS_fsync, [folder, 0, 0, 0, 0]),
            3 => {
                let bytes = offset..offset.saturating_add(length);
                let act = |file| Work::Call(Begun::Sure(Act::FlushRange { file, bytes }));
                return self.regular(owner, folder).map_or(Work::Nothing, act);
            }
            8 => (libc::SYS_sync_file_range, [folder, 0, 0, 0, 0]),
            17 => (libc::SYS_fallocate, [folder, length, offset, address, 0]),
            55 => (libc::SYS_ftruncate, [folder, offset, 0, 0, 0]),
            // OPENAT, OPENAT2.
            18 => (libc::SYS_openat, [folder, address, u64::from(more), 0, 0]),
            28 => (libc::SYS_openat2, [folder, address, offset, 0, 0]),
            19 => {
                return match entry.file_index.checked_sub(1) {
                    Some(at) => Work::Release(at),
                    None => Work::Close(file),
                };
            }
            // FILES_UPDATE. The indices of skipped files are not followed.
            20 => {
                let files = self.copies(owner, task, address, length).unwrap_or_default();
                let whole: Option<Vec<_>> = files.into_iter().collect();
                let whole = whole.filter(|_| offset as u32 != ANY_PLACE);
                return whole.map_or(Work::Unknown, |files| Work::Replace(offset as u32, files));
            }
            35 => (libc::SYS_renameat2, [folder, address, length, offset, u64::from(more)]),
            36 => (libc::SYS_unlinkat, [folder, address, u64::from(more), 0, 0]),
            37 => (libc::SYS_mkdirat, [folder, address, length, 0, 0]),
            38 => (libc::SYS_symlinkat, [address, folder, offset, 0, 0]),
            39 => (libc::SYS_linkat, [folder, address, length, offset, u64::from(more)]),
            // SEND, SEND_ZC, SENDMSG, SENDMSG_ZC.
            26 | 47 => (libc::SYS_sendto, [folder, address, length, 0, 0]),
            9 | 48 => (libc::SYS_sendmsg, [folder, address, 0, 0, 0]),
            25 if more == libc::MADV_REMOVE as u32 => return Work::Unknown,
            // MSG_RING, URING_CMD.
            40 if address == SEND_FILE => return Work::Unknown,
            46 if self.regular(owner, folder).is_some() => return Work::Unknown,
            // ACCEPT and SOCKET into an index replace the file there. PIPE replaces two.
            13 | 45 if entry.file_index > 0 => return Work::Release(entry.file_index - 1),
            62 if entry.file_index > 0 => return Work::Unknown,
            // All other operations up to Linux 6.17.
            0..=62 => return Work::Nothing,
            _ => return Work::Unknown,
        };
        let [a, b, c, d, e] = arguments;
        let begun = match self.effect(owner, task, number, [a, b, c, d, e, 0], tasks) {
            Some(Begin::Await(begun)) => begun,
            // The names may be provided by an operation that this one waits for.
            _ if matches!(entry.operation, 18 | 28 | 35..=39) => return Work::Unknown,
            _ => return Work::Nothing,
        };
        match (entry.file_index.checked_sub(1), begun) {
            (Some(at), Begun::Open { path: Some(path), size_before, empties }) => {
                let flags = match entry.operation {
                    18 => Some(u64::from(more)),
                    _ => memory::number(task, offset),
                };
                let Some(flags) = flags else { return Work::Unknown };
                let at = if entry.file_index == ANY_PLACE { ANY_PLACE } else { at };
                let begun = Begun::Open { path: Some(path.clone()), size_before, empties };
                Work::Register { at, path, flags: flags as i32, begun }
            }
            (Some(_), Begun::Open { .. }) => Work::Unknown,
            (_, begun) => Work::Call(begun),
        }
    }
}

/// Returns whether an operation on a registered file may change it.
fn may_change(operation: u8) -> bool {
    matches!(operation, 2 | 3 | 5 | 8 | 17 | 23 | 30 | 46 | 55 | 61 | 63..)
}

/// Returns the position that an offset means; the maximum means the descriptor's position.
fn at(offset: u64) -> At {
    if offset == u64::MAX { At::Position } else { At::Byte(offset) }
}
