//! The ranks of a measurement by several processes, and their spread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The processes that measured together, each a rank (MPI).
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ranks {
    /// Their number.
    pub ranks: u32,
    /// The most ranks on one node.
    pub ranks_per_node: u32,
    /// Whether each had its own files, or regions of one file.
    pub files: RankFiles,
    /// By how many ranks reads were shifted: a rank read what the rank of that distance wrote.
    pub reorder: Option<u32>,
    /// Their nodes, in the order of the first ranks.
    pub nodes: Vec<Node>,
}

/// The files of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankFiles {
    /// Each rank has its own files.
    #[default]
    PerRank,
    /// One file, in which each rank has one region after the other.
    Segments,
    /// One file, in which the ranks' blocks take turns.
    Strided,
}

crate::words::word!(RankFiles);

/// A node, and its clock.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its host's name.
    pub name: String,
    /// Its ranks.
    pub ranks: Vec<u32>,
    /// How far its clock was ahead of rank 0's, in seconds.
    pub clock_offset_s: f64,
    /// The shortest round trip of a message between it and rank 0, in seconds: the offset is known
    /// to half of it.
    pub round_trip_s: Option<f64>,
}

/// The spread of the ranks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The rank with the fewest operations per second.
    pub slowest: RankRun,
    /// The rank with the most.
    pub fastest: RankRun,
    /// The median of all ranks' operations per second.
    pub median_iops: f64,
    /// From the first rank's start to the last one's, in seconds.
    pub started_within_s: f64,
    /// File bytes per second until the first rank was done (stonewalled), as if each rank's bytes
    /// were spread evenly over its time.
    pub stonewalled_bytes_per_s: f64,
}

/// The run of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankRun {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// File bytes that it wrote or read.
    pub bytes: u64,
    /// From its first operation to its last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// Its operations per second.
    pub iops: f64,
}
