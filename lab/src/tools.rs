//! Shared by all tools: child processes, reports of steps, and packages.

#![deny(unsafe_code)]

pub mod clients;
pub mod disks;
pub mod failure;
pub mod packages;
pub mod programs;
pub mod report;
pub mod repository;
pub mod run;
