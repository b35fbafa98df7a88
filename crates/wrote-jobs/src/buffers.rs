//! Numbers and sizes of the buffers of a run, and the check of their memory.

use crate::machine::host::Memory;
use rand::TryRng;
use wrote_result::{Error, units};

/// The fewest bytes of all buffers of a thread. A large buffer keeps most of its bytes from one
/// write to the next, so a single one would repeat within a unit that a file system compresses.
const POOL_BYTES_MIN: u64 = 1 << 20;

/// Returns the page-aligned memory of a buffer.
fn in_pages_bytes(bs_bytes: u64) -> u64 {
    bs_bytes.next_multiple_of(rustix::param::page_size() as u64).max(1)
}

/// Returns the buffers of a thread.
pub fn buffers(bs_bytes: u64, iodepth: u32) -> u32 {
    iodepth.max((POOL_BYTES_MIN / in_pages_bytes(bs_bytes)) as u32)
}

/// Returns the memory of the buffers of a thread.
pub fn buffers_bytes(bs_bytes: u64, iodepth: u32) -> u64 {
    in_pages_bytes(bs_bytes).saturating_mul(buffers(bs_bytes, iodepth).into())
}

/// Refuses buffers of more than half of the memory, beyond which the kernel would kill the program;
/// `what` names the settings that decide their size.
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

/// Returns a random seed, so that each run writes other data (M2).
pub fn seed() -> u64 {
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        // No getrandom(2): the clock distinguishes two runs too.
        std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64)
    })
}

#[cfg(test)]
mod tests {
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
                    continue; // More than a small machine maps.
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
