//! Background load on the disk while a pattern runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use wrote_jobs::data::seed;
use wrote_jobs::jobs::{self, Permissions, Watcher};
use wrote_jobs::spec::{Fallocate, JobSpec, READ};
use wrote_jobs::steps::{Running, Steps};
use wrote_result::{Error, Stop};

/// The size of the file of a background load.
const FILE_BYTES: u64 = 256 << 20;
/// The number of one-byte files to remove.
const REMOVED_FILES: u32 = if cfg!(test) { 100 } else { 100_000 };
const BLOCK_BYTES: u64 = 4096;
/// The head start of a background load, so that its first bytes reach the disk before the pattern
/// runs.
const AHEAD: Duration = Duration::from_millis(300);
/// The time limit of a background load that is not stopped.
const RUNTIME: Duration = Duration::from_secs(3600);
/// The I/O priority class (`ioprio_set(2)`) whose requests wait for all other I/O.
const IDLE_CLASS: libc::c_long = 3 << 13;

/// A kind of background load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Writes through the page cache and flushes every 256 MiB, as a copy does.
    Copy,
    /// A copy with idle I/O priority.
    CopyIdle,
    /// A copy that starts writeback every 8 MiB (`sync_file_range`).
    CopyPaced,
    /// A copy that drops its pages once they are written (`RWF_DONTCACHE`).
    Dontcache,
    /// Writes 4 KiB and flushes, repeatedly.
    Sync,
    /// Direct writes of 1 MiB, 8 in flight.
    Direct,
    /// Removes 100,000 files.
    Unlink,
    /// Direct reads of 1 MiB, 8 in flight.
    Reads,
}

impl Neighbour {
    /// All background loads, each with its name on the command line and in rows, its description,
    /// and its variant.
    pub const ALL: [(&str, &str, Neighbour); 8] = [
        ("copy", "1 MiB writes through the page cache, flushed each 256 MiB", Neighbour::Copy),
        ("copy-idle", "a copy with the idle class of I/O priority (ionice)", Neighbour::CopyIdle),
        ("copy-paced", "a copy that calls sync_file_range each 8 MiB", Neighbour::CopyPaced),
        ("dontcache", "a copy with RWF_DONTCACHE", Neighbour::Dontcache),
        ("sync", "4 KiB writes, each flushed", Neighbour::Sync),
        ("direct", "1 MiB direct writes, 8 in flight", Neighbour::Direct),
        ("unlink", "100,000 files removed", Neighbour::Unlink),
        ("reads", "1 MiB direct reads, 8 in flight", Neighbour::Reads),
    ];

    /// Returns the load's name on the command line and in rows.
    pub fn as_str(self) -> &'static str {
        Neighbour::ALL.iter().find(|(_, _, of)| *of == self).map_or("", |(name, ..)| name)
    }

    /// Returns the maximum number of bytes that the load's files occupy.
    pub(super) fn space_bytes(self) -> u64 {
        match self {
            Neighbour::Unlink => u64::from(REMOVED_FILES) * BLOCK_BYTES,
            _ => FILE_BYTES,
        }
    }

    fn steps(self) -> Option<Steps> {
        let copy = r#"{ call = "write", file = "copy", bytes = "1MiB" }"#;
        let flush = r#"{ transactions = 256, steps = [{ call = "fsync", file = "copy" }] }"#;
        let begin =
            r#"{ transactions = 8, steps = [{ call = "sync_file_range", file = "copy" }] }"#;
        let small = r#"
            { call = "write", file = "copy", bytes = 4096 },
            { call = "fdatasync", file = "copy" },
        "#;
        let (clients, bytes, of_file, each, every) = match self {
            Neighbour::Copy | Neighbour::CopyIdle => (1, FILE_BYTES, "", copy, flush.to_owned()),
            Neighbour::CopyPaced => (1, FILE_BYTES, "", copy, format!("{begin}, {flush}")),
            Neighbour::Dontcache => (1, FILE_BYTES, "dontcache", copy, flush.to_owned()),
            Neighbour::Sync => (1, FILE_BYTES, "", small, String::new()),
            Neighbour::Direct => (8, FILE_BYTES / 8, "direct", copy, String::new()),
            Neighbour::Unlink | Neighbour::Reads => return None,
        };
        let of_file = if of_file.is_empty() { "" } else { &format!(", {of_file} = true") };
        let text = format!(
            "clients = {clients}\napart = true\n\
             files = [{{ name = \"copy\", bytes = {bytes}{of_file} }}]\n\
             each = [{each}]\nevery = [{every}]"
        );
        Some(toml::from_str(&text).expect("a neighbour is a job of steps"))
    }

    /// Runs the load until it is stopped. `files` maps file numbers to paths.
    fn work(
        self,
        files: &dyn Fn(u32) -> PathBuf,
        stop: &Stop,
        begun: Sender<()>,
    ) -> Result<(), Error> {
        if self == Neighbour::CopyIdle {
            // SAFETY: the call (IOPRIO_WHO_PROCESS, this thread) touches no memory.
            unsafe { libc::syscall(libc::SYS_ioprio_set, 1, 0, IDLE_CLASS) };
        }
        if let Some(steps) = self.steps() {
            let running = Running::new(&steps, &|_, set| files(set), seed())?;
            let _ = begun.send(());
            let done = running.run(RUNTIME, u64::MAX, stop).map(|_| ());
            (0..steps.sets()).try_for_each(|set| remove(&files(set)))?;
            return done;
        }
        if self == Neighbour::Unlink {
            return unlink(&files(0), stop, &begun);
        }
        let mut job = JobSpec::new("neighbour", READ, 1 << 20);
        (job.files.paths, job.files.file_bytes) = (vec![files(0)], Some(FILE_BYTES));
        job.files.fallocate = Fallocate::None;
        (job.pace.runtime, job.pace.time_based) = (Some(RUNTIME), true);
        (job.io.iodepth, job.latencies, job.samples) = (8, false, false);
        let permissions = Permissions { overwrite: true, ..Permissions::default() };
        jobs::run(&[job], permissions, stop, &mut Begins(begun), wrote_jobs::peers::Peers::ALONE)
            .map(|_| ())
    }

    /// Runs `work` under this background load, whose `files` are removed afterwards.
    pub(super) fn beside<T>(
        self,
        files: &(dyn Fn(u32) -> PathBuf + Sync),
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let over = Stop::new();
        let (begun, begins) = mpsc::channel();
        thread::scope(|scope| {
            let neighbour = scope.spawn(|| match self.work(files, &over, begun) {
                Err(Error::Interrupted) => Ok(()),
                done => done,
            });
            let is_ready = begins.recv().is_ok();
            let done = is_ready.then(|| {
                thread::sleep(AHEAD);
                work()
            });
            over.request();
            neighbour.join().expect("a neighbour does not panic")?;
            done.unwrap_or(Err(Error::Failed("a neighbour ended before it began".into())))
        })
    }
}

/// Creates files in a new folder, then removes them as fast as possible. Even if it is stopped, it
/// removes all the files that it created.
fn unlink(folder: &Path, stop: &Stop, begun: &Sender<()>) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("{}: {error}", folder.display()));
    fs::create_dir(folder).map_err(failed)?;
    let file = |number: u32| folder.join(format!("{number}"));
    let make = |number: u32| {
        stop.check()?;
        fs::write(file(number), "x").map_err(failed)
    };
    let made = (0..REMOVED_FILES).try_for_each(make);
    let synced = File::open(folder).and_then(|open| Ok(rustix::fs::syncfs(&open)?));
    if made.is_ok() && synced.is_ok() {
        let _ = begun.send(());
        thread::sleep(AHEAD);
    }
    fs::remove_dir_all(folder).map_err(failed)?;
    made?;
    synced.map_err(failed)
}

fn remove(file: &Path) -> Result<(), Error> {
    fs::remove_file(file).map_err(|error| Error::Failed(format!("{}: {error}", file.display())))
}

/// A watcher that signals when the file of the background load is ready.
struct Begins(Sender<()>);

impl Watcher for Begins {
    fn ready(&mut self) -> Result<(), Error> {
        let _ = self.0.send(());
        Ok(())
    }
}
