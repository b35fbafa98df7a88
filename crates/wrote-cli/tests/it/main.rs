//! Tests of the program `wrote` as a process: each subcommand as people and scripts run it.

#[path = "../support/mod.rs"]
mod support;

mod command;
mod compare;
mod copy;
mod doctor;
mod fio;
mod fit;
mod hostile_names;
mod inputs;
mod langs;
mod language_program;
mod log;
mod mounts;
#[cfg(feature = "mpi")]
mod mpi;
mod pages;
mod report;
mod run;
mod scenario;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "store")]
mod store;
mod streams;
mod text;
mod trace;
