//! `wrote log append`: each line of standard input as a record.

use crate::args::{LogAppendArgs, RECORD_BYTES_MAX};
use crate::commands::promised;
use crate::stdio::of_library;
use crate::stdio::{End, Input};
use crate::terminal::say;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;
use wrote::Log;
use wrote::log::summary;
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};

const BUFFER_BYTES: usize = 256 << 10;

/// The log's buffers are multiples of this. It fits a record's headers, and is a multiple of every
/// usual disk block.
const LOG_BUFFER_UNIT_BYTES: usize = 64 << 10;

pub(super) fn run(arguments: &LogAppendArgs, stop: &Stop) -> Result<(), Error> {
    let log = open(arguments)?;
    for path in log.stats().kept_aside.iter().filter(|_| !arguments.quiet) {
        say(&format!("wrote: note: the end of an interrupted write is kept in {}", path.display()));
    }
    let mut appended = Appended::new(arguments.record_max);
    let all = appended.all(&log, stop);
    // Appended records stay, however the command ended.
    log.close().map_err(|error| appended.not_all_in(&error, &log, &arguments.folder))?;
    if !arguments.quiet {
        say(&appended.line(&log));
    }
    End::outcome(all)?;
    appended.left_out.outcome(appended.lines)
}

fn open(arguments: &LogAppendArgs) -> Result<Log, Error> {
    let folder = &arguments.folder;
    // Its headers and its batch's are shorter than the unit.
    let buffer_bytes = arguments.record_max.next_multiple_of(LOG_BUFFER_UNIT_BYTES);
    let options = Log::options().sync(arguments.sync);
    let options = options.buffer_bytes(buffer_bytes + LOG_BUFFER_UNIT_BYTES);
    options.open(folder).map_err(|error| of_library(&error))
}

/// The omitted lines that the outcome names.
const NAMED_LINES_MAX: usize = 10;

struct Appended {
    began: Instant,
    record_bytes_max: usize,
    lines: u64,
    bytes: u64,
    /// The sequences of the first record and the last.
    sequences: Option<(u64, u64)>,
    left_out: LeftOut,
}

/// The lines that are not records; later lines are still appended.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// The numbers of the first such lines, and why the first is not a record.
    lines: Vec<u64>,
    because: String,
}

impl LeftOut {
    fn add(&mut self, line: u64, because: String) {
        self.count += 1;
        if self.lines.len() < NAMED_LINES_MAX {
            self.lines.push(line);
        }
        if self.count == 1 {
            self.because = because;
        }
    }

    /// Fails with the omitted lines of `all`.
    fn outcome(&self, all: u64) -> Result<(), Error> {
        let Some((first, others)) = self.lines.split_first() else { return Ok(()) };
        let mut text = format!("standard input: line {first}: {}", self.because);
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(u64::to_string).collect();
            let more = if self.count > self.lines.len() as u64 { ", .." } else { "" };
            text += &format!("; also left out: lines {}{more}", others.join(", "));
        }
        let taken = all - self.count;
        Err(Error::Failed(format!("{text}; {taken} of {} appended", counted(all, "line"))))
    }
}

impl Appended {
    fn new(record_bytes_max: usize) -> Appended {
        let (began, left_out) = (Instant::now(), LeftOut::default());
        Appended { began, record_bytes_max, lines: 0, bytes: 0, sequences: None, left_out }
    }

    fn all(&mut self, log: &Log, stop: &Stop) -> Result<(), End> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, Input::new(stop));
        let mut line = Vec::new();
        while self.read(&mut input, &mut line)? {
            stop.check()?;
            if line.len() > self.record_bytes_max {
                let [limit, most] = [self.record_bytes_max, RECORD_BYTES_MAX]
                    .map(|bytes| units::block_size(bytes as u64));
                let because = format!("longer than {limit}; --record-max allows up to {most}");
                self.left_out.add(self.lines, because);
                continue;
            }
            let sequence = match log.append(&line) {
                Ok(ticket) => ticket.sequence(),
                // A log that has not failed refuses only this record.
                Err(wrote::Error::Refused { because, .. }) if log.check().is_ok() => {
                    self.left_out.add(self.lines, because);
                    continue;
                }
                Err(error) => return Err(of_library(&error).into()),
            };
            let first = self.sequences.map_or(sequence, |(first, _)| first);
            self.sequences = Some((first, sequence));
            self.bytes += line.len() as u64;
            if input.buffer().is_empty() {
                // More input may take long, so the records so far become as safe as asked.
                log.ticket(sequence).wait()?;
            }
        }
        Ok(())
    }

    /// Reads the next line without its end; `false` where there is none. Of a line that is too
    /// long, one byte more than a record may have is kept, and the rest is skipped.
    fn read(&mut self, input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, End> {
        line.clear();
        // One more for the line feed, and one more to recognize a longer line.
        let most = self.record_bytes_max as u64 + 2;
        let mut limited = input.take(most);
        if limited.read_until(b'\n', line).map_err(|error| End::of_input(&error))? == 0 {
            return Ok(false);
        }
        self.lines += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 == most {
            input.skip_until(b'\n').map_err(|error| End::of_input(&error))?;
        }
        Ok(true)
    }

    /// Returns the error of a log that did not append all records, with their number.
    fn not_all_in(&self, error: &wrote::Error, log: &Log, folder: &Path) -> Error {
        let Some((first, last)) = self.sequences else { return of_library(error) };
        // A write without room for everything left whole lines, which only the file shows.
        let written =
            summary(folder).map_or_else(|_| log.stats().written_sequence, |it| it.next_sequence);
        let written = written.clamp(first, last + 1);
        let of = counted(last - first + 1, "record");
        let what = match written - first {
            0 => format!("none of {of} is in the log"),
            count => format!("{count} of {of} are in the log ({first} to {})", written - 1),
        };
        Error::Failed(format!("{error}; {what}"))
    }

    /// `appended 3 records, 5 to 7, 61 B, in 12 ms, survives a power loss`.
    fn line(&self, log: &Log) -> String {
        let elapsed = units::seconds(self.began.elapsed().as_secs_f64());
        let Some((first, last)) = self.sequences else {
            return "appended nothing: no line came".into();
        };
        let records = if first == last {
            format!("record {first}")
        } else {
            format!("{} ({first} to {last})", counted(last - first + 1, "record"))
        };
        let bytes = units::bytes(self.bytes);
        format!("appended {records}, {bytes}, in {elapsed}, {}", promised(log.survives(last)))
    }
}
