//! The argument `sync`: a word of Redis, or seconds.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;
use wrote::SyncPolicy;

/// Returns the policy of an argument.
pub fn policy(sync: &Bound<'_, PyAny>) -> PyResult<SyncPolicy> {
    if let Ok(seconds) = sync.extract::<f64>() {
        let interval = Duration::try_from_secs_f64(seconds);
        return interval.map(SyncPolicy::Interval).map_err(|_| {
            PyValueError::new_err(format!("sync={seconds}: not a number of seconds"))
        });
    }
    match sync.extract::<&str>()? {
        "always" => Ok(SyncPolicy::Always),
        "everysec" => Ok(SyncPolicy::EverySec),
        "no" => Ok(SyncPolicy::No),
        other => Err(PyValueError::new_err(format!(
            "sync={other:?}: use \"always\", \"everysec\", \"no\" or a number of seconds"
        ))),
    }
}
