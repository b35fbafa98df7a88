//! Sizes, rates, durations and times: formatted as text, and parsed from it.

use std::borrow::Borrow;

mod parse;

pub use parse::{
    parse_block_size, parse_count, parse_duration, parse_moment, parse_pause, parse_size,
};

/// The units of bytes, each of which is 1000 times the previous one.
const DECIMAL: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/// The units of time, from the nanosecond on.
pub const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];
/// The units of bytes per second.
pub const RATES: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
/// The units of operations per second.
pub const COUNTS: [&str; 3] = ["/s", "k/s", "M/s"];

/// Formats a number of bytes: `1.07 GB`, `512 B`.
pub fn bytes(size_bytes: u64) -> String {
    if size_bytes < 1000 {
        format!("{size_bytes} B")
    } else {
        scaled(size_bytes as f64, 1000.0, &DECIMAL)
    }
}

/// Formats a number of bytes as a part of a total: `2.70 of 3.00 GB`, `512 B of 3.00 GB`, or `all
/// 3.00 GB`.
pub fn part(part_bytes: u64, whole_bytes: u64) -> String {
    let (part, whole) = (bytes(part_bytes), bytes(whole_bytes));
    let unit = whole.trim_start_matches(|letter: char| letter != ' ');
    let number = part.strip_suffix(unit).unwrap_or(&part);
    if part == whole { format!("all {whole}") } else { format!("{number} of {whole}") }
}

/// Formats bytes per second: `2.41 GB/s`; `? B/s` for a rate that is negative or not finite.
pub fn rate(bytes_per_s: f64) -> String {
    if !bytes_per_s.is_finite() || bytes_per_s < 0.0 {
        "? B/s".into()
    } else if bytes_per_s == 0.0 {
        "0 B/s".into()
    } else {
        format!("{}/s", scaled(bytes_per_s, 1000.0, &DECIMAL))
    }
}

/// Formats a time in nanoseconds: `1.20 ms`, `85 ns`.
pub fn nanoseconds(elapsed_ns: u64) -> String {
    if elapsed_ns < 1000 { format!("{elapsed_ns} ns") } else { seconds(elapsed_ns as f64 / 1e9) }
}

/// Formats a time in seconds: `320 ms`, `12.3 s`, `2 min 05 s`, `1 h 02 min`; `? s` for a time that
/// is negative or not finite.
pub fn seconds(elapsed_s: f64) -> String {
    if !elapsed_s.is_finite() || elapsed_s < 0.0 {
        return "? s".into();
    }
    if elapsed_s == 0.0 {
        return "0 s".into();
    }
    if elapsed_s < 59.95 {
        return scaled(elapsed_s * 1e9, 1000.0, &TIMES);
    }
    let whole = elapsed_s.round() as u64;
    if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (elapsed_s / 60.0).round() as u64;
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    }
}

/// Formats a number of things: `1 record`, `3 records`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Lists the first `most` names, and states how many more there are: `a, b and 3 more`.
pub fn some_of<S: Borrow<str>>(names: &[S], most: usize) -> String {
    match names.len().checked_sub(most) {
        Some(more @ 1..) => format!("{} and {more} more", names[..most].join(", ")),
        _ => names.join(", "),
    }
}

/// Formats a block size exactly, in the largest binary unit that divides it: `4 KiB`, `1 MiB`,
/// `1536 B`.
pub fn block_size(size_bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |(_, shift): &&(&str, u32)| size_bytes > 0 && size_bytes.trailing_zeros() >= *shift;
    match units.iter().find(whole) {
        Some((unit, shift)) => format!("{} {unit}", size_bytes >> shift),
        None => format!("{size_bytes} B"),
    }
}

/// Formats a size exactly, in the form of an option: `500M`, `1536`. [`parse_size`] parses it.
pub fn exact(size_bytes: u64) -> String {
    let units = [("T", 12), ("G", 9), ("M", 6), ("k", 3)];
    let whole =
        |(_, zeros): &&(&str, u32)| size_bytes > 0 && size_bytes.is_multiple_of(10_u64.pow(*zeros));
    match units.iter().find(whole) {
        Some((unit, zeros)) => format!("{}{unit}", size_bytes / 10_u64.pow(*zeros)),
        None => size_bytes.to_string(),
    }
}

/// Formats a value with three significant digits, or with all digits before the decimal point if
/// there are more: `0.97`, `12.3`, `2410`.
pub fn significant(value: f64) -> String {
    format!("{value:.0$}", decimals(value))
}

/// Rounds a positive value to a number of significant digits. The result for 0 is NaN.
pub fn rounded(value: f64, digits: u32) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() + 1.0 - f64::from(digits));
    (value / unit).round() * unit
}

/// Returns the number of decimals of a value with three significant digits.
fn decimals(value: f64) -> usize {
    match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    }
}

/// Formats figures of one kind in one unit, each with three significant digits, and returns the
/// unit. It is the unit of the largest figure, or the next smaller one if the smallest figure would
/// have fewer than two digits. The `units` are [`TIMES`], [`RATES`] or [`COUNTS`], each 1000 times
/// the previous one.
pub fn alike(values: &[f64], units: &[&'static str]) -> (Vec<String>, &'static str) {
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let (least, most) = (positive().fold(f64::MAX, f64::min), positive().fold(0.0, f64::max));
    let scale = |unit: usize| 1000_f64.powi(unit as i32);
    let highest = (1..units.len()).take_while(|unit| most >= 0.9995 * scale(*unit)).last();
    let highest = highest.unwrap_or(0);
    let is_small = least < 0.0995 * scale(highest);
    let unit = if is_small { highest.saturating_sub(1) } else { highest };
    (values.iter().map(|value| significant(value / scale(unit))).collect(), units[unit])
}

/// Formats `value` with three significant digits, in the unit that leaves one to three digits
/// before the decimal point.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // A value of 999.5 would be rounded to 1000, so it is shown in the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", significant(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_names_its_unit_only_where_the_whole_has_another() {
        assert_eq!(part(2_700_000_000, 3_000_000_000), "2.70 of 3.00 GB");
        assert_eq!(part(512, 3_000_000_000), "512 B of 3.00 GB");
        assert_eq!(part(500_000_000, 3_000_000_000), "500 MB of 3.00 GB");
        assert_eq!(part(0, 20), "0 of 20 B");
        assert_eq!(part(2_999_999_999, 3_000_000_000), "all 3.00 GB");
    }

    #[test]
    fn bytes_have_three_significant_digits() {
        for (size_bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (1 << 30, "1.07 GB"),
            (12_345_678, "12.3 MB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(size_bytes), text);
        }
    }

    #[test]
    fn a_rate_is_bytes_per_second() {
        assert_eq!(rate(2.412e9), "2.41 GB/s");
        assert_eq!(rate(0.0), "0 B/s");
        assert_eq!(rate(-0.0), "0 B/s");
        assert_eq!(rate(f64::NAN), "? B/s");
        assert_eq!(rate(-1.0), "? B/s");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(nanoseconds(85), "85 ns");
        assert_eq!(nanoseconds(1_200_000), "1.20 ms");
        assert_eq!(nanoseconds(12_000), "12.0 us");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(0.32), "320 ms");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(59.94), "59.9 s");
        assert_eq!(seconds(59.96), "1 min 00 s");
        assert_eq!(seconds(125.0), "2 min 05 s");
        assert_eq!(seconds(3599.6), "1 h 00 min");
        assert_eq!(seconds(3720.0), "1 h 02 min");
        assert_eq!(seconds(f64::INFINITY), "? s");
    }

    #[test]
    fn figures_together_have_the_unit_of_the_greatest_unless_the_least_is_far_below() {
        let told = |values: &[f64], units: &[&'static str]| {
            let (numbers, unit) = alike(values, units);
            format!("{} {unit}", numbers.join(" "))
        };
        assert_eq!(told(&[390e3, 1.32e6], &TIMES), "0.39 1.32 ms");
        assert_eq!(told(&[9e3, 12e6], &TIMES), "9.00 12000 us");
        assert_eq!(told(&[152e3, 254e3], &TIMES), "152 254 us");
        assert_eq!(told(&[99.4e3, 999.5e3], &TIMES), "99.4 1000 us");
        assert_eq!(told(&[99.5e3, 999.5e3], &TIMES), "0.10 1.00 ms");
        assert_eq!(told(&[99.5e3, 999.4e3], &TIMES), "99.5 999 us");
        assert_eq!(told(&[998e6, 1.03e9], &RATES), "1.00 1.03 GB/s");
        assert_eq!(told(&[0.0, 0.0], &COUNTS), "0.00 0.00 /s");
        assert_eq!(told(&[0.0, 2e9], &RATES), "0.00 2.00 GB/s");
        assert_eq!(told(&[2e3, 2e9], &RATES), "0.00 2000 MB/s");
        assert_eq!(told(&[5e3, 7e4], &COUNTS), "5.00 70.0 k/s");
    }

    #[test]
    fn block_sizes_are_exact() {
        assert_eq!(block_size(4096), "4 KiB");
        assert_eq!(block_size(512 << 10), "512 KiB");
        assert_eq!(block_size(1 << 20), "1 MiB");
        assert_eq!(block_size(1536), "1536 B");
        assert_eq!(block_size(0), "0 B");
    }

    #[test]
    fn an_exact_size_is_what_an_option_takes() {
        assert_eq!(exact(500_000_000), "500M");
        assert_eq!(exact(1_500_000_000), "1500M");
        assert_eq!(exact(1536), "1536");
        assert_eq!(exact(0), "0");
    }

    proptest! {
        #[test]
        fn bytes_err_by_no_more_than_their_last_digit(size_bytes in any::<u64>()) {
            let text = bytes(size_bytes);
            let (number, unit) = text.split_once(' ').unwrap();
            let power = DECIMAL.iter().position(|known| *known == unit).unwrap();
            let shown = number.parse::<f64>().unwrap() * 1000_f64.powi(power as i32);
            prop_assert!((shown - size_bytes as f64).abs() <= 0.0051 * size_bytes as f64);
            prop_assert!(text.len() <= 7, "{}", text);
        }
    }

    #[test]
    fn of_many_names_the_first_are_said_and_the_rest_counted() {
        let names = ["a", "b", "c", "d"];
        assert_eq!(some_of(&names, 4), "a, b, c, d");
        assert_eq!(some_of(&names, 2), "a, b and 2 more");
    }
}
