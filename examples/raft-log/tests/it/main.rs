//! Tests of the store: openraft's own, restarts, kills.

mod kill;
mod machine;

mod restart;
mod suite;
