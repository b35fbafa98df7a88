//! Orders of blocks in which each block occurs once.

use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The number of mixing rounds. After two rounds, adjacent numbers have similar high bits; after
/// three, they do not.
const ROUNDS: usize = 3;

/// A permutation of the numbers below `count`, chosen by a key.
///
/// It consists of invertible steps on numbers with as many bits as `count` requires: addition,
/// multiplication by an odd number, and an exclusive or of a number's upper half into its lower
/// half. Results that are not below `count` go through the steps again, less than twice on average
/// ("cycle walking": Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002), so that the
/// result is again a permutation.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    rounds: [(u64, u64); ROUNDS],
}

impl Permutation {
    pub fn new(count: u64, key: u64) -> Permutation {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut random = SplitMix64::seed_from_u64(key);
        let rounds = std::array::from_fn(|_| (random.next_u64(), random.next_u64() | 1));
        Permutation {
            count,
            mask: if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) },
            shift: (bits / 2).max(1),
            rounds,
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number at position `index`, which must be below `count`.
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.count);
        let mut number = index;
        loop {
            for (added, odd) in self.rounds {
                number = number.wrapping_add(added).wrapping_mul(odd) & self.mask;
                number ^= number >> self.shift;
            }
            if number < self.count {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(count: u64, key: u64) -> Vec<u64> {
        let permutation = Permutation::new(count, key);
        (0..count).map(|index| permutation.at(index)).collect()
    }

    proptest! {
        #[test]
        fn each_number_comes_exactly_once(count in 1..5000_u64, key: u64) {
            let mut numbers = order(count, key);
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..count));
        }

        #[test]
        fn a_large_bound_is_kept(count: u64, key: u64, index: u64) {
            let count = count.max(1);
            let permutation = Permutation::new(count, key);
            prop_assert!(permutation.at(index % count) < count);
        }
    }

    #[test]
    fn another_key_gives_another_order_and_the_same_key_the_same() {
        assert_eq!(order(1000, 7), order(1000, 7));
        assert_ne!(order(1000, 7), order(1000, 8));
    }

    #[test]
    fn the_order_is_no_order() {
        for count in [1000, 4096, 65_536, 100_000] {
            let numbers = order(count, 1);
            // Of random numbers, half are larger than their predecessor, and the mean distance
            // between neighbours is a third of the range.
            let ups = numbers.windows(2).filter(|pair| pair[1] > pair[0]).count() as f64;
            let ups = ups / count as f64;
            let distance: u64 = numbers.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
            let distance = distance as f64 / count as f64 / count as f64;
            assert!((0.45..0.55).contains(&ups), "{count}: {ups}");
            assert!((0.28..0.39).contains(&distance), "{count}: {distance}");
            // Every part of the order covers the whole range.
            let stretch = &numbers[..count as usize / 10];
            let tenths: std::collections::HashSet<u64> =
                stretch.iter().map(|number| number * 10 / count).collect();
            assert_eq!(tenths.len(), 10, "{count}");
        }
    }
}
