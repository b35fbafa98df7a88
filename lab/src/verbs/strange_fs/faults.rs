//! The faults of the file system, and when they occur.

use clap::{Args, ValueEnum};
use fuser::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

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
}

/// The faults of one mounted file system.
#[derive(Debug, Default)]
pub struct Faults {
    arguments: FaultArguments,
    flush_failed: AtomicBool,
}

impl Faults {
    /// Creates the faults that `arguments` describe.
    pub fn new(arguments: FaultArguments) -> Faults {
        Faults { arguments, flush_failed: AtomicBool::new(false) }
    }

    /// Returns how many of the `length` bytes of a write are accepted.
    pub fn taken(&self, length: usize) -> usize {
        self.arguments.short_writes.map_or(length, |most| length.min(most as usize))
    }

    /// Returns whether the kernel must pass every write of a program to the daemon unchanged, and
    /// return the daemon's count to the program. Otherwise, the kernel's page cache would complete
    /// a short write.
    pub fn bypasses_page_cache(&self) -> bool {
        self.arguments.short_writes.is_some()
    }

    /// Returns EIO if this flush is to fail.
    pub fn flush(&self) -> Result<(), Errno> {
        if self.arguments.fail_fsync && !self.flush_failed.swap(true, Ordering::Relaxed) {
            return Err(Errno::EIO);
        }
        Ok(())
    }

    /// Returns EINVAL if an open with these `open(2)` flags is to be refused, or a transfer of a
    /// file that was opened with them.
    pub fn refuse(&self, at: Refuse, flags: i32) -> Result<(), Errno> {
        if self.arguments.refuse_direct == Some(at) && flags & libc::O_DIRECT != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(())
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
    fn only_the_first_flush_fails() {
        let faults = Faults::new(FaultArguments { fail_fsync: true, ..FaultArguments::default() });
        assert_eq!(refused(faults.flush()), Some(libc::EIO));
        assert_eq!(refused(faults.flush()), None);
    }
}
