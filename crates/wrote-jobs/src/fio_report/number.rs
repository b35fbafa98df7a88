//! Numbers as fio prints them for people: a few digits and a prefix.

/// The number of significant digits of most numbers.
pub(super) const FIGURES: usize = 4;

/// Formats a number as fio does, with at most `figures` digits: `4.5MiB/s`, `1152`, `12.3k`.
pub(super) fn number_of(number: u64, figures: usize, binary: bool, unit: &str) -> String {
    let thousand = if binary { 1024 } else { 1000 };
    let prefixes = match binary {
        true => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        false => ["", "k", "M", "G", "T", "P", "E"],
    };
    let (mut whole, mut rest, mut power) = (number, None, 0);
    while whole.to_string().len() > figures {
        rest = Some(whole % thousand);
        whole /= thousand;
        power += 1;
    }
    let room = figures - whole.to_string().len();
    let digits = match rest {
        Some(rest) if room > 1 => {
            let value = whole as f64 + rest as f64 / thousand as f64;
            format!("{value:.0$}", room - 1)
        }
        Some(rest) => (whole + u64::from(rest >= thousand / 2)).to_string(),
        None => whole.to_string(),
    };
    format!("{digits}{}{unit}", prefixes[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_fios_digits_and_prefixes() {
        for (number, binary, unit, written) in [
            (999, false, "", "999"),
            (12_345, false, "", "12.3k"),
            (9_999, false, "", "9999"),
            (123_456, false, "", "123k"),
            (123_500, false, "", "124k"),
            (16_970, false, "", "17.0k"),
            (49_346_000, true, "B/s", "47.1MiB/s"),
            (5_033_165, true, "B/s", "4915KiB/s"),
            (10 << 20, true, "B", "10.0MiB"),
            (10 << 20, false, "B", "10.5MB"),
            (4096, true, "B", "4096B"),
            (65_536, true, "B", "64.0KiB"),
        ] {
            assert_eq!(number_of(number, FIGURES, binary, unit), written, "{number}");
        }
    }
}
