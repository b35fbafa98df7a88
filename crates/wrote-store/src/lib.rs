//! Sealed segments of a log in an object store: shipped there once, and read from there.
//!
//! A [`Shipper`] puts the sealed segments of a folder into a [`SegmentStore`], each as one object
//! that is created and never replaced. A [`StoreReader`] reads the records from there by sequence,
//! and continues in the local folder where the store ends. The objects' names suffice to find them:
//! there is no manifest that could be lost or wrong.
//!
//! The crate does not use a terminal. Its network code is async, in tokio.

#![forbid(unsafe_code)]

mod blocking;
mod content;
mod error;
mod fetch;
mod names;
mod place;
mod put;
mod reader;
mod ship;
mod store;
mod summary;
mod verify;

pub use blocking::{runtime, until};
pub use error::StoreError;
pub use fetch::Fetched;
pub use put::Put;
pub use reader::{StoreOptions, StoreReader};
pub use ship::{ShipProgress, Shipped, Shipper};
pub use store::{SegmentStore, StoredSegment};
pub use summary::{MissingSegments, StoreSummary, StoredSummary, Unshipped, summary};
pub use verify::{StoreDamage, StoreVerified, verify};
