//! Equipment of tests and tools, machines that refuse and fail, and the programs that run there.
//!
//! | door | what belongs in it |
//! |---|---|
//! | [`fixtures`] | equipment of tests; its names are this crate's own too |
//! | [`process`] | a child process that never outlives its holder |
//! | [`log_reader`] | a second reader of logs |
//! | `tools` | child processes, steps, packages, for every tool (feature `tools`) |
//! | `runs` | each lab: what it builds, runs and judges (feature `tools`) |
//! | `verbs` | the program `lab`: what runs on those machines (feature `verbs`) |

pub mod fixtures;
pub mod log_reader;
pub mod process;
#[cfg(feature = "tools")]
pub mod runs;
#[cfg(feature = "tools")]
pub mod tools;
#[cfg(feature = "verbs")]
pub mod verbs;

pub use fixtures::*;
