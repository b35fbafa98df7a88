//! The calls that change files, and the seccomp filter that stops a program only at them.
//!
//! The filter is written by hand, because the existing crates kill programs that make calls of
//! another architecture. A traced program should continue instead, and such calls are only noted.

use crate::wanted::{Sign, Wanted};
use libc::{c_long, sock_filter};
use std::io;

/// The condition under which a program is stopped at a call.
#[derive(Clone, Copy)]
pub enum When {
    /// At every call.
    Always,
    /// If an argument has any of these bits.
    Has(u32, u32),
    /// If an argument has this value.
    Is(u32, u32),
}

impl When {
    /// Returns whether a call with these arguments meets the condition.
    pub fn is_met(self, arguments: &[u64; 6]) -> bool {
        match self {
            When::Always => true,
            When::Has(argument, bits) => arguments[argument as usize] as u32 & bits != 0,
            When::Is(argument, value) => arguments[argument as usize] as u32 == value,
        }
    }
}

/// The flags of `open(2)` without which the open file can't be changed.
const CHANGES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;
/// From `linux/fs.h`.
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
/// `FS_IOC_ZERO_RANGE`, `XFS_IOC_UNRESVSP`, `XFS_IOC_UNRESVSP64`, `XFS_IOC_EXCHANGE_RANGE`.
pub const SPACE_IOCTLS: [u32; 4] = [0x4030_5839, 0x4030_5829, 0x4030_582b, 0x4028_5881];

/// Returns the calls at which a program is stopped.
pub fn watched(wanted: &Wanted) -> Vec<(c_long, When)> {
    let always = |number: &c_long| (*number, When::Always);
    let mut calls: Vec<(c_long, When)> = ALWAYS.iter().chain(PROCESSORS).map(always).collect();
    #[cfg(target_arch = "x86_64")]
    calls.extend(OLDER.iter().map(always).chain([(libc::SYS_open, When::Has(1, CHANGES))]));
    calls.extend([
        (libc::SYS_openat, When::Has(2, CHANGES)),
        // A mapping at a fixed address may replace another.
        (libc::SYS_mmap, When::Has(3, (libc::MAP_SHARED | libc::MAP_FIXED) as u32)),
        (libc::SYS_mprotect, When::Has(2, libc::PROT_WRITE as u32)),
        (libc::SYS_pkey_mprotect, When::Has(2, libc::PROT_WRITE as u32)),
        (libc::SYS_fcntl, When::Is(1, libc::F_SETFL as u32)),
        (libc::SYS_ioctl, When::Is(1, FICLONE)),
        (libc::SYS_ioctl, When::Is(1, FICLONERANGE)),
        (libc::SYS_madvise, When::Is(2, libc::MADV_REMOVE as u32)),
        (libc::SYS_unshare, When::Has(0, libc::CLONE_FILES as u32)),
    ]);
    calls.extend(SPACE_IOCTLS.map(|request| (libc::SYS_ioctl, When::Is(1, request))));
    if matches!(wanted.ack, Sign::Socket | Sign::Text(_)) {
        calls.extend(SENDS.iter().map(always));
    }
    calls
}

/// Lists the numbers of these calls.
macro_rules! numbers {
    ($($call:ident)*) => { &[$(libc::$call),*] };
}

const ALWAYS: &[c_long] = numbers! {
    SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_sendfile SYS_splice
    SYS_copy_file_range SYS_fsync SYS_fdatasync SYS_sync SYS_syncfs SYS_msync SYS_sync_file_range
    SYS_openat2 SYS_close SYS_close_range SYS_dup3 SYS_truncate SYS_ftruncate SYS_fallocate
    SYS_renameat SYS_renameat2 SYS_linkat SYS_unlinkat SYS_mkdirat SYS_symlinkat
    SYS_io_uring_setup SYS_io_uring_register SYS_io_uring_enter SYS_io_setup SYS_io_submit
    SYS_io_destroy SYS_setsid SYS_exit_group SYS_munmap SYS_mremap
};
/// The calls whose result depends on the processors that a thread may use.
pub const PROCESSORS: &[c_long] = numbers! {
    SYS_execve SYS_execveat SYS_clone SYS_clone3 SYS_sched_getaffinity SYS_sched_setaffinity
};
const SENDS: &[c_long] = numbers! { SYS_sendto SYS_sendmsg SYS_sendmmsg };
/// Calls that newer architectures have only in the `..at` form; see [`newer`].
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = numbers! {
    SYS_creat SYS_rename SYS_link SYS_unlink SYS_rmdir SYS_mkdir SYS_symlink SYS_dup2 SYS_fork
    SYS_vfork
};

/// Returns a call in its `..at` form, or in its newer form.
#[cfg(target_arch = "x86_64")]
pub fn newer(number: c_long, arguments: [u64; 6]) -> (c_long, [u64; 6]) {
    const HERE: u64 = libc::AT_FDCWD as u64;
    let [a, b, c, ..] = arguments;
    let (number, first) = match number {
        libc::SYS_open => (libc::SYS_openat, [HERE, a, b, c]),
        libc::SYS_creat => (libc::SYS_openat, [HERE, a, (libc::O_CREAT | libc::O_TRUNC) as u64, b]),
        libc::SYS_rename => (libc::SYS_renameat, [HERE, a, HERE, b]),
        libc::SYS_link => (libc::SYS_linkat, [HERE, a, HERE, b]),
        libc::SYS_unlink | libc::SYS_rmdir => (libc::SYS_unlinkat, [HERE, a, 0, 0]),
        libc::SYS_mkdir => (libc::SYS_mkdirat, [HERE, a, b, 0]),
        libc::SYS_symlink => (libc::SYS_symlinkat, [a, HERE, b, 0]),
        libc::SYS_dup2 => (libc::SYS_dup3, [a, b, 0, 0]),
        libc::SYS_fork | libc::SYS_vfork => (libc::SYS_clone, [0; 4]),
        _ => return (number, arguments),
    };
    let [a, b, c, d] = first;
    (number, [a, b, c, d, 0, 0])
}
#[cfg(not(target_arch = "x86_64"))]
pub fn newer(number: c_long, arguments: [u64; 6]) -> (c_long, [u64; 6]) {
    (number, arguments)
}

/// The value of `AUDIT_ARCH_*` in `linux/audit.h`: the ELF machine, 64 bits, little endian. `None`
/// on an architecture whose calls are unknown.
pub const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// The offsets within `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Builds the filter. If a call is listed several times, the program is stopped if any entry
/// matches.
///
/// # Errors
///
/// On an architecture whose calls are unknown.
pub fn filter(calls: &[(c_long, When)]) -> io::Result<Vec<sock_filter>> {
    let unknown = || io::Error::other("only programs of x86-64 and AArch64 can be traced");
    let architecture = ARCHITECTURE.ok_or_else(unknown)?;
    let pass = statement(RETURN, libc::SECCOMP_RET_ALLOW);
    let stop = statement(RETURN, libc::SECCOMP_RET_TRACE);
    let mut program = vec![
        statement(LOAD, ARCHITECTURE_AT),
        jump(JUMP_EQUAL, architecture, 1, 0),
        // Calls of another architecture, such as 32-bit calls, have different numbers. They are
        // only noted.
        stop,
        statement(LOAD, NUMBER_AT),
    ];
    for (number, when) in calls {
        let number = u32::try_from(*number).expect("numbers of calls are small");
        let (argument, test) = match *when {
            When::Always => {
                program.extend([jump(JUMP_EQUAL, number, 0, 1), stop]);
                continue;
            }
            When::Has(argument, bits) => (argument, jump(JUMP_SET, bits, 0, 1)),
            When::Is(argument, value) => (argument, jump(JUMP_EQUAL, value, 0, 1)),
        };
        program.extend([
            jump(JUMP_EQUAL, number, 0, 4),
            statement(LOAD, ARGUMENTS_AT + 8 * argument),
            test,
            stop,
            statement(LOAD, NUMBER_AT),
        ]);
    }
    program.push(pass);
    Ok(program)
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}
