//! The nodes of the ranks, and the offsets of their clocks.

use serde::{Deserialize, Serialize};
use wrote_result::document;
use wrote_result::document::Node;

/// The nodes of the ranks, and the offsets of their clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// The nodes, in the order of their first ranks.
    pub nodes: Vec<Node>,
    /// The node of each rank, as its number in `nodes`.
    pub of_rank: Vec<usize>,
}

/// A clock as rank 0 sees it: the shortest of some round trips.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Look {
    pub offset_s: f64,
    pub round_trip_s: f64,
}

impl Places {
    /// The only rank on the only node.
    pub(super) fn alone() -> Places {
        Places::of(vec![String::new()], &[None])
    }

    /// Returns the places of ranks on these nodes. `looks` has clock readings of some of them.
    pub(super) fn of(names: Vec<String>, looks: &[Option<Look>]) -> Places {
        let mut places = Places::default();
        for (rank, (name, look)) in names.into_iter().zip(looks).enumerate() {
            let known = places.nodes.iter().position(|node| node.name == name);
            let number = known.unwrap_or(places.nodes.len());
            if known.is_none() {
                let node =
                    Node { name, ranks: Vec::new(), clock_offset_s: 0.0, round_trip_s: None };
                places.nodes.push(node);
            }
            let node = &mut places.nodes[number];
            node.ranks.push(rank as u32);
            // The ranks of a node share a clock, which the shortest round trip measures best.
            if let Some(look) = look
                && node.round_trip_s.is_none_or(|known_s| look.round_trip_s < known_s)
            {
                (node.clock_offset_s, node.round_trip_s) = (look.offset_s, Some(look.round_trip_s));
            }
            places.of_rank.push(number);
        }
        places
    }

    /// Returns how far a rank's clock is ahead of rank 0's. Ranks on rank 0's node share its clock.
    pub fn offset_s(&self, rank: u32) -> f64 {
        match self.of_rank[rank as usize] {
            0 => 0.0,
            node => self.nodes[node].clock_offset_s,
        }
    }

    /// Returns the name of a rank's node.
    pub fn node(&self, rank: u32) -> &str {
        &self.nodes[self.of_rank[rank as usize]].name
    }

    /// Returns the most ranks on a node.
    pub fn ranks_per_node(&self) -> u32 {
        self.nodes.iter().map(|node| node.ranks.len() as u32).max().unwrap_or(1)
    }

    /// Returns them as in a result.
    pub fn shown(&self, files: document::RankFiles, reorder: Option<u32>) -> document::Ranks {
        document::Ranks {
            ranks: self.of_rank.len() as u32,
            ranks_per_node: self.ranks_per_node(),
            files,
            reorder,
            nodes: self.nodes.clone(),
        }
    }
}
