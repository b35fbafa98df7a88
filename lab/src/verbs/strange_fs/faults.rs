//! The faults of the file system and their moments, and direct writes that it keeps in memory.

use clap::{Args, ValueEnum};
use fuser::{Errno, INodeNo, Notifier};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// When O_DIRECT is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Refuse {
    /// At `open(2)`: the file is made, then EINVAL, like the kernel's answer for a file system
    /// without direct I/O.
    Open,
    /// At the first transfer: the open succeeds, and each read and write answers EINVAL.
    Transfer,
}

/// The faults of the command line.
#[derive(Args, Clone, Copy, Debug, Default)]
#[group(id = "faults")]
pub struct FaultArguments {
    /// Refuse O_DIRECT with EINVAL.
    #[arg(long, value_name = "WHERE")]
    pub refuse_direct: Option<Refuse>,
    /// Take at most N bytes of each write.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub short_writes: Option<u32>,
    /// Fail the first flush of a file with EIO; the flushes after it succeed.
    #[arg(long)]
    pub fail_fsync: bool,
    /// Take O_DIRECT, and leave the written bytes in the kernel's page cache all the same.
    #[arg(long, conflicts_with = "short_writes")]
    pub keep_direct: bool,
}

/// The faults of one mounted file system.
#[derive(Debug, Default)]
pub struct Faults {
    arguments: FaultArguments,
    flush_failed: AtomicBool,
}

impl Faults {
    /// Makes a file system that misbehaves by `arguments`.
    pub fn new(arguments: FaultArguments) -> Faults {
        Faults { arguments, flush_failed: AtomicBool::new(false) }
    }

    /// Returns how many of the `length` bytes of a write are taken.
    pub fn taken(&self, length: usize) -> usize {
        self.arguments.short_writes.map_or(length, |most| length.min(most as usize))
    }

    /// Returns whether the kernel must hand every write of a program to the daemon unchanged, and
    /// return the daemon's count to the program. Otherwise the kernel's page cache would finish a
    /// short write.
    pub fn bypasses_page_cache(&self) -> bool {
        self.arguments.short_writes.is_some()
    }

    /// Returns whether bytes written through a file opened with these flags go into the page cache.
    pub fn keeps(&self, flags: i32) -> bool {
        self.arguments.keep_direct && flags & libc::O_DIRECT != 0
    }

    /// Returns whether the next open of a file finds its pages in the cache. Otherwise the kernel
    /// drops them at each `open(2)`.
    pub fn keeps_page_cache(&self) -> bool {
        self.arguments.keep_direct
    }

    /// Answers EIO if this flush fails.
    pub fn flush(&self) -> Result<(), Errno> {
        if self.arguments.fail_fsync && !self.flush_failed.swap(true, Ordering::Relaxed) {
            return Err(Errno::EIO);
        }
        Ok(())
    }

    /// Answers EINVAL if an open with these `open(2)` flags is refused, or a transfer of a file
    /// opened with them.
    pub fn refuse(&self, at: Refuse, flags: i32) -> Result<(), Errno> {
        if self.arguments.refuse_direct == Some(at) && flags & libc::O_DIRECT != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

/// A pause before the range is stored. When the kernel has the answer to a direct write it drops
/// the range from its page cache once more (`kiocb_invalidate_post_direct_write`).
const DELAY: Duration = Duration::from_millis(20);

/// Bytes on their way to the page cache.
#[derive(Debug, Default)]
pub struct Keep {
    notifier: OnceLock<Notifier>,
    ranges: Mutex<VecDeque<Range>>,
}

/// A part of a file, with its written bytes.
#[derive(Debug)]
struct Range {
    written: Instant,
    number: u64,
    offset_bytes: u64,
    data: Vec<u8>,
}

impl Keep {
    /// Sets the connection to the kernel. Without it nothing is kept.
    pub fn connect(&self, notifier: Notifier) {
        // It is called once.
        let _ = self.notifier.set(notifier);
    }

    /// Keeps written bytes for later.
    pub fn take(&self, number: u64, offset_bytes: u64, data: &[u8]) {
        let range = Range { written: Instant::now(), number, offset_bytes, data: data.to_owned() };
        self.ranges().push_back(range);
    }

    /// Puts ranges that have waited long enough into the page cache, in an endless loop.
    pub fn run(&self) {
        loop {
            while let Some(range) = self.next(DELAY) {
                self.store(&range);
            }
            std::thread::sleep(DELAY);
        }
    }

    /// Puts all ranges there, for requests while no write is in flight.
    pub fn finish(&self) {
        while let Some(range) = self.next(Duration::ZERO) {
            self.store(&range);
        }
    }

    /// Removes and returns the oldest range, if it has waited for `delay`.
    fn next(&self, delay: Duration) -> Option<Range> {
        let mut ranges = self.ranges();
        let is_old = ranges.front().is_some_and(|range| range.written.elapsed() >= delay);
        if is_old { ranges.pop_front() } else { None }
    }

    fn store(&self, range: &Range) {
        let Some(notifier) = self.notifier.get() else { return };
        // It fails if the file is gone: then there is nothing to keep.
        let _ = notifier.store(INodeNo(range.number), range.offset_bytes, &range.data);
    }

    fn ranges(&self) -> MutexGuard<'_, VecDeque<Range>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<(), Errno>) -> Option<i32> {
        result.err().map(Into::into)
    }

    #[test]
    fn without_a_request_nothing_misbehaves() {
        let faults = Faults::default();
        assert_eq!(refused(faults.refuse(Refuse::Open, libc::O_DIRECT)), None);
        assert_eq!(refused(faults.refuse(Refuse::Transfer, libc::O_DIRECT)), None);
        assert_eq!(refused(faults.flush()), None);
        assert_eq!(faults.taken(1 << 20), 1 << 20);
    }

    #[test]
    fn direct_is_refused_where_it_was_asked_and_nowhere_else() {
        let at = |refuse| {
            Faults::new(FaultArguments { refuse_direct: Some(refuse), ..FaultArguments::default() })
        };
        assert_eq!(
            refused(at(Refuse::Open).refuse(Refuse::Open, libc::O_DIRECT)),
            Some(libc::EINVAL)
        );
        assert_eq!(refused(at(Refuse::Open).refuse(Refuse::Open, libc::O_RDWR)), None);
        assert_eq!(refused(at(Refuse::Transfer).refuse(Refuse::Open, libc::O_DIRECT)), None);
        assert_eq!(
            refused(at(Refuse::Transfer).refuse(Refuse::Transfer, libc::O_DIRECT)),
            Some(libc::EINVAL)
        );
        assert_eq!(refused(at(Refuse::Transfer).refuse(Refuse::Transfer, libc::O_RDWR)), None);
    }

    #[test]
    fn a_short_write_takes_no_more_than_there_is() {
        let faults =
            Faults::new(FaultArguments { short_writes: Some(1000), ..FaultArguments::default() });
        assert_eq!(faults.taken(4096), 1000);
        assert_eq!(faults.taken(7), 7);
    }

    #[test]
    fn only_what_is_written_directly_needs_to_be_kept() {
        let faults = Faults::new(FaultArguments { keep_direct: true, ..FaultArguments::default() });
        assert!(faults.keeps(libc::O_DIRECT | libc::O_RDWR));
        assert!(!faults.keeps(libc::O_RDWR) && !Faults::default().keeps(libc::O_DIRECT));
    }

    #[test]
    fn only_the_first_flush_fails() {
        let faults = Faults::new(FaultArguments { fail_fsync: true, ..FaultArguments::default() });
        assert_eq!(refused(faults.flush()), Some(libc::EIO));
        assert_eq!(refused(faults.flush()), None);
    }

    #[test]
    fn kept_writes_wait_and_leave_in_their_order() {
        let keep = Keep::default();
        keep.take(2, 0, b"first");
        keep.take(3, 4096, b"second");
        assert!(keep.next(Duration::from_secs(3600)).is_none());
        let first = keep.next(Duration::ZERO).expect("it is there");
        assert_eq!((first.number, first.offset_bytes, &first.data[..]), (2, 0, &b"first"[..]));
        keep.finish();
        assert!(keep.ranges().is_empty());
    }
}
