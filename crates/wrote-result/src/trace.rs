//! The document of a traced program: one JSON document, `wrote.trace/1`.

use crate::document::{Finding, Host, Program, Severity, Survives, SurvivesWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{As, DisplayFromStr, skip_serializing_none};

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.trace/1";

/// The files that a program wrote, and what a power loss would leave of them.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// `wrote.trace/1`.
    pub schema: String,
    /// The time at which the program was started, in UTC, to the second: `2026-01-02T03:04:05Z`.
    pub started_at: String,
    /// The program that watched the traced program.
    pub wrote: Program,
    /// The machine.
    pub host: Host,
    /// The program's working directory at its start.
    pub folder: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How the program ended.
    pub end: End,
    /// The time from the program's start to the end of its last process, in seconds.
    pub elapsed_s: f64,
    /// The cost of watching the program.
    pub watching: Watching,
    /// Whether files were judged as if they were on a disk with a journal, wherever they were
    /// (`--on-disk`).
    #[serde(default)]
    pub on_disk: bool,
    /// The kind of event that acknowledges that something is saved.
    pub acknowledged_by: Ack,
    /// The regular expression that the text of an acknowledgement matches.
    pub acknowledged_text: Option<String>,
    /// The files that were written or created and still exist, by path. A file with several names
    /// has several entries.
    pub files: Vec<File>,
    /// The numbers of files that are not listed because there are too many.
    #[serde(default, skip_serializing_if = "MoreFiles::is_empty")]
    pub more_files: MoreFiles,
    /// The number of files that were created or written, and later removed.
    pub removed_files: u64,
    /// The times of the calls.
    #[serde(default)]
    pub timeline: Timeline,
    /// The calls that could not be seen, in a form that can be shown.
    pub unseen: Vec<String>,
    /// Whether everything that was written survives a power loss. This is the worst verdict on a
    /// file.
    #[serde(default)]
    pub verdict: Verdict,
    /// The reasons why files cannot be judged, in a form that can be shown. If there is any, the
    /// verdict is not `survives`.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// The check of the states that a power loss could have left (`--check`).
    #[serde(default)]
    pub crash: Option<CrashTest>,
    /// Mistakes that lose data or time, with warnings first. `docs/trace-findings.md` explains
    /// each.
    pub findings: Vec<Finding>,
    /// How to do it right, in the languages of the programs with findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

/// A check of the folders that a power loss could have left.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashTest {
    /// The command that checks a folder, with DIR in place of the folder.
    pub check: String,
    /// The number of states that were checked. After a failure, only smaller states are checked.
    pub states: u64,
    /// The number of states for which there was no time (`--within`).
    pub unchecked_states: u64,
    /// The number of crashes that the states represent. One state represents all crashes that leave
    /// the same content under the same names.
    pub crashes: u64,
    /// Whether there may be more states than the requested number.
    #[serde(default)]
    pub is_limited: bool,
    /// The time that the checks took, in seconds.
    pub elapsed_s: f64,
    /// Of the states that fail the check, the one with the fewest missing changes.
    pub failed: Option<CrashState>,
}

/// A folder that a power loss could have left.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashState {
    /// The number of the state among the states of the record.
    pub number: u64,
    /// The moment of the power loss and what it left, in words.
    pub moment: String,
    /// The differences from what the program saw, each with its file: `a is empty`.
    pub losses: Vec<String>,
    /// The last unflushed changes that the state contains.
    pub kept: Vec<Moment>,
    /// The number of unflushed changes that the state lacks, or contains only in part.
    pub lost_changes: u64,
    /// The first of the changes that the state lacks.
    pub lost: Vec<Moment>,
    /// The advice on how to fix the program.
    pub fix: String,
    /// The line of the program's source to look at.
    pub place: Option<String>,
    /// How the check failed.
    pub problem: Option<String>,
    /// The command that creates the state in a new folder.
    pub reproduce: String,
}

/// Code that does what a program did, but without findings: a chapter of `docs/safe-writes.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The purpose of the code: `replacing a file`.
    pub purpose: String,
    /// The recommended action, in words.
    pub action: String,
    /// The ids of the findings that the code avoids.
    pub findings: Vec<String>,
    /// The language of the code: `python`, `js`, `go`, `java`, `c`, `rust` or `sh`.
    pub language: String,
    /// The code, with its imports.
    pub code: String,
}

/// Whether a power loss leaves what was written, as far as the calls could be seen.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything survives.
    Survives,
    /// The outcome cannot be judged.
    #[default]
    Unknown,
    /// Bytes or a name may be lost.
    Lost,
}

/// The numbers of files that are not listed, by their verdicts. If there are too many files, the
/// safest and oldest are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreFiles {
    /// The number of files that survive a power loss.
    pub survives: u64,
    /// The number of files that cannot be judged.
    pub unknown: u64,
    /// The number of files whose bytes or names may be lost.
    pub lost: u64,
}

impl MoreFiles {
    /// Adds `count` files with this verdict.
    pub fn add(&mut self, verdict: Verdict, count: u64) {
        *match verdict {
            Verdict::Survives => &mut self.survives,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Lost => &mut self.lost,
        } += count;
    }

    /// Returns the number of files.
    pub fn count(&self) -> u64 {
        self.survives + self.unknown + self.lost
    }

    /// Returns whether the number of files is 0.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the worst verdict on the files; [`Verdict::Survives`] if there are none.
    pub fn verdict(&self) -> Verdict {
        match self {
            MoreFiles { lost: 1.., .. } => Verdict::Lost,
            MoreFiles { unknown: 1.., .. } => Verdict::Unknown,
            _ => Verdict::Survives,
        }
    }
}

/// An event that tells the outside world that something is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ack {
    /// The end of the program.
    #[default]
    Exit,
    /// A write to the program's standard output.
    Stdout,
    /// A write to a socket.
    Socket,
    /// A write of a text to the program's standard output, its standard error or a socket.
    Text,
}

impl Trace {
    /// Returns the severity of the worst finding; `None` if there are no findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// How a program ended.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The program's exit code; absent if a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed the program.
    pub signal: Option<i32>,
}

impl End {
    /// Returns the exit code as a shell reports it: 128 plus the signal's number if a signal killed
    /// the program.
    pub fn exit_code(self) -> u8 {
        const OF_SIGNALS: i32 = 128;
        let code = self.code.or(self.signal.map(|signal| OF_SIGNALS + signal)).unwrap_or(1);
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// The cost of watching a program.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watching {
    /// The number of calls at which a process was stopped.
    pub stopped_calls: u64,
    /// The number of processes and threads.
    pub tasks: u64,
    /// The time spent on examining stopped processes, in seconds, without the time that the kernel
    /// took.
    #[serde(default)]
    pub stopped_s: f64,
}

/// A file that a program wrote.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The path at the end.
    pub path: String,
    /// The number of write calls.
    pub writes: u64,
    /// The number of bytes in all writes.
    pub bytes: u64,
    /// The median size of the writes, in bytes; 0 if there are none.
    pub write_p50_bytes: u64,
    /// The number of calls that flushed the file, and of writes that were durable themselves.
    pub flushes: u64,
    /// The time spent in these flushes, in seconds.
    #[serde(default)]
    pub flush_s: f64,
    /// The time from the start of the first write to the end of the last write or flush, in
    /// seconds.
    #[serde(default)]
    pub span_s: f64,
    /// How the file was produced.
    pub how: How,
    /// Whether the file had a writable shared mapping. Stores through the mapping are counted as
    /// writes, page by page.
    pub is_mapped: bool,
    /// The number of written bytes that were not flushed at the end.
    pub unflushed_bytes: u64,
    /// The worst event that the written bytes survive at the end, on real file systems
    /// (`docs/durability.md`).
    #[serde(with = "As::<DisplayFromStr>")]
    #[schemars(with = "SurvivesWord")]
    pub survives: Survives,
    /// The worst event that the written bytes survive if only the guarantees of POSIX hold.
    #[serde(with = "As::<DisplayFromStr>")]
    #[schemars(with = "SurvivesWord")]
    pub survives_posix: Survives,
    /// Whether the file survives a power loss. If the file cannot be judged, `survives` is the
    /// level that is certain.
    #[serde(default)]
    pub verdict: Verdict,
    /// The reason why the file does not survive a power loss, in a form that can be shown.
    #[serde(default)]
    pub because: Option<String>,
    /// The reason why the file cannot be judged.
    #[serde(default)]
    pub unjudged: Option<String>,
}

/// The calls over time, for at most 16 files: first the least safe files with the most calls, then
/// removed files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// The acknowledgements, except for the end of the program.
    pub answers: Vec<Calls>,
    /// The files, in the order of their first calls.
    pub files: Vec<Lane>,
    /// The number of other files that had calls.
    pub more_files: u64,
}

/// The calls on a file, including those under its earlier names, and the calls on the files that it
/// replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// The last path of the file.
    pub path: String,
    /// Whether the file was removed.
    pub is_removed: bool,
    /// The calls in their order, at most 128 of each kind. In a long run, several calls are
    /// combined.
    pub calls: Vec<Calls>,
}

/// Calls of one kind within a short time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// The kind of the calls.
    pub kind: CallKind,
    /// The number of calls.
    pub count: u64,
    /// The number of bytes written; 0 for other kinds.
    #[serde(default)]
    pub bytes: u64,
    /// When the first call began, in seconds from the start of the program.
    pub from_s: f64,
    /// When the last call ended, in seconds from the start of the program.
    pub to_s: f64,
}

/// A kind of call on a file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// The file was created.
    Make,
    /// The file was emptied, truncated or extended, or space was allocated for it.
    Resize,
    /// The file was written.
    Write,
    /// The file was flushed. A durable write is a flush, too.
    Flush,
    /// A flush of the file failed.
    FailedFlush,
    /// The file was renamed, or it and another file exchanged names.
    Rename,
    /// The file was given an additional name by a hard link.
    Link,
    /// A name of the file was removed.
    Unlink,
    /// The folder with the file's new name was flushed.
    FlushFolder,
    /// The program sent an acknowledgement.
    Answer,
}

/// How a file was produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The file was created under its final name.
    Made,
    /// The file was written under another name, then renamed over an existing file.
    Replaced,
    /// The file was written under another name, then renamed to an unused name.
    Renamed,
    /// The file was given an additional name by a hard link.
    Linked,
    /// The file existed, was emptied, and was written again.
    Rewritten,
    /// The file existed, and grew at its end.
    Appended,
    /// The file existed, and was changed in place.
    Changed,
}

/// A call and its time.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// The call, in words.
    pub call: String,
    /// The time from the start of the program, in seconds.
    pub at_s: f64,
    /// The file and the line of the call in the program's source, if the program has line numbers.
    #[serde(default)]
    pub place: Option<String>,
}

impl Moment {
    /// Returns a moment without a source location.
    pub fn new(call: &str, at_ns: u64) -> Moment {
        Moment { call: call.into(), at_s: at_ns as f64 / 1e9, place: None }
    }
}
