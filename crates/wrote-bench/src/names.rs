//! The known name that a wrong one is most likely a slip of.

/// The similarity of two names (1 is equal) from which one is taken for a slip of the other.
const SIMILARITY_MIN: f64 = 0.6;

/// Returns the most similar of the `known` names, if any is similar.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |other: &&str| strsim::normalized_damerau_levenshtein(name, other);
    let near = known.max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&near) >= SIMILARITY_MIN).then_some(near)
}
