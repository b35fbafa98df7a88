//! Tests of the store: openraft's own, restarts, kills, and nodes of openraft on it.

mod kill;
mod machine;
mod node;
mod restart;
mod suite;
