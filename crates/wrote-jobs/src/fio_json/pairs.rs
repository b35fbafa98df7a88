//! JSON objects whose keys are data.

use serde::{Serialize, Serializer};

/// An object whose keys are data, in their order.
#[derive(Clone, Debug)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
