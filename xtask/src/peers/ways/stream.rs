//! `Writer` against `BufWriter` and `File`: a long file in pieces of 64 KiB, durable in the end.

use super::super::ratio::Asked;
use super::Ways;
use super::contest::{Asks, Contender, Contest};
use super::table::Unit;

/// The work and who does it.
pub fn contest<'a>(ways: &Ways<'a>) -> Contest<'a> {
    let peer = |by, name| contender(ways, by, name);
    Contest {
        what: format!("{} in pieces of 64 KiB, durable", ways.size),
        unit: Unit::Stream,
        ours: ours(ways),
        peers: vec![
            peer("buf-writer", "`BufWriter`"),
            peer("buf-writer-mib", "`BufWriter`, 1 MiB"),
            peer("file", "`File`"),
        ],
        asks: Asks::OfBest(Asked::AtLeast(1.5)),
    }
}

/// `Writer`.
pub fn ours<'a>(ways: &Ways<'a>) -> Contender<'a> {
    contender(ways, "writer", "`Writer`")
}

fn contender<'a>(ways: &Ways<'a>, by: &str, name: &str) -> Contender<'a> {
    let bytes = ways.size.bytes.to_string();
    let words = ["stream", "--by", by, "--bytes", &bytes, "file"].map(str::to_owned);
    Contender::of_trial(name, words.to_vec(), ways.trials, ways.folder)
}
