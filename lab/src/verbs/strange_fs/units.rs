//! Bytes, rates and times of the command line.

use std::time::Duration;

/// Reads bytes: `8192`, `400MB`, `1MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("", 1),
    ];
    let wrong = || format!("{text:?} is not a number of bytes, as 400MB");
    let (number, unit) = units
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))
        .ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

/// Reads bytes per second, more than zero: `400MB/s`, `400MB`.
pub fn rate(text: &str) -> Result<u64, String> {
    match bytes(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Err("at 0 bytes a second nothing would ever end".into()),
        rate => Ok(rate),
    }
}

/// Reads a time: `500ms`, `1s`, or `1.5` for seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let wrong = || format!("{text:?} is not a time, as 500ms or 1s");
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_plain_or_carry_their_unit() {
        assert_eq!(bytes("8192"), Ok(8192));
        assert_eq!(bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(bytes("3MiB"), Ok(3 << 20));
        for wrong in ["", "GB", "1.5GB", "-1", "99999999999GB", "1 MB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_more_than_nothing() {
        assert_eq!(rate("40MB/s"), Ok(40_000_000));
        assert_eq!(rate("40000000"), Ok(40_000_000));
        assert!(rate("0").is_err());
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "-1s", "NaN", "1m"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
