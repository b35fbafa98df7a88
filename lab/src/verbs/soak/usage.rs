//! Memory, descriptors and threads of this process, and the files of the log.

use crate::verbs::soak::Trouble;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Growth that allocators and schedulers may cause by chance.
const MEMORY_SLACK_BYTES: u64 = 8 << 20;

/// The usage at one moment, or the greatest of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub memory_bytes: u64,
    pub descriptors: u64,
    pub threads: u64,
    pub files: u64,
    pub disk_bytes: u64,
}

impl Usage {
    /// Measures this process and the log's folder.
    pub fn now(folder: &Path) -> Result<Usage, Trouble> {
        let status = fs::read_to_string("/proc/self/status")?;
        let field = |name: &str| -> Result<u64, Trouble> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            Ok(number.ok_or_else(|| format!("/proc/self/status has no {name}"))?.parse()?)
        };
        let mut usage = Usage {
            memory_bytes: field("RssAnon:")? << 10,
            descriptors: fs::read_dir("/proc/self/fd")?.count() as u64,
            threads: threads()?,
            ..Usage::default()
        };
        // The folder is made at the start; a segment may be removed while this reads.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            if let Ok(metadata) = entry?.metadata() {
                usage.files += 1;
                usage.disk_bytes += metadata.blocks() * 512;
            }
        }
        Ok(usage)
    }

    /// Returns the greatest of each.
    pub fn greatest(all: &[Usage]) -> Usage {
        all.iter().fold(Usage::default(), |one, other| Usage {
            memory_bytes: one.memory_bytes.max(other.memory_bytes),
            descriptors: one.descriptors.max(other.descriptors),
            threads: one.threads.max(other.threads),
            files: one.files.max(other.files),
            disk_bytes: one.disk_bytes.max(other.disk_bytes),
        })
    }

    /// Fails if something grew since `earlier`, or the log takes more than `disk_bytes_max`.
    pub fn is_flat_after(&self, earlier: &Usage, disk_bytes_max: u64) -> Result<(), Trouble> {
        let grew = [
            ("memory", self.memory_bytes > earlier.memory_bytes + MEMORY_SLACK_BYTES),
            ("the number of descriptors", self.descriptors > earlier.descriptors + 6),
            ("the number of threads", self.threads > earlier.threads + 1),
            ("the number of files", self.files > earlier.files + 2),
            ("the log", self.disk_bytes > disk_bytes_max),
        ];
        match grew.into_iter().find(|(_, grew)| *grew) {
            Some((what, _)) => Err(format!("{what} grew").into()),
            None => Ok(()),
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

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Usage { memory_bytes, descriptors, threads, files, disk_bytes } = self;
        write!(
            f,
            "{memory_bytes} B of memory, {descriptors} descriptors, {threads} threads, {files} \
             files of {disk_bytes} B"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_chance_is_not() {
        let folder = std::env::temp_dir();
        let now = Usage::now(&folder).expect("a process knows itself");
        assert!(now.memory_bytes > 0 && now.descriptors > 2 && now.threads > 0);
        assert!(now.is_flat_after(&now, u64::MAX).is_ok());
        let more = Usage { descriptors: now.descriptors + 10, ..now };
        assert_eq!(
            more.is_flat_after(&now, u64::MAX).expect_err("it grew").to_string(),
            "the number of descriptors grew"
        );
        assert!(now.is_flat_after(&more, 0).is_err() || now.disk_bytes == 0);
        assert_eq!(Usage::greatest(&[now, more]), more);
    }
}
