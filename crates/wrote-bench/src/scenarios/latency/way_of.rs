//! The way of a row of the scenario.

use super::{NAME, State, WAYS, Way};
use wrote_result::document::Row;

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
    use crate::scenarios::latency::Kind;

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
