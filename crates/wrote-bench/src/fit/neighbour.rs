//! Other work on the disk while a pattern runs.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use wrote::Ioengine;
use wrote_jobs::jobs::{self, Permissions, Watcher};
use wrote_jobs::spec::{BlockSizes, Fallocate, JobSpec, Rw};
use wrote_result::{Error, Stop};

/// The bytes of a neighbour's file.
pub(super) const FILE_BYTES: u64 = 256 << 20;
/// A neighbour works so long before the pattern begins: its first bytes reach the disk.
const AHEAD: Duration = Duration::from_millis(300);
/// The end of a neighbour that is not stopped.
const RUNTIME: Duration = Duration::from_secs(3600);

/// A kind of other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Writes through the page cache, and flushes each 256 MiB, as a copy does.
    Copy,
    /// Writes 4 KiB and flushes, again and again.
    Sync,
    /// Writes 1 MiB directly, 8 at once.
    Direct,
    /// Reads 1 MiB directly, 8 at once.
    Reads,
}

impl Neighbour {
    /// Its name on the command line and in rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Neighbour::Copy => "copy",
            Neighbour::Sync => "sync",
            Neighbour::Direct => "direct",
            Neighbour::Reads => "reads",
        }
    }

    fn job(self, file: PathBuf) -> JobSpec {
        let read = self == Neighbour::Reads;
        let rw = Rw { read, write: !read, random: false };
        let block = 1 << 20;
        let job = JobSpec {
            files: vec![file],
            file_bytes: Some(FILE_BYTES),
            runtime: Some(RUNTIME),
            time_based: true,
            latencies: false,
            samples: false,
            fallocate: Fallocate::None,
            ..JobSpec::new("neighbour", rw, block)
        };
        match self {
            Neighbour::Copy => JobSpec {
                ioengine: Ioengine::Psync,
                direct: false,
                fsync: Some((FILE_BYTES / block) as u32),
                ..job
            },
            Neighbour::Sync => JobSpec {
                ioengine: Ioengine::Psync,
                direct: false,
                fdatasync: Some(1),
                write_bs: BlockSizes::one(4096),
                ..job
            },
            Neighbour::Direct | Neighbour::Reads => JobSpec { iodepth: 8, ..job },
        }
    }

    /// Does `work` while the neighbour works on `file`, which is gone afterwards.
    pub(super) fn beside<T>(
        self,
        file: PathBuf,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (job, over) = (self.job(file), Stop::new());
        let (begun, begins) = mpsc::channel();
        thread::scope(|scope| {
            let neighbour = scope.spawn(|| {
                let permissions = Permissions { overwrite: true, ..Permissions::default() };
                // Told its end, it removes its file.
                match jobs::run(&[job], permissions, &over, &mut Begins(begun)) {
                    Err(Error::Interrupted) | Ok(_) => Ok(()),
                    Err(error) => Err(error),
                }
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

/// Tells when the neighbour's file is ready.
struct Begins(mpsc::Sender<()>);

impl Watcher for Begins {
    fn ready(&mut self) -> Result<(), Error> {
        let _ = self.0.send(());
        Ok(())
    }
}
