//! The words and numbers of options.

use std::time::Duration;
use wrote::{Format, SyncPolicy};

/// Returns the policy of a word of Redis.
pub fn sync(word: &str) -> Result<SyncPolicy, String> {
    match word {
        "always" => Ok(SyncPolicy::Always),
        "everysec" => Ok(SyncPolicy::EverySec),
        "no" => Ok(SyncPolicy::No),
        other => Err(format!("sync={other:?}: use \"always\", \"everysec\", \"no\" or a number")),
    }
}

/// Returns the time of an option in seconds.
pub fn interval(name: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{name}={seconds}: not a time"))
}

/// Returns the format of a log by its name.
pub fn format(word: &str) -> Result<Format, String> {
    match word {
        "framed" => Ok(Format::Framed),
        "lines" => Ok(Format::Lines),
        other => Err(format!("format={other:?}: use \"framed\" or \"lines\"")),
    }
}
