//! The pairing of the rows of two results, and the check that paired rows did the same work.

use super::differ::{flat, maps};
use super::document::{Because, Difference, NotCompared};
use crate::document::{Document, Row, Survives};
use crate::schema;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The settings of the length of a run, which a calibration or the given time chooses. Throughput
/// does not depend on them.
const LENGTHS: [&str; 4] = ["size_bytes", "messages", "runtime_s", "time_based"];
/// The keys of a row, in addition to its settings, that define its work.
const OF_ROW: [&str; 3] = ["direction", "survives", "crash_leaves"];
/// The maximum ratio of the sizes of two files with random access. Beyond it, the work is
/// different.
pub(super) const FACTOR_MAX: f64 = 2.0;

/// The settings that may differ between compared rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// These keys of the settings, as in `wrote.result/1` or without their units: `iodepth`, `bs`.
    Only(Vec<String>),
    /// All keys, because the difference is intended.
    Everything,
}

pub(super) struct RowPairs<'a> {
    /// The pairs, in the order of the old result.
    pub pairs: Vec<RowPair<'a>>,
    pub not_compared: Vec<NotCompared>,
}

/// Two rows that did the same work.
pub(super) struct RowPair<'a> {
    pub scenario: &'a str,
    pub old: &'a Row,
    pub new: &'a Row,
    /// The differences that are allowed.
    pub differences: Vec<Difference>,
}

/// Returns every key of the settings and of a row that may be allowed to differ.
pub fn allowable() -> Vec<String> {
    let schema = schema::<Document>();
    let settings = schema["$defs"]["Settings"]["properties"].as_object();
    let settings = settings.into_iter().flat_map(|keys| keys.keys().cloned());
    settings.chain(OF_ROW.map(str::to_owned)).collect()
}

/// Returns whether a key of the settings or of a row has this name, with or without its unit.
pub fn is_allowable(name: &str) -> bool {
    allowable().iter().any(|key| is_called(key, name))
}

pub(super) fn rows<'a>(old: &'a Document, new: &'a Document, allowed: &Allowed) -> RowPairs<'a> {
    let imported = old.is_imported() || new.is_imported();
    let partners = partners(old, new, allowed);
    let mut paired = RowPairs { pairs: Vec::new(), not_compared: Vec::new() };
    for (scenario, row) in all_rows(old) {
        let Some(partner) = partners.get(row.name.as_str()).copied() else {
            paired.leave_out(row, Because::OnlyInOld, Vec::new());
            continue;
        };
        let differences = differences(row, partner, imported);
        let (varied, others): (Vec<_>, Vec<_>) =
            differences.into_iter().partition(|difference| is_allowed(&difference.key, allowed));
        if others.is_empty() {
            let mut differences = varied;
            differences.extend(in_effect(row, partner, imported, &differences));
            paired.pairs.push(RowPair { scenario, old: row, new: partner, differences });
        } else {
            paired.leave_out(row, Because::OtherWork, others);
        }
    }
    let taken: BTreeSet<&str> = partners.values().map(|partner| partner.name.as_str()).collect();
    for (_, row) in all_rows(new).filter(|(_, row)| !taken.contains(row.name.as_str())) {
        paired.leave_out(row, Because::OnlyInNew, Vec::new());
    }
    paired
}

impl RowPairs<'_> {
    fn leave_out(&mut self, row: &Row, because: Because, differences: Vec<Difference>) {
        self.not_compared.push(NotCompared { name: row.name.clone(), because, differences });
    }
}

fn all_rows(document: &Document) -> impl Iterator<Item = (&str, &Row)> {
    let scenarios = document.scenarios.iter();
    scenarios.flat_map(|scenario| scenario.rows.iter().map(|row| (scenario.name.as_str(), row)))
}

/// Returns the partners: for each row name of the old result, the row of the new result with that
/// name, or, if differences are allowed, in the same position. Names without a partner are left
/// out.
fn partners<'a>(
    old: &'a Document,
    new: &'a Document,
    allowed: &Allowed,
) -> BTreeMap<&'a str, &'a Row> {
    let by_name: BTreeMap<&str, &Row> =
        all_rows(new).map(|(_, row)| (row.name.as_str(), row)).collect();
    let names = all_rows(old).map(|(_, row)| row.name.as_str());
    let mut partners: BTreeMap<&str, &Row> =
        names.filter_map(|name| Some((name, *by_name.get(name)?))).collect();
    if *allowed != Allowed::Only(Vec::new()) {
        let places = workloads(old).into_iter().filter_map(|(workload, rows)| {
            let others = workloads(new).remove(workload)?;
            let strange = |row: &&Row| !partners.contains_key(row.name.as_str());
            (rows.len() == others.len() && rows.iter().all(strange))
                .then(|| rows.into_iter().zip(others).collect::<Vec<_>>())
        });
        let places: Vec<(&Row, &Row)> = places.flatten().collect();
        partners.extend(places.into_iter().map(|(row, other)| (row.name.as_str(), other)));
    }
    partners
}

fn workloads(document: &Document) -> BTreeMap<&str, Vec<&Row>> {
    let mut workloads: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for (_, row) in all_rows(document) {
        workloads.entry(&row.workload).or_default().push(row);
    }
    workloads
}

fn differences(old: &Row, new: &Row, imported: bool) -> Vec<Difference> {
    let spans = old.settings.asked.rw.starts_with("rand") && random_span_differs(old, new);
    let work = |row: &Row| {
        let mut work = flat("asked", &row.settings.asked);
        work.retain(|key, _| !is_length(key) || (spans && key == "asked.size_bytes"));
        work.extend(of_row(row));
        work
    };
    known_on_both(maps(&work(old), &work(new)), imported)
}

/// Returns the differences between the effective settings. The requests are equal apart from the
/// differences in `told`, which are already reported and left out here, so the rest are fallbacks.
fn in_effect(old: &Row, new: &Row, imported: bool, told: &[Difference]) -> Vec<Difference> {
    let effective = |row: &Row| {
        let mut effective = flat("effective", &row.settings.effective);
        // The effective depth is the depth that was reached, and the kernel determines the flags of
        // a ring.
        effective.retain(|key, _| {
            !is_length(key) && key != "effective.iodepth" && key != "effective.ring_flags"
        });
        effective
    };
    let is_told = |key: &str| told.iter().any(|known| last(&known.key) == last(key));
    let mut differences = known_on_both(maps(&effective(old), &effective(new)), imported);
    differences.retain(|difference| !is_told(&difference.key));
    differences
}

/// Returns whether random access spans a clearly larger part of the file on one side.
fn random_span_differs(old: &Row, new: &Row) -> bool {
    let [old, new] = [old, new].map(|row| row.settings.asked.size_bytes as f64);
    old.max(new) > FACTOR_MAX * old.min(new)
}

fn of_row(row: &Row) -> BTreeMap<String, Value> {
    let words = [
        ("survives", json!(row.survives.map(Survives::as_str))),
        ("crash_leaves", json!(row.crash_leaves)),
        ("direction", json!(row.direction)),
    ];
    words
        .into_iter()
        .filter(|(_, word)| !word.is_null())
        .map(|(key, word)| (key.into(), word))
        .collect()
}

/// Removes the differences for which one side is unknown, if a result is imported.
fn known_on_both(differences: Vec<Difference>, imported: bool) -> Vec<Difference> {
    let known = |value: &Option<Value>| value.as_ref().is_some_and(|value| value != "unknown");
    let both = |difference: &Difference| known(&difference.old) && known(&difference.new);
    differences.into_iter().filter(|difference| !imported || both(difference)).collect()
}

fn is_length(key: &str) -> bool {
    LENGTHS.contains(&last(key))
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Returns whether a key may differ. A name in `allowed` may omit the unit of the key.
fn is_allowed(key: &str, allowed: &Allowed) -> bool {
    let names = |name: &String| is_called(last(key), name);
    match allowed {
        Allowed::Everything => true,
        Allowed::Only(all) => all.iter().any(names),
    }
}

/// Returns whether `name` refers to this key, with or without its unit: `bs` refers to `bs_bytes`.
pub(super) fn is_called(key: &str, name: &str) -> bool {
    let units = ["", "_bytes", "_percent", "_s", "_bytes_per_s"];
    units.iter().any(|unit| key.strip_suffix(unit) == Some(name))
}
