//! The state shared by all files of a disk: the engine, and every operation with its dependencies.
//!
//! An operation first *waits for* others on the same bytes, then, if it is a read, for its buffers
//! (`leasing`), and then until fewer than `iodepth` operations are in flight (`ready`). After that
//! it is in flight, until its completion is routed back to its entry.

use super::buffer::{DiskBuffer, Home};
use super::entry::{Entry, Outcome, Owner, Touch, Work};
use crate::buffer::Pool;
use crate::engine::{Completion, Engine, FileId, Op, Wait};
use crate::error::Error;
use rustix::fd::BorrowedFd;
use slab::Slab;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

pub(super) struct FileState {
    pub path: PathBuf,
    pub id: FileId,
    /// The number of operations that were started before the file was opened, and so do not belong
    /// to it.
    since: u64,
    /// The end of the file, or an earlier offset: operations in progress or another program may
    /// have extended the file.
    pub end: u64,
    /// The keys of unfinished operations, and the number of changes among them.
    unfinished: Vec<usize>,
    changing: usize,
    /// Whether the file's handle was dropped. The file is closed once all of its operations are
    /// finished.
    dropped: bool,
    /// The first error of a change whose handle was dropped. The next flush, or the close, reports
    /// it.
    pub untold: Option<Error>,
}

pub(super) struct Schedule {
    pub engine: Engine,
    pub files: Slab<FileState>,
    entries: Slab<Entry>,
    pub leasing: VecDeque<usize>,
    /// The engine operations, each with its `user_data`, that wait until fewer than `iodepth` are
    /// in flight.
    ready: VecDeque<(u64, Op)>,
    unfinished: usize,
    /// The number of operations that are waiting for others on the same bytes.
    waiting: usize,
    /// The number of unfinished operations whose handles were dropped.
    forgotten: usize,
    started: u64,
    completions: Vec<Completion>,
    /// The wakers to call when nothing is borrowed from the schedule.
    pub wakers: Vec<Waker>,
    /// The wakers of threads that check their condition after each turn.
    watchers: Vec<Waker>,
    /// The number of unfinished operations awaited by tasks that do no work themselves.
    pub awaited: usize,
    /// A permanent failure of the engine, such as a ring that can't be entered.
    pub failure: Option<Error>,
    home: Arc<Home>,
}

// SAFETY: the parts that are not `Send` are the engine's pool and buffers, which were created for
// use by several threads, and addresses of that memory. The engine is created for callers on any
// thread.
unsafe impl Send for Schedule {}

impl Schedule {
    /// Creates the schedule of an engine, which must be for callers on several threads.
    pub fn new(engine: Engine, home: Arc<Home>) -> Schedule {
        assert!(engine.pool().is_shared(), "a disk's buffers are on any threads");
        Schedule {
            engine,
            files: Slab::new(),
            entries: Slab::new(),
            leasing: VecDeque::new(),
            ready: VecDeque::new(),
            unfinished: 0,
            waiting: 0,
            forgotten: 0,
            started: 0,
            completions: Vec::new(),
            wakers: Vec::new(),
            watchers: Vec::new(),
            awaited: 0,
            failure: None,
            home,
        }
    }

    pub fn add_file(&mut self, path: PathBuf, id: FileId, end: u64) -> usize {
        self.files.insert(FileState {
            path,
            id,
            since: self.started,
            end,
            unfinished: Vec::new(),
            changing: 0,
            dropped: false,
            untold: None,
        })
    }

    /// Returns the descriptor of a file that is read directly, unless it is on a simulated disk.
    pub fn direct_descriptor(&self, file: usize) -> Option<BorrowedFd<'_>> {
        let id = self.files[file].id;
        self.engine.descriptor(id).filter(|_| self.engine.is_direct(id))
    }

    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns the number of unfinished operations on the file.
    pub fn unfinished_of(&self, file: usize) -> usize {
        self.files[file].unfinished.len()
    }

    /// Returns whether the engine has an operation to execute or a completion to route.
    pub fn has_work(&self) -> bool {
        self.engine.outstanding() > 0
    }

    /// Returns whether no more than `iodepth` operations are without a handle (W8).
    pub fn is_bounded(&self) -> bool {
        self.forgotten <= self.engine.effective().iodepth as usize
    }

    /// Adds an operation, begins it if it need not wait, and returns its key.
    pub fn start(&mut self, file: Option<usize>, touch: Touch, work: Work) -> usize {
        let mut entry = Entry::new(self.started, file, touch, work);
        self.started += 1;
        self.unfinished += 1;
        if let Some(file) = file {
            entry.waits_for = self.count_earlier(file, &entry.touch);
            self.files[file].changing += usize::from(entry.touch.changes());
        }
        let waits = entry.waits_for > 0;
        let key = self.entries.insert(entry);
        if let Some(file) = file {
            self.files[file].unfinished.push(key);
        }
        if waits {
            self.waiting += 1;
        } else {
            self.enqueue(key);
        }
        self.pump();
        key
    }

    /// Returns the number of unfinished operations on the file that an operation with this touch
    /// must follow.
    fn count_earlier(&self, file: usize, touch: &Touch) -> u32 {
        let FileState { unfinished, changing, .. } = &self.files[file];
        // Only a change waits for a read.
        if *changing == 0 && !touch.changes() {
            return 0;
        }
        let precedes = |key: &&usize| touch.must_follow(&self.entries[**key].touch);
        unfinished.iter().filter(precedes).count() as u32
    }

    /// Queues an operation that need not wait for others on the same bytes.
    fn enqueue(&mut self, key: usize) {
        let entry = &mut self.entries[key];
        match &mut entry.work {
            Work::Steps { first, .. } => {
                entry.missing = 1;
                let op = first.take().expect("begun once");
                self.ready.push_back((user_data(key, 0), op));
            }
            Work::Lease(_) | Work::Read { .. } => self.leasing.push_back(key),
        }
    }

    /// Begins as many operations as possible. Returns whether the engine received one.
    pub fn pump(&mut self) -> bool {
        while let Some(&key) = self.leasing.front() {
            if self.engine.pool().free() < self.entries[key].buffers_needed() {
                // The second check finds a buffer that was returned before the flag was set.
                if self.home.lacks_buffers.swap(true, Ordering::SeqCst) {
                    break;
                }
                continue;
            }
            self.leasing.pop_front();
            self.begin_with_buffers(key);
        }
        if self.leasing.is_empty() && self.home.lacks_buffers.load(Ordering::Relaxed) {
            self.home.lacks_buffers.store(false, Ordering::SeqCst);
        }
        let mut handed = self.hand_on();
        if !handed && self.waiting > 0 && self.engine.outstanding() == 0 {
            self.unblock();
            handed = self.hand_on();
        }
        handed
    }

    fn hand_on(&mut self) -> bool {
        let mut handed = false;
        while !self.engine.is_full()
            && let Some((user_data, op)) = self.ready.pop_front()
        {
            self.engine.queue(user_data, op);
            handed = true;
        }
        handed
    }

    /// If a write is waiting for a read that is waiting for a buffer, begins that read in separate
    /// memory. Otherwise, when nothing is in flight and such writes hold all buffers, nothing would
    /// make progress. Only one such read runs at a time, which limits the memory (W8).
    fn unblock(&mut self) {
        let is_blocking = |key: &usize| {
            let Entry { number, touch, file: Some(file), .. } = &self.entries[*key] else {
                return false;
            };
            self.files[*file].unfinished.iter().any(|&later| {
                let later = &self.entries[later];
                later.number > *number && later.touch.must_follow(touch)
            })
        };
        let Some(place) = self.leasing.iter().position(is_blocking) else { return };
        let key = self.leasing.remove(place).expect("it was found there");
        let pieces = self.entries[key].buffers_needed() as u32;
        match Pool::shared(pieces, self.engine.pool().buffer_bytes()) {
            Ok(own) => self.begin_on(key, &own),
            Err(error) => {
                self.entries[key].error = Some(error);
                self.finish(key);
            }
        }
    }

    fn begin_with_buffers(&mut self, key: usize) {
        let pool = self.engine.pool().clone();
        self.begin_on(key, &pool);
    }

    fn begin_on(&mut self, key: usize, pool: &Pool) {
        let lease = || {
            let mut buffer = pool.lease().expect("as many are free as are needed");
            buffer.set_len(buffer.capacity());
            buffer
        };
        let entry = &self.entries[key];
        let Work::Read { span, .. } = entry.work else {
            let buffer = lease();
            self.entries[key].work = Work::Lease(Some(buffer));
            return self.finish(key);
        };
        let file = self.files[entry.file.expect("a read is of a file")].id;
        let pieces = entry.buffers_needed();
        for number in 0..pieces {
            let (offset, len) = span.piece(number as u64);
            let mut buffer = lease();
            buffer.set_len(len);
            let read = Op::Read { file, offset, buffer };
            self.ready.push_back((user_data(key, number), read));
        }
        self.entries[key].missing = pieces as u32;
    }

    /// Begins operations, and returns a wait for a completion. Other threads may use the schedule
    /// during the wait.
    pub fn prepare_wait(&mut self) -> Result<Wait, Error> {
        self.pump();
        self.engine.prepare_wait()
    }

    /// Waits for `min` completions of the engine, routes them, and begins operations. The next turn
    /// submits these operations to the kernel.
    pub fn collect(&mut self, min: usize) -> Result<(), Error> {
        let mut completions = std::mem::take(&mut self.completions);
        let reaped = self.engine.reap(min, &mut completions);
        completions.drain(..).for_each(|completion| self.route(completion));
        self.completions = completions;
        self.pump();
        reaped
    }

    /// Registers the waker of a thread that checks its condition after each turn.
    pub fn watch(&mut self, waker: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }

    pub fn wake_watchers(&mut self) {
        self.wakers.append(&mut self.watchers);
    }

    /// Wakes every task that awaits an operation, so that it polls again.
    pub fn wake_tasks(&mut self) {
        for (_, entry) in &mut self.entries {
            if entry.is_awaited {
                self.wakers.extend(entry.take_waker());
            }
        }
    }

    /// Ends every unfinished operation with the engine's failure, because the operation's result is
    /// unknown.
    pub fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| error.clone());
        for (_, entry) in &mut self.entries {
            if !entry.is_over() {
                entry.broken = Some(error.clone());
                self.awaited -= usize::from(std::mem::take(&mut entry.is_awaited));
                self.wakers.extend(entry.take_waker());
            }
        }
    }

    fn route(&mut self, completion: Completion) {
        let (key, number) = ((completion.user_data >> 32) as usize, completion.user_data as u32);
        let entry = &mut self.entries[key];
        entry.missing -= 1;
        match (completion.result, &mut entry.work) {
            (Err(error), _) => drop(entry.error.get_or_insert(error)),
            (Ok(bytes), Work::Read { found, .. }) => {
                found[number as usize] = completion.buffer.map(|buffer| (buffer, bytes));
            }
            (Ok(_), Work::Steps { then, .. }) => {
                if let Some(op) = then.take() {
                    entry.missing = 1;
                    self.ready.push_back((user_data(key, 0), op));
                }
            }
            (Ok(_), Work::Lease(_)) => unreachable!("a lease is nothing that the engine does"),
        }
        if self.entries[key].missing == 0 {
            self.finish(key);
        }
    }

    /// Marks an operation as finished, wakes its owner, and begins the operations that waited for
    /// it.
    fn finish(&mut self, key: usize) {
        let entry = &mut self.entries[key];
        entry.finished = true;
        self.unfinished -= 1;
        self.awaited -= usize::from(std::mem::take(&mut entry.is_awaited));
        let forgotten = entry.is_forgotten();
        self.wakers.extend(entry.take_waker());
        if let Some(file) = entry.file {
            let open = &mut self.files[file];
            let place = open.unfinished.iter().position(|&unfinished| unfinished == key);
            open.unfinished.swap_remove(place.expect("it was started on the file"));
            open.changing -= usize::from(entry.touch.changes());
            if let (None, Some(end)) = (&entry.error, entry.touch.change_end()) {
                open.end = open.end.max(end);
            }
            match entry.touch {
                Touch::Write { .. } if forgotten && open.untold.is_none() => {
                    open.untold = entry.error.take();
                }
                Touch::Sync if !forgotten && entry.error.is_none() => {
                    entry.error = open.untold.take();
                }
                _ => {}
            }
            self.release(key, file);
            self.close_if_unused(file);
        }
        if forgotten {
            self.forgotten -= 1;
            self.entries.remove(key);
        }
    }

    /// Begins the operations that waited only for this one.
    fn release(&mut self, key: usize, file: usize) {
        if self.waiting == 0 {
            return;
        }
        let (number, touch) = (self.entries[key].number, self.entries[key].touch.clone());
        let mut free: Vec<(u64, usize)> = Vec::new();
        for &key in &self.files[file].unfinished {
            let entry = &mut self.entries[key];
            let later = entry.waits_for > 0 && entry.number > number;
            if later && entry.touch.must_follow(&touch) {
                entry.waits_for -= 1;
                if entry.waits_for == 0 {
                    free.push((entry.number, key));
                }
            }
        }
        self.waiting -= free.len();
        free.sort_unstable();
        free.into_iter().for_each(|(_, key)| self.enqueue(key));
    }

    /// Takes the result of a finished operation and removes the operation; returns `None` if it is
    /// unfinished.
    pub fn take(&mut self, key: usize) -> Option<Result<Outcome, Error>> {
        let entry = &mut self.entries[key];
        if let Some(error) = entry.broken.clone() {
            self.forget(key);
            return Some(Err(error));
        }
        if !entry.finished {
            return None;
        }
        let result = self.entries.remove(key).into_result(&self.home);
        if result.is_err() {
            // The failed operation may have held buffers that others wait for.
            self.pump();
        }
        Some(result)
    }

    pub fn is_over(&self, key: usize) -> bool {
        self.entries[key].is_over()
    }

    /// Sets the waker to be called when the operation finishes. `is_awaited` states whether it
    /// belongs to a task that does no work itself. Returns the previous waker, which must not be
    /// dropped while the schedule is borrowed.
    pub fn register(&mut self, key: usize, waker: &Waker, is_awaited: bool) -> Option<Waker> {
        let entry = &mut self.entries[key];
        let was_awaited = std::mem::replace(&mut entry.is_awaited, is_awaited);
        self.awaited = self.awaited + usize::from(is_awaited) - usize::from(was_awaited);
        match &mut entry.owner {
            Owner::Waiting(Some(known)) if known.will_wake(waker) => None,
            Owner::Waiting(place) => place.replace(waker.clone()),
            Owner::Gone => None,
        }
    }

    /// Drops an operation's handle. An operation that has not begun and has no effect is cancelled;
    /// any other continues, with its buffer, until it is complete (W5). Returns the waker, which
    /// must not be dropped while the schedule is borrowed.
    pub fn forget(&mut self, key: usize) -> Option<Waker> {
        let entry = &mut self.entries[key];
        let waker = entry.take_waker();
        self.awaited -= usize::from(std::mem::take(&mut entry.is_awaited));
        if entry.finished {
            let entry = self.entries.remove(key);
            let told = matches!(entry.touch, Touch::Nothing | Touch::Read(_));
            if let (false, Some(file), Some(error)) = (told, entry.file, entry.error)
                && let Some(open) = self.files.get_mut(file)
                && entry.number >= open.since
            {
                open.untold.get_or_insert(error);
            }
            // The operation may have held buffers that others wait for.
            self.pump();
            return waker;
        }
        entry.owner = Owner::Gone;
        self.forgotten += 1;
        if entry.can_be_cancelled() {
            self.waiting -= usize::from(entry.waits_for > 0);
            self.leasing.retain(|&leasing| leasing != key);
            self.finish(key);
        }
        waker
    }

    /// Leases a buffer if one is free and no operation is waiting for it; otherwise returns `None`.
    pub fn try_lease(&mut self) -> Option<DiskBuffer> {
        if !self.leasing.is_empty() {
            return None;
        }
        let buffer = self.engine.pool().lease()?;
        Some(DiskBuffer::new(buffer, Arc::clone(&self.home)))
    }

    /// Drops the file's handle. The file is closed once all of its operations are finished.
    pub fn let_go(&mut self, file: usize) {
        self.files[file].dropped = true;
        self.close_if_unused(file);
    }

    fn close_if_unused(&mut self, file: usize) {
        if self.files[file].dropped && self.files[file].unfinished.is_empty() {
            let open = self.files.remove(file);
            // Nothing is in flight, so closing the file can't fail.
            let _ = self.engine.close_file(open.id);
        }
    }
}

impl Drop for Schedule {
    /// Completes every operation (W5). No handle is left to receive a result.
    fn drop(&mut self) {
        self.pump();
        while self.engine.check_process().is_ok() && self.has_work() && self.collect(1).is_ok() {}
    }
}

/// Returns the `user_data` of one of an operation's engine operations.
fn user_data(key: usize, number: usize) -> u64 {
    (key as u64) << 32 | number as u64
}
