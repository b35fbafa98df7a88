//! Tests of servers on loopback. Each test starts one in its own process.

mod access;
mod certificates;
mod clients;
mod config;
mod datagrams;
mod disks;
mod hostile;
mod http;
mod operators;
mod refused;
mod relp;
mod resp;
mod serving;
#[cfg(feature = "store")]
mod shipping;
mod simulated;
mod streams;
mod tls;
mod warnings;
