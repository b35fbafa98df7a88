//! `wrote log append`: appends each line of standard input as a record of a log, or as a line of a
//! plain file.

use super::plain::is_plain;
use crate::args::{LogAppendArgs, RECORD_BYTES_MAX};
use crate::commands::promised;
use crate::stdio::{End, Input, of_library};
use crate::terminal::say;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Instant;
use wrote::{Lines, Log, Survives};
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};

const BUFFER_BYTES: usize = 256 << 10;

/// The unit of the log's buffer size. It has room for a record's headers, and is a multiple of
/// every usual disk block.
const LOG_BUFFER_UNIT_BYTES: usize = 64 << 10;

pub(super) fn run(arguments: &LogAppendArgs, stop: &Stop) -> Result<(), Error> {
    let target = Target::open(arguments)?;
    let mut appended = Appended::new(arguments.record_max);
    let all = appended.all(&target, stop);
    // Appended records are kept, whatever the outcome of the command.
    target.close().map_err(|error| appended.stopped(&error, &target))?;
    say(&appended.text(&target));
    End::outcome(all)?;
    appended.left_out.outcome(appended.lines)
}

/// The target to which lines are appended.
enum Target {
    Log(Log),
    File(Lines),
}

impl Target {
    fn open(arguments: &LogAppendArgs) -> Result<Target, Error> {
        let LogAppendArgs { path, sync, .. } = arguments;
        let is_new = !path.exists();
        // The headers of a record and of its batch are shorter than the unit.
        let buffer_bytes = arguments.record_max.next_multiple_of(LOG_BUFFER_UNIT_BYTES);
        let buffer_bytes = buffer_bytes + LOG_BUFFER_UNIT_BYTES;
        let (target, kept_aside) = if is_plain(path) {
            let lines = Lines::options().sync(*sync).buffer_bytes(buffer_bytes);
            let lines = lines.open(path).map_err(|error| of_library(&error))?;
            let torn = lines.torn();
            (Target::File(lines), torn.into_iter().collect())
        } else {
            let log = Log::options().sync(*sync).buffer_bytes(buffer_bytes);
            let log = log.open(path).map_err(|error| of_library(&error))?;
            let kept_aside = log.stats().kept_aside;
            (Target::Log(log), kept_aside)
        };
        if is_new {
            let kind = match target {
                Target::Log(_) => "a log's folder; a name with an extension makes a plain file",
                Target::File(_) => "a plain file of lines; a name without an extension makes a log",
            };
            say(&format!("wrote: note: {} is new: {kind}", path.display()));
        }
        for path in kept_aside {
            let path = path.display();
            say(&format!("wrote: note: the end of an interrupted write is kept in {path}"));
        }
        Ok(target)
    }

    /// Appends a line, and returns its sequence.
    fn append(&self, line: &[u8]) -> Result<u64, wrote::Error> {
        match self {
            Target::Log(log) => log.append(line).map(|ticket| ticket.sequence()),
            Target::File(lines) => lines.append(line).map(|_| lines.appended() - 1),
        }
    }

    /// Waits until the lines up to `last` are as safe as the policy promises.
    fn wait(&self, last: u64) -> Result<(), wrote::Error> {
        match self {
            Target::Log(log) => log.ticket(last).wait(),
            Target::File(lines) => lines.ticket().wait(),
        }
    }

    /// Returns whether the target still accepts lines.
    fn goes_on(&self) -> bool {
        match self {
            Target::Log(log) => log.check().is_ok(),
            Target::File(lines) => lines.check().is_ok(),
        }
    }

    fn close(&self) -> Result<(), wrote::Error> {
        match self {
            Target::Log(log) => log.close(),
            Target::File(lines) => lines.close(),
        }
    }

    /// Returns the sequence that follows the last stored record.
    fn stored(&self) -> u64 {
        match self {
            Target::Log(log) => log.written_sequence(),
            Target::File(lines) => lines.written(),
        }
    }

    fn survives(&self, last: u64) -> Survives {
        match self {
            Target::Log(log) => log.survives(last),
            // The file has been closed, and before that flushed.
            Target::File(lines) => lines.survives(),
        }
    }
}

/// The maximum number of omitted lines that the message lists.
const NAMED_LINES_MAX: usize = 10;

struct Appended {
    began: Instant,
    record_bytes_max: usize,
    lines: u64,
    bytes: u64,
    /// The sequences of the first and the last record.
    sequences: Option<(u64, u64)>,
    left_out: LeftOut,
}

/// The lines that could not become records. Later lines are still appended.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// The numbers of the first such lines.
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

    /// Fails if lines were omitted. `all` is the number of lines read.
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

    fn all(&mut self, target: &Target, stop: &Stop) -> Result<(), End> {
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
            let sequence = match target.append(&line) {
                Ok(sequence) => sequence,
                // The target still works, so it refused only this line.
                Err(error @ (wrote::Error::Refused { .. } | wrote::Error::TooLong { .. }))
                    if target.goes_on() =>
                {
                    let instead = match target {
                        Target::File(_) if line.contains(&0) => "; a log accepts any byte",
                        _ => "",
                    };
                    self.left_out.add(self.lines, format!("{}{instead}", error.reason()));
                    continue;
                }
                Err(error) => return Err(of_library(&error).into()),
            };
            let first = self.sequences.map_or(sequence, |(first, _)| first);
            self.sequences = Some((first, sequence));
            self.bytes += line.len() as u64;
            if input.buffer().is_empty() {
                // The next input may take a long time, so the records so far are first made as safe
                // as requested.
                target.wait(sequence)?;
            }
        }
        Ok(())
    }

    /// Reads the next line without its line feed. Returns `false` if there is none. Keeps at most
    /// one byte more than a record may have, and skips the rest of a longer line.
    fn read(&mut self, input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, End> {
        line.clear();
        // One byte is for the line feed, and another serves to recognise a line that is too long.
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

    /// Returns the error of a target that has not stored all lines, with the numbers of the lost
    /// lines.
    fn stopped(&self, error: &wrote::Error, target: &Target) -> Error {
        let Some((first, last)) = self.sequences else { return of_library(error) };
        let stored = target.stored().clamp(first, last + 1) - first;
        // Omitted lines are numbered, too.
        let mut next = stored + 1;
        for line in &self.left_out.lines {
            next += u64::from(*line <= next);
        }
        let because = io::Error::from_raw_os_error(error.errno());
        let path = error.path().map(|path| format!("{}: ", path.display())).unwrap_or_default();
        let stored = counted(stored, "line");
        Error::Failed(format!(
            "{path}{because}; stopped: {stored} stored, none from line {next} on"
        ))
    }

    /// Returns text such as `appended 3 records, 5 to 7, 61 B, in 12 ms, survives a power loss`.
    fn text(&self, target: &Target) -> String {
        let elapsed = units::seconds(self.began.elapsed().as_secs_f64());
        let Some((first, last)) = self.sequences else {
            return "nothing appended: standard input was empty".into();
        };
        let count = last - first + 1;
        let what = match target {
            Target::File(_) => counted(count, "line"),
            Target::Log(_) if first == last => format!("record {first}"),
            Target::Log(_) => format!("{} ({first} to {last})", counted(count, "record")),
        };
        let bytes = units::bytes(self.bytes);
        format!("appended {what}, {bytes}, in {elapsed}, {}", promised(target.survives(last)))
    }
}
