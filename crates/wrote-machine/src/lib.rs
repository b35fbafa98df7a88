//! The state of the machine and its disks, and the doctor's checks of them.

pub mod access;
pub mod doctor;
pub mod held_memory;
pub mod host;
pub mod open_files;
pub mod peak_memory;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod space;
pub mod target;
pub mod usage;
pub mod watch;
