//! `/dev/zram0` as a device of random data in memory, taken only while it is unused, and reset when
//! dropped (`Documentation/admin-guide/blockdev/zram.rst`).

use lab::tools::failure::{Failure, Tried};
use lab::tools::run::check_interrupted;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The device.
const DEVICE: &str = "/dev/zram0";
/// The device's length for random reads.
const SIZE_BYTES: u64 = 1 << 30;
/// Memory that must be available besides the device's own. Random data does not shrink, and it
/// stays in the page cache for a while.
const MEMORY_BYTES: u64 = 3 << 30;

const SYS: &str = "/sys/block/zram0";
const PIECE_BYTES: usize = 1 << 20;
/// How long another process, such as udev, may still have the device open before its reset.
const RESET_LIMIT: Duration = Duration::from_secs(10);

/// The device while this process uses it; reset when dropped.
#[derive(Debug)]
pub struct Zram(());

/// Takes the device, and fills it with random data under its exclusive use. Where it is not
/// available the failure is the reason to skip it.
pub fn take() -> Result<Zram, Failure> {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    check_memory(&memory, SIZE_BYTES + MEMORY_BYTES)?;
    // The kernel accepts only the first size, and only of root. Without a size nothing can hold the
    // device, mount it or swap to it.
    std::fs::write(Path::new(SYS).join("disksize"), SIZE_BYTES.to_string())
        .map_err(|error| Failure::Skipped(format!("{DEVICE} cannot be sized: {error}")))?;
    let zram = Zram(());
    let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).tried(DEVICE)?;
    let mut options = File::options();
    let mut file = options.write(true).custom_flags(exclusive).open(DEVICE).tried(DEVICE)?;
    let mut random = File::open("/dev/urandom").tried("/dev/urandom")?;
    let mut piece = vec![0; PIECE_BYTES];
    for _ in 0..SIZE_BYTES / PIECE_BYTES as u64 {
        check_interrupted()?;
        random.read_exact(&mut piece).tried("/dev/urandom")?;
        file.write_all(&piece).tried(DEVICE)?;
    }
    file.sync_all().tried(DEVICE)?;
    Ok(zram)
}

impl Drop for Zram {
    fn drop(&mut self) {
        let reset = Path::new(SYS).join("reset");
        let end = Instant::now() + RESET_LIMIT;
        while let Err(error) = std::fs::write(&reset, "1") {
            if Instant::now() > end {
                eprintln!("xtask: {DEVICE} could not be reset ({error}): echo 1 > {SYS}/reset");
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Skips the device with less than `needed_bytes` in `MemAvailable` of `/proc/meminfo`.
fn check_memory(memory: &str, needed_bytes: u64) -> Result<(), Failure> {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    if kib.is_some_and(|kib| kib << 10 >= needed_bytes) {
        return Ok(());
    }
    let because = format!("less than {} GiB of memory are available", needed_bytes >> 30);
    Err(Failure::Skipped(because))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_named() {
        let memory = "MemTotal:       24684000 kB\nMemAvailable:   4194304 kB\n";
        check_memory(memory, 4 << 30).expect("enough");
        for (memory, gib) in [("", 4), (memory, 5)] {
            let because = check_memory(memory, gib << 30).expect_err("too little").to_string();
            assert_eq!(because, format!("less than {gib} GiB of memory are available"));
        }
    }
}
