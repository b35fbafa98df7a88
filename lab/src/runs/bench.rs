//! Checks the fallbacks in a result document of `wrote bench`.
//!
//! The module is short, because several labs and xtask use it.

use crate::tools::failure::{Failure, Tried};
use serde_json::Value;

/// Returns the rows of all scenarios of a result.
pub fn result_rows(document: &Value) -> impl Iterator<Item = &Value> {
    let scenarios = document["scenarios"].as_array().into_iter().flatten();
    scenarios.filter_map(|scenario| scenario["rows"].as_array()).flatten()
}

/// Returns the rows in a `wrote.result/1` document.
pub fn rows(document: &str) -> Result<Vec<Value>, Failure> {
    let document: Value = serde_json::from_str(document).tried("the result of wrote bench")?;
    let rows: Vec<Value> = result_rows(&document).cloned().collect();
    if rows.is_empty() {
        return Err(Failure::Failed("the result of wrote bench has no rows".into()));
    }
    Ok(rows)
}

/// Fails unless every row that requested `value` for the setting `key` has another value in effect
/// and names a fallback with `reason`. At least one row must have requested it.
pub fn lost(rows: &[Value], (key, value): (&str, &Value), reason: &str) -> Result<(), Failure> {
    for row in asking(rows, key, value)? {
        let name = &row["name"];
        if row["settings"]["effective"][key] == *value {
            return Err(Failure::Failed(format!(
                "{name}: {key} = {value} is said to be in effect"
            )));
        }
        if !names(row, reason) {
            let fallbacks = &row["settings"]["fallbacks"];
            let message = format!("{name}: no fallback because of {reason:?}: {fallbacks}");
            return Err(Failure::Failed(message));
        }
    }
    Ok(())
}

/// Fails unless some row that requested `value` for the setting `key` names a fallback with
/// `reason`. A small row may have got the requested value.
pub fn reduced(rows: &[Value], (key, value): (&str, &Value), reason: &str) -> Result<(), Failure> {
    if asking(rows, key, value)?.iter().any(|row| names(row, reason)) {
        return Ok(());
    }
    Err(Failure::Failed(format!("no row with {key} = {value} fell back because of {reason:?}")))
}

fn asking<'a>(rows: &'a [Value], key: &str, value: &Value) -> Result<Vec<&'a Value>, Failure> {
    let asking: Vec<&Value> =
        rows.iter().filter(|row| row["settings"]["asked"][key] == *value).collect();
    if asking.is_empty() {
        return Err(Failure::Failed(format!("no row asked for {key} = {value}")));
    }
    Ok(asking)
}

fn names(row: &Value, reason: &str) -> bool {
    let fallbacks = row["settings"]["fallbacks"].as_array().into_iter().flatten();
    let mut reasons = fallbacks.filter_map(|fallback| fallback["because"].as_str());
    reasons.any(|because| because.contains(reason))
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

    type Judge = fn(&[Value], (&str, &Value), &str) -> Result<(), Failure>;

    fn check(judge: Judge, key: &str, value: Value, reason: &str) -> Result<(), String> {
        let rows = rows(RESULT).expect("rows");
        judge(&rows, (key, &value), reason).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_fallback_with_the_kernels_reason_is_found() {
        let reason = "Operation not permitted";
        assert_eq!(check(lost, "ioengine", "io_uring".into(), reason), Ok(()));
        assert_eq!(check(reduced, "ioengine", "io_uring".into(), reason), Ok(()));
    }

    #[test]
    fn another_reason_or_none_is_a_failure() {
        let reason = "Function not implemented";
        let other = check(lost, "ioengine", "io_uring".into(), reason);
        assert!(other.expect_err("another reason").contains("no fallback because of"));
        assert!(check(reduced, "ioengine", "io_uring".into(), reason).is_err());
        assert!(check(reduced, "ioengine", "psync".into(), "Operation not permitted").is_err());
    }

    #[test]
    fn a_setting_that_is_still_in_effect_is_not_lost() {
        let kept = check(lost, "direct", true.into(), "Operation not permitted");
        assert!(kept.expect_err("still direct").contains("said to be in effect"));
    }

    #[test]
    fn a_setting_that_no_row_asked_for_is_a_failure() {
        let unasked = Err("no row asked for ioengine = \"sync\"".to_owned());
        assert_eq!(check(lost, "ioengine", "sync".into(), ""), unasked);
        assert_eq!(check(reduced, "ioengine", "sync".into(), ""), unasked);
    }

    #[test]
    fn a_document_without_rows_is_a_failure() {
        assert!(rows("{}").is_err());
        assert!(rows("not JSON").is_err());
    }
}
