//! HTTP on a socket: appends, reads, and clients that mean harm.

mod append;
pub mod client;
mod failing;
mod hostile;
mod reading;
