//! Makes standard streams closed by the caller fail, instead of leading to `/dev/null`. It is a
//! separate file because the loader runs it before `main`.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_getfd;
use std::io;
use std::os::fd::{AsFd, IntoRawFd};

// Rust's runtime opens `/dev/null` for reading and writing in place of a closed stream: a copy
// would read nothing or lose its bytes, and succeed. After that a closed stream looks like the
// caller's `/dev/null`, which daemons and Python also open for both directions. So this runs
// before.
//
// SAFETY: the loader calls the functions of this section once, before `main` and any other thread
// (System V ABI, "Initialization and Termination Functions"). A C function without parameters may
// be called with theirs. This one uses nothing that the runtime prepares: it makes system calls,
// and the standard library makes its handles of the streams when they are first named.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = hold_closed;

/// Opens `/dev/null` in place of closed streams, for the unused direction: reads and writes fail
/// with `EBADF`, as on a closed stream.
extern "C" fn hold_closed() {
    // In this order: the kernel gives the lowest free number (`open(2)`).
    hold(io::stdin(), OFlags::WRONLY);
    hold(io::stdout(), OFlags::RDONLY);
}

fn hold(stream: impl AsFd, contrary: OFlags) {
    if fcntl_getfd(stream).is_err()
        && let Ok(null) = open("/dev/null", contrary, Mode::empty())
    {
        let _ = null.into_raw_fd();
    }
}
