//! Traces a program's file operations and determines which of its writes would survive a crash.
//!
//! | module | content |
//! |---|---|
//! | `front` | the user's process, which ends with the program while its daemons are still traced |
//! | `watch` | the program under `ptrace(2)`, and its calls from their arguments to their effects |
//! | `call` | these effects, as data |
//! | `disk`, `content`, `names` | the files, and which names and bytes each crash would leave |
//! | `account` | counts of the calls on each file |
//! | `timeline` | the calls on each file over time |
//! | `judge` | the findings |
//! | `wanted` | the program's acknowledgements, and other things to be watched |
//! | `pattern` | the program's writes as a job file |
//! | `record` | a file with the folder's initial content, and the calls with their data |
//! | `states`, `tree` | the folders that a power loss may leave, from a record and `disk` |
//!
//! The input consists of calls, and the output is a document. Only `watch` depends on the kernel.

mod account;
mod call;
mod content;
mod disk;
mod front;
mod judge;
mod names;
mod pattern;
mod record;
mod states;
mod timeline;
mod tree;
mod wanted;
mod watch;

pub use front::{Front, attended};
pub use judge::kinds::{KINDS, Kind};
pub use record::Record;
pub use states::{State, states, without_loss};
pub use tree::{Bytes, Entry, Tree};
pub use wanted::{Sign, Wanted};

use account::Accounts;
use call::{Call, FileId};
use disk::{By, Disk, Mark, Node, Promise};
use itertools::{Either, Itertools};
use judge::Judge;
use record::Recorder;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use timeline::Timelines;
use watch::{Subject, Watched};
use wrote_result::document::{Host, Program, Survives};
use wrote_result::trace::{Ack, File, How, MoreFiles, SCHEMA, Trace, Verdict};
use wrote_result::units::{counted, some_of};

/// A program to be traced.
#[derive(Clone, Debug)]
pub struct TraceRequest {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// A running program to be traced instead.
    pub process: Option<i32>,
    /// The things that are watched in addition to the calls that change files.
    pub wanted: Wanted,
    /// The folders whose files are judged; all if empty.
    pub under: Vec<PathBuf>,
    /// The record to be created, if any.
    pub record: Option<RecordRequest>,
    /// A description of the machine, for the document.
    pub host: Host,
    /// A description of the tracing program, for the document.
    pub wrote: Program,
}

/// A request to record a program.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The record's file.
    pub path: PathBuf,
    /// Whether an existing file may be replaced.
    pub replaces: bool,
    /// The folder whose content is recorded.
    pub folder: PathBuf,
    /// The maximum size of the record.
    pub max_bytes: u64,
}

/// The result of a trace.
#[derive(Debug)]
pub struct Traced {
    /// The document.
    pub trace: Trace,
    /// Why the requested record could not be created.
    pub record: Result<(), String>,
    /// The program's writes as a job file; `None` if it wrote nothing.
    pub jobs: Option<String>,
}

/// Why a program could not be traced.
#[derive(Debug)]
pub enum Refused {
    /// The program can't be started (the error of `execve(2)`), or there is no such process.
    Program(io::Error),
    /// The kernel does not permit the trace: the reason, in one line.
    Trace(String),
    /// The record can't be created: the reason, in one line.
    Record(String),
}

/// Runs a program behind a front, or traces a running one, and judges its writes. The trace ends
/// with the last process that is not a daemon, or when `stop` is raised. If processes remain for a
/// while after the program has ended, calls `say` with a line about them.
///
/// # Errors
///
/// If the record can't be created, or the program can't be started or traced.
pub fn trace(
    mut request: TraceRequest,
    front: Option<&Front>,
    stop: &Arc<AtomicBool>,
    say: &dyn Fn(&str),
) -> Result<Traced, Refused> {
    let started_at = format!("{:.0}", jiff::Timestamp::now());
    let mut desk = Desk { under: request.under.clone(), ..Desk::default() };
    desk.judge.under = request.under.clone();
    if let Some(asked) = request.record.take() {
        desk.recorder = Some(Recorder::begin(asked).map_err(Refused::Record)?);
    }
    let subject = match request.process {
        None => Subject::Command(request.command.clone(), front.cloned()),
        Some(process) => {
            request.command = command_of(process);
            Subject::Process(process)
        }
    };
    let watched = watch::watch(subject, request.wanted.clone(), desk, Desk::see, stop, say);
    let (mut desk, mut watched) = watched.map_err(|error| match error.raw_os_error() {
        None => Refused::Trace(error.to_string()),
        Some(_) => Refused::Program(error),
    })?;
    let record = desk.recorder.take().map_or(Ok(()), |recorder| {
        let folder = std::env::current_dir().unwrap_or_default();
        recorder.end(|place| watched.places.shown(place, &folder).1)
    });
    let jobs = desk.jobs(&request);
    Ok(Traced { trace: desk.document(request, watched, started_at), jobs, record })
}

fn command_of(process: i32) -> Vec<OsString> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = line.strip_suffix(&[0]).unwrap_or(&line).split(|byte| *byte == 0);
    words.map(|word| OsString::from_vec(word.to_owned())).collect()
}

/// Returns whether a file is judged.
fn is_under(under: &[PathBuf], path: &Path) -> bool {
    under.is_empty() || under.iter().any(|folder| path.starts_with(folder))
}

/// Turns calls into a document.
#[derive(Default)]
struct Desk {
    /// The folders whose files are judged; all if empty.
    under: Vec<PathBuf>,
    recorder: Option<Recorder>,
    disk: Disk,
    accounts: Accounts,
    timelines: Timelines,
    judge: Judge,
}

impl Desk {
    /// Processes a call. Returns the files that were forgotten or folded.
    fn see(&mut self, call: &Call) -> Vec<FileId> {
        if let Some(recorder) = &mut self.recorder {
            recorder.see(&self.disk, call);
        }
        self.accounts.see(&self.disk, call);
        self.timelines.see(&self.disk, call);
        self.judge.see(&self.disk, &self.accounts, call);
        self.disk.see(call);
        self.judge.after(&self.disk, call);
        let mut gone = self.disk.forget();
        gone.iter().for_each(|file| self.judge.forget(*file));
        // Another file may have been reported only for a call that is still to come.
        if call.act.is_change() {
            gone.extend(self.fold());
        }
        for file in &gone {
            self.accounts.forget(*file);
            self.timelines.forget(*file);
            self.recorder.iter_mut().for_each(|recorder| recorder.forget(*file));
        }
        gone
    }

    /// If there are many files, reduces some of them to counts. Returns the folded files.
    fn fold(&mut self) -> Vec<FileId> {
        /// The number of writes from which a file is worth keeping.
        const BUSY_WRITES: u64 = 100;
        let (disk, accounts) = (&mut self.disk, &self.accounts);
        let is_busy = |file| accounts.of(file).is_some_and(|of| of.writes >= BUSY_WRITES);
        let Some(surplus) = disk.surplus(is_busy) else { return Vec::new() };
        for file in &surplus {
            let kind = self.judge.fold(disk, accounts, *file);
            let account = accounts.of(*file);
            let is_new = account.is_some_and(|of| of.is_new);
            let is_meant = is_under(&self.under, &disk.path(*file));
            let is_listed = account.is_some_and(|of| of.how().is_some()) || disk.is_linked(*file);
            let (kind, is_listed) = if is_meant { (kind, is_listed) } else { (0, false) };
            disk.fold(*file, Mark { kind, is_new, is_listed });
        }
        disk.end_batch();
        surplus
    }

    fn jobs(&self, request: &TraceRequest) -> Option<String> {
        let paths = self.disk.files().map(|(file, _)| (file, self.disk.path(file)));
        let files = paths.filter(|(_, path)| is_under(&self.under, path));
        let files = files.filter_map(|(file, path)| Some((path, self.accounts.of(file)?)));
        let words: Vec<_> = request.command.iter().map(|word| word.to_string_lossy()).collect();
        pattern::jobs(files.collect(), &words.join(" "))
    }

    fn document(self, request: TraceRequest, mut watched: Watched, started_at: String) -> Trace {
        const NO_ANSWER: &str = "the sign of --ack was not seen: only the end was judged";
        let is_under = |path: &Path| is_under(&self.under, path);
        let folder = std::env::current_dir().unwrap_or_default();
        // Each step needs memory for all files. The first two free the data that they have
        // processed.
        let mut timeline = self.timelines.document(&self.disk, &is_under);
        self.disk.rests(|count, _, _| timeline.more_files += count);
        let is_answered = request.wanted.ack.kind() == Ack::Exit || !timeline.answers.is_empty();
        watched.unseen.extend((!is_answered).then(|| NO_ANSWER.to_owned()));
        let source = &mut |place| watched.places.shown(place, &folder);
        let findings = self.judge.findings(&self.disk, &self.accounts, &is_under, &folder, source);
        let advice = judge::kinds::advice(&findings);
        let unseen = watched.unjudged.first();
        let (files, more_files) = files(&self.disk, &self.accounts, &is_under, unseen);
        let outputs = watched.outputs.iter().filter(|(_, path)| is_under(path));
        watched.unjudged.extend(outputs.map(|(stream, path)| match stream {
            Some(stream) => format!("{stream} (redirected to {})", below(&folder, path).display()),
            None => format!("{} (a block device)", path.display()),
        }));
        let unjudged = unjudged(&files, more_files, &folder, watched.unjudged);
        let least = if unjudged.is_empty() { Verdict::Survives } else { Verdict::Unknown };
        let verdict = files.iter().map(|file| file.verdict).fold(least, Verdict::max);
        let verdict = verdict.max(more_files.verdict());
        let shown = |word: &OsString| word.to_string_lossy().into_owned();
        Trace {
            schema: SCHEMA.into(),
            started_at,
            wrote: request.wrote,
            host: request.host,
            folder: folder.to_string_lossy().into_owned(),
            command: request.command.iter().map(shown).collect(),
            end: watched.end,
            elapsed_s: watched.elapsed_s,
            watching: watched.watching,
            on_disk: request.wanted.on_disk,
            acknowledged_by: request.wanted.ack.kind(),
            acknowledged_text: request.wanted.ack.text(),
            files,
            more_files,
            removed_files: self.accounts.removed,
            timeline,
            unseen: watched.unseen.into_iter().collect(),
            verdict,
            unjudged,
            crash: None,
            findings: findings.into_iter().map(|(finding, _)| finding).collect(),
            advice,
        }
    }
}

fn below<'a>(folder: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(folder).unwrap_or(path)
}

/// Returns the reasons why something cannot be judged: for some files, and for `all` files.
fn unjudged(files: &[File], more: MoreFiles, folder: &Path, all: BTreeSet<String>) -> Vec<String> {
    const SHOWN_MAX: usize = 3;
    let mut reasons = BTreeMap::<_, Vec<_>>::new();
    for file in files {
        let path = below(folder, Path::new(&file.path)).display().to_string();
        let reason = file.unjudged.as_ref().filter(|reason| !all.contains(*reason));
        reason.into_iter().for_each(|reason| reasons.entry(reason).or_default().push(path.clone()));
    }
    let some = reasons.iter().map(|(why, files)| format!("{} ({why})", some_of(files, SHOWN_MAX)));
    // The newest files are listed, and their reasons may apply to the folded files, too.
    let why = if reasons.is_empty() { "too many to follow" } else { "likewise, or too many" };
    let more = (more.unknown > 0 && all.is_empty())
        .then(|| format!("{} ({why})", counted(more.unknown, "more file")));
    some.chain(more).chain(all.iter().cloned()).collect()
}

/// Returns the existing files that the program wrote or named, one entry per name, ordered by path,
/// and counts of the other files. If calls were `unseen`, no file is certain to survive.
fn files<'a>(
    disk: &'a Disk,
    accounts: &Accounts,
    is_meant: &dyn Fn(&Path) -> bool,
    unseen: Option<&String>,
) -> (Vec<File>, MoreFiles) {
    let of = |(file, known): (FileId, &'a Node)| {
        let names = disk.names_of(known).filter(|(path, _)| is_meant(path));
        let rows = names.map(move |(path, named)| {
            let account = accounts.of(file)?;
            let is_linked = named.by == By::Linked;
            let seen = disk.survives_as(known, named, Promise::Seen);
            let unjudged = known.content.unseen.or(unseen.map(String::as_str));
            let unjudged = unjudged.or(disk.storage(file.device).doubt.as_deref());
            let unjudged = unjudged.filter(|_| seen == Survives::PowerLoss);
            let (verdict, most) = match (seen, unjudged) {
                (Survives::PowerLoss, None) => (Verdict::Survives, seen),
                (Survives::PowerLoss, Some(_)) => (Verdict::Unknown, Survives::ProcessCrash),
                _ => (Verdict::Lost, seen),
            };
            let how = account.how().filter(|_| !(is_linked && known.has_other_names()));
            let how = how.or(known.is_partial.then_some(How::Changed));
            let file = File {
                path: path.to_string_lossy().into_owned(),
                writes: account.writes,
                bytes: account.bytes,
                write_p50_bytes: account.write_p50_bytes(),
                flushes: account.flushes_in_all(),
                flush_s: account.flush_ns as f64 / 1e9,
                span_s: account.span_ns as f64 / 1e9,
                how: how.or(is_linked.then_some(How::Linked))?,
                is_mapped: known.content.is_mapped,
                unflushed_bytes: known.content.dirty_bytes(),
                survives: most,
                survives_posix: disk.survives_as(known, named, Promise::Posix).min(most),
                verdict,
                because: (verdict == Verdict::Lost).then(|| disk.because(known, named)),
                unjudged: unjudged.map(str::to_owned),
            };
            Some(file)
        });
        rows.flatten()
    };
    let (partial, files): (Vec<_>, Vec<_>) =
        disk.files().partition_map(|one| match one.1.is_partial {
            // A partial file is counted once, however many names it has.
            true => Either::Left(of(one).map(|file| file.verdict).max()),
            false => Either::Right(of(one)),
        });
    let mut files: Vec<File> = files.into_iter().flatten().collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut more = disk.beyond();
    partial.into_iter().flatten().for_each(|verdict| more.add(verdict, 1));
    disk.rests(|count, verdict, _| more.add(verdict, count));
    if unseen.is_some() {
        more.unknown += std::mem::take(&mut more.survives);
    }
    (files, more)
}

#[cfg(test)]
mod tests;
