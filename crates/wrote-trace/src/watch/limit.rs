//! The limit of open files of this process, raised as far as it may be while a program is watched.

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// A raised limit. Dropping it restores the former one.
#[derive(Debug)]
pub struct Limit {
    /// The former soft limit, and the hard one.
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

    /// Returns the most files that this process can have open.
    pub fn files_max(&self) -> usize {
        usize::try_from(self.now).unwrap_or(usize::MAX)
    }

    /// Returns the former limit, which a program starts with.
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
