//! The doors of a running server, by clients that keep or break their protocols.

#[path = "../support/mod.rs"]
mod support;

mod datagrams;
mod relp;
mod streams;
