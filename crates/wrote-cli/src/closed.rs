//! Standard input and output that the caller closed fail, instead of leading to `/dev/null`.

use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsRawFd, IntoRawFd};

// Rust's runtime opens `/dev/null` for reading and writing in place of a closed stream: a copy
// would read nothing or lose its bytes, and succeed. After that nothing tells a closed stream from
// a `/dev/null` of the caller, which daemons and Python open for both too. So this runs before.
//
// SAFETY: the loader calls the functions of this section once, before `main` and any other thread
// (System V ABI, "Initialization and Termination Functions"). A C function without parameters may
// be called with theirs. This one uses nothing that the runtime prepares: it makes system calls.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = hold_closed;

/// Opens `/dev/null` in place of closed streams, for the direction that they are not used in: reads
/// and writes fail with `EBADF`, as those of a closed stream do.
extern "C" fn hold_closed() {
    for (stream, contrary) in [(0, OFlags::WRONLY), (1, OFlags::RDONLY)] {
        // The kernel gives the lowest free number (`open(2)`).
        if let Ok(null) = open("/dev/null", contrary, Mode::empty())
            && null.as_raw_fd() == stream
        {
            let _ = null.into_raw_fd();
        }
    }
}
