//! The cost of a sync: a method of saving compared with the same method without the sync. The
//! module is separate because no other figure involves two rows, and because it names their
//! methods.

use crate::document::Row;

/// The methods that differ only by their flushes: the method with them, and the method without
/// them.
const PAIRS: [(&str, &str); 3] =
    [("fs-write-fsync", "fs-write"), ("rename-fsync", "rename"), ("append-fdatasync", "append")];

/// A method with a sync, compared with the same method without it.
#[derive(Clone, Copy, Debug)]
pub struct SyncCost<'a> {
    /// The row whose saves are flushed.
    pub with: &'a Row,
    /// The row whose saves are not flushed.
    pub without: &'a Row,
    /// The ratio of the medians of the two latencies.
    pub times: f64,
}

/// Returns the costs of the syncs in one workload of saves. A method that was measured without its
/// counterpart is left out. `fs::write` comes first.
pub fn sync_costs<'a>(rows: &[&'a Row]) -> Vec<SyncCost<'a>> {
    let of = |way: &str| {
        let is = |row: &&Row| row.name.strip_prefix(&row.workload) == Some(&format!("/{way}"));
        rows.iter().copied().find(is)
    };
    let cost = |(with, without): &(&str, &str)| {
        let (with, without) = (of(with)?, of(without)?);
        let p50 = |row: &Row| row.latency().map(|of| of.p50).filter(|p50| *p50 > 0);
        let times = p50(with)? as f64 / p50(without)? as f64;
        Some(SyncCost { with, without, times })
    };
    PAIRS.iter().filter_map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Latency;

    #[test]
    fn a_way_is_held_against_itself_without_sync_by_its_median() {
        let rows = [
            ("rename-fsync", 3_000_000),
            ("wrote-write", 2_000_000),
            ("fs-write", 20_000),
            ("rename", 30_000),
            ("fs-write-fsync", 1_000_000),
            ("append-fdatasync", 1_000_000),
        ]
        .map(|(way, p50)| Row {
            name: format!("latency/new-500/{way}"),
            workload: "latency/new-500".into(),
            latency_ns: Some(Latency { p50, ..Latency::default() }),
            ..crate::sample::row("latency/new-500", "power-loss", &[1.0])
        });
        let rows: Vec<&Row> = rows.iter().collect();
        let costs = sync_costs(&rows);
        let told: Vec<(&str, f64)> =
            costs.iter().map(|cost| (cost.with.name.as_str(), cost.times)).collect();
        assert_eq!(
            told,
            [("latency/new-500/fs-write-fsync", 50.0), ("latency/new-500/rename-fsync", 100.0)]
        );
        assert_eq!(costs[0].without.name, "latency/new-500/fs-write");
    }
}
