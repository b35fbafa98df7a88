//! What one run of one program came to.

/// What one run of one program came to, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// File bytes written.
    pub bytes: u64,
    /// From the first write to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds, user and kernel.
    pub cpu_s: f64,
}

impl Measured {
    /// File bytes per second.
    pub fn throughput_bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed_s
    }

    /// CPU seconds that a gigabyte (10^9 bytes) costs.
    pub fn cpu_s_per_gb(&self) -> f64 {
        self.cpu_s / (self.bytes as f64 / 1e9)
    }
}
