//! The work of a program: its arguments, and the file that it must leave behind.

use super::Request;
use std::io::{self, Read};
use wrote_result::document::{Blocks, Direction, Flush, Ioengine, Settings, SourceCache};
use wrote_result::words;

/// A workload that a user may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes that are written, and then read, one at a time.
    Bytes,
    /// A short text that is saved repeatedly, with and without a sync.
    Save,
    /// Short lines that are appended.
    Lines,
    /// Short lines that tasks append. Each task waits until its line is durable before it appends
    /// the next.
    Log,
}

impl Kind {
    /// All workloads, in run order.
    pub const ALL: [Kind; 4] = [Kind::Bytes, Kind::Save, Kind::Lines, Kind::Log];
}

/// The length of a line, including its line feed.
pub(crate) const LINE_BYTES: u64 = 64;
/// The sizes of the saved texts, in single-byte characters.
pub(crate) const SAVE_BYTES: [u64; 4] = [500, 1000, 2000, 10_000];
/// The content of the file to which lines are appended.
const FIRST_LINE: &[u8] = b"this line was there before\n";

words! {
    /// The kind of a call, which is a program's first argument.
    pub(crate) enum Task {
        /// `bytes-write PATH SIZE COUNT`: writes SIZE bytes (0 to 255, repeated) one at a time into
        /// a new file, COUNT times.
        BytesWrite = "bytes-write",
        /// `bytes-read PATH SIZE COUNT`: reads such a file one byte at a time, COUNT times, and
        /// reports the sum of its bytes.
        BytesRead = "bytes-read",
        /// `save PATH SIZE COUNT`: saves SIZE characters to PATH, COUNT times.
        Save = "save",
        /// `save-sync PATH SIZE COUNT`: like `save`, but calls the language's sync before closing
        /// the file.
        SaveSync = "save-sync",
        /// `lines PATH SIZE COUNT`: appends COUNT lines of SIZE bytes.
        Lines = "lines",
        /// `log PATH SIZE COUNT`: 64 tasks write COUNT lines of SIZE bytes to a new file. Each task
        /// waits until its line is durable before it writes the next. Only for programs that name
        /// this task.
        Log = "log",
    }
}

impl Task {
    /// Returns whether the task saves texts, each with a timing.
    pub(super) fn is_save(self) -> bool {
        matches!(self, Task::Save | Task::SaveSync)
    }
}

/// A workload of the result: a task with its amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub task: Task,
    /// SIZE: the length of the file, text or line.
    pub size: u64,
    /// COUNT: the number of passes, saves or lines.
    pub count: u64,
    /// Whether the file is dropped from the page cache before a program reads it.
    pub cold: bool,
    /// Whether each program processes as much as it can in its slice of the time. The amount in the
    /// table is then the maximum.
    pub in_time: bool,
}

/// The expected content of a file: an initial text, then a repeated pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub head: Vec<u8>,
    pub pattern: Vec<u8>,
    /// The total length of the repeated pattern. Its last repetition may be incomplete.
    pub body_bytes: u64,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.head.len() as u64 + self.body_bytes
    }

    /// Returns a reader of the content, from its start.
    pub(super) fn reader(&self) -> impl Read {
        let times = PIECE_BYTES.div_ceil(self.pattern.len().max(1));
        let body = Cycle { bytes: self.pattern.repeat(times), at: 0 };
        io::Cursor::new(self.head.clone()).chain(body.take(self.body_bytes))
    }
}

/// Bytes that are repeated endlessly.
struct Cycle {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Cycle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at = (self.at + count) % self.bytes.len();
        Ok(count)
    }
}

/// The length of the pieces in which a file is created and compared.
pub(super) const PIECE_BYTES: usize = 256 << 10;
/// The minimum space that a file occupies on most file systems.
const BLOCK_BYTES: u64 = 4096;

/// Returns the space that a file with this content occupies, in bytes.
pub(super) fn in_blocks(content: &Content) -> u64 {
    content.len().checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// Returns all tables of `request`, in run order.
pub(super) fn tables(request: &Request) -> Vec<Table> {
    let asked = |kind: &Kind| request.workloads.is_empty() || request.workloads.contains(kind);
    Kind::ALL.into_iter().filter(asked).flat_map(|kind| tables_of(kind, request)).collect()
}

fn tables_of(kind: Kind, request: &Request) -> Vec<Table> {
    let table = |task, size, count| {
        let in_time = match kind {
            Kind::Bytes => request.size_bytes.is_none(),
            Kind::Save => request.saves.is_none(),
            Kind::Lines | Kind::Log => request.lines.is_none(),
        };
        Table { task, size, count, cold: false, in_time }
    };
    let (saves, lines) = (request.saves_max(), request.lines_max());
    match kind {
        Kind::Bytes => {
            let write = table(Task::BytesWrite, request.size_bytes_max(), 1);
            let read = Table { task: Task::BytesRead, ..write };
            let cold = request.drop_caches.then_some(Table { cold: true, ..read });
            [write, read].into_iter().chain(cold).collect()
        }
        Kind::Save => {
            let of = |task| SAVE_BYTES.map(|size| table(task, size, saves.into())).into_iter();
            of(Task::Save).chain(of(Task::SaveSync)).collect()
        }
        Kind::Lines => vec![table(Task::Lines, LINE_BYTES, lines)],
        Kind::Log => vec![table(Task::Log, LINE_BYTES, lines)],
    }
}

impl Table {
    /// Returns the workload's name in the result: `langs/bytes-write`.
    pub(super) fn name(&self) -> String {
        let task = self.task.as_str();
        match self.task {
            Task::BytesRead if self.cold => format!("langs/{task}-cold"),
            Task::Save | Task::SaveSync => format!("langs/{task}-{}", self.size),
            _ => format!("langs/{task}"),
        }
    }

    /// Returns the amount that is adapted to the slice of the time: bytes, saves or lines.
    pub(super) fn amount(&self) -> u64 {
        if self.is_of_bytes() { self.size } else { self.count }
    }

    /// Returns the amount of the first trial. It takes the slowest program a few seconds.
    pub(super) fn first_amount(&self) -> u64 {
        match self.task {
            Task::BytesWrite | Task::BytesRead => 1_000_000,
            Task::Save | Task::SaveSync => 5,
            Task::Lines | Task::Log => 10_000,
        }
    }

    /// Returns the table with another amount.
    pub(super) fn of(self, amount: u64) -> Table {
        if self.is_of_bytes() {
            Table { size: amount, ..self }
        } else {
            Table { count: amount, ..self }
        }
    }

    pub(super) fn is_of_bytes(&self) -> bool {
        matches!(self.task, Task::BytesWrite | Task::BytesRead)
    }

    /// Returns the number of timings in an answer. All lines together have one timing.
    pub(super) fn timings(&self) -> u64 {
        if self.is_of_lines() { 1 } else { self.count }
    }

    pub(super) fn timing_bytes(&self) -> u64 {
        if self.is_of_lines() { self.size.saturating_mul(self.count) } else { self.size }
    }

    pub(super) fn is_of_lines(&self) -> bool {
        matches!(self.task, Task::Lines | Task::Log)
    }

    pub(super) fn run_bytes(&self) -> u64 {
        self.timing_bytes().saturating_mul(self.timings())
    }

    /// Returns the expected content of the file after a run; for reads, before it, too.
    pub(super) fn content(&self) -> Content {
        let letters = |count: u64, first: u8| (0..count).map(move |k| first + (k % 26) as u8);
        let (head, pattern) = match self.task {
            Task::BytesWrite | Task::BytesRead => (Vec::new(), (0..=255).collect()),
            Task::Save | Task::SaveSync => (Vec::new(), letters(26, b'a').collect()),
            Task::Lines | Task::Log => {
                let line = letters(self.size.saturating_sub(1), b'a').chain([b'\n']);
                let head = if self.task == Task::Lines { FIRST_LINE } else { &[] };
                (head.to_vec(), line.collect())
            }
        };
        Content { head, pattern, body_bytes: self.timing_bytes() }
    }

    /// Returns the content of the file before a run; `None` if there is no file. Before a save, the
    /// file holds a text of the same length with other letters, so that a missing save is detected.
    pub(super) fn before(&self) -> Option<Content> {
        match self.task {
            Task::BytesWrite | Task::Log => None,
            Task::BytesRead => Some(self.content()),
            Task::Save | Task::SaveSync => {
                Some(Content { pattern: (b'A'..=b'Z').collect(), ..self.content() })
            }
            Task::Lines => Some(Content { body_bytes: 0, ..self.content() }),
        }
    }

    /// Returns the sum of the file's bytes, if a program must report it.
    pub(super) fn sum(&self) -> Option<u64> {
        let of_rest: u64 = (0..self.size % 256).sum();
        let of_all = (self.size / 256).saturating_mul((0..256).sum()).saturating_add(of_rest);
        (self.task == Task::BytesRead).then_some(of_all)
    }

    /// Returns whether a run writes so much through the page cache that memory is reserved for it.
    pub(super) fn fills_page_cache(&self) -> bool {
        matches!(self.task, Task::BytesWrite | Task::Lines)
    }

    /// Returns whether the drive's rate is a yardstick for the workload, as it is for a stream.
    pub(super) fn is_of_drive(&self) -> bool {
        self.is_of_bytes() || self.task == Task::Lines
    }

    /// Returns whether the bytes are synced when the clock stops (M3). A save replaces a text whose
    /// name is already durable, so syncing the file is enough; a log syncs its name, too.
    pub(super) fn is_synced(&self) -> bool {
        matches!(self.task, Task::SaveSync | Task::Log)
    }

    pub(super) fn direction(&self) -> Direction {
        if self.task == Task::BytesRead { Direction::Read } else { Direction::Write }
    }

    /// Returns whether the page cache holds the file to read when the clock starts.
    pub(super) fn source_cache(&self) -> SourceCache {
        if self.cold { SourceCache::Dropped } else { SourceCache::Warm }
    }

    /// Returns the maximum number of bytes that a run writes, including the initial file. A file to
    /// read does not count: it is written once for all runs, unless a program damages it.
    pub(super) fn written_bytes_max(&self) -> u64 {
        let before = self.before().map_or(0, |before| in_blocks(&before));
        let times = if self.task.is_save() { self.count } else { 1 };
        let run = in_blocks(&self.content()).saturating_mul(times).saturating_add(before);
        if self.task == Task::BytesRead { 0 } else { run }
    }

    /// Returns the settings of a run in a language, as far as `wrote` knows them.
    pub(super) fn settings(&self, language: &str) -> Settings {
        Settings {
            rw: self.direction().to_string(),
            ioengine: Ioengine::Other(language.into()),
            bs_bytes: if self.is_of_bytes() { 1 } else { self.size },
            size_bytes: self.run_bytes(),
            iodepth: 1,
            numjobs: 1,
            sync: match self.task {
                Task::SaveSync => Flush::FsyncEach,
                Task::Log => Flush::Always,
                _ => Flush::None,
            },
            blocks: if self.task == Task::BytesRead { Blocks::Written } else { Blocks::New },
            source_cache: (self.task == Task::BytesRead).then(|| self.source_cache()),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request::new("/data".into(), "/cache".into())
    }

    fn names(request: &Request) -> Vec<String> {
        tables(request).iter().map(Table::name).collect()
    }

    fn table(task: Task, size: u64, count: u64) -> Table {
        Table { task, size, count, cold: false, in_time: false }
    }

    #[test]
    fn all_workloads_are_run_unless_some_are_named_and_cold_reads_only_when_asked_for() {
        let all = [
            "langs/bytes-write",
            "langs/bytes-read",
            "langs/save-500",
            "langs/save-1000",
            "langs/save-2000",
            "langs/save-10000",
            "langs/save-sync-500",
            "langs/save-sync-1000",
            "langs/save-sync-2000",
            "langs/save-sync-10000",
            "langs/lines",
            "langs/log",
        ];
        assert_eq!(names(&request()), all);
        let workloads = vec![Kind::Lines, Kind::Bytes, Kind::Lines];
        let some = Request { workloads, drop_caches: true, ..request() };
        let four = ["bytes-write", "bytes-read", "bytes-read-cold", "lines"];
        assert_eq!(names(&some), four.map(|name| format!("langs/{name}")));
    }

    #[test]
    fn the_sum_of_the_bytes_is_that_of_the_file() {
        for size in [1, 2, 255, 256, 257, 1000, 70_000] {
            let by_hand = (0..size).map(|k| k % 256).sum();
            assert_eq!(table(Task::BytesRead, size, 1).sum(), Some(by_hand));
        }
        // The example in the protocol's documentation.
        assert_eq!(table(Task::BytesRead, 256_000_000, 1).sum(), Some(32_640_000_000));
        assert_eq!(table(Task::BytesWrite, 1000, 1).sum(), None);
    }

    #[test]
    fn earlier_content_cannot_pass_for_the_content_to_write() {
        for task in [Task::Save, Task::SaveSync, Task::Lines] {
            let table = table(task, 64, 3);
            assert_ne!(table.before().unwrap(), table.content());
        }
        let saved = table(Task::Save, 500, 3);
        assert_eq!(saved.before().unwrap().len(), saved.content().len());
        assert_eq!(table(Task::BytesWrite, 64, 1).before(), None);
    }

    #[test]
    fn lines_are_one_timing_and_each_save_is_one() {
        let saves = table(Task::Save, 500, 1000);
        for lines in [Task::Lines, Task::Log].map(|task| table(task, 64, 1000)) {
            let bytes = (lines.timings(), lines.timing_bytes(), lines.run_bytes());
            assert_eq!(bytes, (1, 64_000, 64_000));
            assert_eq!(lines.content().pattern.len(), 64);
            assert_eq!(lines.content().pattern.last(), Some(&b'\n'));
        }
        assert_eq!(
            (saves.timings(), saves.timing_bytes(), saves.run_bytes()),
            (1000, 500, 500_000)
        );
    }
}
