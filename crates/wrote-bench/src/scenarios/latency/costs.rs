//! What sync costs: the same way with it and without, side by side.

use super::{Kind, NAME, State, WAYS, Way};
use wrote_result::document::Row;

/// Ways that differ by their flushes alone: with them, without.
const PAIRS: [(Kind, Kind); 3] = [
    (Kind::FsWriteFsync, Kind::FsWrite),
    (Kind::RenameFsync, Kind::Rename),
    (Kind::AppendFdatasync, Kind::Append),
];

/// A way with sync beside the same way without.
#[derive(Clone, Copy, Debug)]
pub struct SyncCost<'a> {
    /// The row whose saves are flushed.
    pub with: &'a Row,
    /// The row whose saves are not.
    pub without: &'a Row,
    /// How many times as long half of the former took as half of the latter: the ratio of the medians
    /// of their latencies.
    pub times: f64,
}

/// What sync costs in one workload of the scenario `latency`; nothing of ways that were measured without
/// their counterpart. The first is `fs::write` with `fsync` against `fs::write`, where both were
/// measured.
pub fn sync_costs<'a>(rows: &[&'a Row]) -> Vec<SyncCost<'a>> {
    let of = |kind: Kind| {
        rows.iter().copied().find(|row| way_of(row).is_some_and(|(_, way)| way.kind == kind))
    };
    let cost = |(with, without): &(Kind, Kind)| {
        let (with, without) = (of(*with)?, of(*without)?);
        let p50 = |row: &Row| row.latency_ns.map(|of| of.p50).filter(|p50| *p50 > 0);
        let times = p50(with)? as f64 / p50(without)? as f64;
        Some(SyncCost { with, without, times })
    };
    PAIRS.iter().filter_map(cost).collect()
}

/// The way of a row of the scenario, and the file that it saves to.
pub fn way_of(row: &Row) -> Option<(State, &'static Way)> {
    let rest = row.workload.strip_prefix(NAME)?.strip_prefix('/')?;
    let state = State::ALL.into_iter().find(|state| {
        rest.strip_prefix(state.as_str()).is_some_and(|rest| rest.starts_with('-'))
    })?;
    let name = row.name.strip_prefix(&row.workload)?.strip_prefix('/')?;
    Some((state, WAYS.iter().find(|way| way.name == name)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::saved;

    #[test]
    fn a_way_is_held_against_itself_without_sync_by_its_median() {
        let rows = [
            saved("latency/new-500/rename-fsync", 3_000_000),
            saved("latency/new-500/wrote-write", 2_000_000),
            saved("latency/new-500/fs-write", 20_000),
            saved("latency/new-500/rename", 30_000),
            saved("latency/new-500/fs-write-fsync", 1_000_000),
            saved("latency/new-500/append-fdatasync", 1_000_000),
        ];
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

    #[test]
    fn rows_of_other_scenarios_are_no_saves() {
        for name in ["ways/fs-write", "latency/fs-write", "latency/other-5/rename"] {
            assert!(way_of(&saved(name, 1)).is_none(), "{name}");
        }
        let row = saved("latency/existing-5/append", 1);
        let (state, way) = way_of(&row).unwrap();
        assert_eq!((state, way.kind), (State::Existing, Kind::Append));
    }
}
