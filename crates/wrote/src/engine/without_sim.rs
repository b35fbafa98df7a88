//! Replaces the simulated disk if its feature is off: no value of it can exist.

use super::backend::Backend;

/// Uninhabited: code that takes a simulated disk is never called.
#[derive(Clone)]
pub struct Sim(());

impl Sim {
    pub(super) fn backend(&self) -> Box<dyn Backend> {
        unreachable!("no value of this type can be made")
    }
}
