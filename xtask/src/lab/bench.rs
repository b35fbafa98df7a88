//! What a result document of `wrote bench` says about fallbacks.

use crate::failure::{Failure, Tried};
use serde_json::Value;

/// The rows of a `wrote.result/1` document.
pub fn rows(document: &str) -> Result<Vec<Value>, Failure> {
    let document: Value = serde_json::from_str(document).tried("the result of wrote bench")?;
    let scenarios = document["scenarios"].as_array().cloned().unwrap_or_default();
    let rows = scenarios.iter().filter_map(|scenario| scenario["rows"].as_array());
    let rows: Vec<Value> = rows.flatten().cloned().collect();
    if rows.is_empty() {
        return Err(Failure::Failed("the result of wrote bench has no rows".into()));
    }
    Ok(rows)
}

/// Fails unless each of the `rows` that asked for `value` as its setting `key` names a fallback
/// with `reason`, and at least one did ask. With `lost`, the setting must also not be in effect.
pub fn fell_back(
    rows: &[Value],
    (key, value): (&str, &Value),
    reason: &str,
    lost: bool,
) -> Result<(), Failure> {
    let asked: Vec<&Value> =
        rows.iter().filter(|row| row["settings"]["asked"][key] == *value).collect();
    if asked.is_empty() {
        return Err(Failure::Failed(format!("no row asked for {key} = {value}")));
    }
    for row in asked {
        let name = &row["name"];
        if lost && row["settings"]["effective"][key] == *value {
            return Err(Failure::Failed(format!(
                "{name}: {key} = {value} is said to be in effect"
            )));
        }
        let fallbacks = &row["settings"]["fallbacks"];
        let names_reason = |fallback: &Value| {
            fallback["because"].as_str().is_some_and(|because| because.contains(reason))
        };
        if !fallbacks.as_array().is_some_and(|fallbacks| fallbacks.iter().any(names_reason)) {
            return Err(Failure::Failed(format!(
                "{name}: no fallback because of {reason:?}: {fallbacks}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"scenarios": [{"name": "ladder", "rows": [
        {"name": "stream/direct-io_uring", "settings": {
            "asked": {"ioengine": "io_uring", "direct": true},
            "effective": {"ioengine": "threads", "direct": true},
            "fallbacks": [{"wanted": "io_uring", "got": "threads",
                "because": "io_uring_setup: Operation not permitted (os error 1)"}]}},
        {"name": "stream/cached", "settings": {
            "asked": {"ioengine": "psync", "direct": false},
            "effective": {"ioengine": "psync", "direct": false}, "fallbacks": []}}]}]}"#;

    fn check(key: &str, value: Value, reason: &str, lost: bool) -> Result<(), String> {
        let rows = rows(RESULT).expect("rows");
        fell_back(&rows, (key, &value), reason, lost).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_fallback_with_the_kernels_reason_is_found() {
        assert_eq!(check("ioengine", "io_uring".into(), "Operation not permitted", true), Ok(()));
    }

    #[test]
    fn another_reason_or_none_is_a_failure() {
        let wrong = check("ioengine", "io_uring".into(), "Function not implemented", true);
        assert!(wrong.expect_err("another reason").contains("no fallback because of"));
        let none = check("ioengine", "psync".into(), "Operation not permitted", false);
        assert!(none.expect_err("no fallback").contains("stream/cached"));
    }

    #[test]
    fn a_setting_that_is_still_in_effect_or_was_not_asked_for_is_a_failure() {
        let kept = check("direct", true.into(), "Operation not permitted", true);
        assert!(kept.expect_err("still direct").contains("said to be in effect"));
        let unasked = check("ioengine", "sync".into(), "", false);
        assert_eq!(unasked, Err("no row asked for ioengine = \"sync\"".into()));
    }

    #[test]
    fn a_document_without_rows_is_a_failure() {
        assert!(rows("{}").is_err());
        assert!(rows("not JSON").is_err());
    }
}
