//! Equipment that the tests of several crates share.
//!
//! | room | what belongs in it |
//! |---|---|
//! | `again` | a test that runs once more in another process |
//! | `command` | system programs, run to their end |
//! | `faulty` | file systems on a device with faults |
//! | `folder` | folders and files of a test, and the names in a folder |
//! | `group` | control groups that limit a device |
//! | `loops`, `mounted` | loop devices, and file systems on them |
//! | `records` | records of logs that name their producer and number |
//! | `running` | a program that runs while a test watches it |
//! | `samples` | made-up results and reports of jobs (feature `samples`) |
//! | `schema` | documents judged by their JSON Schema |
//! | `seeds` | seeds that are tried on every CPU |
//! | `setting` | kernel settings that a test changes |
//! | `skip` | reports of a test that cannot run here |
//! | `strange` | the file system of `lab strange-fs` |
//! | `tree` | folders that imitate a machine's root or its `/sys` |
//!
//! Dropping a fixture removes what it made.

#![forbid(unsafe_code)]

mod again;
mod command;
mod faulty;
mod folder;
mod group;
mod loops;
mod mounted;
mod records;
mod running;
#[cfg(feature = "samples")]
pub mod samples;
mod schema;
mod seeds;
mod setting;
mod skip;
mod strange;
mod tree;

pub use again::{again, alone};
pub use command::{is_installed, run};
pub use faulty::{Fault, FaultyDisk};
pub use folder::{file, folder, names, program};
pub use group::Group;
pub use loops::Loop;
pub use mounted::{Mounted, leave_room_for};
pub use records::{record, sender};
pub use running::{Finished, Running, finish};
pub use schema::judge;
pub use seeds::{Seeds, words_of_panic};
pub use setting::Setting;
pub use skip::{skip, test_around};
pub use strange::Strange;
pub use tree::Tree;

/// A shell program that implements the protocol of `langs/README.md`. A caller appends `main "$@"`,
/// preceded by functions that replace some of the program's own.
pub const HONEST_LANGUAGE: &str = include_str!("fixtures/honest.sh");
