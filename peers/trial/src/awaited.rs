//! Random reads of a file by tasks of tokio: awaited, or on the runtime's threads for blocking
//! calls.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wrote::engine::Options;
use wrote::file::DirectFile;
use wrote::{Disk, FileOptions, Ioengine};

/// Offsets and addresses of direct reads are multiples of this on every usual disk.
const BLOCK_BYTES: usize = 4096;

/// The ways to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `DirectFile::start_read`, awaited.
    DirectFile,
    /// As `direct-file`, where io_uring is refused.
    DirectFileThreads,
    /// `tokio::task::spawn_blocking` with `pread(2)`, `O_DIRECT`.
    SpawnBlocking,
    /// The same through the page cache.
    SpawnBlockingCached,
}

/// Settings of the reads.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Work {
    /// The number of reads.
    #[arg(long, value_name = "N")]
    pub reads: u64,
    /// Tasks, each with one read in flight.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub tasks: u32,
    /// Bytes of a read, a multiple of 4096.
    #[arg(long, value_name = "N", default_value_t = 256 << 10)]
    pub read_bytes: usize,
}

/// Reads random pieces of the file at `path`, and reads a byte of each block.
pub fn awaited(by: By, work: Work, path: &Path) -> Result<Outcome> {
    if work.read_bytes == 0 || !work.read_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(format!("a read has a multiple of {BLOCK_BYTES} bytes").into());
    }
    let pieces = std::fs::metadata(path)?.len() / work.read_bytes as u64;
    if pieces == 0 {
        return Err(format!("{}: less than {} bytes", path.display(), work.read_bytes).into());
    }
    let plan = Arc::new(Plan { work, pieces, begun: AtomicU64::new(0) });
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    match by {
        By::DirectFile => runtime.block_on(direct(Ioengine::IoUring, plan, path)),
        By::DirectFileThreads => runtime.block_on(direct(Ioengine::Threads, plan, path)),
        By::SpawnBlocking => runtime.block_on(blocking(OFlags::DIRECT, plan, path)),
        By::SpawnBlockingCached => runtime.block_on(blocking(OFlags::empty(), plan, path)),
    }
}

/// The reads that the tasks share.
struct Plan {
    work: Work,
    /// Pieces of the file.
    pieces: u64,
    begun: AtomicU64,
}

impl Plan {
    /// Returns the offset of the next read; `None` after enough reads.
    fn next(&self, chance: &mut SplitMix64) -> Option<u64> {
        let is_left = self.begun.fetch_add(1, Ordering::Relaxed) < self.work.reads;
        let piece = ((u128::from(chance.next_u64()) * u128::from(self.pieces)) >> 64) as u64;
        is_left.then_some(piece * self.work.read_bytes as u64)
    }
}

/// Runs `task` as each of the tasks, between the clock's start and stop.
async fn by_tasks<F>(plan: &Plan, task: impl Fn(SplitMix64) -> F) -> Result<Outcome>
where
    F: Future<Output = Result<u64>> + Send + 'static,
{
    let clock = Clock::start()?;
    let numbers = 0..u64::from(plan.work.tasks);
    let tasks: Vec<_> =
        numbers.map(|number| tokio::spawn(task(SplitMix64::seed_from_u64(number)))).collect();
    let mut seen = 0_u64;
    for task in tasks {
        seen = seen.wrapping_add(task.await??);
    }
    std::hint::black_box(seen);
    let Work { reads, read_bytes, .. } = plan.work;
    clock.stop(reads * read_bytes as u64, reads)
}

async fn direct(ioengine: Ioengine, plan: Arc<Plan>, path: &Path) -> Result<Outcome> {
    let Work { tasks, read_bytes, .. } = plan.work;
    let disk = Disk::open(&Options::new(ioengine, tasks, read_bytes))?;
    let file = disk.open_file(path, &FileOptions::new().direct(true))?;
    if let Some(step) = disk.effective().fallbacks.first() {
        return Err(format!("{} instead of {}: {}", step.got, step.wanted, step.because).into());
    }
    by_tasks(&plan, |chance| direct_task(file.clone(), Arc::clone(&plan), chance)).await
}

async fn direct_task(file: DirectFile, plan: Arc<Plan>, mut chance: SplitMix64) -> Result<u64> {
    let mut seen = 0;
    while let Some(offset) = plan.next(&mut chance) {
        let bytes = file.start_read(offset, plan.work.read_bytes).await?;
        seen += look_at(&bytes, plan.work.read_bytes)?;
    }
    Ok(seen)
}

async fn blocking(flags: OFlags, plan: Arc<Plan>, path: &Path) -> Result<Outcome> {
    let flags = flags.bits().cast_signed();
    let file = Arc::new(OpenOptions::new().read(true).custom_flags(flags).open(path)?);
    by_tasks(&plan, |chance| blocking_task(Arc::clone(&file), Arc::clone(&plan), chance)).await
}

async fn blocking_task(file: Arc<File>, plan: Arc<Plan>, mut chance: SplitMix64) -> Result<u64> {
    let mut seen = 0;
    // One buffer for all reads of the task, the best case.
    let mut memory = vec![0; plan.work.read_bytes + BLOCK_BYTES];
    while let Some(offset) = plan.next(&mut chance) {
        let (file, read_bytes) = (Arc::clone(&file), plan.work.read_bytes);
        let read = move || {
            let start = memory.as_ptr().align_offset(BLOCK_BYTES);
            let len = file.read_at(&mut memory[start..start + read_bytes], offset)?;
            Ok::<_, std::io::Error>((memory, start, len))
        };
        let (back, start, len) = tokio::task::spawn_blocking(read).await??;
        memory = back;
        seen += look_at(&memory[start..start + len], read_bytes)?;
    }
    Ok(seen)
}

/// Reads a byte of each block of a whole read.
fn look_at(bytes: &[u8], read_bytes: usize) -> Result<u64> {
    if bytes.len() != read_bytes {
        return Err(format!("a read of {} of {read_bytes} bytes", bytes.len()).into());
    }
    Ok(bytes.iter().step_by(BLOCK_BYTES).map(|&byte| u64::from(byte)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_reads_whole_pieces_and_counts_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 20 * BLOCK_BYTES + 7]).expect("room");
        let work = Work { reads: 100, tasks: 4, read_bytes: 2 * BLOCK_BYTES };
        for by in [By::DirectFileThreads, By::SpawnBlocking, By::SpawnBlockingCached] {
            let outcome = awaited(by, work, &path).expect("readable");
            assert_eq!((outcome.operations, outcome.bytes), (100, 200 * BLOCK_BYTES as u64));
        }
    }

    #[test]
    fn reads_that_are_no_blocks_and_files_that_are_too_short_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [0; 100]).expect("room");
        let of = |read_bytes| Work { reads: 1, tasks: 1, read_bytes };
        let refused = |read_bytes| {
            awaited(By::SpawnBlocking, of(read_bytes), &path).expect_err("refused").to_string()
        };
        assert_eq!(refused(100), "a read has a multiple of 4096 bytes");
        assert!(refused(4096).ends_with("file: less than 4096 bytes"));
    }
}
