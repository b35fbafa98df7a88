//! Programs on a simulated disk, random ones by seed and chosen faults at every operation; and the
//! refusals that a confined command gets.

mod confine;
mod faults;
mod full_disk;
mod hidden;
mod seeds;
