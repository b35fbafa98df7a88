//! Steps that submit operations to a kernel queue: a ring of io_uring, or a context of AIO.

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::fs::{CWD, OFlags};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DEPTH: u32 = 8;
/// Operation codes of `linux/aio_abi.h`.
const PWRITE: u16 = 1;
const FDSYNC: u16 = 3;

/// A ring, which is created by the first step that needs it.
#[derive(Default)]
pub struct Ring {
    ring: Option<IoUring>,
    /// The data of operations in flight that no step has waited for.
    data: Vec<Box<[u8]>>,
    in_flight: usize,
    count: u64,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ring").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Ring {
    fn ring(&mut self) -> io::Result<&mut IoUring> {
        if self.ring.is_none() {
            self.ring = Some(IoUring::new(DEPTH)?);
        }
        Ok(self.ring.as_mut().expect("it was made"))
    }

    /// Submits operations, and waits for all operations in flight if `waits` is set. Returns the
    /// last result.
    fn submit(&mut self, operations: &[squeue::Entry], waits: bool) -> io::Result<i32> {
        for operation in operations {
            (self.count, self.in_flight) = (self.count + 1, self.in_flight + 1);
            let operation = operation.clone().user_data(self.count);
            // SAFETY: the caller keeps paths, and this ring the data, until the operation's end.
            unsafe { self.ring()?.submission().push(&operation) }.map_err(io::Error::other)?;
        }
        self.ring()?.submit()?;
        if waits { self.wait() } else { Ok(0) }
    }

    /// Waits for all operations in flight. Returns the last result.
    pub fn wait(&mut self) -> io::Result<i32> {
        let (last, mut result) = (self.count, Ok(0));
        if self.in_flight == 0 {
            return result;
        }
        let count = std::mem::take(&mut self.in_flight);
        self.ring()?.submit_and_wait(count)?;
        for end in self.ring()?.completion() {
            if end.user_data() == last {
                result = match end.result() {
                    value @ 0.. => Ok(value),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
            }
        }
        self.data.clear();
        result
    }

    /// Performs a step on an open file, given its verb without the first part.
    pub fn on_file(&mut self, verb: &str, file: &File, data: &[u8]) -> io::Result<()> {
        const BLOCK: usize = 4096;
        let flush = |flags| opcode::Fsync::new(Fd(file.as_raw_fd())).flags(flags).build();
        let whole = flush(FsyncFlags::empty());
        let write = |data: &[u8]| {
            let write = opcode::Write::new(Fd(file.as_raw_fd()), data.as_ptr(), BLOCK as u32);
            write.offset(BLOCK as u64)
        };
        let (operations, waits) = match verb {
            "put" => (vec![write(data).build()], true),
            "later" if self.data.len() < DEPTH as usize / 2 => {
                let kept: Box<[u8]> = data.into();
                let operation = write(&kept).build();
                self.data.push(kept);
                (vec![operation], false)
            }
            "fsync" => (vec![whole], true),
            "fdatasync" => (vec![flush(FsyncFlags::DATASYNC)], true),
            "both" => (vec![write(data).build(), whole], true),
            "chain" => (vec![write(data).build().flags(squeue::Flags::IO_LINK), whole], true),
            "drain" => (vec![write(data).build(), whole.flags(squeue::Flags::IO_DRAIN)], true),
            "dsync" => (vec![write(data).rw_flags(libc::RWF_DSYNC).build()], true),
            _ => return Err(io::Error::other(format!("no such operation: {verb}"))),
        };
        self.submit(&operations, waits).map(drop)
    }

    /// Performs a step on names. Returns the file that it opens, if any.
    pub fn on_names(&mut self, verb: &str, one: &Path, other: &Path) -> io::Result<Option<File>> {
        let here = Fd(CWD.as_raw_fd());
        let [one, other] = [one, other].map(|path| CString::new(path.as_os_str().as_bytes()));
        let (one, other) = (one?, other?);
        let (from, to) = (one.as_ptr(), other.as_ptr());
        let open = |flags: OFlags| {
            let open = opcode::OpenAt::new(here, from).flags(flags.bits() as i32).mode(0o644);
            open.build()
        };
        let operation = match verb {
            "make" => open(OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC),
            "folder" => open(OFlags::RDONLY | OFlags::CLOEXEC),
            "rename" => opcode::RenameAt::new(here, from, here, to).build(),
            "link" => opcode::LinkAt::new(here, from, here, to).build(),
            "unlink" => opcode::UnlinkAt::new(here, from).build(),
            _ => return Err(io::Error::other(format!("no such operation: {verb}"))),
        };
        let result = self.submit(&[operation], true)?;
        let opens = matches!(verb, "make" | "folder");
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = opens.then(|| unsafe { File::from_raw_fd(result) });
        match (verb, file) {
            ("folder", Some(folder)) => self.on_file("fsync", &folder, &[]).map(|()| None),
            (_, file) => Ok(file),
        }
    }
}

/// Performs a step on an open file with a context of kernel AIO.
pub fn aio(verb: &str, file: &File, data: &[u8]) -> io::Result<()> {
    const BLOCK: u64 = 4096;
    let control = |operation: u16, count: u64| {
        let mut control = [0_u64; 8];
        control[2] = u64::from(operation) | (file.as_raw_fd() as u64) << 32;
        // A flush has no data.
        (control[3], control[4]) = (if count > 0 { data.as_ptr() as u64 } else { 0 }, count);
        control
    };
    let (write, flush) = (control(PWRITE, BLOCK), control(FDSYNC, 0));
    let lists: &[&[[u64; 8]]] = match verb {
        "put" => &[&[write]],
        "both" => &[&[write, flush]],
        "save" => &[&[write], &[flush]],
        _ => return Err(io::Error::other(format!("no such operation: {verb}"))),
    };
    let mut context = 0_u64;
    // SAFETY: the kernel stores one word, and reads and writes nothing later than `io_destroy`.
    unsafe {
        checked(libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context))?;
        let all = || {
            for list in lists {
                let list: Vec<*const [u64; 8]> = list.iter().map(std::ptr::from_ref).collect();
                let (submit, count) = (libc::SYS_io_submit, list.len());
                let count = checked(libc::syscall(submit, context, count, list.as_ptr()))?;
                let (mut events, none) = ([[0_u64; 4]; 2], std::ptr::null::<u8>());
                let events = events.as_mut_ptr();
                let wait = libc::SYS_io_getevents;
                checked(libc::syscall(wait, context, count, count, events, none))?;
            }
            Ok(())
        };
        let done = all();
        checked(libc::syscall(libc::SYS_io_destroy, context))?;
        done
    }
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error()) }
}
