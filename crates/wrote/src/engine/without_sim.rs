//! The place of the simulated disk where its feature is off: no value of it can be made.

use super::backend::Backend;

/// No disk: code that takes a simulated disk is never called.
#[derive(Clone)]
pub struct Sim(());

impl Sim {
    pub(super) fn backend(&self) -> Box<dyn Backend> {
        unreachable!("no value of this type can be made")
    }
}
