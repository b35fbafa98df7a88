//! The state of the machine and its disks, and the doctor's checks of them. This door only names
//! the rooms, which use no others.

pub mod counters;
pub mod doctor;
pub mod held_memory;
pub mod host;
pub mod target;
pub mod usage;
pub mod watch;
