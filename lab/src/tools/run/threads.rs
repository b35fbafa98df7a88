//! Diagnoses a hang: each thread of a command, its state, and its place in the kernel.

use crate::process::group::{Stat, stat, threads};
use std::fs;
use std::path::Path;

/// Prints each thread of a process group with its state, its processor time, and where it is in the
/// kernel.
pub fn print(group: u32) {
    for thread in lines(group) {
        eprintln!("xtask: {thread}");
    }
}

fn lines(group: u32) -> Vec<String> {
    threads(group).filter_map(|thread| line(&thread)).collect()
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
        assert!(lines(own.group).iter().any(|thread| thread.contains(&name[..15])));
    }
}
