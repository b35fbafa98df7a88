//! Drops the page cache, whose content would decide the rate of cached writes. It is a separate
//! file, as each kind of work is.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;

/// `proc(5)`: 1 frees pages of files that are clean.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Flushes every file, and drops the page cache. Needs root.
pub fn drop_all() -> Result<Outcome> {
    let clock = Clock::start()?;
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, "1").map_err(|error| format!("{DROP_CACHES}: {error}"))?;
    clock.stop(0, 0)
}
