//! The ranks of a measurement, and how far they were apart, in a line each.

use crate::group::Group;
use std::collections::BTreeMap;
use wrote_result::document::{RankFiles, RankRun, Ranks, Row, Spread};
use wrote_result::{stats, units};

/// Returns the facts about the ranks: `4 ranks on 2 nodes (2 a node)`, ..
pub fn facts(ranks: &Ranks) -> Vec<String> {
    let nodes = ranks.nodes.len() as u64;
    let mut facts = vec![format!(
        "{} on {}",
        units::counted(ranks.ranks.into(), "rank"),
        units::counted(nodes, "node")
    )];
    if nodes > 1 {
        facts[0] += &format!(" (up to {} a node)", ranks.ranks_per_node);
    }
    facts.push(match ranks.files {
        RankFiles::PerRank => "a file each".into(),
        RankFiles::Segments => "one file, a segment each".into(),
        RankFiles::Strided => "one file, their blocks in turn".into(),
    });
    if let Some(shift) = ranks.reorder {
        facts.push(format!("reads shifted by {}", units::counted(shift.into(), "rank")));
    }
    let offset_s = ranks.nodes.iter().map(|node| node.clock_offset_s.abs()).fold(0.0, f64::max);
    let round_trip_s = ranks.nodes.iter().filter_map(|node| node.round_trip_s).fold(0.0, f64::max);
    facts.push(format!(
        "clocks within {} (round trip {})",
        units::seconds(offset_s),
        units::seconds(round_trip_s)
    ));
    facts
}

/// Returns how far the ranks of a group's rows were apart; `None` for a single rank.
pub fn spread(group: &Group) -> Option<String> {
    let spreads: Vec<(&Row, &Spread)> = group
        .rows
        .iter()
        .flat_map(|row| row.runs.iter().filter_map(|run| Some((*row, run.ranks.as_ref()?))))
        .collect();
    if spreads.is_empty() {
        return None;
    }
    let part = |of: &RankRun, spread: &Spread| of.iops / spread.median_iops.max(1e-9);
    let parts = |of: fn(&Spread) -> &RankRun| {
        stats::median(&spreads.iter().map(|(_, one)| part(of(one), one)).collect::<Vec<f64>>())
    };
    let most_often = |of: fn(&Spread) -> &RankRun| {
        let mut times: BTreeMap<(u32, &str), u32> = BTreeMap::new();
        for (_, spread) in &spreads {
            *times.entry((of(spread).rank, &of(spread).node)).or_default() += 1;
        }
        let most = times.into_iter().max_by_key(|(_, times)| *times);
        most.map(|((rank, node), _)| format!("rank {rank} on {node}")).unwrap_or_default()
    };
    let mut line = format!(
        "ranks: the slowest {:.0} % of the median one (most often {}), the fastest {:.0} % ({})",
        parts(|spread| &spread.slowest) * 100.0,
        most_often(|spread| &spread.slowest),
        parts(|spread| &spread.fastest) * 100.0,
        most_often(|spread| &spread.fastest),
    );
    let walls = spreads.iter().filter_map(|(row, spread)| {
        let total = row.throughput_bytes_per_s.median;
        (total > 0.0).then(|| spread.stonewalled_bytes_per_s / total)
    });
    let walls: Vec<f64> = walls.collect();
    if !walls.is_empty() {
        line += &format!("; stonewalled {:.0} % of the total", stats::median(&walls) * 100.0);
    }
    Some(line)
}
