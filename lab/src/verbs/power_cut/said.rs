//! The lines in which a subject reports its promises.

use crate::verbs::Trouble;
use serde::{Deserialize, Serialize};
use wrote::Error;

/// One line, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// The files that must exist before the start exist and are synced.
    Ready,
    /// The file holds the content of this number.
    Saved(u64),
    /// `bytes` bytes of a file are safe.
    Synced {
        /// The file's number.
        file: u64,
        /// The bytes from its beginning.
        bytes: u64,
    },
    /// The page holds this version, whole.
    Page {
        /// Its place in the file.
        number: u64,
        /// The number of the write.
        version: u64,
    },
    /// The file of this number is whole.
    Finished(u64),
    /// The copy of this number is whole.
    Copied(u64),
    /// A producer begins to append its records before number `end`.
    Sending {
        /// The producer.
        producer: u32,
        /// One more than the greatest number.
        end: u64,
    },
    /// The log has the producer's record `number` at `sequence`.
    Appended {
        /// The record's place in the log.
        sequence: u64,
        /// The producer that appended it.
        producer: u32,
        /// Its number among the producer's records, from 0 on.
        number: u64,
    },
    /// The log has every record before this sequence.
    Flushed(u64),
    /// The log was reopened, with every record before this sequence.
    Reopened(u64),
    /// A flush after the first error succeeded, against W2.
    Unpoisoned,
    /// The first error: the action, and the kernel's error number.
    Refused {
        /// The action: `Write`, `SyncFolder`.
        action: String,
        /// The error number.
        errno: i32,
    },
}

impl Line {
    /// Returns whether the line promises that something is safe.
    fn is_promise(&self) -> bool {
        !matches!(
            self,
            Line::Ready | Line::Sending { .. } | Line::Unpoisoned | Line::Refused { .. }
        )
    }

    /// Returns the line of an error.
    pub fn refused(error: &Error) -> Line {
        let action = match error {
            Error::File { action, .. } | Error::NotYet { action, .. } => format!("{action:?}"),
            Error::Poisoned { .. } => "poisoned".to_owned(),
            _ => "other".to_owned(),
        };
        Line::Refused { action, errno: error.errno() }
    }
}

/// All lines of a subject, with the places of the power loss among them.
///
/// A promise made before the cut began must hold. A promise made during the cut may be older than
/// it or not. One made after the cut was complete need not hold either: a flush in flight may
/// report success, because a file that a shut down XFS has given up no longer waits for its flush
/// (`xfs_dir_fsync` and `xfs_file_fsync` in `fs/xfs/xfs_file.c`). With a real cut no process would
/// receive that promise. But a subject that promises twice after the cut ignores errors.
#[derive(Debug, Default)]
pub struct Report {
    lines: Vec<Line>,
    /// The number of lines before the cut began.
    sure: usize,
    /// The number of lines before the cut was complete.
    before_gone: usize,
}

impl Report {
    /// Makes a report of lines before the cut began, and of lines before it was complete.
    #[cfg(test)]
    pub fn of(sure: &[Line], unsure: &[Line]) -> Report {
        let lines = [sure, unsure].concat();
        Report { sure: sure.len(), before_gone: lines.len(), lines }
    }

    /// Returns the lines before the cut began.
    pub fn sure(&self) -> &[Line] {
        &self.lines[..self.sure]
    }

    /// Returns all lines.
    pub fn all(&self) -> &[Line] {
        &self.lines
    }

    /// Counts the promises made after the power was gone.
    pub fn late(&self) -> usize {
        promises(&self.lines[self.before_gone..])
    }
}

/// Counts the promises among the lines.
pub fn promises(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.is_promise()).count()
}

/// Reads the lines of a subject. The program that cut the power added the lines `power-going` and
/// `power-gone`.
pub fn parse(text: &str) -> Result<Report, Trouble> {
    let mut said = Report { sure: usize::MAX, before_gone: usize::MAX, ..Report::default() };
    for text in text.lines() {
        match text {
            "power-going" => said.sure = said.lines.len(),
            "power-gone" => said.before_gone = said.lines.len(),
            _ => said.lines.push(serde_json::from_str(text)?),
        }
    }
    said.sure = said.sure.min(said.lines.len());
    said.before_gone = said.before_gone.min(said.lines.len());
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;
    use wrote::Action;

    #[test]
    fn printed_lines_are_read_again() {
        let refused = Line::Refused { action: "sync-folder".into(), errno: 5 };
        let lines = [
            Line::Ready,
            Line::Saved(1),
            Line::Synced { file: 2, bytes: 4097 },
            Line::Finished(3),
            Line::Copied(4),
            Line::Sending { producer: 1, end: 9 },
            Line::Appended { sequence: 70, producer: 1, number: 8 },
            Line::Flushed(71),
            Line::Reopened(72),
            Line::Unpoisoned,
            refused,
        ];
        let text = |line| serde_json::to_string(line).expect("a text") + "\n";
        let said = parse(&lines.iter().map(text).collect::<String>()).expect("lines");
        assert_eq!(said.sure(), lines);
        assert_eq!(said.all(), lines);
    }

    #[test]
    fn certainty_ends_when_the_power_is_lost() {
        let said = r#""Ready"
            {"Saved": 1}
            power-going
            {"Saved": 2}
            power-gone
            {"Saved": 3}
            {"Sending": {"producer": 0, "end": 7}}
            {"Refused": {"action": "open", "errno": 5}}"#;
        let said = parse(&said.replace("            ", "")).expect("lines");
        assert_eq!(said.sure(), [Line::Ready, Line::Saved(1)]);
        assert_eq!(said.all().len(), 6);
        assert_eq!(said.late(), 1);
    }

    #[test]
    fn a_line_that_no_subject_prints_is_an_error() {
        assert!(parse("\"Saved\"\n").is_err());
        assert!(parse("{\"Saved\": \"many\"}\n").is_err());
    }

    #[test]
    fn an_error_is_said_by_what_was_tried() {
        let error = io::Error::from_raw_os_error(5);
        let error = Error::file(Path::new("f"), Action::SyncFolder, None, &error);
        assert_eq!(Line::refused(&error), Line::Refused { action: "SyncFolder".into(), errno: 5 });
    }
}
