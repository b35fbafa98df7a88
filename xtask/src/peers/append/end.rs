//! Messages that are synced once in the end: as many as the device takes.

use super::super::job::Job;
use super::super::programs::Setting;
use super::super::ratio::Asked;
use super::super::size::Size;
use super::super::ways::best::Cell;
use super::super::ways::contest::{Asks, Contender, Contest};
use super::super::ways::table::Unit;
use super::super::ways::{Ways, peak};
use super::{Appends, Measured, Work};
use crate::failure::Failure;

const MESSAGES: u64 = 1_000_000;
/// The strategies, with as many messages as they take in a second or two: rates are compared.
const STRATEGIES: [(&str, &str, u64); 6] = [
    ("loop", "one task, tokio's `File`", 20_000),
    ("mutex", "`Arc<Mutex<File>>`", 20_000),
    ("mpsc", "tokio's channel, one writer", 20_000),
    ("flume", "flume, `BufWriter`", 500_000),
    ("flume-ten", "flume, 10 writers", 500_000),
    ("rendezvous", "flume, rendezvous", 50_000),
];
/// What [`MESSAGES`] of the mean length come to, in whole MiB.
const STREAM: &str = "1096m";
/// Operations of the device's own stream that are under way at once.
const IODEPTHS: [(&str, &str); 3] =
    [("append-device-1", "1"), ("append-device-4", "4"), ("append-device-8", "8")];

/// Against the usual strategies.
pub fn strategies(appends: &Appends, producers: u32) -> Result<Measured, Failure> {
    let peer = |&(by, name, messages): &(&str, &str, u64)| {
        appends.by_rivals(by, name, Work::usual(messages, producers))
    };
    let contest = Contest {
        what: what(producers),
        unit: Unit::Messages,
        ours: ours(appends, producers),
        peers: STRATEGIES.iter().map(peer).collect(),
        asks: Asks::OfBest(Asked::AtLeast(15.0)),
    };
    contest.measure(appends.rounds).map(Measured::from)
}

/// Against the device's own stream of as many bytes.
pub fn device(appends: &Appends) -> Result<Measured, Failure> {
    let size = STREAM.parse::<Size>().map_err(Failure::Failed)?;
    let Appends { trials, programs, folder, rounds, .. } = *appends;
    let ways = Ways { trials, programs, folder, size: &size, rounds };
    let under = trials.under();
    let setting = Setting { folder, under: &under };
    let cells = IODEPTHS.map(|(name, iodepth)| (name, cell(iodepth)));
    let jobs: Vec<Job> = cells.iter().map(|(name, cell)| cell.job(name, &size)).collect();
    let mut measured = Measured { jobs: jobs.clone(), ..Measured::default() };
    for producers in [4, 64] {
        let peers = jobs.iter().zip(&cells);
        let peers = peers.map(|(job, (_, cell))| peak::peer(&ways, setting, job, cell));
        let contest = Contest {
            what: what(producers),
            unit: Unit::Stream,
            ours: ours(appends, producers),
            peers: peers.collect::<Result<_, Failure>>()?,
            asks: Asks::OfBest(Asked::AtLeast(0.85)),
        };
        let contested = contest.measure(rounds)?;
        measured.lines.extend(contested.lines);
        measured.commands.extend(contested.commands);
    }
    Ok(measured)
}

fn ours<'a>(appends: &Appends<'a>, producers: u32) -> Contender<'a> {
    appends.by_trial("log", "`Log`, `Sync::No`", Work::usual(MESSAGES, producers))
}

fn what(producers: u32) -> String {
    format!("1 M of 300 to 2000 bytes, {producers} producers, one sync")
}

fn cell(iodepth: &str) -> Cell {
    Cell::new("1m", iodepth, "registered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_given_as_many_bytes_as_the_messages_have() {
        let size = STREAM.parse::<Size>().expect("a size");
        let mean_bytes = (300 + 2000) / 2;
        let off = size.bytes.abs_diff(MESSAGES * mean_bytes);
        assert!(off < 1 << 20, "{off}");
    }
}
