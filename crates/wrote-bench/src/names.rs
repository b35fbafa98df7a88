//! Suggests the known name that a user probably meant. The module is separate because scenarios,
//! programs and languages use it, and none of them imports another.

/// The minimum similarity of two names for a suggestion. Equal names have a similarity of 1.
const SIMILARITY_MIN: f64 = 0.6;

/// Returns the `known` name that is most similar to `name`, if any is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |other: &&str| strsim::normalized_damerau_levenshtein(name, other);
    let near = known.max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&near) >= SIMILARITY_MIN).then_some(near)
}

/// Returns whether `row` is `name`, or starts with `name` and a `/`.
pub(crate) fn is_below(row: &str, name: &str) -> bool {
    row.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
