//! Findings on several ranks: of each once, and those that only all of them together show.

use super::Evidence;
use crate::peers::Peers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wrote_result::document::{Direction, Finding, Ranks, Row, Run, Spread, Target};
use wrote_result::finding::{self, NAMES_MAX, names};
use wrote_result::units::some_of;
use wrote_result::{Error, stats};

/// The median rank may be faster than a straggler by this factor.
const STRAGGLES_MIN: f64 = 1.25;
/// In a shorter run the way of the threads to their CPUs is too large a part.
const RUN_MIN_S: f64 = 0.1;
/// Of the bytes to read, the part in a node's page cache that changes the figure.
const CACHED_SHARE_MIN: f64 = 0.1;

/// Findings that a rank alone cannot make: the device counts for all ranks, the interval is that of
/// the whole, and rank 0 has the rows of all.
const OF_THE_WHOLE: [&str; 14] = [
    "ram-not-disk",
    "direct-not-honoured",
    "busy-neighbour",
    "write-amplification",
    "throttled",
    "noisy",
    "within-drive-cache",
    "read-from-memory",
    "rate-not-reached",
    "shortened",
    "left-out",
    "leftovers",
    "nearly-full",
    "flush-outside-clock",
];

/// What the ranks of a measurement share.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The ranks and their nodes.
    pub ranks: Ranks,
    /// The disk of each rank.
    pub users: Vec<User>,
    /// Each rank was given a path of its own.
    pub own_paths: bool,
}

/// The disk of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its path.
    pub path: String,
    /// The block device below, where there is one.
    pub device: Option<String>,
}

/// Returns the findings of all ranks, each once, on rank 0; those of other ranks name them. On
/// another rank they are its own.
///
/// # Errors
///
/// As [`Peers::meet`].
pub fn of_all_ranks(
    peers: &dyn Peers,
    evidence: &Evidence,
    find: impl Fn(&Evidence) -> Vec<Finding>,
) -> Result<Vec<Finding>, Error> {
    let found = find(evidence);
    if !peers.are_many() {
        return Ok(found);
    }
    let all = peers.gather("the findings", found.clone())?;
    let Some(sharing) = evidence.sharing.as_ref().filter(|_| peers.is_first()) else {
        return Ok(found);
    };
    let Evidence { target, rows, in_memory, .. } = *evidence;
    Ok(together(all, &Whole { target, rows, in_memory, sharing }))
}

/// What all ranks measured together.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The file system and device under the path of rank 0.
    pub target: &'a Target,
    /// The rows of all ranks.
    pub rows: &'a [Row],
    /// Whether the file system is in memory.
    pub in_memory: bool,
    /// What the ranks share.
    pub sharing: &'a Sharing,
}

impl<'a> Whole<'a> {
    fn rows_where(&self, is_selected: impl Fn(&Row) -> bool) -> Option<Vec<&'a Row>> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| is_selected(row)).collect();
        (!rows.is_empty()).then_some(rows)
    }
}

/// Returns each finding of the ranks once. Those of rank 0 rest on the rows of all; those of other
/// ranks name them. Adds what only all of them together show.
pub fn together(all: Vec<Vec<Finding>>, whole: &Whole) -> Vec<Finding> {
    let mut all = all.into_iter();
    let mut found = all.next().unwrap_or_default();
    let mut ranks: Vec<Vec<u32>> = found.iter().map(|_| Vec::new()).collect();
    let of_first = found.len();
    for (rank, theirs) in (1..).zip(all) {
        for finding in theirs {
            if OF_THE_WHOLE.contains(&finding.id.as_str()) {
                continue;
            }
            match found.iter().position(|known| is_same(known, &finding)) {
                Some(place) => ranks[place].push(rank),
                None => {
                    found.push(finding);
                    ranks.push(vec![rank]);
                }
            }
        }
    }
    for (number, (finding, mut ranks)) in found.iter_mut().zip(ranks).enumerate() {
        let is_of_others = number >= of_first;
        if is_of_others {
            let names: Vec<String> = ranks.iter().map(u32::to_string).collect();
            let word = if ranks.len() == 1 { "rank" } else { "ranks" };
            finding.text = format!("{word} {}: {}", some_of(&names, NAMES_MAX), finding.text);
        } else if !ranks.is_empty() {
            ranks.insert(0, 0);
        }
        if !ranks.is_empty() {
            *finding = finding.clone().with("ranks", ranks);
        }
    }
    let of_all = [stragglers(whole), shared_device(whole.sharing), cache_not_server(whole)];
    found.extend(of_all.into_iter().flatten());
    finding::sort(&mut found);
    found
}

/// Whether two ranks found the same: of fallbacks, the same one.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let is_equal = |key: &str| one.evidence.get(key) == other.evidence.get(key);
    one.id == other.id && ["wanted", "got", "because"].into_iter().all(is_equal)
}

/// Returns the factor by which the median rank of each run was faster than the slowest: its median
/// over the runs.
fn straggles(row: &Row) -> f64 {
    let factor = |spread: &Spread| spread.median_iops / spread.slowest.iops.max(1e-9);
    let runs = row.runs.iter().filter(|run| run.elapsed_s > RUN_MIN_S);
    let factors: Vec<f64> = runs.filter_map(|run| run.ranks.as_ref()).map(factor).collect();
    stats::median(&factors)
}

/// Finds a rank that others wait for.
fn stragglers(whole: &Whole) -> Option<Finding> {
    let rows = whole.rows_where(|row| straggles(row) > STRAGGLES_MIN)?;
    let mut slowest: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    let runs = || rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.ranks.as_ref());
    for spread in runs() {
        *slowest.entry((spread.slowest.rank, &spread.slowest.node)).or_default() += 1;
    }
    let ((rank, node), times) = slowest.into_iter().max_by_key(|(_, times)| *times)?;
    let factor = rows.iter().map(|row| straggles(row)).fold(0.0, f64::max);
    let text = format!(
        "stragglers: the slowest rank is up to {factor:.1} times slower than the median one ({}); \
         most often it is rank {rank} on {node}, {times} of {} times; the total waits for it",
        names(&rows),
        runs().count(),
    );
    Finding::warning("stragglers", text)
        .about(&rows)
        .with("rank", rank)
        .with("node", node)
        .with("slower_max", factor)
        .into()
}

/// Finds ranks on one device: their figures are parts of it, and not those of a device each.
fn shared_device(sharing: &Sharing) -> Option<Finding> {
    let mut users: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for node in &sharing.ranks.nodes {
        for rank in &node.ranks {
            if let Some(device) = &sharing.users[*rank as usize].device {
                users.entry((&node.name, device)).or_default().push(*rank);
            }
        }
    }
    let ((node, device), ranks) =
        users.into_iter().filter(|(_, ranks)| ranks.len() > 1).max_by_key(|(_, ranks)| ranks.len())?;
    let list: Vec<String> = ranks.iter().map(u32::to_string).collect();
    let list = some_of(&list, NAMES_MAX);
    let finding = match sharing.own_paths {
        true => Finding::warning(
            "shared-device",
            format!(
                "ranks {list} have paths of their own, and all of these are on one device, {device} \
                 of {node}: the total is that of one device"
            ),
        ),
        false => Finding::info(
            "shared-device",
            format!(
                "ranks {list} share one device, {device} of {node}: the total is the device's, and \
                 a rank's figure is its share"
            ),
        ),
    };
    finding.with("ranks", ranks).with("device", device).with("node", node).into()
}

/// Finds reads of shared storage that a node's own page cache could answer.
fn cache_not_server(whole: &Whole) -> Option<Finding> {
    if whole.target.device.is_some() || whole.in_memory {
        return None;
    }
    let share = |run: &Run| {
        run.cached_before_bytes.map_or(0.0, |cached| cached as f64 / run.bytes.max(1) as f64)
    };
    let most = |row: &Row| row.runs.iter().map(share).fold(0.0, f64::max);
    let is_cached = |row: &Row| row.direction == Direction::Read && most(row) > CACHED_SHARE_MIN;
    let rows = whole.rows_where(is_cached)?;
    let cached_share = rows.iter().map(|row| most(row)).fold(0.0, f64::max).min(1.0);
    let way_out = match (whole.sharing.ranks.reorder, whole.sharing.ranks.nodes.len()) {
        (None, 2..) => "--reorder has each node read what another wrote",
        _ => "read directly, or more than the memory of a node",
    };
    let text = format!(
        "caches in place of servers: up to {:.0} % of the bytes to read were in the page cache of \
         the node that read them ({}); {way_out}",
        cached_share * 100.0,
        names(&rows),
    );
    Finding::warning("cache-not-server", text)
        .about(&rows)
        .with("cached_share_max", cached_share)
        .into()
}
