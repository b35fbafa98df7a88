//! The differences between parts of two results, key by key.

use super::document::Difference;
use crate::document::Document;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The keys whose values differ in every comparison, and whose differences mean nothing.
const ALWAYS_OTHER: [&str; 2] = ["target.free_bytes", "host.clock_read_ns"];
/// The minimum difference in the used share of the file system that is reported.
const USED_SHARE_OTHER: f64 = 0.1;

/// Returns the differences between the programs, the machines and the targets. A value that an
/// imported result lacks is not a difference.
pub(super) fn documents(old: &Document, new: &Document) -> Vec<Difference> {
    let imported = old.is_imported() || new.is_imported();
    let whole = |document: &Document| {
        let mut all = flat("wrote", &document.wrote);
        all.extend(flat("host", &document.host));
        all.extend(flat("target", &document.target));
        all.retain(|key, _| !ALWAYS_OTHER.contains(&key.as_str()));
        all.retain(|_, value| !imported || !is_unknown(value));
        all
    };
    let mut differences = maps(&whole(old), &whole(new));
    if imported {
        differences.retain(|difference| difference.old.is_some() && difference.new.is_some());
    }
    differences.extend(used(old, new));
    differences
}

/// Returns whether a value represents an unknown one.
fn is_unknown(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}

/// Returns the difference in the used share of the file system, if it is large enough to matter.
fn used(old: &Document, new: &Document) -> Option<Difference> {
    let share = |document: &Document| {
        let target = &document.target;
        (target.capacity_bytes > 0)
            .then(|| 1.0 - target.free_bytes as f64 / target.capacity_bytes as f64)
    };
    let (old, new) = (share(old)?, share(new)?);
    let percent = |share: f64| Some(Value::from(format!("{:.0} %", share * 100.0)));
    ((old - new).abs() > USED_SHARE_OTHER).then(|| Difference {
        key: "target used".into(),
        old: percent(old),
        new: percent(new),
    })
}

/// Returns the values of an object by their keys. Nested keys are joined by dots.
pub(super) fn flat(name: &str, value: &impl Serialize) -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    let value = serde_json::to_value(value).expect("parts of a result are JSON");
    add(name, value, &mut flat);
    flat
}

fn add(name: &str, value: Value, flat: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(object) => {
            object.into_iter().for_each(|(key, value)| add(&format!("{name}.{key}"), value, flat));
        }
        value => {
            flat.insert(name.into(), value);
        }
    }
}

/// Returns the differences: the keys whose values differ, and the keys that one side lacks.
pub(super) fn maps(
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
) -> Vec<Difference> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differ = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    let difference = |key: &String| Difference {
        key: key.clone(),
        old: old.get(key).cloned(),
        new: new.get(key).cloned(),
    };
    differ.map(difference).collect()
}
