//! Parses RESP requests (an array of bulk strings, or a line of words as typed), and encodes the
//! fields of an entry as one record.
//!
//! A record of one field is its value, byte for byte. A record of several fields is an element of a
//! JSON text sequence (RFC 7464): the byte 0x1E, followed by an array of alternating names and
//! values.

use super::FIELD;
use crate::doors::frames::{self, TLS, is_tls};
use crate::refusals::Refusal;
use std::borrow::Cow;
use std::ops::Range;

/// The maximum number of words in a request. A client that pushes many values at once sends
/// thousands.
const WORDS_MAX: usize = 1 << 20;
pub(super) const REQUEST_BYTES_MAX: usize = 16 << 20;
const LINE_BYTES_MAX: usize = 64 << 10;
/// The maximum number of word positions whose memory is kept between requests.
const KEPT_WORDS_MAX: usize = 64;

/// The words of a request, as positions in the input. The value is reused for each request, and
/// keeps the memory for a few words.
#[derive(Debug, Default)]
pub(super) struct Request {
    words: Vec<Range<usize>>,
    /// For an incomplete array: the number of missing words, and the start of the next word.
    part: Option<(usize, usize)>,
    /// Whether the line contains quotes, which are not supported.
    pub is_quoted: bool,
}

impl Request {
    /// Parses the request at the start of `input`. Returns its length; `None` if it is incomplete.
    /// In that case, the same bytes must be passed again, followed by more.
    pub(super) fn read(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        if self.part.is_none() {
            self.words.clear();
            self.is_quoted = false;
        }
        let bytes = match input.first() {
            None => None,
            Some(b'*') => self.array(input)?,
            // A typed line never starts with this byte.
            Some(_) if is_tls(input) => return Err(TLS),
            Some(_) => self.line(input)?,
        };
        if bytes.is_none() && input.len() > REQUEST_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        Ok(bytes)
    }

    /// Returns a word of the parsed input; `None` if there are fewer words.
    pub(super) fn word<'a>(&self, input: &'a [u8], at: usize) -> Option<&'a [u8]> {
        self.words.get(at).map(|word| &input[word.clone()])
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Frees the memory of a request with many words, unless the request is incomplete.
    pub(super) fn shrink(&mut self) {
        if self.part.is_none() && self.words.capacity() > KEPT_WORDS_MAX {
            self.words = Vec::new();
        }
    }

    /// Returns the memory that word positions use, if it is significant.
    pub(super) fn held_bytes(&self) -> usize {
        let words = self.words.capacity();
        if words > KEPT_WORDS_MAX { words * size_of::<Range<usize>>() } else { 0 }
    }

    fn array(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        let begun = match self.part.take() {
            Some(part) => Some(part),
            None => number(input, 1)?,
        };
        let Some((count, mut at)) = begun else { return Ok(None) };
        if count > WORDS_MAX {
            return Err(Refusal::TooLong);
        }
        while self.words.len() < count {
            self.part = Some((count, at));
            match input.get(at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(_) => return Err(Refusal::Malformed("a request is an array of bulk strings")),
            }
            let Some((len, begin)) = number(input, at + 1)? else { return Ok(None) };
            if len > REQUEST_BYTES_MAX {
                return Err(Refusal::TooLong);
            }
            let end = begin + len;
            match input.get(end..end + 2) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err(Refusal::Malformed("a bulk string ends with CR and LF")),
            }
            self.words.push(begin..end);
            at = end + 2;
        }
        self.part = None;
        Ok(Some(at))
    }

    fn line(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        let within = &input[..input.len().min(LINE_BYTES_MAX)];
        let Some(end) = memchr::memchr(b'\n', within) else {
            return if within.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Refusal::TooLong) };
        };
        self.is_quoted = memchr::memchr2(b'"', b'\'', &input[..end]).is_some();
        let mut begin = 0;
        for word in input[..end].split(|byte| b" \t\r".contains(byte)) {
            if !word.is_empty() {
                self.words.push(begin..begin + word.len());
            }
            begin += word.len() + 1;
        }
        Ok(Some(end + 1))
    }
}

/// Parses the digits at offset `at`, followed by CR and LF. Returns the number and the offset after
/// the line feed; `None` if the input is incomplete.
fn number(input: &[u8], at: usize) -> Result<Option<(usize, usize)>, Refusal> {
    let rest = &input[at..];
    let digits = frames::digits(rest);
    let bad = Refusal::Malformed("a length is digits, CR and LF");
    match rest[digits..] {
        _ if digits > frames::DIGITS_MAX => Err(Refusal::TooLong),
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] if digits > 0 => {
            Ok(Some((frames::number(&rest[..digits]), at + digits + 2)))
        }
        _ => Err(bad),
    }
}

/// The first byte of a record that consists of several fields.
const BEGIN: u8 = 0x1e;

/// Encodes alternating names and values as one record.
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

    /// The words of a request, and the request's length.
    type Words = Option<(Vec<Vec<u8>>, usize)>;

    fn words(input: &[u8]) -> Result<Words, Refusal> {
        let mut request = Request::default();
        let bytes = request.read(input)?;
        let words = (0..request.len()).map(|at| request.word(input, at).unwrap().to_vec());
        Ok(bytes.map(|bytes| (words.collect(), bytes)))
    }

    #[test]
    fn a_request_is_read_once_it_is_whole() {
        let input = b"*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\nPING more\r\n";
        let mut drips = Request::default();
        for cut in 0..25 {
            assert!(words(&input[..cut]).unwrap().is_none(), "{cut} bytes");
            assert_eq!(drips.read(&input[..cut]).unwrap(), None);
        }
        assert_eq!(
            (drips.read(input).unwrap(), drips.word(input, 1)),
            (Some(25), Some(&b"a\r\nbc"[..]))
        );
        let (found, bytes) = words(input).unwrap().unwrap();
        assert_eq!((found, bytes), (vec![b"ECHO".to_vec(), b"a\r\nbc".to_vec()], 25));
        let (found, bytes) = words(&input[25..]).unwrap().unwrap();
        assert_eq!((found, bytes), (vec![b"PING".to_vec(), b"more".to_vec()], 11));
        assert_eq!(words(b"\r\n").unwrap(), Some((vec![], 2)));
    }

    #[test]
    fn the_memory_of_many_words_is_counted_and_given_back() {
        let input = [&b"*1000\r\n"[..], &b"$0\r\n\r\n".repeat(1000)].concat();
        let mut request = Request::default();
        assert_eq!(request.read(&input[..6000]).unwrap(), None);
        request.shrink();
        assert!(request.held_bytes() >= 998 * size_of::<Range<usize>>());
        assert_eq!(request.read(&input).unwrap(), Some(input.len()));
        request.shrink();
        assert_eq!((request.words.capacity(), request.held_bytes()), (0, 0));
    }

    #[test]
    fn a_malformed_or_overlong_request_is_refused() {
        for input in [
            &b"*1\r\n:5\r\n"[..],
            b"*1\r\n$4\r\nPINGxx",
            b"*-1\r\n",
            b"*x\r\n",
            b"*1\r\n$\r\n",
            b"*1\n",
            b"*18446744073709551616\r\n",
            b"*1\r\n$999999999\r\n",
            b"*9999999\r\n",
            &[b'a'; LINE_BYTES_MAX],
        ] {
            assert!(
                words(input).is_err(),
                "{:?}",
                String::from_utf8_lossy(&input[..9.min(input.len())])
            );
        }
    }

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
