//! A program in another language that saves a file or appends to a log by its package of the
//! bindings.

use crate::process::Process;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// The language of a program. The interpreter finds the package by its own variable: `PYTHONPATH`,
/// `NODE_PATH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
}

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub struct Program {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Process,
}

impl Program {
    /// Starts the program for `work`, `save` or `log`, at `path`, and waits until it is ready.
    pub fn start(language: Language, work: &str, path: &Path) -> io::Result<Program> {
        let mut command = match language {
            Language::Python => Command::new("python3"),
            Language::Node => Command::new("node"),
        };
        match language {
            Language::Python => command.args(["-c", include_str!("foreign/subject.py")]),
            Language::Node => command.args(["-e", include_str!("foreign/subject.js"), "--"]),
        };
        command.arg(work).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let child = process.child();
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let answers = BufReader::new(answers);
        let mut program = Program { requests, answers, _process: process };
        program.answer().map(|_| program)
    }

    /// Sends a content, for which [`Program::answer`] waits.
    pub fn request(&mut self, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        match self.requests.write_all(&[&length.to_le_bytes(), content].concat()) {
            // The program has ended, and its last answer is the reason.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Returns the answer to the oldest request: it is durable, at this sequence of a log.
    pub fn answer(&mut self) -> io::Result<u64> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let number: i64 =
            line.trim_end().parse().map_err(|_| io::Error::other(format!("an answer {line:?}")))?;
        u64::try_from(number)
            .map_err(|_| io::Error::from_raw_os_error(i32::try_from(-number).unwrap_or(libc::EIO)))
    }
}
