//! Entry points for fuzzing the parsers.

use crate::doors::driven::drive;
use crate::doors::{Frame, Frames, Oversize, Protocol, Relp, Resp};
use std::sync::Arc;

const MESSAGE_BYTES_MAX: usize = 128;

/// Parses a stream with each framing, in one piece and split. Each of `cuts` is the length of a
/// piece and the number of messages that the log then has room for.
///
/// # Panics
///
/// If the messages depend on the cuts, or the parser keeps more than one message.
pub fn frames(stream: &[u8], cuts: &[(usize, usize)]) {
    for frame in [Frame::Auto, Frame::Lines, Frame::Octets, Frame::Nul, Frame::U32] {
        for oversize in [Oversize::Truncate, Oversize::Split, Oversize::Refuse] {
            compare(|| Frames::new(frame, oversize), stream, cuts);
        }
    }
}

/// Parses a RELP session, in one piece and split as for [`frames`].
///
/// # Panics
///
/// If the messages or answers depend on the cuts, or the parser keeps more than one message.
pub fn relp(stream: &[u8], cuts: &[(usize, usize)]) {
    for oversize in [Oversize::Truncate, Oversize::Split] {
        compare(|| Relp::new(oversize), stream, cuts);
    }
}

/// Parses RESP requests, in one piece and split as for [`frames`]. There is no log to read.
///
/// # Panics
///
/// If the messages or answers depend on the cuts.
pub fn resp(stream: &[u8], cuts: &[(usize, usize)]) {
    compare(|| Resp::new(None, Arc::default()), stream, cuts);
}

fn compare<P: Protocol>(door: impl Fn() -> P, stream: &[u8], cuts: &[(usize, usize)]) {
    let whole = drive(door(), stream, &[], MESSAGE_BYTES_MAX);
    assert!(whole.records.iter().all(|record| record.len() <= MESSAGE_BYTES_MAX));
    assert_eq!(drive(door(), stream, cuts, MESSAGE_BYTES_MAX), whole);
}
