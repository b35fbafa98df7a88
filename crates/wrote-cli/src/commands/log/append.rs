//! `wrote log append`: each line of standard input as a record.

use crate::args::LogAppendArgs;
use crate::commands::{of_library, outlive_the_size_limit, promised, say};
use crate::stdio::{End, Input};
use std::io::{BufRead, BufReader, Read};
use std::time::Instant;
use wrote::log::summary;
use wrote::{Format, Log};
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};

/// No longer line is a record: it would not fit into a buffer of the log's.
const LINE_BYTES_MAX: usize = 1 << 20;

const BUFFER_BYTES: usize = 256 << 10;

pub(super) fn run(arguments: &LogAppendArgs, stop: &Stop) -> Result<(), Error> {
    outlive_the_size_limit()?;
    let log = open(arguments)?;
    let recovered = log.recovered();
    for path in recovered.kept_aside.iter().filter(|_| !arguments.quiet) {
        say(&format!(
            "wrote: note: the end of a write that was broken off is kept in {}",
            path.display()
        ));
    }
    let mut appended = Appended::new();
    let all = appended.all(&log, stop);
    // Whatever ended it, what was appended stays.
    log.close().map_err(|error| of_library(&error))?;
    if !arguments.quiet {
        say(&appended.line(&log));
    }
    End::outcome(all)
}

fn open(arguments: &LogAppendArgs) -> Result<Log, Error> {
    let folder = &arguments.folder;
    let format = match arguments.format {
        Some(format) => format,
        None => match summary(folder) {
            Ok(summary) => summary.format,
            Err(damaged @ wrote::Error::Damaged { .. }) => return Err(of_library(&damaged)),
            // Whatever else is wrong with what is there, opening it tells.
            Err(_) => Format::Framed,
        },
    };
    let options = Log::options().sync(arguments.sync).format(format);
    options.open(folder).map_err(|error| of_library(&error))
}

struct Appended {
    began: Instant,
    lines: u64,
    bytes: u64,
    /// The sequences of the first record and the last.
    sequences: Option<(u64, u64)>,
}

impl Appended {
    fn new() -> Appended {
        Appended { began: Instant::now(), lines: 0, bytes: 0, sequences: None }
    }

    fn all(&mut self, log: &Log, stop: &Stop) -> Result<(), End> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, Input::new(stop));
        let mut line = Vec::new();
        while self.read(&mut input, &mut line)? {
            stop.check()?;
            let sequence = log.append(&line).map_err(|error| self.refused(&error))?.sequence();
            let first = self.sequences.map_or(sequence, |(first, _)| first);
            self.sequences = Some((first, sequence));
            self.bytes += line.len() as u64;
            if input.buffer().is_empty() {
                // It may be long before more comes: what came is as safe as was asked.
                log.ticket(sequence).wait()?;
            }
        }
        Ok(())
    }

    /// Reads the next line, without its end; `false` where there is none.
    fn read(&mut self, input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, End> {
        line.clear();
        // One more for the line feed, and one by which a longer line is known.
        let most = LINE_BYTES_MAX as u64 + 2;
        let mut limited = input.take(most);
        if limited.read_until(b'\n', line).map_err(|error| End::of_input(&error))? == 0 {
            return Ok(false);
        }
        self.lines += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > LINE_BYTES_MAX {
            let because = format!("longer than {}", units::block_size(LINE_BYTES_MAX as u64));
            return Err(self.at_line(&because).into());
        }
        Ok(true)
    }

    /// An error about one record is told with its line; any other as it is.
    fn refused(&self, error: &wrote::Error) -> Error {
        match error {
            wrote::Error::Refused { because, .. } => self.at_line(because),
            wrote::Error::TooLong { len_max, .. } => {
                self.at_line(&format!("longer than the {len_max} bytes that a record may have"))
            }
            other => of_library(other),
        }
    }

    fn at_line(&self, because: &str) -> Error {
        Error::Failed(format!("standard input: line {}: {because}", self.lines))
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
