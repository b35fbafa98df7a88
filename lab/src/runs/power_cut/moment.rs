//! One moment: the subjects write, the power is lost, and the files are checked. It has a module of
//! its own because a campaign repeats it.

use super::disk::{Disk, cut};
use super::subject::{Seen, Subject, check};
use super::{REOPENED, SUBJECTS};
use crate::tools::failure::Failure;
use crate::tools::repository::fresh;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The times of the power losses, and the seed for the subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time from the start of the last subject to the power loss.
    pub delay: Duration,
    /// The seed for the subjects.
    pub seed: u64,
    /// The time from the second start of the subjects to a second power loss.
    pub again: Option<Duration>,
}

/// Runs one moment with all subjects of `program`, and returns their results in order. The disk is
/// mounted before and after.
pub fn live(disk: &mut Disk, program: &Path, moment: Moment) -> Result<Vec<Seen>, Failure> {
    let folder = fresh(disk.point().join("moment"))?;
    let said = fresh(disk.folder().join("said"))?;
    let places = (&*folder, &*said);
    let write = |name| Subject::write(program, name, places, moment.seed, None);
    for (subject, cut) in until_cut(disk, &SUBJECTS, write, moment.delay)? {
        subject.mark(cut)?;
    }
    if let Some(delay) = moment.again {
        let reopen = |name| Subject::reopen(program, name, places);
        for (subject, (going, _)) in until_cut(disk, &REOPENED, reopen, delay)? {
            subject.add_to(&said.join(subject.name), going)?;
        }
    }
    check(program, &SUBJECTS, &folder, &said)
}

/// The length of a subject's output just before and just after the power loss.
type Cut = (usize, usize);

/// Starts subjects, cuts the power `delay` after the last one is ready, waits until they exit, and
/// mounts the disk again. Returns each subject with its [`Cut`].
fn until_cut<'a>(
    disk: &mut Disk,
    names: &[&'a str],
    start: impl Fn(&'a str) -> Result<Subject<'a>, Failure>,
    delay: Duration,
) -> Result<Vec<(Subject<'a>, Cut)>, Failure> {
    let mut subjects = names.iter().map(|name| start(name)).collect::<Result<Vec<_>, _>>()?;
    for subject in &mut subjects {
        subject.wait_until_ready()?;
    }
    let switch = disk.switch()?;
    thread::sleep(delay);
    for subject in &mut subjects {
        subject.must_be_running()?;
    }
    let going = subjects.iter().map(Subject::said_bytes).collect::<Result<Vec<_>, _>>()?;
    cut(switch)?;
    let gone = subjects.iter().map(Subject::said_bytes).collect::<Result<Vec<_>, _>>()?;
    for subject in &mut subjects {
        subject.wait_until_refused()?;
    }
    disk.remount()?;
    Ok(subjects.into_iter().zip(going.into_iter().zip(gone)).collect())
}
