//! Logs that others wrote.

pub mod raft_engine;

use trial::Result;
use trial::outcome::Outcome;

/// Returns `appended`, and fails unless `log` has `stored` all its messages.
fn check(log: &str, stored: u64, appended: Outcome) -> Result<Outcome> {
    if stored == appended.operations {
        return Ok(appended);
    }
    Err(format!("{log} has {stored} messages").into())
}
