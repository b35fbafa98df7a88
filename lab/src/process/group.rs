//! The threads of a process group, as `/proc` shows them.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether a process of the group still runs. A zombie does not: its files are closed.
pub fn runs(group: u32) -> bool {
    // The first thread of a process may be a zombie while another still ends.
    threads(group).filter_map(|thread| stat(&thread)).any(|one| !matches!(&*one.state, "Z" | "X"))
}

/// Returns the folder in `/proc` of each thread of the group.
pub fn threads(group: u32) -> impl Iterator<Item = PathBuf> {
    let is_in_group = move |process: &PathBuf| stat(process).is_some_and(|it| it.group == group);
    let processes = entries(Path::new("/proc")).filter(is_in_group);
    processes.flat_map(|process| entries(&process.join("task")))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The fields of `/proc/PID/stat` (`proc_pid_stat(5)`).
pub struct Stat {
    /// A letter: `R` runs, `Z` is a zombie.
    pub state: String,
    /// The process group.
    pub group: u32,
    /// Clock ticks in user space.
    pub user: u64,
    /// Clock ticks in the kernel.
    pub kernel: u64,
}

/// Reads the fields of a process or thread by its folder in `/proc`.
pub fn stat(path: &Path) -> Option<Stat> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // The preceding name may contain anything, even brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.to_string(),
        group: fields.get(2)?.parse().ok()?,
        user: fields.get(11)?.parse().ok()?,
        kernel: fields.get(12)?.parse().ok()?,
    })
}
