//! A child process for a test. This module is separate because the library's unit tests include it,
//! too.

/// Runs `child` in a child process. Panics if `child` panics or hangs.
pub(crate) fn in_child(child: impl FnOnce()) {
    // SAFETY: the C library makes its allocator usable in the child, and the child takes no other
    // lock that another thread of this process may hold.
    match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: the alarm only ends a child that hangs.
            unsafe { libc::alarm(60) };
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: `_exit` does not run the exit handlers of the parent, which must not run in
            // the child.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        id => {
            let mut status = 0;
            // SAFETY: `waitpid` only writes to `status`.
            let waited = unsafe { libc::waitpid(id, &mut status, 0) };
            assert_eq!((waited, status), (id, 0), "the child has failed, or was ended by a signal");
        }
    }
}
