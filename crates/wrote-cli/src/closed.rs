//! Makes standard streams that the caller has closed fail, instead of referring to `/dev/null`.
//! This is a separate file because the loader runs its function before `main`.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_getfd;
use std::io;
use std::os::fd::{AsFd, IntoRawFd};

// Rust's runtime opens `/dev/null` for reading and writing in place of a closed stream. A copy
// would then succeed although it reads nothing or loses its bytes. Once the runtime has done so, a
// closed stream cannot be distinguished from the caller's own `/dev/null`, which daemons and Python
// open for both directions, too. Therefore, this code runs before the runtime.
//
// SAFETY: the loader calls the functions of this section once, before `main` and any other thread
// (System V ABI, "Initialization and Termination Functions"). A C function without parameters may
// be called with theirs. This function uses nothing that the runtime prepares: it makes system
// calls, and the standard library creates its handles of the streams when they are first used.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = hold_closed;

/// Opens `/dev/null` in place of each closed stream, but only for the direction that the stream
/// does not use. Reads and writes then fail with `EBADF`, as on a closed stream.
extern "C" fn hold_closed() {
    // The order matters, because the kernel assigns the lowest free number (`open(2)`).
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
