//! Rows, requests and evidence for tests.

pub use wrote_jobs::sample::*;
pub use wrote_machine::sample::place;

use crate::Request;
use wrote_result::document::{Latency, Row};

/// A request for these scenarios or ways.
pub fn asked(only: &[&str]) -> Request {
    let only = only.iter().map(|name| name.to_string()).collect();
    Request { only, ..Request::new("/data".into()) }
}

/// A row of the scenario `latency`, half of whose saves took so long. `name` is as in results:
/// `latency/new-500/fs-write`.
pub fn saved(name: &str, p50_ns: u64) -> Row {
    let throughput = 500.0 * 1e9 / p50_ns as f64;
    let mut row = row(name, "power-loss", &[0.99, 1.0, 1.01].map(|share| share * throughput));
    row.workload = name.rsplit_once('/').unwrap().0.into();
    row.latency_ns =
        Some(Latency { p50: p50_ns, p99: 2 * p50_ns, count: 1000, ..Latency::default() });
    if let Some((state, way)) = crate::scenarios::latency::way_of(&row) {
        row.crash_leaves = Some(way.kind.leaves(state).as_str().into());
    }
    row
}
