//! Programs on a simulated disk, with random seeds or with chosen faults at every operation. Also
//! drawn command lines, damaged logs, and what a confined command is refused.

mod confine;
mod damage;
mod drawn_calls;
mod drawn_damage;
mod faults;
mod full_disk;
mod hidden;
mod seeds;

use lab::Seeds;
use lab::runs::seeds::Arguments;

/// Returns seeds that start at the one in `WROTE_FROM_SEED`, or else at a drawn one.
fn drawn(count: u32) -> Seeds {
    let seeds = Arguments::of(count).seeds();
    let named = std::env::var("WROTE_FROM_SEED").ok().map(|seed| seed.parse().expect("a seed"));
    Seeds { from: named.unwrap_or(seeds.from), ..seeds }
}
