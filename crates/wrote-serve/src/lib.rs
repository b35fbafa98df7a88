//! The server: appends messages from many connections to logs, and acknowledges them once they are
//! safe.
//!
//! [`Server::start`] opens the logs of a [`Config`] and binds its listeners; [`Server::run`] serves
//! until stopped. The crate does no terminal output and no measuring.
//!
//! A message passes from a [`listener`](Listen) through a door, which parses its protocol, into a
//! [`wrote::Log`]. Its answer is sent once the log has reached the listener's [`Level`] for it: in
//! order, many answers per write.

mod access;
mod acks;
mod addresses;
mod admission;
mod answers;
mod channel;
mod config;
mod connection;
mod datagrams;
mod descriptors;
mod doors;
mod error;
mod folders;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod inherited;
mod input;
mod intake;
mod limits;
mod listen;
mod memory;
mod metrics;
mod operators;
mod port;
mod refusals;
mod server;
mod settings;
mod shipping;
mod socket_file;
mod stamp;
mod stream;
mod throttle;
mod tls;
mod turns;
mod workers;

pub use access::AccessConfig;
pub use config::{Config, Listen, LogConfig, OwnSettings, Socket};
pub use doors::{Door, Frame, Oversize};
pub use error::Error;
pub use intake::Level;
pub use limits::Limits;
pub use metrics::Figures;
pub use server::{Handle, Server};
pub use stamp::Stamp;
pub use tls::TlsFiles;
