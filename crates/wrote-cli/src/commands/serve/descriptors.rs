//! The number of files that the process may open: each connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. The soft limit is 1024 almost everywhere, for the sake of
/// programs that use select(2).
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::warn!("the limit of open files stays as it is: {error}");
    }
}
