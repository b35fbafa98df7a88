//! A memory budget shared by many engines and readers (W8).

use crate::Error;
use crate::buffer::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The limit, and the bytes in use.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: AtomicUsize,
    taken_bytes: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(max_bytes: usize) -> Arc<Budget> {
        let (max_bytes, taken_bytes) = (AtomicUsize::new(max_bytes), AtomicUsize::new(0));
        Arc::new(Budget { max_bytes, taken_bytes })
    }

    /// Sets the limit. Bytes already in use are kept.
    pub(crate) fn set_max(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    /// Takes bytes, if available.
    pub(crate) fn take(self: &Arc<Budget>, bytes: usize) -> Option<Share> {
        self.reserve(bytes).then(|| Share { budget: Arc::clone(self), bytes })
    }

    fn reserve(&self, bytes: usize) -> bool {
        let max_bytes = self.max_bytes();
        let fits = |taken: usize| taken.checked_add(bytes).filter(|&taken| taken <= max_bytes);
        self.taken_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Returns the most that one user may take beyond its initial bytes: a quarter of what is left,
    /// so that later ones get some.
    fn spare_bytes(&self) -> usize {
        self.max_bytes().saturating_sub(self.taken_bytes()) / 4
    }
}

/// Bytes taken from a budget until dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Grows to `bytes`, if the budget can spare them.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || more <= self.budget.spare_bytes() && self.budget.reserve(more);
        if fits {
            self.bytes += more;
        }
        fits
    }

    /// Shrinks to `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.budget.taken_bytes.fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
    }

    /// Maps `count` buffers of `buffer_bytes`, or of repeatedly halved size down to `bytes_min`.
    /// `None` if the budget can't spare even those.
    fn map(
        &mut self,
        count: u32,
        mut buffer_bytes: usize,
        bytes_min: usize,
    ) -> Result<Option<Pool>, Error> {
        loop {
            let bytes = Pool::mapped_bytes(count, buffer_bytes);
            if bytes > 0 && self.grow_to(self.bytes.saturating_add(bytes)) {
                let mapped = Pool::new(count, buffer_bytes);
                if mapped.is_err() {
                    self.shrink_to(self.bytes - bytes);
                }
                return mapped.map(Some);
            }
            let half = Pool::mapped_bytes(1, buffer_bytes / 2);
            if half < bytes_min || half >= buffer_bytes {
                return Ok(None);
            }
            buffer_bytes = half;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// The memory of an engine on a budget, and the larger buffers to take later.
#[derive(Debug)]
pub(crate) struct Allowance {
    share: Share,
    /// Number and size of the buffers to take when the budget can spare them.
    larger: Option<(u32, usize)>,
}

impl Allowance {
    /// Takes `count` buffers of `bytes` now, and `larger` ones when there is room. `None` if the
    /// first do not fit.
    pub(crate) fn begin(
        budget: &Arc<Budget>,
        (count, bytes): (u32, usize),
        larger: (u32, usize),
    ) -> Result<Option<(Pool, Allowance)>, Error> {
        let Some(share) = budget.take(Pool::mapped_bytes(count, bytes)) else { return Ok(None) };
        let pool = Pool::new(count, bytes)?;
        Ok(Some((pool, Allowance { share, larger: Some(larger) })))
    }

    /// Takes `count` buffers of `bytes`, or of repeatedly halved size down to `bytes_min`,
    /// permanently. `None` if the budget can't spare them.
    pub(crate) fn whole(
        budget: &Arc<Budget>,
        (count, bytes): (u32, usize),
        bytes_min: usize,
    ) -> Result<Option<(Pool, Allowance)>, Error> {
        let mut share = Share { budget: Arc::clone(budget), bytes: 0 };
        let pool = share.map(count, bytes, bytes_min)?;
        Ok(pool.map(|pool| (pool, Allowance { share, larger: None })))
    }

    /// Returns the larger buffers, once, if there is room: of the requested or a halved size, but
    /// larger than the first ones.
    pub(crate) fn grow(&mut self) -> Option<Pool> {
        let (count, bytes) = self.larger?;
        let first_bytes = self.share.bytes;
        if Pool::mapped_bytes(count, bytes) <= first_bytes {
            return None;
        }
        let bytes_min = (first_bytes / count as usize).saturating_add(1);
        // Without memory the smaller buffers remain in use.
        let pool = self.share.map(count, bytes, bytes_min).ok().flatten()?;
        self.larger = None;
        Some(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_fits_and_comes_back() {
        // W8
        let budget = Budget::new(100);
        let mut first = budget.take(60).unwrap();
        assert!(budget.take(41).is_none());
        let second = budget.take(40).unwrap();
        assert_eq!(budget.taken_bytes(), 100);
        drop(second);
        assert!(!first.grow_to(71), "a quarter of 40 can be spared");
        assert!(first.grow_to(70) && first.grow_to(5));
        assert_eq!(budget.taken_bytes(), 70);
        first.shrink_to(20);
        assert_eq!(budget.taken_bytes(), 20);
        budget.set_max(10);
        assert!(budget.take(1).is_none() && first.grow_to(20) && !first.grow_to(21));
        drop(first);
        assert_eq!(budget.taken_bytes(), 0);
    }

    #[test]
    fn buffers_are_halved_until_they_fit_and_no_further_than_wanted() {
        let budget = Budget::new(1 << 20);
        let take = |bytes_min| Allowance::whole(&budget, (4, 256 << 10), bytes_min).unwrap();
        let (pool, allowance) = take(64 << 10).unwrap();
        assert_eq!((pool.count(), pool.buffer_bytes()), (4, 64 << 10));
        assert_eq!(budget.taken_bytes(), 256 << 10);
        assert!(take(64 << 10).is_none(), "a quarter of the rest is 192 KiB");
        assert_eq!(take(32 << 10).unwrap().0.buffer_bytes(), 32 << 10);
        drop((pool, allowance));
        assert_eq!(budget.taken_bytes(), 0);
    }

    #[test]
    fn an_engine_begins_small_and_takes_larger_buffers_once() {
        let budget = Budget::new(1 << 20);
        let begin = || Allowance::begin(&budget, (2, 16 << 10), (4, 48 << 10)).unwrap();
        let (pool, mut allowance) = begin().unwrap();
        assert_eq!((pool.buffer_bytes(), budget.taken_bytes()), (16 << 10, 32 << 10));
        assert_eq!(allowance.grow().unwrap().buffer_bytes(), 48 << 10);
        assert!(allowance.grow().is_none());
        assert_eq!(budget.taken_bytes(), (32 << 10) + (192 << 10));
        // If no more than the first buffers would fit, they stay.
        let (_, mut other) = begin().unwrap();
        budget.set_max(budget.taken_bytes() + (100 << 10));
        assert!(other.grow().is_none());
        budget.set_max(1 << 20);
        assert!(other.grow().is_some());
    }
}
