//! The data that runs write, and the number, size and memory limit of their buffers.

use crate::machine::host::Memory;
use crate::spec;
use rand::{Rng, SeedableRng, TryRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use std::time::{Duration, Instant};
use wrote_result::{Error, units};

/// The smallest unit that a drive might deduplicate: the smallest logical block.
const SECTOR_BYTES: usize = 512;

/// The size below which a buffer is refilled before each write. File systems compress records of
/// 128 KiB (always on Btrfs; the default `recordsize` of ZFS). Within one record, they would find
/// the bytes of a smaller buffer repeated.
const RECORD_BYTES: usize = 128 << 10;

/// The minimum size of the pool. A compressor's window is smaller, so the pool's bytes do not
/// repeat within it.
const POOL_BYTES_MIN: usize = 1 << 20;

/// The generator of a run's data, which neither compression nor deduplication can shrink (M2).
///
/// `Data::fill` fills a buffer with random bytes once, before the clock starts. Before each write,
/// `Data::stamp` gives every 512 bytes a number that never repeats, so that no two sectors of a run
/// are equal.
///
/// A buffer of 128 KiB or more keeps its other bytes from one write to the next. A compressor with
/// a larger window (ZFS with large records) can still shrink such data, unless the buffers, which
/// are used in turn, are together larger than that window.
///
/// Each `Data` belongs to one thread. Different seeds give threads different random bytes.
#[derive(Clone, Debug)]
pub struct Data {
    random: Xoshiro256PlusPlus,
    pool: Vec<u8>,
    pool_offset: usize,
    /// The numbers of the sectors: a counter, mixed by a bijection. The numbers repeat after 2^64
    /// sectors.
    numbers: SplitMix64,
    /// The size from which buffers keep their bytes from one write to the next.
    kept_bytes: usize,
}

impl Data {
    /// Creates a pool of at least `size_bytes`, and at least 1 MiB, of random bytes. Equal seeds
    /// give equal data.
    pub fn new(size_bytes: usize, seed: u64) -> Data {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut pool = vec![0; size_bytes.max(POOL_BYTES_MIN).next_multiple_of(SECTOR_BYTES)];
        random.fill_bytes(&mut pool);
        // Starting at a random value keeps the numbers of different seeds apart.
        let numbers = SplitMix64::seed_from_u64(random.next_u64());
        Data { random, pool, pool_offset: 0, numbers, kept_bytes: RECORD_BYTES }
    }

    /// Makes `stamp` refill large buffers, too, because another user overwrites them between
    /// writes.
    pub(crate) fn refill_always(&mut self) {
        self.kept_bytes = usize::MAX;
    }

    /// Fills `buffer` with data of this kind for its next write.
    pub fn make(&mut self, buffer: &mut [u8], kind: &spec::Data) {
        match kind {
            spec::Data::Random => self.stamp(buffer),
            spec::Data::Zeros => buffer.fill(0),
            spec::Data::Compressible(percent) => {
                let zeros = buffer.len() as u64 * u64::from((*percent).min(100)) / 100;
                let (random, zeros) = buffer.split_at_mut(buffer.len() - zeros as usize);
                self.stamp(random);
                zeros.fill(0);
            }
            spec::Data::Pattern(pattern) => repeat(pattern, buffer),
        }
    }

    /// Fills `buffer` with new random bytes. This is too slow for the timed part of a run.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.random.fill_bytes(buffer);
    }

    /// Makes every sector of `buffer` different from all earlier ones.
    ///
    /// First refills a buffer of less than 128 KiB from the pool. Then replaces the first 8 bytes
    /// of every 512. If the last sector is shorter than 8 bytes, it holds only a part of its number
    /// and may repeat.
    pub(crate) fn stamp(&mut self, buffer: &mut [u8]) {
        if buffer.len() < self.kept_bytes {
            self.refill(buffer);
        }
        for sector in buffer.chunks_mut(SECTOR_BYTES) {
            let number = self.numbers.next_u64().to_le_bytes();
            let length = sector.len().min(number.len());
            sector[..length].copy_from_slice(&number[..length]);
        }
    }

    /// Measures how fast `Data::stamp` fills buffers of `bs_bytes`, in bytes per second. Returns 0
    /// if `bs_bytes` is 0.
    ///
    /// Takes at least 20 ms, and uses 16 MiB of memory, or the size of one buffer if that is
    /// larger. The buffers are used in turn, so that they come from memory, as with a deep queue,
    /// and not from the processor's cache.
    pub fn measure(&mut self, bs_bytes: usize) -> f64 {
        if bs_bytes == 0 {
            return 0.0;
        }
        let mut memory = vec![0_u8; (16 << 20_usize).max(bs_bytes)];
        self.fill(&mut memory);
        let begin = Instant::now();
        let mut stamped_bytes = 0_usize;
        loop {
            for buffer in memory.chunks_exact_mut(bs_bytes) {
                self.stamp(std::hint::black_box(buffer));
                stamped_bytes += bs_bytes;
            }
            let elapsed = begin.elapsed();
            if elapsed >= Duration::from_millis(20) {
                return stamped_bytes as f64 / elapsed.as_secs_f64();
            }
        }
    }

    /// Copies the next bytes of the pool into `buffer`, and starts again at the pool's beginning
    /// when its end is reached.
    fn refill(&mut self, buffer: &mut [u8]) {
        let mut rest = buffer;
        while !rest.is_empty() {
            let ready = &self.pool[self.pool_offset..];
            let length = ready.len().min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&ready[..length]);
            self.pool_offset = (self.pool_offset + length) % self.pool.len();
            rest = later;
        }
    }
}

/// Fills `buffer` with repetitions of `pattern`.
fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    let mut filled = pattern.len().min(buffer.len());
    buffer[..filled].copy_from_slice(&pattern[..filled]);
    while filled < buffer.len() {
        // The filled part consists of whole patterns.
        let more = filled.min(buffer.len() - filled);
        buffer.copy_within(..more, filled);
        filled += more;
    }
}

/// The minimum total size of a thread's buffers. A large buffer keeps most of its bytes from one
/// write to the next. If it were the only one, these would repeat within a unit that a file system
/// compresses.
const BUFFERS_BYTES_MIN: u64 = 1 << 20;

/// Returns the memory that a buffer occupies, in whole pages.
fn in_pages_bytes(bs_bytes: u64) -> u64 {
    bs_bytes.next_multiple_of(rustix::param::page_size() as u64).max(1)
}

/// Returns the number of buffers of a thread.
pub fn buffers(bs_bytes: u64, iodepth: u32) -> u32 {
    iodepth.max((BUFFERS_BYTES_MIN / in_pages_bytes(bs_bytes)) as u32)
}

/// Returns the memory that a thread's buffers occupy.
pub fn buffers_bytes(bs_bytes: u64, iodepth: u32) -> u64 {
    in_pages_bytes(bs_bytes).saturating_mul(buffers(bs_bytes, iodepth).into())
}

/// Refuses buffers that would take more than half of the memory, because the kernel might then kill
/// the program. `what` names the settings that determine their size.
pub fn check_buffers(what: &str, buffers: u64, memory: Memory) -> Result<(), Error> {
    if buffers <= memory.bytes / 2 {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{what}: {} of buffers are more than half of {} {} of memory",
        units::bytes(buffers),
        memory.whose,
        units::bytes(memory.bytes)
    )))
}

/// Returns a random seed, so that each run writes different data (M2).
pub fn seed() -> u64 {
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        // Without getrandom(2), the time still differs from run to run.
        std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64)
    })
}

#[cfg(test)]
mod data_tests {
    use super::*;
    use std::collections::HashSet;

    /// Returns the data of `count` writes of one buffer.
    fn written(seed: u64, bs_bytes: usize, count: usize) -> Vec<u8> {
        let mut data = Data::new(0, seed);
        let mut buffer = vec![0; bs_bytes];
        data.fill(&mut buffer);
        let mut disk = Vec::with_capacity(bs_bytes * count);
        for _ in 0..count {
            data.stamp(&mut buffer);
            disk.extend_from_slice(&buffer);
        }
        disk
    }

    /// Returns the entropy in bits per byte, from the frequencies of the byte values.
    fn entropy(bytes: &[u8]) -> f64 {
        let mut counts = [0_u64; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let share = |count: &u64| *count as f64 / bytes.len() as f64;
        counts.iter().filter(|count| **count > 0).map(|c| -share(c) * share(c).log2()).sum()
    }

    #[test]
    fn no_two_sectors_of_64_mib_are_equal_though_one_buffer_is_written_again_and_again() {
        for bs_bytes in [4096, 1 << 20] {
            let mut data = Data::new(0, 7);
            let mut buffer = vec![0; bs_bytes];
            data.fill(&mut buffer);
            let mut seen = HashSet::new();
            for _ in 0..(64 << 20) / bs_bytes {
                data.stamp(&mut buffer);
                for sector in buffer.chunks(SECTOR_BYTES) {
                    // Sectors with different stamps differ.
                    assert!(seen.insert(u64::from_le_bytes(sector[..8].try_into().unwrap())));
                }
            }
            assert_eq!(seen.len(), (64 << 20) / SECTOR_BYTES);
        }
    }

    #[test]
    fn a_compressor_gains_nothing() {
        for (bs_bytes, count) in [(4096, 64), (3000, 90), (RECORD_BYTES, 3)] {
            let disk = written(1, bs_bytes, count);
            let packed = miniz_oxide::deflate::compress_to_vec(&disk, 6);
            assert!(packed.len() >= disk.len(), "{bs_bytes}: {} of {}", packed.len(), disk.len());
            assert!(entropy(&disk) > 7.99, "{bs_bytes}");
        }
    }

    #[test]
    fn nothing_comes_again_within_a_record_that_a_file_system_compresses() {
        for bs_bytes in [512, 4096, 65536, RECORD_BYTES] {
            let disk = written(3, bs_bytes, 4 * RECORD_BYTES / bs_bytes);
            for record in disk.chunks(RECORD_BYTES) {
                let mut seen = HashSet::new();
                let again = record.chunks_exact(8).filter(|piece| !seen.insert(*piece)).count();
                assert_eq!(again, 0, "{bs_bytes}");
            }
        }
    }

    #[test]
    fn a_small_buffer_takes_the_whole_pool_before_any_of_it_comes_again() {
        // 3000 does not divide a power of two, so one buffer wraps around the end of the pool.
        let count = POOL_BYTES_MIN / 3000;
        let disk = written(5, 3000, count);
        let mut seen = HashSet::new();
        assert!(disk.chunks_exact(8).all(|piece| seen.insert(piece)));
    }

    #[test]
    fn zeros_and_compressible_data_are_made_where_they_are_asked_for() {
        let mut data = Data::new(0, 8);
        let mut buffer = vec![7; 4096];
        data.make(&mut buffer, &spec::Data::Zeros);
        assert_eq!(buffer, [0; 4096]);
        for (percent, share) in [(0, 1.0), (30, 0.7), (100, 0.0)] {
            let mut disk = Vec::new();
            for _ in 0..64 {
                data.make(&mut buffer, &spec::Data::Compressible(percent));
                disk.extend_from_slice(&buffer);
            }
            let packed = miniz_oxide::deflate::compress_to_vec(&disk, 6).len() as f64;
            let packed = packed / disk.len() as f64;
            assert!((packed - share).abs() < 0.03, "{percent}: {packed}");
        }
    }

    #[test]
    fn a_pattern_fills_a_block_from_its_start_to_its_end() {
        let mut data = Data::new(0, 8);
        for pattern in [&b"a"[..], b"abc", b"0123456789abcdef"] {
            for length in [1, 7, 512, 4096] {
                let mut buffer = vec![0; length];
                data.make(&mut buffer, &spec::Data::Pattern(pattern.to_vec()));
                assert!(buffer.iter().eq(pattern.iter().cycle().take(length)), "{pattern:?}");
            }
        }
    }

    #[test]
    fn a_large_buffer_that_was_read_into_is_refilled_where_that_is_asked_for() {
        let mut data = Data::new(0, 9);
        data.refill_always();
        let mut buffer = vec![0; 2 * RECORD_BYTES];
        data.make(&mut buffer, &spec::Data::Random);
        let packed = miniz_oxide::deflate::compress_to_vec(&buffer, 6);
        assert!(packed.len() >= buffer.len());
    }

    #[test]
    fn another_seed_gives_other_data_and_the_same_seed_the_same() {
        let sectors = |seed| -> HashSet<Vec<u8>> {
            written(seed, 4096, 64).chunks(SECTOR_BYTES).map(<[u8]>::to_vec).collect()
        };
        assert!(sectors(1).is_disjoint(&sectors(2)));
        assert_eq!(written(9, 4096, 3), written(9, 4096, 3));
    }

    #[test]
    fn a_buffer_that_is_no_multiple_of_a_sector_is_stamped_to_its_end() {
        let mut data = Data::new(0, 4);
        let mut buffer = vec![0; RECORD_BYTES + 5];
        data.stamp(&mut buffer);
        assert!(buffer[RECORD_BYTES..].iter().any(|byte| *byte != 0));
        data.stamp(&mut []);
    }

    #[test]
    fn the_stamping_is_measured_for_any_size() {
        let mut data = Data::new(0, 6);
        for bs_bytes in [1, 4096, 1 << 20, 20 << 20] {
            let bytes_per_s = data.measure(bs_bytes);
            assert!(bytes_per_s.is_finite() && bytes_per_s > 0.0);
        }
        assert_eq!(data.measure(0), 0.0);
    }
}

#[cfg(test)]
mod buffers_tests {
    use super::*;
    use wrote::Ioengine;
    use wrote::engine::{Buffer, Engine, Options};

    #[test]
    fn too_many_buffers_are_refused_with_both_figures_and_the_limits_owner() {
        // W8
        let memory = Memory { bytes: 512 << 20, whose: "the control group's" };
        assert!(check_buffers("bs", 256 << 20, memory).is_ok());
        let refused = check_buffers("bs", 1 << 30, memory).unwrap_err().to_string();
        let half = "more than half of the control group's 537 MB of memory";
        assert_eq!(refused, format!("bs: 1.07 GB of buffers are {half}"));
    }

    #[test]
    fn buffers_take_no_more_than_is_announced_however_small_they_are() {
        // W8
        for bs_bytes in [1, 40, 512, 4096, 5000, 1 << 20, 3 << 20] {
            for iodepth in [1, 64, 4096] {
                if u64::from(iodepth) * bs_bytes > 1 << 28 {
                    continue; // A small machine cannot map this much.
                }
                let options = Options::new(Ioengine::IoUring, iodepth, bs_bytes as usize)
                    .registered_buffers(false)
                    .buffers(buffers(bs_bytes, iodepth));
                let mut engine = Engine::open(&options).unwrap();
                let leased = [engine.lease().ok(), engine.lease().ok()];
                let place = |buffer: &Buffer| buffer.as_ptr() as u64;
                let [first, second] = leased.each_ref().map(|buffer| buffer.as_ref().map(place));
                let each_bytes = first.zip(second).map_or(bs_bytes, |(a, b)| a.abs_diff(b));
                let bytes = each_bytes * u64::from(engine.buffers());
                assert!(bytes <= buffers_bytes(bs_bytes, iodepth), "{bs_bytes} x {iodepth}");
                assert!(bytes <= (1 << 20) + u64::from(iodepth) * (bs_bytes + 65536));
                assert!(bytes > (1 << 20) / 2, "{bs_bytes} x {iodepth}");
            }
        }
    }
}
