//! What every scenario is to the benchmark: planned before anything is written, and then measured.

use crate::bench::Ticker;
use crate::scratch::Scratch;
use std::time::Duration;
use wrote::device::{BlockDevice, Target};
use wrote_machine::target::device_of;
use wrote_result::document::Scenario;
use wrote_result::{Error, Stop};

/// Where scenarios are measured.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What lies under the path.
    pub target: &'a Target,
    /// The folder that the run made for its files.
    pub scratch: &'a Scratch,
    /// Raised when someone asks to stop.
    pub stop: &'a Stop,
    /// The last test files stay where they are.
    pub keep: bool,
}

impl<'a> Site<'a> {
    /// The block device below, where there is one.
    pub fn device(&self) -> Option<&'a BlockDevice> {
        device_of(self.target)
    }
}

/// What a scenario gave.
#[derive(Debug)]
pub struct Measured {
    pub scenario: Scenario,
    /// File bytes written in all.
    pub written_bytes: u64,
    /// Rows that were called for and not measured, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A scenario that was called for, with everything decided that can be before the disk was tried.
pub trait Planned {
    /// How many runs there are: so often the ticker ticks.
    fn runs_total(&self) -> u32;
    /// The most that lies in the folder at any time.
    fn space_bytes_max(&self) -> u64;
    /// The most that is written in all.
    fn written_bytes_max(&self) -> u64;
    /// About how long all runs take.
    fn estimate(&self) -> Duration;
    /// Measures, every way in turn (M8), and removes its files at the end unless [`Site::keep`].
    fn measure(&self, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error>;
}
