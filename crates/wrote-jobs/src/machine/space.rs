//! The space that files of a run may take without filling the disk.

use wrote::device::Target;
use wrote_result::Error;
use wrote_result::units::{bytes, exact};

/// A file system is nearly full above this used share.
pub const USED_SHARE_MAX: f64 = 0.85;

/// The most space to keep free on any file system.
const KEPT_BYTES_MAX: u64 = 5 << 30;

/// Returns the bytes that stay free: 10 % of the capacity or 5 GiB, whichever is smaller.
fn kept(capacity_bytes: u64) -> u64 {
    capacity_bytes.div_ceil(10).min(KEPT_BYTES_MAX)
}

/// Returns the bytes that a run's files may take on a file system of `capacity_bytes` with
/// `free_bytes` free: 10 % of the capacity or 5 GiB, whichever is smaller, must stay free.
pub fn budget(capacity_bytes: u64, free_bytes: u64) -> u64 {
    free_bytes.saturating_sub(kept(capacity_bytes))
}

/// Returns the bytes that a run's files may take on the target; no bound where the capacity is
/// unknown (some FUSE report 0).
pub fn room_bytes(target: &Target) -> u64 {
    if target.capacity_bytes == 0 {
        return u64::MAX;
    }
    budget(target.capacity_bytes, target.free_bytes)
}

/// Refuses a run whose files would together take `wanted_bytes` and leave too little free.
///
/// `size_bytes` is `--size` or its default: the line of [`Error::Failed`] suggests a size, as if
/// `wanted_bytes` grew with it. A file system of unknown capacity (some FUSE report 0) is not
/// refused.
pub fn check(wanted_bytes: u64, size_bytes: u64, target: &Target) -> Result<(), Error> {
    let (capacity, free) = (target.capacity_bytes, target.free_bytes);
    let budget = budget(capacity, free);
    if capacity == 0 || wanted_bytes <= budget {
        return Ok(());
    }
    let left = match free.checked_sub(wanted_bytes) {
        Some(left) if left > 0 => bytes(left),
        _ => "nothing".into(),
    };
    let share = u128::from(size_bytes) * u128::from(budget) / u128::from(wanted_bytes.max(1));
    let way_out = match rounded_down(share as u64) {
        0 => "Free some space first".into(),
        size_bytes => format!("Use --size {} or less", exact(size_bytes)),
    };
    Err(Error::Failed(format!(
        "{}: {} of files would leave {left} free of {}; at least {} stays free. {way_out}",
        target.path.display(),
        bytes(wanted_bytes),
        bytes(capacity),
        bytes(kept(capacity)),
    )))
}

/// Rounds down to at most two significant digits; 0 below 1 MB, which is too small to measure with.
pub fn rounded_down(size_bytes: u64) -> u64 {
    if size_bytes < 1_000_000 {
        return 0;
    }
    let unit = 10_u64.pow(size_bytes.ilog10() - 1);
    size_bytes / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wrote_result::units::parse_size;

    const GB: u64 = 1_000_000_000;

    fn target(capacity_bytes: u64, free_bytes: u64) -> Target {
        crate::sample::place(capacity_bytes, free_bytes)
    }

    fn refusal(wanted: u64, size: u64, target: &Target) -> String {
        check(wanted, size, target).unwrap_err().to_string()
    }

    #[test]
    fn a_tenth_or_five_gib_stays_free_whichever_is_smaller() {
        assert_eq!(budget(10 * GB, 4 * GB), 3 * GB);
        assert_eq!(budget(1000 * GB, 100 * GB), 100 * GB - (5 << 30));
        assert_eq!(budget(10 * GB, GB), 0);
        assert_eq!(budget(10 * GB, GB / 2), 0);
    }

    #[test]
    fn what_fits_is_not_refused() {
        assert!(check(3 * GB, 3 * GB, &target(10 * GB, 4 * GB)).is_ok());
        assert!(check(3 * GB + 1, 3 * GB, &target(10 * GB, 4 * GB)).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_size_that_does() {
        assert_eq!(
            refusal(3 * GB, 3 * GB, &target(10 * GB, 3_520_000_000)),
            "/data: 3.00 GB of files would leave 520 MB free of 10.0 GB; \
             at least 1.00 GB stays free. Use --size 2500M or less"
        );
        // Each file takes half of the space.
        let twice = refusal(3 * GB, 3 * GB / 2, &target(10 * GB, 2 * GB));
        assert!(
            twice.ends_with(
                "would leave nothing free of 10.0 GB; at least 1.00 GB stays free. \
            Use --size 500M or less"
            ),
            "{twice}"
        );
    }

    #[test]
    fn on_a_full_disk_no_size_is_recommended() {
        let full = refusal(GB, GB, &target(10 * GB, GB / 2));
        assert!(full.ends_with("Free some space first"), "{full}");
    }

    #[test]
    fn a_file_system_that_tells_no_capacity_is_not_refused() {
        assert!(check(GB, GB, &target(0, 0)).is_ok());
    }

    proptest! {
        #[test]
        fn the_size_that_is_recommended_fits(
            capacity in 1..1_u64 << 50,
            share in 0.0..1.0_f64,
            size in 1_000_000..1_u64 << 50,
            files in 1..5_u64,
        ) {
            let target = target(capacity, (capacity as f64 * share) as u64);
            if let Err(error) = check(size * files, size, &target)
                && let Some((_, rest)) = error.to_string().split_once("--size ")
            {
                let recommended = parse_size(rest.split(' ').next().unwrap()).unwrap();
                prop_assert!(check(recommended * files, recommended, &target).is_ok());
            }
        }

        #[test]
        fn what_the_budget_allows_leaves_enough_free(
            capacity in 1..1_u64 << 50,
            free in 0..1_u64 << 50,
        ) {
            let left = free - budget(capacity, free);
            prop_assert!(left >= (capacity / 10).min(5 << 30).min(free));
        }
    }
}
