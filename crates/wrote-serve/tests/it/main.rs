//! Tests of servers on loopback. Each starts one in its own process.

mod datagrams;
mod disks;
mod http;
mod operators;
mod refused;
mod relp;
mod serving;
mod streams;
