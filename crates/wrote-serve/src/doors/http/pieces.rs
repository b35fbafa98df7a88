//! Splits a request's body into records, independent of how it is chunked.

use crate::limits::Refusal;
use memchr::memchr;

/// Capacity kept from one record to the next.
const KEPT_BYTES_MAX: usize = 4096;

/// How a body is split into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The whole body is one record, unless it is empty.
    Body,
    /// Each record ends with LF or CRLF, which is optional for the last. Empty lines are skipped.
    Lines,
}

/// The parser. It keeps only an incomplete record.
#[derive(Debug)]
pub(super) struct Pieces {
    by: By,
    record_bytes_max: usize,
    kept: Vec<u8>,
    /// The kept bytes were returned as a record.
    is_given: bool,
    /// The line is too long and is skipped up to its end.
    passes: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A complete record, empty for an empty line.
    Record(&'a [u8]),
    /// A line that is too long. Later lines are still records.
    TooLong,
}

impl Pieces {
    pub(super) fn new(by: By, record_bytes_max: usize) -> Pieces {
        Pieces { by, record_bytes_max, kept: Vec::new(), is_given: false, passes: false }
    }

    /// Returns the next record from the front of `chunk`. `None` if no record ends in it; its rest
    /// is kept.
    pub(super) fn next<'a, 'chunk: 'a>(
        &'a mut self,
        chunk: &mut &'chunk [u8],
    ) -> Result<Option<Piece<'a>>, Refusal> {
        self.forget_given();
        let end = if self.by == By::Lines { memchr(b'\n', chunk) } else { None };
        let Some(end) = end else {
            self.keep(chunk)?;
            *chunk = &[];
            return Ok(None);
        };
        let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
        *chunk = rest;
        if self.kept.is_empty() && !self.passes {
            return Ok(Some(self.checked(line)));
        }
        self.keep(line)?;
        Ok(Some(self.given()))
    }

    /// Returns what is left at the end of the body; empty if nothing.
    pub(super) fn rest(&mut self) -> Piece<'_> {
        self.forget_given();
        self.given()
    }

    fn given(&mut self) -> Piece<'_> {
        if std::mem::take(&mut self.passes) {
            return Piece::TooLong;
        }
        self.is_given = true;
        self.checked(&self.kept)
    }

    /// Returns the memory kept, if considerable.
    pub(super) fn kept_bytes(&self) -> usize {
        let bytes = self.kept.capacity();
        if bytes > KEPT_BYTES_MAX { bytes } else { self.kept.len() }
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.kept.clear();
            if self.kept.capacity() > KEPT_BYTES_MAX {
                self.kept = Vec::new();
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // A CR may be removed.
        let is_long = self.kept.len() + bytes.len() > self.record_bytes_max + 1;
        if is_long && self.by == By::Body {
            return Err(Refusal::TooLong);
        }
        if is_long || self.passes {
            (self.passes, self.kept) = (true, Vec::new());
        } else {
            self.kept.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn checked<'a>(&self, bytes: &'a [u8]) -> Piece<'a> {
        let record = match self.by {
            By::Lines => bytes.strip_suffix(b"\r").unwrap_or(bytes),
            By::Body => bytes,
        };
        if record.len() > self.record_bytes_max { Piece::TooLong } else { Piece::Record(record) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Reason;
    use proptest::prelude::*;

    /// The records of a body that comes in chunks of these lengths.
    fn records(by: By, body: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Option<Reason>) {
        let record = |piece: Piece<'_>| match piece {
            Piece::Record(record) => record.to_vec(),
            Piece::TooLong => b"too long".to_vec(),
        };
        let (mut pieces, mut records, mut rest) = (Pieces::new(by, 10), Vec::new(), body);
        let mut cuts = cuts.iter().cycle();
        let mut take = || -> Result<(), Refusal> {
            while !rest.is_empty() {
                let cut = cuts.next().map_or(rest.len(), |&cut| cut.clamp(1, rest.len()));
                let (mut chunk, behind) = rest.split_at(cut);
                rest = behind;
                while let Some(piece) = pieces.next(&mut chunk)? {
                    records.push(record(piece));
                }
                assert!(pieces.kept_bytes() <= 11);
            }
            records.push(record(pieces.rest()));
            Ok(())
        };
        let refused = take().err().map(|refusal| refusal.reason());
        records.retain(|record| !record.is_empty());
        (records, refused)
    }

    #[test]
    fn lines_are_records_and_a_body_is_one() {
        let body = b"one\ntwo\r\n\n\r\nthree";
        let lines: Vec<_> = [&b"one"[..], b"two", b"three"].map(<[u8]>::to_vec).into();
        assert_eq!(records(By::Lines, body, &[]), (lines, None));
        assert_eq!(records(By::Body, b"a\nb\r\n", &[]), (vec![b"a\nb\r\n".to_vec()], None));
        assert_eq!(records(By::Body, b"", &[]), (vec![], None));
        let (kept, refused) = records(By::Lines, b"0123456789\r\n0123456789a\nafter", &[]);
        assert_eq!((&kept[1..], refused), (&[b"too long".to_vec(), b"after".to_vec()][..], None));
        assert_eq!(records(By::Body, &[b'x'; 12], &[]), (vec![], Some(Reason::TooLong)));
        assert_eq!(records(By::Body, &[b'x'; 11], &[]), (vec![b"too long".to_vec()], None));
    }

    proptest! {
        #[test]
        fn however_a_body_is_cut_its_records_are_the_same(
            body in prop::collection::vec(prop::sample::select(b"abcdefgh\r\n\n".to_vec()), 0..80),
            cuts in prop::collection::vec(1..20usize, 1..10),
        ) {
            for by in [By::Body, By::Lines] {
                prop_assert_eq!(records(by, &body, &cuts), records(by, &body, &[]));
            }
        }
    }
}
