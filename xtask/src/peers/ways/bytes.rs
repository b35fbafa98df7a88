//! `Writer` against `BufWriter` and C's `putc_unlocked`: one byte at a time.

use super::super::ratio::Asked;
use super::Ways;
use super::contest::{Asks, Contender, Contest};
use super::table::Unit;

const BYTES: u64 = 256_000_000;

/// The work and who does it.
pub fn contest<'a>(ways: &Ways<'a>) -> Contest<'a> {
    let Ways { trials, folder, .. } = *ways;
    let by = |by: &str, name: &str| {
        let words = ["bytes", "--by", by, "--bytes", &BYTES.to_string(), "file"];
        Contender::of_trial(name, words.map(str::to_owned).to_vec(), trials, folder)
    };
    let putc = Contender {
        name: "C, `putc_unlocked`".to_owned(),
        command: format!("putc file {BYTES}"),
        run: Box::new(move || trials.putc("file", BYTES, folder)),
    };
    Contest {
        what: "256,000,000 bytes one at a time, cached, no sync".to_owned(),
        unit: Unit::Stream,
        ours: by("writer", "`Writer`, not direct"),
        peers: vec![by("buf-writer", "`BufWriter`, 64 KiB"), putc],
        asks: Asks::OfEach(vec![Asked::AtLeast(1.3), Asked::AtLeast(1.0)]),
    }
}
