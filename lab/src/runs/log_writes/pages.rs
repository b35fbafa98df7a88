//! Atomic writes of pages on XFS without the device's help (Linux 6.16). `lab strange-fs` records
//! them under a loop device on the host, because the guest's kernel is older.

use super::replay::replay;
use crate::fixtures::Strange;
use crate::runs::power_cut::XFS;
use crate::runs::power_cut::disk::Disk;
use crate::runs::power_cut::subject::Subject;
use crate::tools::failure::{Failure, Tried};
use crate::tools::repository::target;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// The subjects. The second one is the control.
const SUBJECTS: [&str; 2] = ["pages", "plain-pages"];
/// The recording time, which yields some thousand moments.
const RECORDED: Duration = Duration::from_secs(2);

/// Records writes of pages, and simulates power losses at `moments`. Fails if a page written with
/// `RWF_ATOMIC` is torn or lost, or if no page written without it is torn.
pub fn cut(program: &Path, moments: (u64, Option<usize>)) -> Result<(), Failure> {
    let folder = TempDir::with_prefix_in("lab-log-writes-", target()).tried("a folder")?;
    let [before, log] = ["xfs.image", "xfs.log"].map(|name| folder.path().join(name));
    XFS.make(&before)?;
    record(program, (&before, &log), folder.path(), moments.0)?;
    eprintln!("--seed {}", moments.0);
    replay(program, XFS, (before, log), moments, &SUBJECTS)
}

fn record(
    program: &Path,
    (before, log): (&Path, &Path),
    folder: &Path,
    seed: u64,
) -> Result<(), Failure> {
    let point = TempDir::new_in(folder).tried("a folder")?;
    let log = log.to_string_lossy();
    let strange = Strange::mount(program, point, &["--capacity-mib", "1024", "--record", &log])
        .map_err(Failure::Skipped)?;
    let marks = strange.path().join("marks");
    let mark = |text: &str| std::fs::write(&marks, text).tried("a mark");
    let disk = Disk::copied(strange.path(), XFS, before, |_| mark("begin"))?;
    let (moment, said) = (disk.point().join("moment"), folder.join("said"));
    for made in [&moment, &said] {
        std::fs::create_dir(made).tried(made.display())?;
    }
    let start = |name| Subject::write(program, name, (&moment, &said), seed, Some(&marks));
    let mut subjects = SUBJECTS.map(start).into_iter().collect::<Result<Vec<_>, _>>()?;
    subjects.iter_mut().try_for_each(Subject::wait_until_ready)?;
    sleep(RECORDED);
    subjects.iter_mut().try_for_each(Subject::must_be_running)?;
    subjects.into_iter().try_for_each(Subject::kill)?;
    mark("end")
}
