//! Diagnoses a hang: each thread of a command, its state, and its place in the kernel.

use std::fs;
use std::path::{Path, PathBuf};

/// Prints each thread of a process group with its state, its processor time, and where it is in the
/// kernel.
pub fn print(group: u32) {
    for thread in threads(group) {
        eprintln!("xtask: {thread}");
    }
}

fn threads(group: u32) -> Vec<String> {
    let process = |path: &PathBuf| stat(path).is_some_and(|stat| stat.group == group);
    let processes = entries(Path::new("/proc")).filter(process);
    processes
        .flat_map(|process| entries(&process.join("task")))
        .filter_map(|path| line(&path))
        .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The fields of `/proc/PID/stat` (`proc_pid_stat(5)`).
struct Stat {
    state: String,
    group: u32,
    /// Clock ticks in user space and in the kernel.
    user: u64,
    kernel: u64,
}

fn stat(path: &Path) -> Option<Stat> {
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

fn line(thread: &Path) -> Option<String> {
    let Stat { state, user, kernel, .. } = stat(thread)?;
    let word = |name| fs::read_to_string(thread.join(name)).unwrap_or_default().trim().to_owned();
    let (name, place, call) = (word("comm"), word("wchan"), word("syscall"));
    let id = thread.file_name()?.to_string_lossy();
    let ticks = format!("{user} ticks in user space, {kernel} in the kernel");
    Some(format!("thread {id} {name}: state {state}, {ticks}, at {place}, system call {call}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_this_process_are_told() {
        let own = stat(Path::new("/proc/self")).expect("this process");
        let name = std::thread::current().name().expect("a test has a name").to_owned();
        // The kernel keeps 15 bytes of a thread's name.
        assert!(threads(own.group).iter().any(|thread| thread.contains(&name[..15])));
    }
}
