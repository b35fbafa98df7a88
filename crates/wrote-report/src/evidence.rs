//! The evidence of findings in words: the figures with their units, and the rows to which they
//! belong. The module is separate because texts and pages of every kind may show evidence.

use crate::figures::per_second;
use itertools::Itertools;
use serde_json::Value;
use wrote_result::units;

/// Returns the words of a key, without the unit that is shown with the figure: `foreign share`.
pub fn label(key: &str) -> String {
    let kept = key.strip_suffix("_per_s").or_else(|| key.strip_suffix("_s")).unwrap_or(key);
    kept.replace("_ns", "").replace('_', " ")
}

/// Returns the value of a key in words. For an object, returns a line for each row that it names.
pub fn told(key: &str, value: &Value) -> String {
    let Value::Object(rows) = value else { return part(key, value) };
    rows.iter().map(|(row, value)| format!("{row}: {}", part(key, value))).join("\n")
}

fn part(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.into(),
        Value::String(text) => text.clone(),
        Value::Number(number) => figure(key, number.as_f64().unwrap_or_default()),
        Value::Array(values) => values.iter().map(|value| part(key, value)).join(", "),
        Value::Object(of) => {
            of.iter().map(|(key, value)| format!("{} {}", label(key), part(key, value))).join(", ")
        }
    }
}

/// Returns a figure with the unit that the end of its key names.
fn figure(key: &str, value: f64) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|end| key.ends_with(end));
    match () {
        () if ends(&["bytes_per_s"]) => units::rate(value),
        () if ends(&["_per_s", "iops"]) => per_second(value),
        () if ends(&["bytes", "bytes_total"]) => units::bytes(value.round() as u64),
        () if ends(&["_ns", "_ns_min"]) => units::nanoseconds(value.round() as u64),
        () if ends(&["_s"]) => units::seconds(value),
        () if ends(&["share", "share_max", "width_max"]) => format!("{:.0} %", value * 100.0),
        () if value.fract() == 0.0 => format!("{value}"),
        () => units::significant(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_has_the_unit_of_its_key_and_a_row_its_own_line() {
        let worded = |key: &str, value: Value| format!("{}: {}", label(key), told(key, &value));
        for (key, value, words) in [
            ("foreign_bytes_per_s", json!(118_478_000.0), "foreign bytes: 118 MB/s"),
            ("stored_ns_min", json!(300_000), "stored min: 300 us"),
            ("foreign_share", json!(0.352), "foreign share: 35 %"),
            ("known_caches_bytes", json!([4e9, 12e9]), "known caches bytes: 4.00 GB, 12.0 GB"),
            ("at_s", json!(0.5), "at: 500 ms"),
            ("in_memory", json!(false), "in memory: no"),
            (
                "device_bytes_per_file_byte",
                json!({"a_b/c": 35.005}),
                "device bytes per file byte: a_b/c: 35.0",
            ),
            (
                "cpu",
                json!({"a/b": {"busy_share": 1.0, "cpu": 0}, "c/d": {"cpu": 1}}),
                "cpu: a/b: busy share 100 %, cpu 0\nc/d: cpu 1",
            ),
        ] {
            assert_eq!(worded(key, value), words);
        }
    }
}
