//! Starts a program so that it is watched from its first call. The program gets this process's
//! original limit on open files, which is raised during the watch.

use super::{names, ptrace};
use crate::front::status;
use libc::{c_char, pid_t, rlimit, sock_filter, sock_fprog};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, geteuid};
use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::ptr::null;

/// A raised limit on open files. Dropping it restores the original limit.
#[derive(Debug)]
pub struct Limit {
    /// The original soft limit, and the hard limit.
    before: (rlim_t, rlim_t),
    now: rlim_t,
}

impl Limit {
    /// Raises the soft limit to the hard one.
    pub fn raise() -> nix::Result<Limit> {
        let before = getrlimit(Resource::RLIMIT_NOFILE)?;
        let is_raised = setrlimit(Resource::RLIMIT_NOFILE, before.1, before.1).is_ok();
        Ok(Limit { before, now: if is_raised { before.1 } else { before.0 } })
    }

    /// Returns the maximum number of files that this process can have open.
    pub fn files_max(&self) -> usize {
        usize::try_from(self.now).unwrap_or(usize::MAX)
    }

    /// Returns the original limit, which the program starts with.
    pub fn before(&self) -> libc::rlimit {
        libc::rlimit { rlim_cur: self.before.0, rlim_max: self.before.1 }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // A soft limit can always be lowered.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, self.before.0, self.before.1);
    }
}

/// Converts an error of `ptrace(2)` into one that names the cause and has no number, if the kernel
/// does not permit tracing. Returns other errors unchanged.
pub fn refused(process: pid_t, error: io::Error) -> io::Error {
    const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
    if !matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) {
        return error;
    }
    let scope = fs::read_to_string(YAMA).unwrap_or_default().trim().parse().unwrap_or(0);
    let is_own = status(process, "PPid:") == Some(std::process::id() as pid_t);
    let owner = fs::metadata(format!("/proc/{process}")).map(|found| found.uid());
    let cause = match status(process, "TracerPid:") {
        Some(tracer @ 1..) => {
            let tracer = status(tracer, "Tgid:").unwrap_or(tracer);
            format!("{} is already tracing it", names(&BTreeSet::from([tracer])))
        }
        _ if owner.is_ok_and(|owner| !geteuid().is_root() && owner != geteuid().as_raw()) => {
            "it belongs to another user".into()
        }
        _ if scope > i32::from(is_own) => format!("{YAMA} is {scope}"),
        _ if status(std::process::id() as pid_t, "Seccomp:") == Some(2) => {
            "seccomp refuses ptrace, as in many containers".into()
        }
        _ => error.to_string(),
    };
    io::Error::other(format!("the kernel does not permit it: {cause}"))
}

/// Starts a program in a watched child with this filter, these blocked signals and this limit on
/// open files. If the child can't execute the program, it exits with the error number.
///
/// # Errors
///
/// The errors of `pipe(2)`, `fork(2)` and `ptrace(2)`.
pub fn start(
    command: &[OsString],
    filter: &[sock_filter],
    blocked: &SigSet,
    files: &rlimit,
) -> io::Result<pid_t> {
    let words = command.iter().map(|word| CString::new(word.as_bytes()));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let mut arguments: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    arguments.push(null());
    let filter = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let (is_seized, mut seized) = io::pipe()?;
    // SAFETY: until it executes the program, the child makes only async-signal-safe calls.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // The child would otherwise keep its own pipe open.
            drop(seized);
            // SAFETY: `arguments` ends with a null pointer; both outlive the call.
            unsafe { become_program(is_seized, &arguments, &filter, blocked, files) }
        }
        child => {
            if let Err(error) = ptrace::seize(child) {
                let refused = refused(child, error);
                let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
                let _ = waitpid(Pid::from_raw(child), None);
                return Err(refused);
            }
            seized.write_all(&[0])?;
            Ok(child)
        }
    }
}

/// Waits until the parent watches, installs the filter, and executes the program.
///
/// # Safety
///
/// `arguments` must be pointers to strings, terminated by a null pointer.
unsafe fn become_program(
    mut is_seized: PipeReader,
    arguments: &[*const c_char],
    filter: &sock_fprog,
    blocked: &SigSet,
    files: &rlimit,
) -> ! {
    // If the parent has exited, its end of the pipe is closed, and the read fails.
    let is_watched = is_seized.read_exact(&mut [0]).is_ok();
    let none: libc::c_ulong = 0;
    // SAFETY: the calls only read their arguments; the caller promises `arguments`.
    unsafe {
        // Rust ignores SIGPIPE in its own programs, and ignored signals stay ignored after exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, blocked.as_ref(), std::ptr::null_mut());
        libc::setrlimit(libc::RLIMIT_NOFILE, files);
        // Without `PR_SET_NO_NEW_PRIVS`, installing a filter requires CAP_SYS_ADMIN.
        let has_filter = is_watched
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, none, none, none) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                none,
                std::ptr::from_ref(filter),
            ) == 0;
        if has_filter {
            libc::execvp(arguments[0], arguments.as_ptr());
        }
        libc::_exit(Errno::last_raw())
    }
}
