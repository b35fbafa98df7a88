//! Programs on a simulated disk, random ones by seed and chosen faults at every operation; drawn
//! command lines, and damaged logs; and the refusals that a confined command gets.

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

/// Returns seeds from the one that `WROTE_FROM_SEED` names, or else from a drawn one.
fn drawn(count: u32) -> Seeds {
    let seeds = Arguments::of(count).seeds();
    let named = std::env::var("WROTE_FROM_SEED").ok().map(|seed| seed.parse().expect("a seed"));
    Seeds { from: named.unwrap_or(seeds.from), ..seeds }
}
