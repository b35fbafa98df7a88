//! The kernel queues that processes have created, and the effects of the operations in them.

use super::Reader;
use super::queue::{InFlight, Operation, Work};
use crate::call::Act;
use crate::watch::aio::Context;
use crate::watch::descriptors::is_same;
use crate::watch::ring::{Completion, Ring};
use libc::pid_t;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Errors after which an operation has done nothing and its file has no error.
const UNDONE: [i32; 6] =
    [libc::ECANCELED, libc::EAGAIN, libc::EINTR, libc::EBADF, libc::EINVAL, libc::EOPNOTSUPP];
/// The flags of an open file that matter for its writes.
const KEPT_FLAGS: i32 = libc::O_APPEND | libc::O_DIRECT | libc::O_SYNC;
/// The index that lets the kernel choose where to register a file.
pub const ANY_PLACE: u32 = u32::MAX;

/// Identifies a queue.
pub type QueueId = u32;

/// A queue of a process.
#[derive(Debug)]
pub struct Queue {
    pub process: pid_t,
    pub kernel: Kernel,
    pub in_flight: InFlight,
    /// Completions that were read but not yet handled.
    completions: VecDeque<Completion>,
    /// The registered files of a ring by index, as descriptors of this process.
    pub files: HashMap<u32, File>,
}

/// The kernel's part of a queue.
#[derive(Debug)]
pub enum Kernel {
    /// A ring, the program's descriptor of the ring until it is closed, and this process's
    /// descriptor.
    Ring(Ring, Option<i32>, File),
    Aio(Context),
}

const OTHER: &str = "an io_uring operation was used whose effect on files is not followed";

impl Kernel {
    /// Returns whether the queue is the kernel AIO context at this address.
    pub fn is_context(&self, address: u64) -> bool {
        matches!(self, Kernel::Aio(of) if of.address == address)
    }
}

impl Queue {
    /// Returns the reason to report if operations of the queue were missed.
    fn doubt(&self) -> &'static str {
        match self.kernel {
            Kernel::Ring(..) => {
                "operations of io_uring had one user_data at the same time, or ended unseen"
            }
            Kernel::Aio(_) => {
                "operations of kernel AIO had one control block at the same time, or ended unseen"
            }
        }
    }

    /// Returns the next completion, if there is one, or an error if completions were missed.
    fn next(&mut self) -> Result<Option<Completion>, ()> {
        if self.completions.is_empty() && !self.in_flight.is_empty() {
            let is_whole = match &mut self.kernel {
                Kernel::Ring(ring, ..) => ring.complete(&mut self.completions),
                Kernel::Aio(context) => context.complete(self.process, &mut self.completions),
            };
            if !is_whole {
                return Err(());
            }
        }
        Ok(self.completions.pop_front())
    }
}

/// All queues.
#[derive(Debug, Default)]
pub struct Queues {
    pub all: BTreeMap<QueueId, Queue>,
    /// The number of queues so far.
    count: QueueId,
    /// The rings that threads have registered, by thread and index.
    pub registered: HashMap<(pid_t, u32), QueueId>,
    /// The reason why operations were missed, until it is reported.
    pub doubt: Option<&'static str>,
}

/// An operation that has ended.
#[derive(Debug)]
pub struct Ended {
    queue: QueueId,
    number: u64,
    pub operation: Operation,
    result: Result<u64, i32>,
}

impl Queues {
    pub fn add(&mut self, process: pid_t, kernel: Kernel) {
        let (in_flight, completions, files) = Default::default();
        let queue = Queue { process, kernel, in_flight, completions, files };
        self.all.insert(self.count, queue);
        self.count += 1;
    }

    /// Returns the ring of a descriptor, which may be a copy, even one in another process; `None`
    /// if the descriptor refers to no known ring.
    pub fn ring(&self, process: pid_t, descriptor: i32) -> Option<QueueId> {
        let own = std::process::id() as pid_t;
        let find = |is_it: &dyn Fn(pid_t, Option<i32>, &File) -> bool| {
            self.all.iter().find_map(|(id, queue)| match &queue.kernel {
                Kernel::Ring(_, known, file) => is_it(queue.process, *known, file).then_some(*id),
                Kernel::Aio(_) => None,
            })
        };
        let is_copy = |_, _, file: &File| {
            is_same((process, descriptor), (own, file.as_raw_fd())) == Some(true)
        };
        find(&|of, known, _| (of, known) == (process, Some(descriptor))).or_else(|| find(&is_copy))
    }

    /// Returns the next operation that has ended and may have changed a file; `None` if there is
    /// none.
    pub fn next_ended(&mut self) -> Option<Ended> {
        for (id, queue) in &mut self.all {
            loop {
                let taken = match queue.next() {
                    Ok(None) => break,
                    Ok(Some(completion)) if completion.is_partial => continue,
                    Ok(Some(of)) => queue.in_flight.take(of.key).map(|taken| (of.result, taken)),
                    Err(()) => Err(()),
                };
                match taken {
                    Ok((_, None | Some((_, Operation { work: Work::Nothing, .. })))) => {}
                    Ok((result, Some((number, operation)))) => {
                        let result = u64::try_from(result).map_err(|_| -result as i32);
                        return Some(Ended { queue: *id, number, operation, result });
                    }
                    Err(()) => {
                        let may_change = queue.in_flight.may_change();
                        self.doubt = self.doubt.or(may_change.then_some(queue.doubt()));
                        queue.in_flight = InFlight::default();
                    }
                }
            }
        }
        None
    }

    /// Removes the queues for which `is_meant` holds, and returns their registered files.
    fn remove(&mut self, is_meant: impl Fn(&Queue) -> bool) -> Vec<File> {
        let mut files = Vec::new();
        let registered = &mut self.registered;
        self.all.retain(|id, queue| {
            let is_kept = !is_meant(queue);
            if !is_kept {
                files.extend(queue.files.drain().map(|(_, file)| file));
                registered.retain(|_, of| of != id);
            }
            is_kept
        });
        files
    }
}

impl Reader {
    /// Adds operations that are about to be submitted.
    pub fn queue(&mut self, id: QueueId, operations: Vec<(u64, Operation)>) {
        if let Some(queue) = self.queues.all.get_mut(&id) {
            if let (Kernel::Ring(ring, ..), true) = (&mut queue.kernel, queue.in_flight.is_empty())
            {
                ring.skip_completions();
            }
            for (key, operation) in operations {
                if let Kernel::Aio(_) = queue.kernel {
                    // An earlier operation with this key was not submitted after all.
                    queue.in_flight.withdraw(key);
                }
                queue.in_flight.add(key, operation);
            }
        }
    }

    /// Returns the effect of an operation that ended at `ended_ns`, and the data of a write; `None`
    /// if the operation had no effect, or its effect is unknown.
    pub fn finish(&mut self, ended: Ended, ended_ns: u64) -> Option<(Act, Vec<u8>)> {
        let Ended { queue: id, number, operation, result } = ended;
        let own = std::process::id() as pid_t;
        let queue = self.queues.all.get_mut(&id)?;
        queue.in_flight.ended(number, ended_ns);
        if matches!(result, Err(error) if UNDONE.contains(&error)) {
            return None;
        }
        let doubt = queue.doubt();
        let (owner, mut begun, result) = match (operation.work, result) {
            (Work::Call(begun), result) => (operation.owner, begun, result),
            (Work::Close(descriptor), _) => {
                self.descriptors.forget(operation.owner, descriptor);
                return None;
            }
            (Work::Release(at), Ok(_)) => {
                self.put(id, at, None);
                return None;
            }
            (Work::Replace(from, files), Ok(_)) => {
                (from..).zip(files).for_each(|(at, file)| self.put(id, at, file));
                return None;
            }
            (Work::Register { at, path, flags, begun }, Ok(value)) => {
                let Ok(file) = opened(&path, flags) else {
                    self.queues.doubt = Some(doubt);
                    return None;
                };
                let at = if at == ANY_PLACE { value as u32 } else { at };
                let descriptor = file.as_raw_fd() as u64;
                self.put(id, at, Some(file));
                (own, begun, Ok(descriptor))
            }
            (Work::Later(entry), result) => {
                let file = queue.files.get(&(entry.file as u32)).map(AsRawFd::as_raw_fd);
                let tasks = &|| Vec::new();
                let work = file.map(|file| self.work_on(own, operation.task, &entry, file, tasks));
                let Some(Work::Call(mut begun)) = work else {
                    let is_known = matches!(work, Some(Work::Nothing));
                    self.queues.doubt = self.queues.doubt.or((!is_known).then_some(doubt));
                    return None;
                };
                begun.doubt();
                (own, begun, result)
            }
            (Work::Unknown, Ok(_)) => {
                self.queues.doubt = Some(OTHER);
                return None;
            }
            _ => return None,
        };
        let (descriptor, data) = (begun.descriptor(), begun.take_data());
        let act = self.act(owner, owner, begun, result);
        if let (None, Ok(value)) = (&act, result) {
            // A program may close a file before the operations on it end.
            let mut is_closed = |of| value > 0 || self.descriptors.get(owner, of).is_none();
            let is_gone = || fs::read_link(format!("/proc/{owner}/exe")).is_err();
            if descriptor.is_some_and(&mut is_closed) || is_gone() {
                self.queues.doubt = Some(doubt);
            }
        }
        let act = act?;
        let data = self.data(owner, &act, descriptor, data);
        Some((act, data))
    }

    /// Registers a file at an index of a ring, or removes the file there.
    pub fn put(&mut self, id: QueueId, at: u32, file: Option<File>) {
        let Some(queue) = self.queues.all.get_mut(&id) else { return };
        let before = match file {
            Some(file) => queue.files.insert(at, file),
            None => queue.files.remove(&at),
        };
        self.let_go(before);
    }

    fn let_go(&mut self, files: impl IntoIterator<Item = File>) {
        let own = std::process::id() as pid_t;
        files.into_iter().for_each(|file| self.descriptors.forget(own, file.as_raw_fd()));
    }

    /// Handles closed descriptors of a process. Drops each ring whose descriptor is closed and
    /// whose operations can no longer change a file, because this process's mapping would keep the
    /// ring alive.
    pub fn close_rings(&mut self, process: pid_t, is_closed: impl Fn(i32) -> bool) {
        for queue in self.queues.all.values_mut().filter(|queue| queue.process == process) {
            if let Kernel::Ring(ring, known, _) = &mut queue.kernel
                && known.is_some_and(&is_closed)
            {
                queue.in_flight.drop_last(u64::from(ring.untaken()));
                *known = None;
            }
        }
        let is_over = |queue: &Queue| {
            matches!(queue.kernel, Kernel::Ring(_, None, _)) && !queue.in_flight.may_change()
        };
        let files = self.queues.remove(is_over);
        self.let_go(files);
    }

    /// Handles the end of those queues of a process for which `is_meant` holds.
    pub fn end_queues(&mut self, process: pid_t, is_meant: impl Fn(&Kernel) -> bool) {
        let is_meant = |queue: &Queue| queue.process == process && is_meant(&queue.kernel);
        for queue in self.queues.all.values_mut().filter(|queue| is_meant(queue)) {
            if let Kernel::Ring(ring, ..) = &queue.kernel {
                queue.in_flight.drop_last(u64::from(ring.untaken()));
            }
            if queue.in_flight.may_change() {
                self.queues.doubt = Some(queue.doubt());
            }
        }
        let files = self.queues.remove(is_meant);
        self.let_go(files);
    }
}

/// Opens a file that has no descriptor in a process, with the flags that the process used.
fn opened(path: &Path, flags: i32) -> io::Result<File> {
    let access = flags & libc::O_ACCMODE;
    let mut options = OpenOptions::new();
    options.read(access != libc::O_WRONLY).write(access != libc::O_RDONLY);
    options.custom_flags(flags & KEPT_FLAGS).open(path)
}
