//! Tests of servers on loopback. Each starts one in its own process.

mod disks;
mod serving;
mod streams;
