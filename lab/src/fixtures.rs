//! Equipment that the tests of several crates share.
//!
//! | module | content |
//! |---|---|
//! | `folder` | folders and files of a test, and folders that imitate a machine's root or `/sys` |
//! | `group` | control groups that limit a device, and kernel settings that a test changes |
//! | `loops`, `mounted` | loop devices, and file systems on them |
//! | `running` | programs that a test runs or watches, and the test in another process |
//! | `samples` | made-up results and reports of jobs (feature `samples`) |
//! | `schema` | validation of documents against their JSON Schema |
//! | `seeds` | seeds that are tried on all CPUs, and records of logs |
//! | `strange` | the file system of `lab strange-fs` |
//!
//! Dropping a fixture removes what it created.

#![forbid(unsafe_code)]

mod folder;
mod group;
mod loops;
mod mounted;
mod running;
#[cfg(feature = "samples")]
pub mod samples;
mod schema;
mod seeds;
mod strange;

pub use folder::{Tree, file, folder, names, program};
pub use group::{Group, Setting};
pub use loops::Loop;
pub use mounted::{Mounted, leave_room_for, mkfs};
pub use running::{Finished, Running, again, alone, finish, is_installed, run, skip, test_around};
pub use schema::judge;
pub use seeds::{Seeds, record, sender, words_of_panic};
pub use strange::Strange;

/// A shell program that implements the protocol of `langs/README.md`. The caller appends `main
/// "$@"`, preceded by functions that replace some of the program's own.
pub const HONEST_LANGUAGE: &str = include_str!("fixtures/honest.sh");
