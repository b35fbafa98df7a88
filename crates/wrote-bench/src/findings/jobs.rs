//! Findings on what was asked of a row: its data, its offsets, its rate.

use super::{Evidence, rates};
use crate::result::Finding;

pub(super) fn find(evidence: &Evidence) -> Vec<Finding> {
    rates::not_reached(evidence).into_iter().collect()
}
