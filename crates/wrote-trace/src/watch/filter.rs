//! The seccomp filter that stops a program only at calls that change files.
//!
//! Written by hand, because the existing crates kill programs of another architecture, which should
//! run unobserved instead.

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
