//! The settings of the scenario, with their limits and their help.

use wrote_result::Error;
#[cfg(feature = "cli")]
use wrote_result::units;

const SIZES_BYTES: [u64; 4] = [500, 1000, 2000, 10_000];
/// The longest text: a longer one is no small text.
pub(super) const SIZE_BYTES_MAX: u64 = 1 << 20;
/// Saves of each text by each way by default, over all runs.
const ITERATIONS: u32 = 1000;
pub(super) const ITERATIONS_MAX: u32 = 1_000_000;

/// The settings of the scenario `latency`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Latency {
    /// Saves of each text of latency by each way, from 1 to 1000000 [default: 1000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = units::parse_count::<ITERATIONS_MAX>, allow_hyphen_values = true))]
    pub iterations: Option<u32>,

    /// Lengths of the texts of latency [default: 500,1000,2000,10000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = units::parse_size, allow_hyphen_values = true))]
    pub save_size: Vec<u64>,
}

impl Latency {
    /// The share of the iterations that one of `rounds` benchmarks makes, rounded up.
    pub(crate) fn divided(&self, rounds: u32) -> Latency {
        let iterations = self.iterations.unwrap_or(ITERATIONS).div_ceil(rounds);
        Latency { iterations: Some(iterations), ..self.clone() }
    }

    /// The lengths of the texts, each once, in the order of the request.
    pub(super) fn checked_sizes(&self) -> Result<Vec<u64>, Error> {
        if self.save_size.is_empty() {
            return Ok(SIZES_BYTES.to_vec());
        }
        let mut sizes_bytes = Vec::new();
        for size_bytes in &self.save_size {
            if !(1..=SIZE_BYTES_MAX).contains(size_bytes) {
                return Err(Error::Usage(format!(
                    "--save-size: {size_bytes} bytes are not from 1 to {SIZE_BYTES_MAX}"
                )));
            }
            if !sizes_bytes.contains(size_bytes) {
                sizes_bytes.push(*size_bytes);
            }
        }
        Ok(sizes_bytes)
    }

    /// Saves of each row, over all runs.
    pub(super) fn checked_iterations(&self) -> Result<u32, Error> {
        match self.iterations.unwrap_or(ITERATIONS) {
            good @ 1..=ITERATIONS_MAX => Ok(good),
            bad => {
                Err(Error::Usage(format!("--iterations: {bad} is not from 1 to {ITERATIONS_MAX}")))
            }
        }
    }
}
