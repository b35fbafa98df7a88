//! A single io_uring: its set-up, its registrations, and requests as its entries.
//!
//! Set-up flags, registered files and registered buffers are each used if the kernel supports them.

use super::op::{OpKind, Reply, Request};
use super::sqpoll::{Member, Sqpoll};
use super::wait::Wait;
use super::{Callers, Effective, Options};
use crate::buffer::Pool;
use crate::error::errno_of;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, SubmissionQueue, opcode, squeue};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// The maximum length of a registered buffer: 1 GiB (`io_uring_register(2)`).
const REGISTERED_BYTES_MAX: usize = 1 << 30;
/// The `user_data` of an entry whose only purpose is to end a wait. A token has 32 bits.
const INTERRUPT: u64 = u64::MAX;

/// The maximum number of consecutive refusals (EAGAIN: no memory for a request; EBUSY), after which
/// the error is returned. After [`REFUSALS_AT_ONCE`] refusals, the ring sleeps before each further
/// attempt, so that the attempts extend over several seconds.
const REFUSALS_MAX: u32 = 10_000;
const REFUSALS_AT_ONCE: u32 = 100;
const REFUSED_FOR: Duration = Duration::from_millis(1);

/// A set-up flag: its name in `io_uring_setup(2)`, and its builder method.
type Flag = (&'static str, fn(&mut Builder) -> &mut Builder);

/// These flags require the following kernels: NO_SQARRAY Linux 6.6, DEFER_TASKRUN 6.1,
/// SINGLE_ISSUER 6.0, COOP_TASKRUN and TASKRUN_FLAG 5.19, SUBMIT_ALL 5.18.
const NO_SQARRAY: Flag = ("NO_SQARRAY", |b| b.setup_no_sqarray());
const DEFER: Flag = ("DEFER_TASKRUN", |b| b.setup_defer_taskrun());
const SINGLE: Flag = ("SINGLE_ISSUER", |b| b.setup_single_issuer());
const COOP: Flag = ("COOP_TASKRUN", |b| b.setup_coop_taskrun());
const TASKRUN: Flag = ("TASKRUN_FLAG", |b| b.setup_taskrun_flag());
const ALL: Flag = ("SUBMIT_ALL", |b| b.setup_submit_all());

/// Sets of flags, from the newest kernel's to the oldest's. The first set that the kernel accepts
/// is used.
const FLAGS: &[&[Flag]] = &[
    &[SINGLE, DEFER, TASKRUN, ALL, NO_SQARRAY],
    &[SINGLE, DEFER, TASKRUN, ALL],
    &[SINGLE, COOP, TASKRUN, ALL],
    &[COOP, TASKRUN, ALL],
    &[ALL],
    &[],
];

/// The sets for a ring that a kernel thread polls, which has no task work to defer.
const SQPOLL_FLAGS: &[&[Flag]] = &[&[SINGLE, ALL, NO_SQARRAY], &[SINGLE, ALL], &[ALL], &[]];

/// The sets for a ring that several threads call. Its completions must not wait until the
/// submitting thread enters the kernel again, because that may never happen.
const ANY_CALLER_FLAGS: &[&[Flag]] = &[&[ALL, NO_SQARRAY], &[ALL], &[]];

/// The options that determine how the kernel serves a ring.
#[derive(Clone, Copy)]
pub(super) struct Service<'a> {
    /// The kernel thread that polls the ring for operations, if there is one.
    pub sqpoll: Option<&'a Sqpoll>,
    /// Whether completions are found by polling the device.
    pub iopoll: bool,
    pub callers: Callers,
}

pub(super) struct Ring {
    ring: IoUring,
    /// The handle that lets other rings attach to this one while it exists.
    _member: Option<Member>,
    sqpoll: bool,
    registered: Registered,
    in_flight: usize,
    /// The number of entries that only end a wait and have not been collected yet.
    interrupts: usize,
    patience: Patience,
}

impl Ring {
    /// Sets up a ring, and returns it with the names of its flags. If that fails, returns the
    /// failed call and the kernel's error.
    pub(super) fn start(
        iodepth: u32,
        service: Service,
    ) -> Result<(Ring, Vec<&'static str>), String> {
        let (ring, flags, member) =
            set_up(iodepth, service).map_err(|error| format!("io_uring_setup: {error}"))?;
        check_operations(&ring)?;
        let ring = Ring {
            ring,
            sqpoll: member.is_some(),
            _member: member,
            registered: Registered::default(),
            in_flight: 0,
            interrupts: 0,
            patience: Patience::default(),
        };
        Ok((ring, flags))
    }

    /// Registers the buffers and files if the options request that, and records each fallback.
    pub(super) fn register(&mut self, options: &Options, pool: &Pool, effective: &mut Effective) {
        self.allow_workers(effective.iodepth);
        if options.registered_files {
            self.register_files(effective);
        }
        if options.registered_buffers {
            self.register_buffers(pool, effective);
        }
    }

    /// Allows one kernel worker for each operation in flight (`IORING_REGISTER_IOWQ_MAX_WORKERS`,
    /// Linux 5.15). By default, the kernel runs only four operations that block, like flushes, per
    /// processor. With two processors and that default, only eight of 64 concurrent flushes shared
    /// a journal commit.
    fn allow_workers(&self, iodepth: u32) {
        let submitter = self.ring.submitter();
        let mut allowed = [0, 0];
        // An older kernel keeps its own limit.
        if submitter.register_iowq_max_workers(&mut allowed).is_ok() && allowed[0] < iodepth {
            let _ = submitter.register_iowq_max_workers(&mut [iodepth, 0]);
        }
    }

    fn register_files(&mut self, effective: &mut Effective) {
        match self.ring.submitter().register_files_sparse(Options::REGISTERED_FILES_MAX) {
            Ok(()) => (self.registered.files, effective.registered_files) = (true, true),
            Err(error) => self.unregister_files("IORING_REGISTER_FILES2", &error, effective),
        }
    }

    fn unregister_files(&mut self, call: &str, error: &io::Error, effective: &mut Effective) {
        (self.registered.files, effective.registered_files) = (false, false);
        let because = format!("{call}: {error}");
        effective.fell_back("registered files", "unregistered files", because);
    }

    pub(super) fn register_buffers(&mut self, pool: &Pool, effective: &mut Effective) {
        let (start, length_bytes) = pool.region();
        let registered = if length_bytes > REGISTERED_BYTES_MAX {
            Err("larger than the 1 GiB that the kernel takes".to_owned())
        } else {
            let region = libc::iovec { iov_base: start.cast(), iov_len: length_bytes };
            // SAFETY: the pool's mapping outlives the ring: the engine drops its backend first, and
            // leaks the pool if requests are still in flight.
            unsafe { self.ring.submitter().register_buffers(&[region]) }
                .map_err(|error| format!("IORING_REGISTER_BUFFERS: {error}"))
        };
        match registered {
            Ok(()) => self.registered.buffers = true,
            Err(because) => {
                effective.fell_back("registered buffers", "unregistered buffers", because);
            }
        }
        effective.registered_buffers = self.registered.buffers;
    }

    pub(super) fn opened(&mut self, slot: u32, file: RawFd, effective: &mut Effective) {
        if !self.registered.files {
            return;
        }
        if slot >= Options::REGISTERED_FILES_MAX {
            let max = Options::REGISTERED_FILES_MAX;
            let because = format!("the ring's table has {max} places");
            return effective.fell_back("registered files", "some unregistered files", because);
        }
        if let Err(error) = self.ring.submitter().register_files_update(slot, &[file]) {
            // From now on, files are used by descriptor; the entries that remain in the table do no
            // harm.
            self.unregister_files("IORING_REGISTER_FILES_UPDATE", &error, effective);
        }
    }

    /// Unregisters file `slot`, which is about to be closed.
    pub(super) fn closing(&mut self, slot: u32) {
        if self.registered.files && slot < Options::REGISTERED_FILES_MAX {
            // The ring's table holds the file open. If it is not unregistered, the file's blocks
            // are not freed until the ring is closed.
            let _ = self.ring.submitter().register_files_update(slot, &[-1]);
        }
    }

    /// Returns the number of requests that have been pushed and not collected yet.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Writes requests into the submission queue. `file` returns the open file of a slot.
    #[inline]
    pub(super) fn push<'a>(
        &mut self,
        requests: impl Iterator<Item = &'a Request>,
        file: impl Fn(u32) -> RawFd,
    ) {
        let Registered { files, buffers } = self.registered;
        let mut pushed = 0;
        let mut queue = self.ring.submission();
        for request in requests {
            // A registered file is identified by its slot.
            let (name, flags) = if files && request.slot < Options::REGISTERED_FILES_MAX {
                (request.slot.cast_signed(), squeue::Flags::FIXED_FILE)
            } else {
                (file(request.slot), squeue::Flags::empty())
            };
            let fixed = buffers && request.in_pool;
            while !write_entry(&mut queue, request, Fd(name), flags, fixed) {
                drop(queue);
                empty(&mut self.ring, &mut self.patience, self.sqpoll);
                queue = self.ring.submission();
            }
            pushed += 1;
        }
        self.in_flight += pushed;
    }

    pub(super) fn submit(&mut self) -> io::Result<()> {
        submit(&mut self.ring, &mut self.patience)
    }

    /// Submits the queue, waits until `min` more requests are done or the kernel interrupts the
    /// wait, and collects all that are done.
    ///
    /// On a polled ring, every call polls the device once, even if `min` is 0.
    pub(super) fn enter(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        self.patience.judge(self.ring.submit_and_wait(min))?;
        self.collect(done);
        Ok(())
    }

    /// Submits the queue, waits until one more request is done, `time` has passed or the kernel
    /// interrupts the wait, and collects all that are done.
    pub(super) fn enter_within(&mut self, time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        if !self.ring.params().is_feature_ext_arg() {
            // The kernel is older than Linux 5.11.
            let before = done.len();
            self.enter(0, done)?;
            if done.len() == before {
                has_completion_within(&self.ring, time)?;
                self.collect(done);
            }
            return Ok(());
        }
        let time = Timespec::from(time);
        let limit = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &limit) {
            Err(error) if errno_of(&error) == libc::ETIME => {}
            called => self.patience.judge(called)?,
        }
        self.collect(done);
        Ok(())
    }

    /// Returns a wait that submits the queue and does not need `&mut` access to the ring.
    pub(super) fn prepare_wait(&mut self) -> io::Result<Wait> {
        if self.sqpoll {
            // Only a call through the ring's own type can tell whether the kernel's thread is
            // asleep.
            self.submit()?;
        }
        let to_submit = if self.sqpoll { 0 } else { self.ring.submission().len() as u32 };
        Ok(Wait::Ring { ring: self.ring.as_raw_fd(), to_submit })
    }

    /// Ends another thread's wait, by means of an entry that does nothing.
    pub(super) fn interrupt(&mut self) -> io::Result<()> {
        let entry = opcode::Nop::new().build().user_data(INTERRUPT);
        // SAFETY: the entry refers to no memory.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            empty(&mut self.ring, &mut self.patience, self.sqpoll);
        }
        self.interrupts += 1;
        self.submit()
    }

    /// Returns whether a call would make progress: there are entries to submit, or completions that
    /// arrive only during a call (DEFER_TASKRUN, as reported by TASKRUN_FLAG).
    pub(super) fn wants_call(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun()
    }

    /// Collects completed operations, without a system call.
    #[inline]
    pub(super) fn collect(&mut self, done: &mut Vec<Reply>) {
        if self.interrupts > 0 {
            return self.collect_among_interrupts(done);
        }
        let before = done.len();
        let queue = self.ring.completion();
        done.resize(before + queue.len(), Reply { token: 0, result: 0 });
        for (reply, entry) in done[before..].iter_mut().zip(queue) {
            *reply = Reply { token: entry.user_data() as u32, result: entry.result().into() };
        }
        self.in_flight -= done.len() - before;
    }

    /// Like [`Ring::collect`], but skips entries that only ended a wait.
    #[cold]
    fn collect_among_interrupts(&mut self, done: &mut Vec<Reply>) {
        for entry in self.ring.completion() {
            if entry.user_data() == INTERRUPT {
                self.interrupts -= 1;
            } else {
                let (token, result) = (entry.user_data() as u32, entry.result().into());
                done.push(Reply { token, result });
                self.in_flight -= 1;
            }
        }
    }
}

fn submit(ring: &mut IoUring, patience: &mut Patience) -> io::Result<()> {
    if ring.submission().is_empty() {
        return Ok(());
    }
    patience.judge(ring.submit())
}

/// Empties a full submission queue. The queue is as long as the engine's depth, so if it is full,
/// all entries are unsubmitted, or the kernel's thread has not taken them yet.
#[cold]
fn empty(ring: &mut IoUring, patience: &mut Patience, sqpoll: bool) {
    submit(ring, patience).expect("io_uring_enter takes what io_uring_setup allowed");
    if sqpoll {
        // An error is EINTR, after which the caller repeats the push.
        let _ = ring.submitter().squeue_wait();
    }
}

/// The registrations that entries may refer to.
#[derive(Clone, Copy, Default)]
struct Registered {
    files: bool,
    buffers: bool,
}

/// Writes the entry of a request, and returns whether the queue had room for it. `fixed` says
/// whether the entry refers to the registered pool.
#[inline(always)]
fn write_entry(
    queue: &mut SubmissionQueue,
    request: &Request,
    file: Fd,
    flags: squeue::Flags,
    fixed: bool,
) -> bool {
    let Request { token, kind, offset, address, len, rw_flags, .. } = *request;
    let bytes = len as u32;
    // The kernel refuses atomic writes from registered buffers (`generic_atomic_write_valid`).
    let fixed = fixed && rw_flags & libc::RWF_ATOMIC == 0;
    // Each kind of operation writes its own entry, because a shared one would have to be moved.
    let mut write = |entry: squeue::Entry| {
        let entry = entry.flags(flags).user_data(token.into());
        // SAFETY: the engine holds the request's buffer and file until the request is done (W5).
        unsafe { queue.push(&entry) }.is_ok()
    };
    match kind {
        OpKind::Read if fixed => {
            let read = opcode::ReadFixed::new(file, address, bytes, 0);
            write(read.offset(offset).rw_flags(rw_flags).build())
        }
        OpKind::Read => {
            let read = opcode::Read::new(file, address, bytes);
            write(read.offset(offset).rw_flags(rw_flags).build())
        }
        OpKind::Write | OpKind::DurableWrite if fixed => {
            let entry = opcode::WriteFixed::new(file, address, bytes, 0);
            write(entry.offset(offset).rw_flags(rw_flags).build())
        }
        OpKind::Write | OpKind::DurableWrite => {
            let entry = opcode::Write::new(file, address, bytes);
            write(entry.offset(offset).rw_flags(rw_flags).build())
        }
        OpKind::Fdatasync => write(opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build()),
        OpKind::Fsync => write(opcode::Fsync::new(file).build()),
        OpKind::Fallocate => write(opcode::Fallocate::new(file, len).offset(offset).build()),
        OpKind::Reserve => {
            let reserve = opcode::Fallocate::new(file, len).offset(offset);
            write(reserve.mode(libc::FALLOC_FL_KEEP_SIZE).build())
        }
    }
}

type SetUp = (IoUring, Vec<&'static str>, Option<Member>);

fn set_up(iodepth: u32, service: Service) -> io::Result<SetUp> {
    let sets = match (service.sqpoll, service.callers) {
        (Some(_), _) => SQPOLL_FLAGS,
        (None, Callers::One) => FLAGS,
        (None, Callers::Any | Callers::Shared) => ANY_CALLER_FLAGS,
    };
    let Some(sqpoll) = service.sqpoll else {
        let (ring, flags) = first_taken(iodepth, sets, service.iopoll, &|_| {})?;
        return Ok((ring, flags, None));
    };
    let set_up = |ask: &dyn Fn(&mut Builder)| first_taken(iodepth, sets, service.iopoll, ask);
    let (ring, mut flags, member) = sqpoll.ring(set_up)?;
    flags.push("SQPOLL");
    Ok((ring, flags, Some(member)))
}

/// Creates a ring with the newest set of flags that the kernel accepts, and returns it with the
/// flags' names.
fn first_taken(
    iodepth: u32,
    sets: &[&[Flag]],
    iopoll: bool,
    ask_besides: &dyn Fn(&mut Builder),
) -> io::Result<(IoUring, Vec<&'static str>)> {
    let mut refused = None;
    for flags in sets {
        let mut builder = IoUring::builder();
        builder.setup_clamp().dontfork();
        ask_besides(&mut builder);
        if iopoll {
            builder.setup_iopoll();
        }
        for (_, ask) in *flags {
            ask(&mut builder);
        }
        match builder.build(iodepth) {
            Ok(ring) => {
                let mut names: Vec<_> = flags.iter().map(|(name, _)| *name).collect();
                names.extend(iopoll.then_some("IOPOLL"));
                return Ok((ring, names));
            }
            // The kernel does not know one of the flags. After any other error, other flags would
            // not help.
            Err(error) if errno_of(&error) == libc::EINVAL => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.expect("there is a set of flags"))
}

/// Checks that the kernel supports the operations of Linux 5.6, which older kernels with io_uring
/// lack (`io_uring_enter(2)`).
fn check_operations(ring: &IoUring) -> Result<(), String> {
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe);
    probed.map_err(|error| format!("IORING_REGISTER_PROBE: {error}"))?;
    let needed = [
        ("IORING_OP_READ", opcode::Read::CODE),
        ("IORING_OP_WRITE", opcode::Write::CODE),
        ("IORING_OP_READ_FIXED", opcode::ReadFixed::CODE),
        ("IORING_OP_WRITE_FIXED", opcode::WriteFixed::CODE),
        ("IORING_OP_FSYNC", opcode::Fsync::CODE),
        ("IORING_OP_FALLOCATE", opcode::Fallocate::CODE),
    ];
    let missing = needed.iter().find(|(_, code)| !probe.is_supported(*code));
    missing.map_or(Ok(()), |(name, _)| Err(format!("{name}: the kernel does not have it")))
}

/// A count of consecutive refusals of a repeated call.
#[derive(Default)]
struct Patience {
    refusals: u32,
}

impl Patience {
    /// Returns the error of a call, unless the call is to be repeated: after a signal or a
    /// temporary refusal. A kernel that refuses forever must not block the caller forever.
    fn judge(&mut self, called: io::Result<usize>) -> io::Result<()> {
        let Err(error) = called else {
            self.refusals = 0;
            return Ok(());
        };
        match errno_of(&error) {
            libc::EINTR => Ok(()),
            libc::EAGAIN | libc::EBUSY if self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                if self.refusals > REFUSALS_AT_ONCE {
                    std::thread::sleep(REFUSED_FOR);
                }
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// Waits until an operation of the ring is complete, `time` has passed or a signal arrives. Returns
/// whether an operation is complete.
fn has_completion_within(ring: &IoUring, time: Duration) -> io::Result<bool> {
    // SAFETY: the ring keeps its descriptor open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
    let time = rustix::event::Timespec::try_from(time).ok();
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], time.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Unregistering waits for operations in flight, which may never complete.
        if self.registered.files && self.in_flight() == 0 {
            // This releases the registered files before the drop returns. On Linux 6.1, when slots
            // are emptied one by one or a ring is closed, the files are released by a worker,
            // possibly a second later.
            let _ = self.ring.submitter().unregister_files();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_the_kernels_own_limit_ends_with_a_completion_or_the_time() {
        let Ok(mut ring) = IoUring::new(2) else { return };
        assert!(!has_completion_within(&ring, Duration::ZERO).unwrap());
        // SAFETY: the entry refers to no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }.unwrap();
        ring.submit().unwrap();
        assert!(has_completion_within(&ring, Duration::from_secs(600)).unwrap());
    }

    #[test]
    fn a_kernel_that_refuses_for_ever_is_an_error_and_one_that_takes_a_call_is_none() {
        let refused = |errno| Err(io::Error::from_raw_os_error(errno));
        for errno in [libc::EAGAIN, libc::EBUSY] {
            let mut patience = Patience { refusals: REFUSALS_MAX - 1 };
            assert!(patience.judge(refused(errno)).is_ok());
            // Signals are not refusals, however many there are.
            assert!(patience.judge(refused(libc::EINTR)).is_ok());
            assert_eq!(errno_of(&patience.judge(refused(errno)).unwrap_err()), errno);
            assert!(patience.judge(Ok(0)).is_ok());
            assert!(patience.judge(refused(errno)).is_ok());
        }
        assert!(Patience::default().judge(refused(libc::EBADF)).is_err());
    }
}
