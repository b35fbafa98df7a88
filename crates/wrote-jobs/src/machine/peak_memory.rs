//! The peak of resident memory of one run, by the kernel's own mark.

use std::fs;
use std::io;

/// Lowers the process's mark of its peak to its current memory (`/proc/PID/clear_refs` given 5,
/// proc(5), Linux 4.0), so that [`bytes`] then covers only later use.
///
/// # Errors
///
/// Where `/proc` is not writable, as in some containers.
pub fn reset() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// Returns the mark of this process.
pub fn bytes() -> Option<u64> {
    high_water_mark(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Returns the mark of another process, counted from the start of its program; `None` after its
/// end.
pub fn bytes_of(process: u32) -> Option<u64> {
    high_water_mark(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// Parses `VmHWM` of a `status` file (proc(5)) into bytes.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_in_bytes_and_a_process_that_is_over_has_none() {
        assert_eq!(
            high_water_mark("Name:\tx\nVmHWM:\t   1234 kB\nVmRSS:\t 1 kB\n"),
            Some(1234 << 10)
        );
        assert_eq!(high_water_mark("Name:\tx\nState:\tZ (zombie)\n"), None);
        assert_eq!(high_water_mark("VmHWM:\t many kB\n"), None);
    }

    #[test]
    fn the_mark_of_this_process_holds_what_it_has_touched() {
        let memory = std::hint::black_box(vec![1_u8; 48 << 20]);
        assert!(bytes().unwrap() > memory.len() as u64);
    }
}
