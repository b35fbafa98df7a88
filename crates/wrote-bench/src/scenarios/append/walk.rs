//! Walking through a file that holds nothing but messages, to find those that are whole.

use super::check::Check;
use super::message::{MAGIC, Stamp};
use std::io::{self, Read};
use wrote_result::Stop;

/// Bytes of one read.
const PIECE_BYTES: usize = 4 << 20;

struct Window<'a> {
    file: &'a mut dyn Read,
    bytes: Vec<u8>,
    begin: usize,
    is_at_end: bool,
}

impl Window<'_> {
    /// The bytes that are left: at least `least` of them, unless the file ends before.
    fn at_least(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.bytes.len() - self.begin < least && !self.is_at_end {
            self.bytes.drain(..self.begin);
            self.begin = 0;
            let wanted = (least + PIECE_BYTES - self.bytes.len()) as u64;
            let read = (&mut *self.file).take(wanted).read_to_end(&mut self.bytes)?;
            self.is_at_end = read == 0;
        }
        Ok(&self.bytes[self.begin..])
    }
}

/// Counts the messages in `file`, of at most `max_bytes` each. Bytes that are none up to the next
/// one is torn.
pub(super) fn walk(
    file: &mut dyn Read,
    max_bytes: usize,
    check: &mut Check,
    stop: &Stop,
) -> io::Result<()> {
    let mut window = Window { file, bytes: Vec::new(), begin: 0, is_at_end: false };
    let mut is_torn = false;
    loop {
        let rest = window.at_least(max_bytes)?;
        if rest.is_empty() || stop.is_requested() {
            return Ok(());
        }
        match Stamp::read(rest) {
            Some(stamp) => {
                check.whole(stamp);
                is_torn = false;
                window.begin += stamp.len;
            }
            None => {
                if !std::mem::replace(&mut is_torn, true) {
                    check.torn();
                }
                window.begin += to_next(rest);
            }
        }
    }
}

/// How far it is to where the next message may begin.
fn to_next(bytes: &[u8]) -> usize {
    let next = bytes.windows(MAGIC.len()).skip(1).position(|pair| pair == MAGIC);
    // The last byte may be the first of a magic.
    next.map_or(bytes.len().saturating_sub(MAGIC.len() - 1).max(1), |before| before + 1)
}
