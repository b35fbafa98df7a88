//! Distributions in which some blocks are drawn more often than others (`random_distribution`).

use super::Permutation;
use crate::spec::{Distribution, Zone};
use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus, rand_core::SeedableRng};

/// A distribution over the blocks of one file, from which blocks are drawn.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    Uniform,
    Ranked(Box<Ranked>),
    /// For each zone, the percentage of draws up to its end, its first block, and its number of
    /// blocks.
    Zoned(Vec<(u64, u64, u64)>),
}

/// Blocks that are ranked by how often they are used, starting with the most used one.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    ranks: Ranks,
    /// The block of each rank.
    scattered: Permutation,
}

#[derive(Clone, Debug)]
enum Ranks {
    Zipf(Zipf<f64>),
    /// A power of a uniform random number. This is fio's formula, which is simpler than Pareto's.
    Pareto(f64),
}

impl Spread {
    /// Returns the distribution over `blocks`. `key` determines the block of each rank.
    pub(super) fn new(distribution: &Distribution, blocks: u64, key: u64) -> Spread {
        let blocks = blocks.max(1);
        let ranks = match distribution {
            Distribution::Uniform => return Spread::Uniform,
            Distribution::Zoned(zones) => return Spread::Zoned(zoned(zones, blocks)),
            Distribution::Zipf { theta } => {
                let zipf = Zipf::new(blocks as f64, *theta);
                Ranks::Zipf(zipf.expect("theta is not negative"))
            }
            Distribution::Pareto { h } => Ranks::Pareto(h.ln() / (1.0 - h).ln()),
        };
        let scattered = Permutation::new(blocks, SplitMix64::seed_from_u64(key).next_u64());
        Spread::Ranked(Box::new(Ranked { ranks, scattered }))
    }

    /// Draws one of the first `blocks` blocks.
    #[inline]
    pub(super) fn draw(&self, chance: &mut Xoshiro256PlusPlus, blocks: u64) -> u64 {
        let block = match self {
            Spread::Uniform => return below(chance, blocks),
            Spread::Ranked(ranked) => ranked.draw(chance),
            Spread::Zoned(zones) => {
                let percent = below(chance, 100);
                let zone = zones.iter().find(|(end, ..)| percent < *end);
                zone.map_or(0, |&(_, first, count)| first + below(chance, count))
            }
        };
        block.min(blocks - 1)
    }
}

impl Ranked {
    fn draw(&self, chance: &mut Xoshiro256PlusPlus) -> u64 {
        let count = self.scattered.count();
        let rank = match &self.ranks {
            Ranks::Zipf(zipf) => zipf.sample(chance) as u64 - 1,
            Ranks::Pareto(power) => {
                ((count - 1) as f64 * chance.random::<f64>().powf(*power)) as u64
            }
        };
        self.scattered.at(rank.min(count - 1))
    }
}

fn zoned(zones: &[Zone], blocks: u64) -> Vec<(u64, u64, u64)> {
    let (mut ios, mut bytes) = (0, 0);
    let zone = |zone: &Zone| {
        let first = (u128::from(blocks) * bytes / 100) as u64;
        let count = (u128::from(blocks) * u128::from(zone.bytes_percent) / 100) as u64;
        ios += u64::from(zone.ios_percent);
        bytes += u128::from(zone.bytes_percent);
        (ios, first, count.max(1))
    };
    zones.iter().map(zone).collect()
}

/// Returns a random number below `bound`: the upper half of a product (Lemire: Fast Random Integer
/// Generation in an Interval, 2019). Omits Lemire's rejection step, which makes no visible
/// difference for these bounds.
pub(super) fn below(chance: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(chance.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 1000;
    const DRAWS: usize = 100_000;

    fn drawn(distribution: Distribution) -> Vec<usize> {
        let spread = Spread::new(&distribution, BLOCKS, 7);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts = vec![0; BLOCKS as usize];
        (0..DRAWS).for_each(|_| counts[spread.draw(&mut chance, BLOCKS) as usize] += 1);
        counts
    }

    fn is_near(count: usize, share: f64) -> bool {
        (count as f64 / DRAWS as f64 / share - 1.0).abs() < 0.1
    }

    #[test]
    fn the_blocks_of_zipf_come_by_the_power_of_their_rank() {
        for theta in [0.5, 1.0, 1.2] {
            let mut ranked = drawn(Distribution::Zipf { theta });
            let whole: f64 = (1..=BLOCKS).map(|rank| (rank as f64).powf(-theta)).sum();
            ranked.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
            assert!(is_near(ranked[0], 1.0 / whole), "{theta}: {}", ranked[0]);
            let ten: f64 = (1..=10).map(|rank| f64::from(rank).powf(-theta)).sum();
            assert!(is_near(ranked[..10].iter().sum(), ten / whole), "{theta}");
        }
    }

    #[test]
    fn of_pareto_a_part_of_the_blocks_has_the_rest_of_the_draws() {
        // 20 % of the blocks receive 80 % of the draws.
        let mut counts = drawn(Distribution::Pareto { h: 0.2 });
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        assert!(is_near(counts[..200].iter().sum(), 0.8));
    }

    #[test]
    fn each_zone_has_its_share_of_the_draws_and_what_no_zone_has_is_never_drawn() {
        let zone = |ios_percent, bytes_percent| Zone { ios_percent, bytes_percent };
        let counts = drawn(Distribution::Zoned(vec![zone(60, 10), zone(30, 20), zone(10, 40)]));
        for (blocks, share) in [(0..100, 0.6), (100..300, 0.3), (300..700, 0.1)] {
            assert!(is_near(counts[blocks].iter().sum(), share), "{share}");
        }
        assert_eq!(counts[700..].iter().sum::<usize>(), 0);
    }

    #[test]
    fn no_draw_leaves_a_file_of_any_size() {
        let zones = Distribution::Zoned(vec![Zone { ios_percent: 100, bytes_percent: 1 }]);
        let zipf = Distribution::Zipf { theta: 1.1 };
        for distribution in [zones, zipf, Distribution::Pareto { h: 0.9 }] {
            for blocks in 1..20 {
                let spread = Spread::new(&distribution, blocks, blocks);
                let mut chance = Xoshiro256PlusPlus::seed_from_u64(blocks);
                assert!((0..100).all(|_| spread.draw(&mut chance, blocks) < blocks));
            }
        }
    }
}
