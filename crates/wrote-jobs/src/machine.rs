//! The state of the machine and its disks, and the doctor's checks of them. It uses no other room.

pub mod counters;
pub mod doctor;
pub mod held_memory;
pub mod host;
pub mod target;
pub mod usage;
pub mod watch;
