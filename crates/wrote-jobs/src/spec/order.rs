//! The operations of a job: their kinds, offsets and sizes.

pub use wrote_result::document::BlockShare;

/// The operations of a job: their directions, offsets and sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Whether the job reads, writes or does both, and whether its offsets are random.
    pub rw: Rw,
    /// The percentage of reads in a mix.
    pub rwmixread_percent: u32,
    /// The sizes of reads.
    pub read_bs: BlockSizes,
    /// The sizes of writes.
    pub write_bs: BlockSizes,
    /// Whether random offsets may repeat before each one has been used once.
    pub norandommap: bool,
    /// Whether, with several sizes, an operation ends before a block that has already been used, as
    /// in fio itself. Each block of the smallest size is then used once.
    pub as_fio: bool,
    /// The distribution of random offsets, which may prefer some blocks.
    pub random_distribution: Distribution,
    /// The percentages of a random job's reads and of its writes that are at a random offset. The
    /// other operations continue where the previous one ended. `None` means that all are random.
    pub percentage_random: Option<[u32; 2]>,
}

impl Order {
    /// Returns the block sizes of a direction.
    pub(crate) fn sizes(&self, write: bool) -> &BlockSizes {
        if write { &self.write_bs } else { &self.read_bs }
    }
}

/// The kinds of operations, and whether their offsets are random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rw {
    /// Whether there are reads.
    pub read: bool,
    /// Whether there are writes.
    pub write: bool,
    /// Whether the offsets are random.
    pub random: bool,
}

/// Sequential reads.
pub const READ: Rw = Rw { read: true, write: false, random: false };
/// Sequential writes.
pub const WRITE: Rw = Rw { read: false, write: true, random: false };

impl Rw {
    /// Returns fio's name for this combination: `read`, `write`, `rw`, `randread`, `randwrite` or
    /// `randrw`.
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

/// The distribution of random offsets over the blocks of a file. Except with
/// [`Distribution::Uniform`], a block may be drawn again before all others have been used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// All blocks are equally likely.
    #[default]
    Uniform,
    /// The block of rank k has a probability proportional to 1 / k^theta. The ranks are scattered
    /// over the file.
    Zipf {
        /// The exponent, at least 0. With 0, all blocks are equally likely.
        theta: f64,
    },
    /// A share `h` of the blocks receives the share 1 - `h` of the operations.
    Pareto {
        /// The share of the blocks, between 0 and 1.
        h: f64,
    },
    /// Zones, from the start of the file. Within a zone, all blocks are equally likely.
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
    /// Returns the distribution in fio's notation; `None` if it is uniform.
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
    /// Several sizes, each with its percentage of the operations. The percentages add up to 100.
    Split(Vec<BlockShare>),
    /// The multiples of the smallest size up to the largest, all equally likely (`bsrange`).
    Range {
        /// The smallest size, which is also the step between sizes.
        least_bytes: u64,
        /// The largest size, which is a multiple of the smallest.
        most_bytes: u64,
    },
}

impl Default for BlockSizes {
    fn default() -> BlockSizes {
        BlockSizes::Split(Vec::new())
    }
}

impl BlockSizes {
    /// Returns block sizes with only this size.
    pub fn one(bytes: u64) -> BlockSizes {
        BlockSizes::Split(vec![BlockShare { bytes, percent: 100 }])
    }

    /// Returns the only size; `None` if there are several.
    pub fn only(&self) -> Option<u64> {
        let most = self.most_bytes();
        (most > 0 && self.least_bytes() == most).then_some(most)
    }

    /// Returns the smallest size. All offsets are multiples of it.
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

    /// Returns the largest size that does not exceed `most`; `None` if there is none.
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
