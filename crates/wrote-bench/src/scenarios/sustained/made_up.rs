//! Synthetic series for tests: levels, with the kinds of noise that disks have.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use wrote_result::document::Sample;

/// The noise in the logarithm of a throughput.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// The standard deviation of all values.
    pub deviation: f64,
    /// The correlation with the previous value.
    pub correlation: f64,
    /// The fraction of the values that are spikes, which are much slower than the other values.
    pub spikes_share: f64,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { deviation: 0.1, correlation: 0.0, spikes_share: 0.0 }
    }
}

impl Noise {
    /// Returns `count` values around 0, which the seed determines.
    pub(super) fn series(&self, seed: u64, count: usize) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fresh = (1.0 - self.correlation.powi(2)).sqrt() * self.deviation;
        let mut value = self.deviation * normal(&mut random);
        let mut next = || {
            value = self.correlation * value + fresh * normal(&mut random);
            let spike = uniform(&mut random) < self.spikes_share;
            if spike { value - 1.0 - 3.0 * uniform(&mut random) } else { value }
        };
        (0..count).map(|_| next()).collect()
    }
}

/// Returns a number between 0 and 1, exclusive.
fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Returns a normally distributed number (Box and Muller 1958).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let radius = (-2.0 * uniform(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Returns a series of levels, each with its length.
pub(super) fn step(count: usize, levels: &[(usize, f64)]) -> Vec<f64> {
    let all: Vec<f64> =
        levels.iter().flat_map(|(length, level)| std::iter::repeat_n(*level, *length)).collect();
    assert_eq!(all.len(), count);
    all
}

/// Returns samples of 1 MB each with these throughput logarithms.
pub(super) fn samples(logarithms: &[f64]) -> Vec<Sample> {
    let (mut end_bytes, mut end_s) = (0, 0.0);
    let sample = |logarithm: &f64| {
        let throughput_bytes_per_s = logarithm.exp();
        end_bytes += 1_000_000;
        end_s += 1e6 / throughput_bytes_per_s;
        Sample { end_bytes, end_s, throughput_bytes_per_s }
    };
    logarithms.iter().map(sample).collect()
}
