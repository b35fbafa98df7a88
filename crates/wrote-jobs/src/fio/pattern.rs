//! `buffer_pattern`: texts, hexadecimal and decimal numbers in any order, as fio's `lib/pattern.c`
//! reads them.

/// The longest pattern, as in fio.
const BYTES_MAX: usize = 512;

/// Parses a pattern: `"abcd"`, `0xdeadface`, `-12`, or several without a blank between.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = match rest.strip_prefix('"') {
            Some(rest) => {
                let (word, rest) = rest.split_once('"').ok_or("the second \" is missing")?;
                bytes.extend_from_slice(word.as_bytes());
                rest
            }
            None => hexadecimal(rest, &mut bytes).map_or_else(|| decimal(rest, &mut bytes), Ok)?,
        };
    }
    match bytes.len() {
        0 => Err("is a pattern of no bytes".into()),
        1..=BYTES_MAX => Ok(bytes),
        more => Err(format!("is a pattern of {more} bytes; there are at most {BYTES_MAX}")),
    }
}

/// Parses `0x` and digits, two per byte; with an odd number the first digit is a byte. Returns the
/// rest of the text.
fn hexadecimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    // The 0 of the next number's 0x does not belong to this number.
    let joined = digits[end..].starts_with(['x', 'X']) && digits[..end].ends_with('0');
    let (digits, rest) = digits.split_at(if joined { end - 1 } else { end });
    if digits.is_empty() {
        return None;
    }
    let values = digits.chars().map(|digit| digit.to_digit(16).unwrap_or(0) as u8);
    let mut values = std::iter::repeat_n(0, digits.len() % 2).chain(values);
    while let (Some(high), Some(low)) = (values.next(), values.next()) {
        bytes.push(high << 4 | low);
    }
    Some(rest)
}

/// Parses a number of 32 bits: its bytes from the lowest up to the highest that is not 0.
fn decimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    if text.starts_with('\'') {
        return Err("the bytes of a file are not taken; write them here, as 0xdeadface".into());
    }
    let next = text.to_ascii_lowercase().find("0x").filter(|&at| at > 0).unwrap_or(text.len());
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..next].find(|c: char| !c.is_ascii_digit());
    let (number, rest) = text.split_at(digits.map_or(next, |end| sign + end));
    let number: i32 = number.parse().map_err(|_| {
        format!("{text} begins with no pattern; there are \"abcd\", 0xdeadface and -12")
    })?;
    let four = number.to_le_bytes();
    let used = four.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    bytes.extend_from_slice(&four[..=used]);
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn patterns_have_the_bytes_of_fios_own_examples() {
        for (text, bytes) in [
            (r#""abcd""#, &b"abcd"[..]),
            ("-1024", b"\x00\xfc\xff\xff"),
            ("66", b"\x42"),
            ("0", b"\0"),
            ("0xFF0X1", b"\xff\x01"),
            ("0xabc", b"\x0a\xbc"),
            (r#""123"0xFFeeCC"#, b"123\xff\xee\xcc"),
            (r#"-100xab"1""2""#, b"\xf6\xff\xff\xff\xab12"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        for (text, told) in [
            (r#""""#, "no bytes"),
            (r#""abc"#, "is missing"),
            ("'file'", "of a file are not taken"),
            ("%o", "begins with no pattern"),
            ("0x", "begins with no pattern"),
            ("99999999999", "begins with no pattern"),
            (&format!("\"{}\"", "a".repeat(513)), "at most 512"),
        ] {
            assert!(parse(text).is_err_and(|error| error.contains(told)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "[-+0-9xXa-f\"é]{0,12}") {
            let _ = parse(&text);
        }
    }
}
