//! The operations of a job, and the values that describe them.

pub use wrote_result::document::BlockShare;

/// The operations of a job: their directions, offsets and sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Reads, writes or both, in order or not.
    pub rw: Rw,
    /// Reads of 100 operations of a mix.
    pub rwmixread_percent: u32,
    /// Bytes of reads.
    pub read_bs: BlockSizes,
    /// Bytes of writes.
    pub write_bs: BlockSizes,
    /// Random offsets may repeat before each was used once.
    pub norandommap: bool,
    /// As fio itself does, operations of several sizes end where a block was used before, so that
    /// each block of the smallest size is used once.
    pub as_fio: bool,
    /// The blocks that a random job uses more than others.
    pub random_distribution: Distribution,
    /// The percentages of a random job's reads and writes that are at a random offset; the others
    /// follow the previous one. `None` means all of them.
    pub percentage_random: Option<[u32; 2]>,
}

impl Order {
    /// Returns the sizes of a direction.
    pub(crate) fn sizes(&self, write: bool) -> &BlockSizes {
        if write { &self.write_bs } else { &self.read_bs }
    }
}

/// The operations and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rw {
    /// There are reads.
    pub read: bool,
    /// There are writes.
    pub write: bool,
    /// The offsets are in no order.
    pub random: bool,
}

/// Reads in order.
pub const READ: Rw = Rw { read: true, write: false, random: false };
/// Writes in order.
pub const WRITE: Rw = Rw { read: false, write: true, random: false };

impl Rw {
    /// Returns fio's name: `read`, `write`, `rw`, `randread`, `randwrite`, `randrw`.
    pub fn as_str(self) -> &'static str {
        match (self.random, self.read, self.write) {
            (false, true, false) => "read",
            (false, false, true) => "write",
            (false, _, _) => "rw",
            (true, true, false) => "randread",
            (true, false, true) => "randwrite",
            (true, _, _) => "randrw",
        }
    }
}

/// The distribution of random offsets over the blocks of a file. All but [`Distribution::Uniform`]
/// draw a block again before each was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Each block is as likely as another.
    #[default]
    Uniform,
    /// The block of rank k has a probability proportional to 1 / k^theta. The ranks are scattered
    /// over the file.
    Zipf {
        /// 0 or more; with 0 all blocks are equally likely.
        theta: f64,
    },
    /// A share `h` of the blocks gets the share 1 - `h` of the operations.
    Pareto {
        /// Between 0 and 1.
        h: f64,
    },
    /// Zones from the start of the file on; within each, blocks are equally likely.
    Zoned(Vec<Zone>),
}

/// One zone of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The percentage of the operations.
    pub ios_percent: u32,
    /// The percentage of the file's bytes.
    pub bytes_percent: u32,
}

impl Distribution {
    /// Returns fio's words for the distribution; `None` if it is uniform.
    pub fn words(&self) -> Option<String> {
        match self {
            Distribution::Uniform => None,
            Distribution::Zipf { theta } => Some(format!("zipf:{theta}")),
            Distribution::Pareto { h } => Some(format!("pareto:{h}")),
            Distribution::Zoned(zones) => {
                let zone = |zone: &Zone| format!("{}/{}", zone.ios_percent, zone.bytes_percent);
                Some(format!("zoned:{}", zones.iter().map(zone).collect::<Vec<_>>().join(":")))
            }
        }
    }
}

/// The sizes of operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// Each with its percentage of the operations; the percentages add up to 100.
    Split(Vec<BlockShare>),
    /// The multiples of the smallest size up to the largest, equally likely (`bsrange`).
    Range {
        /// The smallest size, and the distance between two.
        least_bytes: u64,
        /// The largest size, a multiple of the smallest.
        most_bytes: u64,
    },
}

impl Default for BlockSizes {
    fn default() -> BlockSizes {
        BlockSizes::Split(Vec::new())
    }
}

impl BlockSizes {
    /// Returns one size for all operations.
    pub fn one(bytes: u64) -> BlockSizes {
        BlockSizes::Split(vec![BlockShare { bytes, percent: 100 }])
    }

    /// Returns the one size of all operations, where they have one.
    pub fn only(&self) -> Option<u64> {
        let most = self.most_bytes();
        (most > 0 && self.least_bytes() == most).then_some(most)
    }

    /// Returns the smallest size: offsets are multiples of it.
    pub fn least_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).min().unwrap_or(0),
            BlockSizes::Range { least_bytes, .. } => *least_bytes,
        }
    }

    /// Returns the largest size, which is the size of a buffer.
    pub fn most_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).max().unwrap_or(0),
            BlockSizes::Range { most_bytes, .. } => *most_bytes,
        }
    }

    /// Returns the greatest common divisor of the sizes.
    pub fn unit_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => {
                shares.iter().fold(0, |unit, share| gcd(unit, share.bytes))
            }
            BlockSizes::Range { least_bytes, .. } => *least_bytes,
        }
    }

    /// Returns the largest size of at most `most`.
    pub fn at_most(&self, most: u64) -> Option<u64> {
        match self {
            BlockSizes::Split(shares) => {
                shares.iter().map(|share| share.bytes).filter(|bytes| *bytes <= most).max()
            }
            BlockSizes::Range { least_bytes, most_bytes } => {
                let most = most.min(*most_bytes);
                Some(most - most % least_bytes).filter(|bytes| *bytes > 0)
            }
        }
    }
}

/// Returns the greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
