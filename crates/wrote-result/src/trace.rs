//! The document of a traced program: one JSON document, `wrote.trace/1`.

use crate::document::{Finding, Host, Program, Severity, Survives, SurvivesWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{As, DisplayFromStr, skip_serializing_none};

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.trace/1";

/// The files that a program wrote, and how much of them would survive.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// `wrote.trace/1`.
    pub schema: String,
    /// When the program was started, in UTC, to the second: `2026-01-02T03:04:05Z`.
    pub started_at: String,
    /// The program that watched.
    pub wrote: Program,
    /// The machine.
    pub host: Host,
    /// The program's working directory at its start.
    pub folder: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The program's end.
    pub end: End,
    /// The time from its start to the end of its last process, in seconds.
    pub elapsed_s: f64,
    /// The cost of the watching.
    pub watching: Watching,
    /// Whether files were judged as on a disk with a journal, wherever they lay (`--on-disk`).
    #[serde(default)]
    pub on_disk: bool,
    /// The sign of an acknowledgement.
    pub acknowledged_by: Ack,
    /// The regular expression that the text of an acknowledgement matches.
    pub acknowledged_text: Option<String>,
    /// The names that were written or given and still exist, by path; a file with several names has
    /// several entries.
    pub files: Vec<File>,
    /// The files that are not listed, because there are many.
    #[serde(default, skip_serializing_if = "MoreFiles::is_empty")]
    pub more_files: MoreFiles,
    /// How many files were made or written, and removed.
    pub removed_files: u64,
    /// When the calls were made.
    #[serde(default)]
    pub timeline: Timeline,
    /// Calls that could not be seen, ready to be shown.
    pub unseen: Vec<String>,
    /// Whether all that was written survives a power loss, as the worst of the files has it.
    #[serde(default)]
    pub verdict: Verdict,
    /// The reasons why files cannot be judged, ready to be shown. With any of them, the verdict is
    /// not `survives`.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// The check of what a power loss could have left (`--check`).
    #[serde(default)]
    pub crash: Option<CrashTest>,
    /// Mistakes that lose data or time, warnings first. `docs/trace-findings.md` explains each.
    pub findings: Vec<Finding>,
    /// How it is done right, in the languages of the programs with findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

/// A check of the folders that a power loss could have left.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashTest {
    /// The check; DIR stands for the folder.
    pub check: String,
    /// The states that were checked. After a failure, only smaller ones are.
    pub states: u64,
    /// The states for which there was no time (`--within`).
    pub unchecked_states: u64,
    /// The crashes for which all states stand: one state stands for all that leave the same content
    /// of the same names.
    pub crashes: u64,
    /// Whether there may be more states, beyond the number that was asked for.
    #[serde(default)]
    pub is_limited: bool,
    /// The time of the checks, in seconds.
    pub elapsed_s: f64,
    /// The state in which the check fails and that lacks the fewest changes.
    pub failed: Option<CrashState>,
}

/// A folder that a power loss could have left.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashState {
    /// Its number among the states of the record.
    pub number: u64,
    /// The moment of the power loss, and what it left, in words.
    pub moment: String,
    /// The files that differ from what the program saw.
    pub losses: Vec<String>,
    /// The last unflushed changes that it has.
    pub kept: Vec<Moment>,
    /// The number of unflushed changes that it lacks, or has in part only.
    pub lost_changes: u64,
    /// The first of them.
    pub lost: Vec<Moment>,
    /// The advice.
    pub fix: String,
    /// The line of the program's source to look at.
    pub place: Option<String>,
    /// How the check failed.
    pub problem: Option<String>,
    /// The command that makes the state in a new folder.
    pub reproduce: String,
}

/// Code that does without findings what a program did: a chapter of `docs/safe-writes.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Its purpose: `replacing a file`.
    pub purpose: String,
    /// The advised action, in words.
    pub action: String,
    /// The ids of the findings that it avoids.
    pub findings: Vec<String>,
    /// The language of the code: `python`, `js`, `go`, `java`, `c`, `rust` or `sh`.
    pub language: String,
    /// The code, with its imports.
    pub code: String,
}

/// Whether a power loss leaves what was written, so far as that was seen.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All of it.
    Survives,
    /// It cannot be judged.
    #[default]
    Unknown,
    /// Bytes or a name may be gone.
    Lost,
}

/// Files that were written, by what a power loss leaves of them: the safest and oldest of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreFiles {
    /// They survive it.
    pub survives: u64,
    /// They cannot be judged.
    pub unknown: u64,
    /// Bytes or names may be gone.
    pub lost: u64,
}

impl MoreFiles {
    /// Counts files with this verdict.
    pub fn add(&mut self, verdict: Verdict, count: u64) {
        *match verdict {
            Verdict::Survives => &mut self.survives,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Lost => &mut self.lost,
        } += count;
    }

    /// Returns the number of all.
    pub fn count(&self) -> u64 {
        self.survives + self.unknown + self.lost
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the worst verdict.
    pub fn verdict(&self) -> Verdict {
        match self {
            MoreFiles { lost: 1.., .. } => Verdict::Lost,
            MoreFiles { unknown: 1.., .. } => Verdict::Unknown,
            _ => Verdict::Survives,
        }
    }
}

/// A sign to the outside that something is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ack {
    /// The end of the program.
    #[default]
    Exit,
    /// A write to its standard output.
    Stdout,
    /// A write to a socket.
    Socket,
    /// A write of a text to its standard output, its standard error or a socket.
    Text,
}

impl Trace {
    /// Returns the worst of the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// How a program ended.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

impl End {
    /// The exit code as a shell has it: 128 and the signal's number where a signal killed it.
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
    /// The calls at which a process was stopped.
    pub stopped_calls: u64,
    /// The processes and threads.
    pub tasks: u64,
    /// The time for which the stops were examined, in seconds, without the kernel's own.
    #[serde(default)]
    pub stopped_s: f64,
}

/// A file that a program wrote.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its path at the end.
    pub path: String,
    /// Write calls.
    pub writes: u64,
    /// The bytes of all writes.
    pub bytes: u64,
    /// Half of the writes were of this size or less, in bytes; 0 without writes.
    pub write_p50_bytes: u64,
    /// Calls that flushed it, and writes that were durable themselves.
    pub flushes: u64,
    /// The time within them, in seconds.
    #[serde(default)]
    pub flush_s: f64,
    /// The time from the start of its first write to the end of its last write or flush, in
    /// seconds.
    #[serde(default)]
    pub span_s: f64,
    /// How it was produced.
    pub how: How,
    /// Whether it had a writable shared mapping. Stores through it count as writes, page by page.
    pub is_mapped: bool,
    /// Written bytes that were not flushed at the end.
    pub unflushed_bytes: u64,
    /// The worst event that the written bytes survive at the end, on real file systems
    /// (`docs/durability.md`).
    #[serde(with = "As::<DisplayFromStr>")]
    #[schemars(with = "SurvivesWord")]
    pub survives: Survives,
    /// The same, by POSIX's promises.
    #[serde(with = "As::<DisplayFromStr>")]
    #[schemars(with = "SurvivesWord")]
    pub survives_posix: Survives,
    /// Whether it survives a power loss. Of a file that cannot be judged, `survives` is the least
    /// that is certain.
    #[serde(default)]
    pub verdict: Verdict,
    /// Why it does not survive a power loss, ready to be shown.
    #[serde(default)]
    pub because: Option<String>,
    /// Why it cannot be judged.
    #[serde(default)]
    pub unjudged: Option<String>,
}

/// The calls over time, for at most 16 files: of the least safe ones with the most calls, then of
/// removed ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// The acknowledgements, other than the end of the program.
    pub answers: Vec<Calls>,
    /// The files, by their first call.
    pub files: Vec<Lane>,
    /// How many more files had calls.
    pub more_files: u64,
}

/// The calls on a file, also under the names that it had before, and on the files that it
/// replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Its last path.
    pub path: String,
    /// Whether it was removed.
    pub is_removed: bool,
    /// The calls in their order, at most 128 of each kind: in a long run several are one.
    pub calls: Vec<Calls>,
}

/// Calls of one kind within a short time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Their kind.
    pub kind: CallKind,
    /// Their number.
    pub count: u64,
    /// The bytes written; 0 for other kinds.
    #[serde(default)]
    pub bytes: u64,
    /// When the first began, in seconds from the start of the program.
    pub from_s: f64,
    /// When the last ended.
    pub to_s: f64,
}

/// A kind of call on a file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// It was created.
    Make,
    /// It was emptied, cut, extended, or got space.
    Resize,
    /// It was written.
    Write,
    /// It was flushed; a durable write is one, too.
    Flush,
    /// A flush of it failed.
    FailedFlush,
    /// It got its name, or exchanged it.
    Rename,
    /// It got a further name.
    Link,
    /// A name of it was removed.
    Unlink,
    /// The folder with its new name was flushed.
    FlushFolder,
    /// The program answered.
    Answer,
}

/// How a file was produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It was created in place.
    Made,
    /// It was written under another name, and renamed over an old file.
    Replaced,
    /// It was renamed to a free name.
    Renamed,
    /// It got a further name by a link.
    Linked,
    /// It existed, was emptied and written again.
    Rewritten,
    /// It existed and grew at its end.
    Appended,
    /// It existed and was changed in place.
    Changed,
}

/// A call and its moment.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// The call, in words.
    pub call: String,
    /// Seconds from the start of the program.
    pub at_s: f64,
    /// Its file and line in the program's source, where the program has line numbers.
    #[serde(default)]
    pub place: Option<String>,
}

impl Moment {
    /// Makes a moment without a place.
    pub fn new(call: &str, at_ns: u64) -> Moment {
        Moment { call: call.into(), at_s: at_ns as f64 / 1e9, place: None }
    }
}
