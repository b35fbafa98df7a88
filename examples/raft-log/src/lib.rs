//! A log store for openraft 0.9: Raft's entries in a log of the library `wrote`, the vote and the
//! purged id in small files beside it.
//!
//! [`LogStore`] is a `RaftLogStorage` for any type configuration whose entries serde can write.

#![forbid(unsafe_code)]

mod places;
mod reader;
mod record;
mod saved;
mod store;

pub use reader::LogStoreReader;
pub use store::{LogStore, Sizes};
