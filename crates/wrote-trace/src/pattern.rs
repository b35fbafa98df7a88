//! A program's writes as a job file for `wrote run`: as they were traced, and as they should be.

use crate::account::Account;
use std::cmp::Reverse;
use std::fmt::Write;
use std::path::PathBuf;

/// The maximum number of files for which jobs are written; the files with the most writes are
/// chosen.
const FILES_MAX: usize = 4;
const SIZE_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of different write sizes in a job.
const SIZES_MAX: usize = 8;
/// The number of the program's flushes that one flush of the advised job replaces.
const SHARED: u64 = 64;
/// Flushes of fewer bytes than this on average should be combined.
const SMALL_FLUSH_BYTES: u64 = 64 << 10;
/// The write size of an advised job whose flushes are not combined.
const BUFFER_BYTES: u64 = 64 << 10;
/// The shortest pause between writes that is kept; tracing causes shorter ones.
const PAUSE_MIN_US: u64 = 200;

/// Returns the job file for the files with the most writes. Each file gets a job as traced, and one
/// that writes the same bytes as advised. `None` if nothing was written.
pub fn jobs(mut files: Vec<(PathBuf, &Account)>, command: &str) -> Option<String> {
    files.retain(|(_, account)| account.bytes > 0);
    files.sort_by_cached_key(|(path, account)| (Reverse(account.writes), path.clone()));
    files.truncate(FILES_MAX);
    if files.is_empty() {
        return None;
    }
    let mut text = format!(
        "# The writes of: {}\n# `wrote run FILE` runs each job alone, in the current folder.\n\n\
         [global]\nioengine=psync\nfallocate=none\nstonewall\nunlink=1\n",
        command.replace(char::is_control, " ")
    );
    for (number, (path, account)) in files.iter().enumerate() {
        let _ = write!(text, "\n# {}\n", path.to_string_lossy().replace(char::is_control, " "));
        section(&mut text, &format!("{}-as-traced", number + 1), account, &traced(account));
        section(&mut text, &format!("{}-advised", number + 1), account, &advised(account));
    }
    Some(text)
}

fn section(text: &mut String, name: &str, account: &Account, lines: &[String]) {
    let is_sequential = account.sequential_writes * 2 >= account.writes;
    let io_size = account.bytes.min(SIZE_BYTES_MAX);
    let _ = writeln!(text, "[{name}]");
    if is_sequential {
        let _ = writeln!(text, "rw=write\nsize={io_size}");
    } else {
        let size = account.size_bytes.min(SIZE_BYTES_MAX);
        let _ = writeln!(text, "rw=randwrite\nnorandommap\nsize={size}\nio_size={io_size}");
    }
    if account.is_changed {
        text.push_str("overwrite=1\n");
    }
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
}

/// Returns the lines of a job that writes as the program did.
fn traced(account: &Account) -> Vec<String> {
    let mut lines = vec![sizes(account)];
    lines.extend(pauses(account));
    if account.durable_writes * 2 >= account.writes {
        lines.push("sync=dsync".into());
    } else if let Some(each) = account.writes.checked_div(account.flushes) {
        lines.push(format!("fdatasync={}", each.max(1)));
    }
    if account.direct_writes * 2 >= account.writes {
        lines.push("direct=1".into());
    }
    lines
}

/// Returns the lines of a job that writes the same bytes, durable at its end, with fewer flushes or
/// fewer writes.
fn advised(account: &Account) -> Vec<String> {
    let flushes = account.flushes_in_all();
    let is_shared = flushes >= SHARED && account.bytes / flushes < SMALL_FLUSH_BYTES;
    let mut lines = match is_shared {
        true => {
            let each = (account.writes / flushes).max(1) * SHARED;
            vec![sizes(account), format!("fdatasync={each}")]
        }
        // A job writes whole blocks. The size is chosen so that no remainder is left.
        false => vec![format!("bs={}", account.bytes / account.bytes.div_ceil(BUFFER_BYTES))],
    };
    lines.extend(pauses(account).filter(|_| is_shared));
    lines.push("end_fsync=1".into());
    lines
}

/// Returns the line with the sizes of the writes, each with its share in percent.
fn sizes(account: &Account) -> String {
    let mut most = account.sizes.clone();
    most.sort_by_key(|(size, count)| (Reverse(*count), *size));
    most.truncate(SIZES_MAX);
    let all: u64 = most.iter().map(|(_, count)| count).sum();
    let share = |count: u64| count * 100 / all.max(1);
    let parts: Vec<(u64, u64)> = most.iter().map(|(size, count)| (*size, share(*count))).collect();
    let (first, rest) = (parts[0], parts[1..].iter().filter(|(_, share)| *share > 0));
    let rest: Vec<&(u64, u64)> = rest.collect();
    if rest.is_empty() {
        return format!("bs={}", first.0);
    }
    let left = 100 - rest.iter().map(|(_, share)| share).sum::<u64>();
    let rest = rest.iter().map(|(size, share)| format!(":{size}/{share}"));
    format!("bssplit={}/{left}{}", first.0, rest.collect::<String>())
}

/// Returns the line with the mean pause between writes, if it is long enough to matter.
fn pauses(account: &Account) -> impl Iterator<Item = String> {
    let idle_us = account.span_ns.saturating_sub(account.busy_ns) / 1000;
    let pause_us = idle_us / account.writes.max(1);
    (pause_us >= PAUSE_MIN_US).then(|| format!("thinktime={pause_us}us")).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(sizes: &[(u64, u64)], flushes: u64) -> Account {
        let writes = sizes.iter().map(|(_, count)| count).sum();
        Account {
            sizes: sizes.to_vec(),
            writes,
            bytes: sizes.iter().map(|(size, count)| size * count).sum(),
            sequential_writes: writes,
            flushes,
            ..Account::default()
        }
    }

    fn text(account: &Account) -> String {
        jobs(vec![("/data/log".into(), account)], "./app").unwrap()
    }

    #[test]
    fn many_small_flushes_are_shared_in_the_advised_job() {
        let text = text(&account(&[(100, 1000)], 1000));
        let traced = "[1-as-traced]\nrw=write\nsize=100000\nbs=100\nfdatasync=1\n";
        let advised = "[1-advised]\nrw=write\nsize=100000\nbs=100\nfdatasync=64\nend_fsync=1\n";
        assert!(text.ends_with(&format!("# /data/log\n{traced}{advised}")), "{text}");
    }

    #[test]
    fn small_writes_without_a_flush_are_buffered_and_flushed_at_their_end() {
        let text = text(&account(&[(1, 900), (10, 100)], 0));
        assert!(
            text.contains("[1-as-traced]\nrw=write\nsize=1900\nbssplit=1/90:10/10\n"),
            "{text}"
        );
        assert!(
            text.ends_with("[1-advised]\nrw=write\nsize=1900\nbs=1900\nend_fsync=1\n"),
            "{text}"
        );
    }

    #[test]
    fn writes_all_over_a_file_stay_random_and_pauses_are_kept() {
        let place = account(&[(4096, 100)], 100);
        let place =
            Account { sequential_writes: 3, size_bytes: 1 << 20, span_ns: 100_000_000, ..place };
        let text = text(&Account { is_changed: true, ..place });
        let traced = "rw=randwrite\nnorandommap\nsize=1048576\nio_size=409600\noverwrite=1\n\
                      bs=4096\nthinktime=1000us\nfdatasync=1\n";
        assert!(text.contains(traced), "{text}");
        assert!(text.contains("bs=4096\nfdatasync=64\nthinktime=1000us\n"), "{text}");
    }

    #[test]
    fn a_program_that_wrote_nothing_has_no_jobs() {
        assert_eq!(jobs(vec![("/data/log".into(), &Account::default())], "true"), None);
    }
}
