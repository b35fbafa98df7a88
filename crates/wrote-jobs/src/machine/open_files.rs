//! The number of files that the process may open. Each connection is one.

use rustix::io;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, for this process and its children. The soft limit is 1024
/// almost everywhere, for the sake of programs that use select(2).
///
/// # Errors
///
/// As `setrlimit(2)`; the limit then stays as it is.
pub fn raise_limit() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
