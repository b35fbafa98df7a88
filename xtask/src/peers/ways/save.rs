//! `wrote::write` against the same steps by hand: a small file replaced, durable each time.

use super::super::ratio::Asked;
use super::Ways;
use super::contest::{Asks, Contender, Contest};
use super::table::Unit;

/// What `trial` saves each time.
const SAVE_BYTES: u64 = 1000;
const SAVES: u64 = 500;

/// The work and who does it.
pub fn contest<'a>(ways: &Ways<'a>) -> Contest<'a> {
    let by = |by: &str, name: &str| {
        let words = ["save", "--by", by, "--saves", &SAVES.to_string(), "file"];
        let words = words.map(str::to_owned).to_vec();
        Contender::of_trial(name, words, ways.trials, ways.folder)
    };
    Contest {
        what: format!("{SAVE_BYTES} bytes replaced {SAVES} times, atomic and durable"),
        unit: Unit::Saves(SAVE_BYTES),
        ours: by("wrote", "`wrote::write`"),
        peers: vec![by("hand", "write, `sync_all`, rename, sync of the folder")],
        asks: Asks::OfBest(Asked::AtLeast(1.0)),
    }
}
