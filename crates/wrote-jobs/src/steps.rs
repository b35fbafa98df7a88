//! Jobs of steps: a program's transaction as a sequence of system calls, run by several clients.
//!
//! A [`crate::spec::JobSpec`] repeats one kind of operation, as fio does. A program's transaction
//! consists of several: for one commit, SQLite creates, writes, flushes and unlinks a journal.
//! [`Steps`] lists the calls, and [`Running`] performs them as plain system calls, as the programs
//! do.

use serde::{Deserialize, Deserializer};
use wrote_result::units;

mod calls;
mod group;

pub use calls::Counts;
pub use group::{Done, Running};

/// The maximum number of clients of a job.
const CLIENTS_MAX: u32 = 256;
/// The maximum time of a program's own work between two transactions. A request to stop has to wait
/// for this time.
const THINK_US_MAX: u32 = 1_000_000;
/// The maximum number of files of a job.
const FILES_MAX: usize = 16;

/// A job of steps. Each transaction performs the steps of `each` in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// The number of clients that wait for their transactions concurrently. Several clients commit
    /// in groups: one of them leads, and performs the steps for all waiting clients. Clients that
    /// arrive later wait for the next leader.
    #[serde(default = "one")]
    pub clients: u32,
    /// Whether clients work independently. Each then has separate files, and performs its steps
    /// alone.
    #[serde(default)]
    pub apart: bool,
    /// The maximum number of transactions per second that all clients together submit. Latencies
    /// are counted from when a transaction was due (M5).
    pub rate: Option<f64>,
    /// The CPU time of a program's own work between two transactions of a client, which is not part
    /// of their latency.
    #[serde(default)]
    pub think_us: u32,
    /// The files, under the names that the steps use.
    pub files: Vec<FileSpec>,
    /// The steps before the clock starts.
    #[serde(default)]
    pub before: Vec<Step>,
    /// The steps of a transaction, or of a group of transactions.
    pub each: Vec<Step>,
    /// The steps before a write that does not fit into its file.
    #[serde(default)]
    pub full: Vec<Full>,
    /// Steps that are repeated after a number of transactions or seconds. They are part of the time
    /// of the transaction before them.
    #[serde(default)]
    pub every: Vec<Every>,
    /// Steps of another thread, which run concurrently with the transactions.
    #[serde(default)]
    pub beside: Vec<Every>,
    /// The steps at the end, before the clock stops.
    #[serde(default)]
    pub end: Vec<Step>,
}

/// A file of a job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// The name that steps use for the file, in lower-case letters.
    pub name: String,
    /// The maximum length of the file. A write that does not fit runs the steps of [`Steps::full`],
    /// or else goes to the start of the file.
    #[serde(deserialize_with = "size")]
    pub bytes: u64,
    /// The state of the file when the clock starts.
    #[serde(default)]
    pub start: Start,
    /// Whether I/O bypasses the page cache (`O_DIRECT`).
    #[serde(default)]
    pub direct: bool,
    /// Whether each write is durable (`O_DSYNC`).
    #[serde(default)]
    pub dsync: bool,
    /// Whether the pages of each write are dropped once they have been written (`RWF_DONTCACHE`,
    /// Linux 6.14).
    #[serde(default)]
    pub dontcache: bool,
    /// Whether each write is done either completely or not at all, even if power is lost
    /// (`RWF_ATOMIC`, Linux 6.11).
    #[serde(default)]
    pub atomic: bool,
}

/// The state of a file when the clock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The file exists and is empty.
    #[default]
    Empty,
    /// The file does not exist.
    Absent,
    /// The file has its full length, allocated by `fallocate(2)`.
    Allocated,
    /// The file is full of zeros, which have been flushed.
    Zeros,
    /// The file is full of random bytes, which have been flushed.
    Written,
    /// The file is full of random bytes, which have been flushed, possibly by an earlier run. This
    /// state is only for rows that keep their files between runs.
    #[serde(skip)]
    Kept,
}

/// Steps before a write that does not fit into its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Full {
    /// The name of the file.
    pub file: String,
    /// The steps, which make room with a rewind, or by starting a new file under this name.
    pub steps: Vec<Step>,
}

/// Steps that repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Every {
    /// The number of transactions between repetitions.
    pub transactions: Option<u64>,
    /// The time between repetitions in seconds, if there is no number of transactions.
    pub interval_s: Option<f64>,
    /// The steps to repeat.
    pub steps: Vec<Step>,
}

/// A system call, or several with one effect on a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "`file` is the name of a file in each variant")]
pub enum Step {
    /// Opens a file, and creates it if it does not exist.
    Open { file: String },
    /// Closes a file.
    Close { file: String },
    /// Writes `bytes` at the file's write position, or at the offset that one of the keys gives.
    Write {
        file: String,
        #[serde(deserialize_with = "size")]
        bytes: u64,
        /// The offset of the write, which leaves the write position unchanged.
        at: Option<u64>,
        /// Whether the writes go to random multiples of `bytes` within the file's maximum length.
        #[serde(default)]
        random: bool,
        /// The page size, if whole pages are written. The page at the write position is then
        /// written again.
        page: Option<u64>,
        /// The number of writes of `bytes` each, which does not grow with the group.
        times: Option<u32>,
        /// The maximum number of bytes per call.
        split: Option<u64>,
    },
    /// Calls `fdatasync(2)`.
    Fdatasync { file: String },
    /// Calls `fsync(2)`.
    Fsync { file: String },
    /// Calls `sync_file_range(2)` for the whole file, which starts writing it back without waiting.
    SyncFileRange { file: String },
    /// Calls `fsync(2)` on the folder.
    FsyncFolder,
    /// Calls `fdatasync(2)` on the folder.
    FdatasyncFolder,
    /// Renames the file `file` to the name of `to`. Later steps refer to it as `to`.
    Rename { file: String, to: String },
    /// Removes the file.
    Unlink { file: String },
    /// Truncates the file to `bytes`, or to its write position.
    Truncate { file: String, bytes: Option<u64> },
    /// Allocates the file up to its maximum length. With `keep_size`, its size is unchanged.
    Fallocate {
        file: String,
        #[serde(default)]
        keep_size: bool,
    },
    /// Fills the file with zeros up to its maximum length, in writes of 1 MiB or of `split` bytes.
    Zeros { file: String, split: Option<u64> },
    /// Moves the write position to the start of the file.
    Rewind { file: String },
}

impl Steps {
    /// Refuses a job that makes no sense.
    ///
    /// # Errors
    ///
    /// A one-line description of the fault and its location.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=CLIENTS_MAX).contains(&self.clients) {
            return Err(format!("clients = {}: must be 1 to {CLIENTS_MAX}", self.clients));
        }
        if self.rate.is_some_and(|rate| !(1.0..=1e9).contains(&rate)) {
            return Err("rate: must be 1 or more transactions per second".into());
        }
        if self.think_us > THINK_US_MAX {
            return Err(format!("think_us = {}: must be at most {THINK_US_MAX}", self.think_us));
        }
        if self.files.is_empty() || self.files.len() > FILES_MAX {
            return Err(format!("{} files: must be 1 to {FILES_MAX}", self.files.len()));
        }
        for (number, file) in self.files.iter().enumerate() {
            let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase());
            if file.name.is_empty() || !is_plain(&file.name) {
                return Err(format!("file {:?}: use lower-case letters", file.name));
            }
            if self.files[..number].iter().any(|other| other.name == file.name) {
                return Err(format!("file {:?} appears twice", file.name));
            }
            if file.atomic && !file.direct {
                return Err(format!("file {:?}: atomic needs direct = true", file.name));
            }
            if file.bytes == 0 {
                return Err(format!("file {:?}: bytes must be more than 0", file.name));
            }
        }
        if self.each.is_empty() {
            return Err("each: a transaction needs a step".into());
        }
        let full = self.full.iter().map(|full| &full.file);
        for name in self.all_steps().flat_map(Step::files).chain(full) {
            if !self.files.iter().any(|file| file.name == *name) {
                return Err(format!("step of {name:?}: no such file in files"));
            }
        }
        let counts = |every: &Every| every.transactions.is_some_and(|count| count > 0);
        if !self.every.iter().all(counts) {
            return Err("every: give transactions, 1 or more".into());
        }
        let is_timed = |every: &Every| every.interval_s.is_some_and(|s| s > 0.0 && s <= 3600.0);
        if !self.beside.iter().all(|every| is_timed(every) || counts(every)) {
            return Err("beside: give interval_s, or transactions, above 0".into());
        }
        self.all_steps().try_for_each(|step| self.check_write(step))
    }

    /// Refuses a write that does not fit into its file, or that direct I/O cannot perform.
    fn check_write(&self, step: &Step) -> Result<(), String> {
        let Step::Write { file, bytes, at, page, split, .. } = step else { return Ok(()) };
        let of = self.files.iter().find(|other| other.name == *file).expect("checked");
        let unit = if of.direct { 512 } else { 1 };
        if *bytes == 0 || at.unwrap_or(0) + bytes > of.bytes {
            return Err(format!("write of {bytes} bytes: {file:?} has {}", of.bytes));
        }
        if page.is_some_and(|page| page == 0 || page % unit != 0) || *split == Some(0) {
            return Err(format!("write to {file:?}: page and split must fit its direct I/O"));
        }
        if page.is_none() && bytes % unit != 0 || at.is_some_and(|at| at % unit != 0) {
            return Err(format!("write to {file:?}: direct I/O needs multiples of {unit} bytes"));
        }
        Ok(())
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        let lists = [&self.before, &self.each, &self.end].into_iter();
        let lists = lists.chain(self.full.iter().map(|full| &full.steps));
        lists.chain(self.every.iter().chain(&self.beside).map(|every| &every.steps)).flatten()
    }

    /// Returns whether a transaction is durable when it ends.
    pub fn is_durable(&self) -> bool {
        let is_dsync = self.files.iter().any(|file| file.dsync);
        is_dsync || self.each.iter().any(|step| step.is_flush())
    }

    /// Returns whether the transactions or the concurrent thread flush a file, so that flushes are
    /// timed.
    pub fn has_flushes(&self) -> bool {
        let every = self.every.iter().chain(&self.beside).flat_map(|every| &every.steps);
        self.each.iter().chain(every).any(Step::is_flush)
    }

    /// Returns the number of sets of files: one for each independent client, or one for all
    /// clients.
    pub fn sets(&self) -> u32 {
        if self.apart { self.clients } else { 1 }
    }

    /// Returns the maximum number of bytes that the files occupy at the same time.
    pub fn space_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum::<u64>() * u64::from(self.sets())
    }

    /// Returns the number of bytes that are written and flushed before the clock starts.
    pub fn laid_out_bytes(&self) -> u64 {
        let is_full = |file: &&FileSpec| matches!(file.start, Start::Zeros | Start::Written);
        let bytes = self.files.iter().filter(is_full).map(|file| file.bytes).sum::<u64>();
        bytes * u64::from(self.sets())
    }

    /// Returns the payload of a transaction: the number of bytes that its writes contain.
    pub fn transaction_bytes(&self) -> u64 {
        self.written(|_, _| 1)
    }

    /// Returns the number of bytes that a transaction's writes submit to the kernel. Direct writes
    /// are rounded up to whole pages.
    pub fn moved_bytes(&self) -> u64 {
        let is_direct = |name: &String| self.files.iter().any(|of| of.name == *name && of.direct);
        self.written(|file, page| if is_direct(file) { page } else { 1 })
    }

    /// Returns the length of the longest atomic write in a transaction; `None` if there is none.
    pub fn atomic_bytes(&self) -> Option<u64> {
        let is_atomic = |name: &String| self.files.iter().any(|of| of.name == *name && of.atomic);
        let bytes = |step: &Step| match step {
            Step::Write { file, bytes, .. } if is_atomic(file) => Some(*bytes),
            _ => None,
        };
        self.each.iter().filter_map(bytes).max()
    }

    /// Returns the number of bytes that a transaction writes. Each write is rounded up to a
    /// multiple of `unit`, which depends on its file and page size.
    fn written(&self, unit: impl Fn(&String, u64) -> u64) -> u64 {
        let bytes = |step: &Step| match step {
            Step::Write { file, bytes, page, times, .. } => {
                let unit = unit(file, page.unwrap_or(1));
                bytes.next_multiple_of(unit) * u64::from(times.unwrap_or(1))
            }
            _ => 0,
        };
        self.each.iter().map(bytes).sum()
    }
}

impl Step {
    fn files(&self) -> Vec<&String> {
        match self {
            Step::FsyncFolder | Step::FdatasyncFolder => Vec::new(),
            Step::Rename { file, to } => vec![file, to],
            Step::Open { file }
            | Step::Close { file }
            | Step::Write { file, .. }
            | Step::Fdatasync { file }
            | Step::Fsync { file }
            | Step::SyncFileRange { file }
            | Step::Unlink { file }
            | Step::Truncate { file, .. }
            | Step::Fallocate { file, .. }
            | Step::Zeros { file, .. }
            | Step::Rewind { file } => vec![file],
        }
    }

    /// Returns whether the step flushes a file.
    pub fn is_flush(&self) -> bool {
        matches!(self, Step::Fdatasync { .. } | Step::Fsync { .. })
    }
}

fn one() -> u32 {
    1
}

/// Parses a number of bytes, or a size such as `64MB`.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(from)? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Text(text) => units::parse_size(&text).map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests;
