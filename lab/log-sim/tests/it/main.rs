//! Programs on a simulated disk: random ones by seed, and chosen faults at every operation.

mod faults;
mod full_disk;
mod hidden;
mod seeds;
