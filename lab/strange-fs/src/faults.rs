//! The ways in which the file system misbehaves, and when.

use clap::{Args, ValueEnum};
use fuser::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where O_DIRECT is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Refuse {
    /// At `open(2)`: the file is made, then EINVAL, as the kernel does it for a file system
    /// without direct I/O.
    Open,
    /// At the first transfer: the open succeeds, each read and write answers EINVAL.
    Transfer,
}

/// What was asked for on the command line.
#[derive(Args, Clone, Copy, Debug, Default)]
#[group(id = "faults")]
pub struct Asked {
    /// Refuse O_DIRECT with EINVAL.
    #[arg(long, value_name = "WHERE")]
    pub refuse_direct: Option<Refuse>,
    /// Take at most N bytes of each write.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub short_writes: Option<u32>,
    /// Fail the first flush of a file with EIO; those that follow succeed.
    #[arg(long)]
    pub fail_fsync: bool,
    /// Take O_DIRECT, and leave what was written in the kernel's page cache all the same.
    #[arg(long, conflicts_with = "short_writes")]
    pub keep_direct: bool,
}

/// The misbehaviour of one mounted file system.
#[derive(Debug, Default)]
pub struct Faults {
    asked: Asked,
    flush_failed: AtomicBool,
}

impl Faults {
    /// Misbehaves as `asked`.
    pub fn new(asked: Asked) -> Faults {
        Faults { asked, flush_failed: AtomicBool::new(false) }
    }

    /// EINVAL where an open with these `open(2)` flags is refused.
    pub fn open(&self, flags: i32) -> Result<(), Errno> {
        self.refuse(Refuse::Open, flags)
    }

    /// EINVAL where a read or write of a file opened with these flags is refused.
    pub fn transfer(&self, flags: i32) -> Result<(), Errno> {
        self.refuse(Refuse::Transfer, flags)
    }

    /// How many of the `length` bytes of a write are taken.
    pub fn taken(&self, length: usize) -> usize {
        self.asked.short_writes.map_or(length, |most| length.min(most as usize))
    }

    /// Whether the kernel must hand every write to the daemon as the program made it, and the
    /// count that the daemon took back to the program. Otherwise the kernel's own page cache would
    /// finish a short write.
    pub fn bypasses_page_cache(&self) -> bool {
        self.asked.short_writes.is_some()
    }

    /// Whether what is written by a file opened with these flags is put into the page cache.
    pub fn keeps(&self, flags: i32) -> bool {
        self.asked.keep_direct && flags & libc::O_DIRECT != 0
    }

    /// Whether the next who opens a file finds its pages where they are. Otherwise the kernel drops
    /// them at each `open(2)`.
    pub fn keeps_page_cache(&self) -> bool {
        self.asked.keep_direct
    }

    /// EIO where this flush fails.
    pub fn flush(&self) -> Result<(), Errno> {
        if self.asked.fail_fsync && !self.flush_failed.swap(true, Ordering::Relaxed) {
            return Err(Errno::EIO);
        }
        Ok(())
    }

    fn refuse(&self, at: Refuse, flags: i32) -> Result<(), Errno> {
        if self.asked.refuse_direct == Some(at) && flags & libc::O_DIRECT != 0 {
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
        assert_eq!(refused(faults.open(libc::O_DIRECT)), None);
        assert_eq!(refused(faults.transfer(libc::O_DIRECT)), None);
        assert_eq!(refused(faults.flush()), None);
        assert_eq!(faults.taken(1 << 20), 1 << 20);
    }

    #[test]
    fn direct_is_refused_where_it_was_asked_and_nowhere_else() {
        let at = |refuse| Faults::new(Asked { refuse_direct: Some(refuse), ..Asked::default() });
        assert_eq!(refused(at(Refuse::Open).open(libc::O_DIRECT)), Some(libc::EINVAL));
        assert_eq!(refused(at(Refuse::Open).open(libc::O_RDWR)), None);
        assert_eq!(refused(at(Refuse::Transfer).open(libc::O_DIRECT)), None);
        assert_eq!(refused(at(Refuse::Transfer).transfer(libc::O_DIRECT)), Some(libc::EINVAL));
        assert_eq!(refused(at(Refuse::Transfer).transfer(libc::O_RDWR)), None);
    }

    #[test]
    fn a_short_write_takes_no_more_than_there_is() {
        let faults = Faults::new(Asked { short_writes: Some(1000), ..Asked::default() });
        assert_eq!(faults.taken(4096), 1000);
        assert_eq!(faults.taken(7), 7);
    }

    #[test]
    fn only_what_is_written_directly_needs_to_be_kept() {
        let faults = Faults::new(Asked { keep_direct: true, ..Asked::default() });
        assert!(faults.keeps(libc::O_DIRECT | libc::O_RDWR));
        assert!(!faults.keeps(libc::O_RDWR) && !Faults::default().keeps(libc::O_DIRECT));
    }

    #[test]
    fn only_the_first_flush_fails() {
        let faults = Faults::new(Asked { fail_fsync: true, ..Asked::default() });
        assert_eq!(refused(faults.flush()), Some(libc::EIO));
        assert_eq!(refused(faults.flush()), None);
    }
}
