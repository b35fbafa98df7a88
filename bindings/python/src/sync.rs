//! The argument `sync`: a word of Redis, or seconds.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wrote::SyncPolicy;

/// Returns the policy of an argument.
pub fn policy(sync: &Bound<'_, PyAny>) -> PyResult<SyncPolicy> {
    let policy = match sync.extract::<f64>() {
        Ok(seconds) => wrote_bindings::interval("sync", seconds).map(SyncPolicy::Interval),
        Err(_) => wrote_bindings::sync(sync.extract()?),
    };
    policy.map_err(PyValueError::new_err)
}
