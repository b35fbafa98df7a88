//! Memory that is held between runs, so that a hypervisor cannot take it back.
//!
//! The free memory of a virtual machine may return to its host within seconds (free page reporting,
//! Linux 5.7). The guest must then get each page back from the host when it next uses the page.
//! Writes through the page cache took ten times as long in such memory as in recently used memory.
//! Without held memory, the rows before a run would determine which kind of memory the run gets.
//! With it, every run gets recently used memory.
//!
//! The held memory consists of the dirty pages of a file in the run's folder. The page cache reuses
//! these pages, rather than a program's memory or pages that were read. The file is truncated
//! before the kernel writes it back.

use crate::machine::host;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

/// The size of each write. Large writes receive large pieces of memory, as in the runs.
const PIECE_BYTES: usize = 512 << 10;
/// The divisor of the machine's memory that yields the maximum to hold. The kernel begins to write
/// back at 10 % of its memory (`vm.dirty_background_ratio`), and at most half of that is held.
const MEMORY_SHARE_MAX: u64 = 20;

/// The maximum age of held pages. The kernel writes back pages that have been dirty for 30 s
/// (`vm.dirty_expire_centisecs`). Older held pages are released and taken again, so that no run
/// coincides with that write-back.
const AGE_MAX: Duration = Duration::from_secs(10);

/// Returns how much memory to hold for runs that write `bytes` through the page cache; 0 without a
/// hypervisor.
pub fn most_bytes(bytes: u64) -> u64 {
    if host::is_virtual() { bytes.min(host::memory_bytes() / MEMORY_SHARE_MAX) } else { 0 }
}

/// Memory that is held between runs, and released right before each run.
#[derive(Debug)]
pub struct HeldMemory {
    path: PathBuf,
    bytes: u64,
    /// The file, and when its pages became dirty.
    file: Option<(File, Instant)>,
}

impl HeldMemory {
    /// Prepares to hold `bytes` of memory.
    pub fn new(path: PathBuf, bytes: u64) -> HeldMemory {
        HeldMemory { path, bytes, file: None }
    }

    /// Takes the memory, unless recently taken memory is still held.
    pub fn take(&mut self, stop: &Stop) -> Result<(), Error> {
        let is_young = |(_, since): &(File, Instant)| since.elapsed() < AGE_MAX;
        if self.bytes == 0 || self.file.as_ref().is_some_and(is_young) {
            return Ok(());
        }
        self.give_back()?;
        let since = Instant::now();
        let failed = Error::at(&self.path, "hold memory");
        let file = File::create_new(&self.path).map_err(failed)?;
        // The file is stored before it is written, so that a partial file is released as well.
        let (file, _) = self.file.insert((file, since));
        let piece = vec![0; PIECE_BYTES];
        for _ in 0..self.bytes.div_ceil(PIECE_BYTES as u64) {
            stop.check()?;
            file.write_all(&piece).map_err(failed)?;
        }
        Ok(())
    }

    /// Releases the memory, so that the next run gets it.
    pub fn give_back(&mut self) -> Result<(), Error> {
        let Some((file, _)) = self.file.take() else { return Ok(()) };
        let failed = Error::at(&self.path, "give memory back");
        file.set_len(0).map_err(failed)?;
        std::fs::remove_file(&self.path).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(folder: &std::path::Path, bytes: u64) -> HeldMemory {
        HeldMemory::new(folder.join("held"), bytes)
    }

    #[test]
    fn held_memory_lies_in_a_file_until_it_is_given_back() {
        let folder = fixtures::folder();
        let mut held = held(folder.path(), 3 << 20);
        held.give_back().unwrap();
        for _ in 0..2 {
            held.take(&Stop::new()).unwrap();
            held.take(&Stop::new()).unwrap();
            assert_eq!(folder.path().join("held").metadata().unwrap().len(), 3 << 20);
            held.give_back().unwrap();
            assert!(!folder.path().join("held").exists());
        }
    }

    #[test]
    fn old_held_memory_is_taken_anew_before_the_kernel_writes_it_back() {
        let folder = fixtures::folder();
        let mut held = held(folder.path(), 1 << 20);
        let since = |held: &HeldMemory| held.file.as_ref().unwrap().1;
        held.take(&Stop::new()).unwrap();
        let first = since(&held);
        held.take(&Stop::new()).unwrap();
        assert_eq!(since(&held), first);
        held.file.as_mut().unwrap().1 -= AGE_MAX;
        held.take(&Stop::new()).unwrap();
        assert!(since(&held) > first);
        assert_eq!(folder.path().join("held").metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn nothing_is_held_where_nothing_is_asked_for_and_a_stop_is_heard() {
        let folder = fixtures::folder();
        let mut none = held(folder.path(), 0);
        none.take(&Stop::new()).unwrap();
        assert!(!folder.path().join("held").exists());
        let stop = Stop::new();
        stop.request();
        let refused = held(folder.path(), 1 << 20).take(&stop);
        assert!(matches!(refused, Err(Error::Interrupted)));
    }
}
