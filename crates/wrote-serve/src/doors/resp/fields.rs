//! Encodes the fields of an entry as one record, and decodes them.
//!
//! A record of one field is its value, byte for byte. A record of several is an element of a JSON
//! text sequence (RFC 7464): the byte 0x1E, and an array of alternating names and values.

use super::FIELD;
use std::borrow::Cow;

/// The first byte of a record of several fields.
const BEGIN: u8 = 0x1e;

/// Encodes alternating names and values as a record.
pub(super) fn record<'a>(words: &[&'a [u8]]) -> Result<Cow<'a, [u8]>, &'static str> {
    if let [_, value] = words {
        return Ok(Cow::Borrowed(value));
    }
    let texts: Result<Vec<&str>, _> = words.iter().map(|word| str::from_utf8(word)).collect();
    let texts =
        texts.map_err(|_| "ERR several fields must be UTF-8; the value of one may be any")?;
    let mut record = vec![BEGIN];
    serde_json::to_writer(&mut record, &texts).expect("text is written into memory");
    Ok(Cow::Owned(record))
}

/// Decodes a record into alternating names and values.
pub(super) fn fields(record: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let several = record.strip_prefix(&[BEGIN]).and_then(|array| {
        let words: Vec<String> = serde_json::from_slice(array).ok()?;
        (words.len() >= 4 && words.len().is_multiple_of(2)).then_some(words)
    });
    match several {
        Some(words) => words.into_iter().map(|word| Cow::Owned(word.into_bytes())).collect(),
        None => vec![Cow::Borrowed(FIELD.as_bytes()), Cow::Borrowed(record)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_field_is_its_value_and_several_are_a_line_of_json() {
        assert_eq!(record(&[b"any", b"\xff\x1e"]).unwrap(), &b"\xff\x1e"[..]);
        let several = record(&[b"a", b"1\n", b"a", b"\"2\""]).unwrap();
        assert_eq!(several, &b"\x1e[\"a\",\"1\\n\",\"a\",\"\\\"2\\\"\"]"[..]);
        assert!(record(&[b"a", b"\xff", b"b", b"2"]).is_err());
        for other in
            [&b"\x1e"[..], b"\x1e[\"a\",\"1\"]", b"\x1e[1,2,3,4]", b"[\"a\",\"b\",\"c\",\"d\"]"]
        {
            assert_eq!(fields(other), [FIELD.as_bytes(), other]);
        }
    }

    proptest! {
        #[test]
        fn several_fields_come_back_as_they_were(
            pairs in prop::collection::vec((any::<String>(), any::<String>()), 2..6),
        ) {
            let bytes = |(name, value): &(String, String)| [name.clone(), value.clone()];
            let words: Vec<String> = pairs.iter().flat_map(bytes).collect();
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            let record = record(&words).unwrap();
            prop_assert!(!record.contains(&b'\n'));
            prop_assert_eq!(fields(&record), words);
        }
    }
}
