#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod places;
mod reader;
mod record;
mod saved;
mod store;

pub use reader::LogStoreReader;
pub use store::{LogStore, Sizes};
