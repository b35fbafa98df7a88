//! Writes to a disk at the device's limit.

pub mod device;
pub mod error;
pub mod sync;

pub use error::{Action, Error};
pub use sync::{Acknowledged, Survives};
