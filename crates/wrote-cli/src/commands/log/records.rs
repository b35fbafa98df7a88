//! `wrote log cat` and `wrote log tail`: print records in several formats.

use super::plain::{PlainReader, is_plain};
use super::source;
use super::source::{Ends, Follow, Following, Head, Records, Source, in_store, is_there};
use crate::args::{LogCatArgs, LogShape, LogTailArgs};
use crate::stdio::{End, Output};
use crate::terminal::say;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;
use serde_with::{DisplayFromStr, serde_as, skip_serializing_none};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::time::{Duration, SystemTime};
use wrote_result::{Error, Stop};

/// The maximum wait before the command checks for a request to stop, and whether its output still
/// has a reader. A new record ends the wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// The factor applied to the distance searched backwards if there are fewer records than expected.
const REACH_FACTOR: u64 = 4;

pub(super) fn cat(arguments: &LogCatArgs, stop: &Stop) -> Result<(), End> {
    let to = arguments.to.unwrap_or(u64::MAX);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut printer = Printer::new(arguments.shape, stop);
    let source = source(&arguments.folder, stop)?;
    let mut reader = source.open(arguments.from)?;
    if arguments.until.is_some() {
        // A log without times is refused, even if it is empty.
        source.check_times()?;
    }
    printer.times = Times::seek(&mut *reader, arguments.since, arguments.until)?;
    let printed = each(reader, stop, |head, bytes| {
        let sequence = head.sequence;
        let is_behind = !printer.times.are_mixed && printer.times.are_before(&head);
        if sequence > to || left == 0 || is_behind {
            return Ok(false);
        }
        if printer.passes_over(&head) {
            return Ok(true);
        }
        left -= 1;
        let is_first = printer.next.is_none() && arguments.since.is_none();
        if arguments.shape.json && is_first && sequence > arguments.from {
            // Records before the log's first record were removed, so they are not a gap.
            printer.next = Some(source.ends()?.first.max(arguments.from));
        }
        printer.print(head, bytes)?;
        Ok(left > 0)
    });
    finish(printed, printer)
}

pub(super) fn tail(arguments: &LogTailArgs, stop: &Stop) -> Result<(), End> {
    let LogTailArgs { folder, retry, since, .. } = arguments;
    let follows = arguments.follow || *retry;
    if let Some(url) = in_store(folder).filter(|_| follows) {
        let because = "a store can't be followed; follow the log's folder instead";
        return Err(Error::Usage(format!("{url}: {because}")).into());
    }
    let source = source(folder, stop)?;
    let is_plain = is_plain(folder) && folder.exists();
    let ends_plain = (is_plain && arguments.from.is_none() && since.is_none()).then(|| {
        let is_numbered = arguments.shape.json || arguments.shape.sequence;
        PlainReader::open_last(folder, arguments.count, is_numbered, *retry)
    });
    let ends_plain = ends_plain.transpose()?;
    let (from, mut passed_over) = match arguments.from {
        None if ends_plain.is_some() => (0, 0),
        Some(from) => (from, 0),
        None if since.is_some() => (0, 0),
        None if *retry && !is_there(folder)? => (0, 0),
        None => last(&*source, arguments.count, stop)?,
    };
    let mut printer = Printer::new(arguments.shape, stop);
    let mut print = |printer: &mut Printer, head: Head, bytes: &[u8]| {
        if passed_over > 0 {
            passed_over -= 1;
            return Ok(());
        }
        if printer.passes_over(&head) {
            return Ok(());
        }
        printer.print(head, bytes)
    };
    if follows {
        let mut reader: Box<dyn Follow> = match ends_plain {
            Some(reader) => Box::new(reader),
            None if is_plain => Box::new(PlainReader::open(folder, from, *retry)?),
            None => Box::new(Following::open(folder, from, *retry)?),
        };
        printer.times = Times::seek(&mut *reader, *since, None)?;
        return match follow(&mut *reader, printer, print, stop) {
            // This is the only way to end the command, so it is not an error.
            Err(End::Because(Error::Interrupted)) => Ok(()),
            other => other,
        };
    }
    let mut reader: Box<dyn Records> = match ends_plain {
        Some(reader) => Box::new(reader),
        None => source.open(from)?,
    };
    printer.times = Times::seek(&mut *reader, *since, None)?;
    let printed = each(reader, stop, |head, bytes| print(&mut printer, head, bytes).map(|()| true));
    finish(printed, printer)
}

/// The times between which the user wants records.
#[derive(Default)]
struct Times {
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    /// Whether the clock stepped back, so that records of these times may be between others.
    are_mixed: bool,
}

impl Times {
    /// Moves the reader to the first record of these times. Returns the times, and whether records
    /// of other times may be between them.
    fn seek<R: Records + ?Sized>(
        reader: &mut R,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Times, End> {
        let [since, until] = [since, until].map(|time| time.map(SystemTime::from));
        let steps = if since.or(until).is_some() { reader.clock_steps()? } else { Vec::new() };
        for Range { start, end } in &steps {
            let last = end.checked_sub(1).filter(|_| *end < u64::MAX);
            let last = last.map_or("the end".to_owned(), |last| last.to_string());
            say(&format!(
                "wrote: note: the writer's clock stepped back: the times of records {start} to \
                 {last} overlap, and each record is judged by its own time"
            ));
        }
        since.map_or(Ok(()), |since| reader.seek_time(since))?;
        Ok(Times { since, until, are_mixed: !steps.is_empty() })
    }

    /// Returns whether these times end before the record was written.
    fn are_before(&self, head: &Head) -> bool {
        self.until.zip(head.written_at).is_some_and(|(until, written_at)| written_at > until)
    }

    /// Returns whether these times begin after the record was written.
    fn are_after(&self, head: &Head) -> bool {
        self.since.zip(head.written_at).is_some_and(|(since, written_at)| written_at < since)
    }
}

/// Calls `take` for each record, until there are no more records or it returns `false`.
fn each(
    mut reader: Box<dyn Records>,
    stop: &Stop,
    mut take: impl FnMut(Head, &[u8]) -> Result<bool, End>,
) -> Result<(), End> {
    let mut bytes = Vec::new();
    while let Some(head) = reader.read_into(&mut bytes)? {
        stop.check()?;
        if !take(head, &bytes)? {
            break;
        }
        bytes.clear();
    }
    Ok(())
}

/// Writes the output that is still buffered, even if the command has failed.
fn finish(printed: Result<(), End>, mut printer: Printer) -> Result<(), End> {
    match printed {
        Err(End::NoReader) => Err(End::NoReader),
        other => printer.flush().and(other),
    }
}

/// Prints the existing records, and then new ones, until the user asks to stop.
fn follow(
    reader: &mut dyn Follow,
    mut printer: Printer,
    mut print: impl FnMut(&mut Printer, Head, &[u8]) -> Result<(), End>,
    stop: &Stop,
) -> Result<(), End> {
    let mut bytes = Vec::new();
    while !stop.is_requested() {
        let mut head = reader.next_within(Duration::ZERO, &mut bytes)?;
        if head.is_none() {
            printer.flush()?;
            if !printer.has_reader() {
                return Err(End::NoReader);
            }
            head = reader.next_within(PATIENCE, &mut bytes)?;
        }
        if let Some(head) = head {
            print(&mut printer, head, &bytes)?;
            bytes.clear();
        }
    }
    printer.flush()
}

/// Returns where the last `count` records begin: a sequence, and the number of records to skip
/// after starting there.
fn last(source: &dyn Source, count: u64, stop: &Stop) -> Result<(u64, u64), End> {
    let Ends { first, next } = source.ends()?;
    let mut reach = count;
    loop {
        let from = next.saturating_sub(reach).max(first);
        // Some sequences have no record, because they were never filled or a repair left the record
        // out.
        let mut found = 0;
        each(source.open(from)?, stop, |Head { sequence, .. }, _| {
            found += u64::from(sequence < next);
            Ok(sequence < next)
        })?;
        if found >= count || from == first {
            return Ok((from, found.saturating_sub(count)));
        }
        reach = reach.saturating_mul(REACH_FACTOR);
    }
}

/// The buffer size. It is small enough that a person sees records arrive, and large enough that
/// writes cost little.
const BUFFER_BYTES: usize = 64 << 10;

#[serde_as]
#[skip_serializing_none]
#[derive(Serialize)]
struct JsonRecord<'a> {
    sequence: u64,
    /// When the log submitted the record to the disk (RFC 3339), if known.
    #[serde_as(as = "Option<DisplayFromStr>")]
    written_at: Option<Timestamp>,
    /// The record, if it is UTF-8.
    text: Option<&'a str>,
    /// The record in base64, if it is not UTF-8 (RFC 4648, section 4).
    bytes_base64: Option<String>,
}

/// A gap: `missing` sequences without a record, from `sequence` on. It is printed as one line.
#[derive(Serialize)]
struct JsonMissing {
    sequence: u64,
    missing: u64,
}

struct Printer<'a> {
    out: BufWriter<Output<'a>>,
    shape: LogShape,
    /// The sequence that follows the last printed record.
    next: Option<u64>,
    times: Times,
}

impl<'a> Printer<'a> {
    fn new(shape: LogShape, stop: &'a Stop) -> Printer<'a> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, Output::new(stop));
        Printer { out, shape, next: None, times: Times::default() }
    }

    /// Returns whether to skip a record of another time between records that are printed.
    fn passes_over(&mut self, head: &Head) -> bool {
        let Times { are_mixed, .. } = self.times;
        let is_other = are_mixed && (self.times.are_before(head) || self.times.are_after(head));
        if is_other {
            self.next = self.next.map(|_| head.sequence + 1);
        }
        is_other
    }

    fn print(&mut self, head: Head, bytes: &[u8]) -> Result<(), End> {
        let sequence = head.sequence;
        let next = self.next.replace(sequence + 1).unwrap_or(sequence);
        let missing = sequence.saturating_sub(next);
        write_missing(&mut self.out, self.shape, next, missing)
            .and_then(|()| write(&mut self.out, self.shape, head, bytes))
            .map_err(|error| End::of_output(&error))
    }

    fn flush(&mut self) -> Result<(), End> {
        self.out.flush().map_err(|error| End::of_output(&error))
    }

    fn has_reader(&self) -> bool {
        self.out.get_ref().has_reader()
    }
}

fn write_missing(out: &mut impl Write, shape: LogShape, first: u64, count: u64) -> io::Result<()> {
    if !shape.json || count == 0 {
        return Ok(());
    }
    serde_json::to_writer(&mut *out, &JsonMissing { sequence: first, missing: count })?;
    out.write_all(b"\n")
}

fn write(out: &mut impl Write, shape: LogShape, head: Head, bytes: &[u8]) -> io::Result<()> {
    let Head { sequence, written_at } = head;
    if shape.json {
        let written_at = written_at.and_then(|at| Timestamp::try_from(at).ok());
        let text = std::str::from_utf8(bytes).ok();
        let bytes_base64 = text.is_none().then(|| STANDARD.encode(bytes));
        serde_json::to_writer(&mut *out, &JsonRecord { sequence, written_at, text, bytes_base64 })?;
        return out.write_all(b"\n");
    }
    if shape.sequence {
        write!(out, "{sequence}\t")?;
    }
    out.write_all(bytes)?;
    if shape.raw { Ok(()) } else { out.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: LogShape = LogShape { sequence: false, raw: false, json: false };

    fn head(sequence: u64, written_at: Option<SystemTime>) -> Head {
        Head { sequence, written_at }
    }

    fn printed(shape: LogShape) -> String {
        let mut out = Vec::new();
        for (sequence, bytes) in
            [&b"one"[..], b"", b"\"a\"\n\xc3\xa9", b"\xff\0"].iter().enumerate()
        {
            write(&mut out, shape, head(sequence as u64 + 7, None), bytes).unwrap();
        }
        out.escape_ascii().to_string()
    }

    #[test]
    fn a_record_is_a_line() {
        assert_eq!(printed(LINES), r#"one\n\n\"a\"\n\xc3\xa9\n\xff\x00\n"#);
        let with_sequence = LogShape { sequence: true, ..LINES };
        assert!(printed(with_sequence).starts_with(r"7\tone\n8\t\n9\t"));
    }

    #[test]
    fn raw_records_have_nothing_between_them() {
        assert_eq!(printed(LogShape { raw: true, ..LINES }), r#"one\"a\"\n\xc3\xa9\xff\x00"#);
    }

    #[test]
    fn json_is_a_line_whatever_the_record_holds() {
        let mut out = Vec::new();
        let shape = LogShape { json: true, ..LINES };
        write(&mut out, shape, head(7, None), "a\n\u{e9}".as_bytes()).unwrap();
        write(&mut out, shape, head(8, None), b"\xff\0").unwrap();
        let expected = "{\"sequence\":7,\"text\":\"a\\n\u{e9}\"}\n\
            {\"sequence\":8,\"bytes_base64\":\"/wA=\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_time_of_a_record_stands_in_its_json() {
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_795_503_600, 500);
        let mut out = Vec::new();
        write(&mut out, LogShape { json: true, ..LINES }, head(7, Some(at)), b"a").unwrap();
        let expected = r#"{"sequence":7,"written_at":"2026-11-24T07:00:00.0000005Z","text":"a"}"#;
        assert_eq!(String::from_utf8(out).unwrap().trim_end(), expected);
    }
}
