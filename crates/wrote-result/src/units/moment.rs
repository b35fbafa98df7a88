//! Parses points in time, and ages.

use jiff::civil::DateTime;
use jiff::{Span, Timestamp, Zoned};

/// Reads a time: a timestamp (`2026-11-24T07:00Z`), a date and time of the local zone
/// (`2026-11-24T07:00`), or an age (`10m`). Fails with a line that names all three.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    moment_at(text, &Zoned::now()).ok_or_else(|| {
        format!(
            "{text:?}: must be a time, as 2026-11-24T07:00Z or 2026-11-24T07:00, or an age, as 10m"
        )
    })
}

/// Reads a time or an age at the time `now`, in whose zone dates and days are.
fn moment_at(text: &str, now: &Zoned) -> Option<Timestamp> {
    // A zone's name in brackets: without this check it would be treated as local time.
    if text.contains('[') {
        return text.parse::<Zoned>().ok().map(|zoned| zoned.timestamp());
    }
    if let Ok(timestamp) = text.parse() {
        return Some(timestamp);
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return now.time_zone().to_timestamp(civil).ok();
    }
    // With a sign it would be ambiguous whether an age or a time is meant.
    let age: Span = text.parse().ok().filter(|_| !text.starts_with(['-', '+']))?;
    now.checked_sub(age.abs()).ok().map(|then| then.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_timestamp_a_date_of_the_local_zone_or_an_age() {
        let now: Zoned = "2026-11-24T09:30[Europe/Berlin]".parse().expect("a time");
        let at = |text: &str| moment_at(text, &now).map(|at| at.to_string());
        for (text, expected) in [
            ("2026-11-24T07:00Z", "2026-11-24T07:00:00Z"),
            ("2026-11-24T07:00:01.5-05:00", "2026-11-24T12:00:01.5Z"),
            ("2026-11-24T07:00", "2026-11-24T06:00:00Z"),
            ("2026-11-24 07:00:05", "2026-11-24T06:00:05Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-11-24T07:00[Asia/Tokyo]", "2026-11-23T22:00:00Z"),
            ("10m", "2026-11-24T08:20:00Z"),
            ("1h30m", "2026-11-24T07:00:00Z"),
            ("500ms", "2026-11-24T08:29:59.5Z"),
            ("10m ago", "2026-11-24T08:20:00Z"),
            ("31d", "2026-10-24T07:30:00Z"),
        ] {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "10", "-10m", "+10m", "yesterday", "2026-13-01", "07:00", "9999999y", "[]"]
        {
            assert_eq!(at(text), None, "{text:?}");
        }
    }
}
