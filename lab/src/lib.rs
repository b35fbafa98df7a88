//! Equipment for tests and tools, simulated machines that refuse and fail, and the programs that
//! run on them.
//!
//! | module | content |
//! |---|---|
//! | [`fixtures`] | equipment for tests; its names are also re-exported here |
//! | [`process`] | a child process that never outlives its owner |
//! | [`log_reader`] | an independent second reader of logs |
//! | `tools` | child processes, reports of steps, and packages, for all tools (feature `tools`) |
//! | `runs` | what each lab builds, runs and judges (feature `tools`) |
//! | `verbs` | the program `lab`, which runs on those machines (feature `verbs`) |

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
