//! The ranks of a measurement, and how far they were apart, in a line each.

use crate::group::Group;
use wrote_result::document::{RankFiles, Ranks, Run, Spread};
use wrote_result::{stats, units};

/// Returns the facts about the ranks: `4 ranks on 2 nodes (up to 2 a node)`, ..
pub fn facts(ranks: &Ranks) -> Vec<String> {
    let [count, nodes] = [(ranks.ranks.into(), "rank"), (ranks.nodes.len() as u64, "node")]
        .map(|(count, word)| units::counted(count, word));
    let offset_s = ranks.nodes.iter().map(|node| node.clock_offset_s.abs()).fold(0.0, f64::max);
    vec![
        format!("{count} on {nodes} (up to {} a node)", ranks.ranks_per_node),
        match ranks.files {
            RankFiles::PerRank => "a file each".into(),
            RankFiles::Segments => "one file, a segment each".into(),
        },
        format!("clocks within {}", units::seconds(offset_s)),
    ]
}

/// Returns how far the ranks of a group's rows were apart; `None` for a single rank.
pub fn spread(group: &Group) -> Option<String> {
    let runs = group.rows.iter().flat_map(|row| &row.runs);
    let all: Vec<(&Run, &Spread)> =
        runs.filter_map(|run| Some((run, run.ranks.as_ref()?))).collect();
    let percent = |share: fn(&Run, &Spread) -> f64| {
        let shares: Vec<f64> = all.iter().map(|(run, spread)| share(run, spread)).collect();
        stats::median(&shares) * 100.0
    };
    let line = || {
        format!(
            "ranks: the slowest {:.0} % of the median one, the fastest {:.0} %; stonewalled \
             {:.0} % of the total",
            percent(|_, spread| spread.slowest.iops / spread.median_iops.max(1e-9)),
            percent(|_, spread| spread.fastest.iops / spread.median_iops.max(1e-9)),
            percent(|run, of| of.stonewalled_bytes_per_s / run.throughput_bytes_per_s.max(1e-9)),
        )
    };
    (!all.is_empty()).then(line)
}
