//! Child processes, reports of steps, packages: shared by all tools.

#![deny(unsafe_code)]

pub mod clients;
pub mod disks;
pub mod failure;
pub mod packages;
pub mod programs;
pub mod report;
pub mod repository;
pub mod run;
