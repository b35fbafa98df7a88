//! Tests of programs whose calls cannot be seen, or which have fewer rights when traced.

use super::{file, traced};
use crate::support::{run_through, wrote};
use fixtures::{finish, folder, or_skip};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use wrote_result::trace::{Trace, Verdict};

#[test]
fn a_setuid_program_runs_without_the_rights_of_its_owner_and_that_is_said() {
    or_skip!(match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("only root can make a program of another user"),
    });
    let place = folder();
    let program = place.path().join("whoami");
    fs::copy("/usr/bin/id", &program).unwrap();
    chown(&program, Some(65_534), None).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    let (trace, finished) = traced(place.path(), "./whoami -u", &[]);
    assert_eq!(finished.stdout, "0\n", "{finished:?}");
    let note = format!("{} runs without the rights of its owner", program.display());
    assert_eq!(trace.unseen, [note]);
}

#[test]
fn a_program_is_traced_without_the_capability_to_trace_others() {
    let is_root = rustix::process::geteuid().is_root();
    let through: &[&str] = match is_root {
        true => &["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"],
        false => &[],
    };
    or_skip!(match run_through(through, Command::new("true")).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("setpriv can't drop a capability here"),
    });
    let place = folder();
    let path = place.path().join("trace.json");
    let mut command = wrote(&["trace", "--format", "json", "-o"]);
    command.arg(&path).args(["sh", "-c", "grep CapEff /proc/self/status; printf x > b; sync b"]);
    let finished = finish(run_through(through, command).current_dir(&place));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    // `CAP_SYS_PTRACE` from `linux/capability.h`.
    let effective = finished.stdout.split_whitespace().last().unwrap();
    assert_eq!(u64::from_str_radix(effective, 16).unwrap() >> 19 & 1, 0, "{finished:?}");
    let trace: Trace = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((file(&trace, "b").bytes, file(&trace, "b").flushes), (1, 1), "{trace:?}");
}

/// The machine code of a 32-bit program (i386), which is loaded at `BASE` after its headers. It
/// writes one byte to a new file `b`, and exits with code 3. Its last two bytes are the name. Each
/// pair of lines is a call: `creat(name, 0644)`, `write(it, name, 1)`, `exit(3)`.
#[cfg(target_arch = "x86_64")]
const CODE: &[u8] = b"\
    \xb8\x08\x00\x00\x00\xbb\x84\x80\x04\x08\
    \xb9\xa4\x01\x00\x00\xcd\x80\
    \x89\xc3\xb8\x04\x00\x00\x00\xb9\x84\x80\x04\x08\
    \xba\x01\x00\x00\x00\xcd\x80\
    \xb8\x01\x00\x00\x00\xbb\x03\x00\x00\x00\
    \xcd\x80\
    b\0";

#[cfg(target_arch = "x86_64")]
fn program_of_32_bits() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS_BYTES: u32 = 52 + 32;
    let file_bytes = HEADERS_BYTES + CODE.len() as u32;
    let mut bytes = b"\x7fELF\x01\x01\x01".to_vec();
    bytes.resize(16, 0);
    // The header of an executable for the 386, with its entry point and one program header.
    bytes.extend([2_u16, 3].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend([1, BASE + HEADERS_BYTES, 52, 0, 0].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend([52_u16, 32, 1, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // The whole file is loaded, and is readable and executable.
    let header = [1, 0, BASE, BASE, file_bytes, file_bytes, 5, 0x1000];
    bytes.extend(header.into_iter().flat_map(u32::to_le_bytes));
    [&bytes, CODE].concat()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_of_32_bits_runs_unseen_and_is_not_judged() {
    let place = folder();
    let program = place.path().join("small");
    fs::write(&program, program_of_32_bits()).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let alone = Command::new(&program).current_dir(&place).status();
    or_skip!(match alone.map(|status| status.code()) {
        Ok(Some(3)) => Ok(()),
        _ => Err("this kernel runs no programs of 32 bits"),
    });
    fs::remove_file(place.path().join("b")).unwrap();
    let (trace, finished) = traced(place.path(), "./small", &[]);
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"b");
    assert!(trace.files.is_empty(), "{trace:?}");
    let note = format!("32-bit calls of {} are not seen", program.display());
    assert_eq!((&trace.unseen, &trace.unjudged), (&vec![note.clone()], &vec![note]));
    assert_eq!(trace.verdict, Verdict::Unknown);
}
