//! Logs and databases, with each message durable before its producer continues. Without group
//! commit in the database, a thread makes all waiting messages durable together.

pub mod fjall;
pub mod flume;
pub mod raft_engine;
pub mod sqlite;

use trial::Result;
use trial::outcome::Outcome;

/// Returns `appended`, and fails unless `log` has `stored` all its messages.
fn check(log: &str, stored: u64, appended: Outcome) -> Result<Outcome> {
    if stored == appended.operations {
        return Ok(appended);
    }
    Err(format!("{log} has {stored} messages").into())
}
