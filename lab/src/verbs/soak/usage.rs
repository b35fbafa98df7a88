//! Memory, descriptors and threads of this process, and the files of the log. Apart, because they
//! are what the soak judges, and not what it does.

use crate::verbs::Trouble;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The counts, each with the growth that it may have: an allocator keeps some memory, and a reader
/// opens a segment before it closes the last one.
const COUNTED: [(&str, u64); 5] = [
    ("bytes of memory", 8 << 20),
    ("descriptors", 6),
    ("threads", 1),
    ("files", 2),
    ("bytes on the disk", u64::MAX),
];

/// A sample of the use, in the order of [`COUNTED`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage([u64; COUNTED.len()]);

impl Usage {
    /// Reads the use of this process, and of the log's `folder`.
    pub fn now(folder: &Path) -> Result<Usage, Trouble> {
        let status = fs::read_to_string("/proc/self/status")?;
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.and_then(|line| line.split_whitespace().next());
        let memory: u64 = memory.ok_or("/proc/self/status has no RssAnon")?.parse()?;
        let descriptors = fs::read_dir("/proc/self/fd")?.count() as u64;
        let (mut files, mut disk_bytes) = (0, 0);
        // The log may not be there yet, and a file of it may just be removed.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            if let Ok(metadata) = entry?.metadata() {
                files += 1;
                disk_bytes += metadata.blocks() * 512;
            }
        }
        Ok(Usage([memory << 10, descriptors, threads()?, files, disk_bytes]))
    }

    /// Returns the greatest of each count.
    pub fn greatest(all: &[Usage]) -> Usage {
        let greatest = |place: usize| all.iter().map(|usage| usage.0[place]).max();
        Usage(std::array::from_fn(|place| greatest(place).unwrap_or(0)))
    }

    /// Fails if something grew since `earlier`, or the log takes more than `disk_bytes_max`.
    pub fn is_flat_after(&self, earlier: &Usage, disk_bytes_max: u64) -> Result<(), Trouble> {
        for (((what, slack), now), before) in COUNTED.into_iter().zip(self.0).zip(earlier.0) {
            if now > before.saturating_add(slack) {
                return Err(format!("the {what} grew from {before} to {now}").into());
            }
        }
        let [.., disk_bytes] = self.0;
        match disk_bytes <= disk_bytes_max {
            true => Ok(()),
            false => Err(format!("the log takes {disk_bytes} bytes").into()),
        }
    }
}

/// Counts this process's own threads. The kernel adds workers to a busy ring (`iou-wrk-`), and ends
/// them again.
fn threads() -> Result<u64, Trouble> {
    let mut count = 0;
    for task in fs::read_dir("/proc/self/task")? {
        // A thread that has ended has no name.
        let name = fs::read_to_string(task?.path().join("comm"));
        count += u64::from(name.is_ok_and(|name| !name.starts_with("iou-")));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_chance_is_not() {
        let now = Usage::now(&std::env::temp_dir()).expect("a process knows itself");
        assert!(now.0[..3].iter().all(|&count| count > 0));
        assert!(now.is_flat_after(&now, u64::MAX).is_ok());
        let mut more = now;
        more.0[1] += 10;
        let grew = more.is_flat_after(&now, u64::MAX).expect_err("it grew").to_string();
        assert!(grew.starts_with("the descriptors grew"), "{grew}");
        assert!(now.is_flat_after(&more, 0).is_err() || now.0[4] == 0);
        assert_eq!(Usage::greatest(&[now, more]), more);
    }
}
