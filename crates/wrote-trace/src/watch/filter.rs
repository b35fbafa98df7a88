//! The calls that change files, and the seccomp filter that stops a program only at them.
//!
//! Written by hand, because the existing crates kill programs of another architecture, which should
//! run unobserved instead.

use crate::wanted::{Sign, Wanted};
use libc::{c_long, sock_filter};
use std::io;

/// When to stop at a call.
#[derive(Clone, Copy)]
pub enum When {
    /// Each time.
    Always,
    /// If an argument has one of these bits.
    Has(u32, u32),
    /// If an argument has this value.
    Is(u32, u32),
}

impl When {
    /// Whether a call with these arguments is of interest.
    pub fn is_met(self, arguments: &[u64; 6]) -> bool {
        match self {
            When::Always => true,
            When::Has(argument, bits) => arguments[argument as usize] as u32 & bits != 0,
            When::Is(argument, value) => arguments[argument as usize] as u32 == value,
        }
    }
}

/// Without any of these flags of `open(2)` a file can't be changed.
const CHANGES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;
/// `linux/fs.h`.
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;

/// The calls at which a program is stopped.
pub fn watched(wanted: &Wanted) -> Vec<(c_long, When)> {
    let always = |number: &c_long| (*number, When::Always);
    let mut calls: Vec<(c_long, When)> = ALWAYS.iter().map(always).collect();
    calls.extend(OF_THIS_MACHINE);
    calls.extend([
        (libc::SYS_openat, When::Has(2, CHANGES)),
        (libc::SYS_mmap, When::Has(3, libc::MAP_SHARED as u32)),
        (libc::SYS_fcntl, When::Is(1, libc::F_SETFL as u32)),
        (libc::SYS_ioctl, When::Is(1, FICLONE)),
        (libc::SYS_ioctl, When::Is(1, FICLONERANGE)),
    ]);
    if matches!(wanted.ack, Sign::Socket | Sign::Text(_)) {
        calls.extend([libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg].iter().map(always));
    }
    if wanted.reads {
        calls.extend(READS.iter().map(always));
    }
    calls
}

const ALWAYS: [c_long; 29] = [
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_openat2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_msync,
    libc::SYS_sync_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
    libc::SYS_close_range,
    libc::SYS_io_uring_setup,
    libc::SYS_io_setup,
    libc::SYS_setsid,
];

const READS: [c_long; 4] = [libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_preadv];

/// Calls that newer architectures have only in their `..at` form.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: [(c_long, When); 10] = [
    (libc::SYS_open, When::Has(1, CHANGES)),
    (libc::SYS_creat, When::Always),
    (libc::SYS_rename, When::Always),
    (libc::SYS_link, When::Always),
    (libc::SYS_unlink, When::Always),
    (libc::SYS_rmdir, When::Always),
    (libc::SYS_mkdir, When::Always),
    (libc::SYS_symlink, When::Always),
    (libc::SYS_dup2, When::Always),
    (libc::SYS_dup3, When::Always),
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: [(c_long, When); 1] = [(libc::SYS_dup3, When::Always)];

/// `AUDIT_ARCH_*` of `linux/audit.h`: the ELF machine, 64 bits, little endian. `None` on an
/// architecture whose calls are not known.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Offsets within `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Builds the filter. A call listed several times stops if any entry matches.
///
/// # Errors
///
/// On an architecture whose calls are not known.
pub fn filter(calls: &[(c_long, When)]) -> io::Result<Vec<sock_filter>> {
    let unknown = || io::Error::other("only programs of x86-64 and AArch64 can be traced");
    let architecture = ARCHITECTURE.ok_or_else(unknown)?;
    let pass = statement(RETURN, libc::SECCOMP_RET_ALLOW);
    let stop = statement(RETURN, libc::SECCOMP_RET_TRACE);
    let mut program = vec![
        statement(LOAD, ARCHITECTURE_AT),
        jump(JUMP_EQUAL, architecture, 1, 0),
        pass,
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
