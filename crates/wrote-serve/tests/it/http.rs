//! HTTP over sockets: appending, reading and hostile clients.

mod append;
pub mod client;
mod failing;
mod hostile;
mod reading;
