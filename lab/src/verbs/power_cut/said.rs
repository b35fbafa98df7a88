//! The lines that a subject prints to report its promises.

use crate::verbs::Trouble;
use serde::{Deserialize, Serialize};
use wrote::Error;

/// A line, which is printed as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// The files that must exist before the start exist and have been synced.
    Ready,
    /// The file has the content with this number.
    Saved(u64),
    /// The first `bytes` bytes of a file are safe.
    Synced {
        /// The file's number.
        file: u64,
        /// The number of bytes from the beginning.
        bytes: u64,
    },
    /// The page has this version, completely.
    Page {
        /// The page's number in the file.
        number: u64,
        /// The number of the write.
        version: u64,
    },
    /// The file with this number is complete.
    Finished(u64),
    /// The copy with this number is complete.
    Copied(u64),
    /// A producer begins to append its records up to number `end`, exclusive.
    Sending {
        /// The producer.
        producer: u32,
        /// The maximum number plus one.
        end: u64,
    },
    /// The log contains the producer's record `number` at `sequence`.
    Appended {
        /// The record's sequence in the log.
        sequence: u64,
        /// The producer that appended it.
        producer: u32,
        /// The record's number among the producer's records, from 0 on.
        number: u64,
    },
    /// The log durably contains all records before this sequence.
    Flushed(u64),
    /// The log was reopened, and contains all records before this sequence.
    Reopened(u64),
    /// A flush succeeded after the first error, which violates W2.
    Unpoisoned,
    /// The first error, with the action and the kernel's error number.
    Refused {
        /// The action, such as `Write` or `SyncFolder`.
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

    /// Returns the line that reports an error.
    pub fn refused(error: &Error) -> Line {
        let action = match error {
            Error::File { action, .. } | Error::NotYet { action, .. } => format!("{action:?}"),
            Error::Poisoned { .. } => "poisoned".to_owned(),
            _ => "other".to_owned(),
        };
        Line::Refused { action, errno: error.errno() }
    }
}

/// All lines of a subject, with the positions at which the power loss began and was complete.
///
/// A promise made before the power loss began must hold. A promise reported while it happened may
/// have been made earlier or later. A promise made after it was complete need not hold: a flush in
/// flight may still report success, because a file that a shut down XFS has given up no longer
/// waits for its flush (`xfs_dir_fsync` and `xfs_file_fsync` in `fs/xfs/xfs_file.c`). After a real
/// power loss, no process would receive that promise. But a subject that makes two promises after
/// the power loss ignores errors.
#[derive(Debug, Default)]
pub struct Report {
    lines: Vec<Line>,
    /// The number of lines before the power loss began.
    sure: usize,
    /// The number of lines before the power loss was complete.
    before_gone: usize,
}

impl Report {
    /// Creates a report from the lines printed before the power loss began, and those printed while
    /// it happened.
    #[cfg(test)]
    pub fn of(sure: &[Line], unsure: &[Line]) -> Report {
        let lines = [sure, unsure].concat();
        Report { sure: sure.len(), before_gone: lines.len(), lines }
    }

    /// Returns the lines before the power loss began.
    pub fn sure(&self) -> &[Line] {
        &self.lines[..self.sure]
    }

    /// Returns all lines.
    pub fn all(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the number of promises made after the power loss was complete.
    pub fn late(&self) -> usize {
        promises(&self.lines[self.before_gone..])
    }
}

/// Returns the number of promises among the lines.
pub fn promises(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.is_promise()).count()
}

/// Parses the lines of a subject. The program that simulated the power loss has inserted the lines
/// `power-going` and `power-gone`.
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
