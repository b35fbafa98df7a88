//! `/dev/zram0` as a device of random data in memory, taken only while it is unused, and reset when
//! dropped (`Documentation/admin-guide/blockdev/zram.rst`).

use lab::tools::failure::{Failure, Tried};
use lab::tools::run::check_interrupted;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The device.
pub const DEVICE: &str = "/dev/zram0";
/// The device's length for random reads.
pub const SIZE_BYTES: u64 = 1 << 30;
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

/// The state of the device before it is taken.
#[derive(Clone, Debug)]
struct State {
    is_root: bool,
    /// `disksize` in bytes; `None` without such a device.
    size_bytes: Option<u64>,
    /// The device's number in `/sys`, `MAJOR:MINOR`.
    number: String,
    /// The number of the block device at [`DEVICE`].
    node: Option<String>,
    /// `/proc/meminfo`.
    memory: String,
}

/// Takes the device, and fills it with random data under its exclusive use. Where it is not
/// available the failure is the reason to skip it.
pub fn take() -> Result<Zram, Failure> {
    let zram = sized(SIZE_BYTES)?;
    let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).tried(DEVICE)?;
    let mut options = File::options();
    write_random(options.custom_flags(exclusive), Path::new(DEVICE), SIZE_BYTES)?;
    Ok(zram)
}

/// Takes the device with `size_bytes`, empty. It uses memory for each written block.
pub fn sized(size_bytes: u64) -> Result<Zram, Failure> {
    if let Some(because) = unusable(&State::read(), size_bytes) {
        return Err(Failure::Skipped(because));
    }
    // The kernel accepts only the first size.
    std::fs::write(Path::new(SYS).join("disksize"), size_bytes.to_string())
        .map_err(|error| Failure::Skipped(format!("{DEVICE} cannot be sized: {error}")))?;
    Ok(Zram(()))
}

/// Writes `bytes` of random data, whole MiB, to `path` opened with `options`, and flushes it.
pub fn write_random(options: &mut OpenOptions, path: &Path, bytes: u64) -> Result<(), Failure> {
    let mut file = options.write(true).open(path).tried(path.display())?;
    let mut random = File::open("/dev/urandom").tried("/dev/urandom")?;
    let mut piece = vec![0; PIECE_BYTES];
    for _ in 0..bytes / PIECE_BYTES as u64 {
        check_interrupted()?;
        random.read_exact(&mut piece).tried("/dev/urandom")?;
        file.write_all(&piece).tried(path.display())?;
    }
    file.sync_all().tried(path.display())
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

impl State {
    fn read() -> State {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let sys = |name: &str| read(&format!("{SYS}/{name}"));
        let node = std::fs::metadata(DEVICE).ok();
        let node = node.filter(|node| node.file_type().is_block_device()).map(|node| {
            let device = node.rdev();
            format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
        });
        State {
            is_root: rustix::process::geteuid().is_root(),
            size_bytes: sys("disksize").trim().parse().ok(),
            number: sys("dev").trim().to_owned(),
            node,
            memory: read("/proc/meminfo"),
        }
    }
}

/// Returns the reason why the device may not be taken with `wanted_bytes`; `None` if it may.
fn unusable(state: &State, wanted_bytes: u64) -> Option<String> {
    let State { is_root, size_bytes, number, node, memory } = state;
    let needed_bytes = wanted_bytes + MEMORY_BYTES;
    let sized = format!("{DEVICE} is in use: it has a size, {} bytes", size_bytes.unwrap_or(0));
    let obstacles = [
        (!is_root, format!("sizing {DEVICE} needs root")),
        (size_bytes.is_none(), format!("there is no {DEVICE} (modprobe zram)")),
        (node.as_ref() != Some(number), format!("{DEVICE} is not the device of {SYS}")),
        // Without a size nothing can hold it, mount it or swap to it.
        (*size_bytes != Some(0), sized),
        (
            available_bytes(memory).is_none_or(|bytes| bytes < needed_bytes),
            format!("less than {} GiB of memory are available", needed_bytes >> 30),
        ),
    ];
    obstacles.into_iter().find_map(|(is_there, because)| is_there.then_some(because))
}

/// Reads `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_bytes(memory: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "MemTotal:       24684000 kB\nMemAvailable:   23113740 kB\n";

    fn unused() -> State {
        State {
            is_root: true,
            size_bytes: Some(0),
            number: "253:0".into(),
            node: Some("253:0".into()),
            memory: MEMORY.into(),
        }
    }

    #[test]
    fn a_device_that_nobody_uses_may_be_taken() {
        assert_eq!(unusable(&unused(), SIZE_BYTES), None);
    }

    #[test]
    fn a_device_that_has_a_size_is_left_alone() {
        let used = State { size_bytes: Some(4096), ..unused() };
        let because = "/dev/zram0 is in use: it has a size, 4096 bytes";
        assert_eq!(unusable(&used, SIZE_BYTES).as_deref(), Some(because));
    }

    #[test]
    fn a_missing_requirement_is_named() {
        let because = |state| unusable(&state, SIZE_BYTES).expect("not to be had");
        let ordinary = State { is_root: false, ..unused() };
        assert_eq!(because(ordinary), "sizing /dev/zram0 needs root");
        let none = State { size_bytes: None, ..unused() };
        assert_eq!(because(none), "there is no /dev/zram0 (modprobe zram)");
        for node in [None, Some("8:0".to_owned())] {
            let other = State { node, ..unused() };
            assert_eq!(because(other), "/dev/zram0 is not the device of /sys/block/zram0");
        }
        for memory in ["", "MemAvailable:   4194303 kB\n"] {
            let small = State { memory: memory.into(), ..unused() };
            assert_eq!(because(small), "less than 4 GiB of memory are available");
            let large = State { memory: "MemAvailable:   9437183 kB\n".into(), ..unused() };
            let because = unusable(&large, 6 << 30).expect("not to be had");
            assert_eq!(because, "less than 9 GiB of memory are available");
        }
    }
}
