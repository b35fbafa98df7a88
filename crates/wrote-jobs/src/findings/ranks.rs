//! Findings of several ranks: each once, and findings that only all ranks together show.

use super::{Evidence, rows_where};
use crate::peers::Peers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wrote_result::document::{Direction, Finding, Ranks, Row, Run, Spread, Target};
use wrote_result::finding::{self, NAMES_MAX, names};
use wrote_result::units::some_of;
use wrote_result::{Error, stats};

/// A rank straggles if the median rank is faster by this factor.
const STRAGGLES_MIN: f64 = 1.25;
/// In shorter runs the scheduling delay of threads dominates.
const RUN_MIN_S: f64 = 0.1;
/// The share of the bytes to read that changes the figure if a node's page cache holds it.
const CACHED_SHARE_MIN: f64 = 0.1;

/// Findings that a rank alone cannot make: the device counts for all ranks, the interval is the
/// whole's, and rank 0 has the rows of all.
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

/// The ranks of a measurement, with the disk of each.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The ranks and their nodes.
    pub ranks: Ranks,
    /// The disk of each rank.
    pub users: Vec<User>,
    /// Each rank was given its own path.
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

/// Returns the findings of all ranks, each once, on rank 0; findings of other ranks name them. On
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

/// The rows of all ranks together.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The file system and device under the path of rank 0.
    pub target: &'a Target,
    /// The rows of all ranks.
    pub rows: &'a [Row],
    /// Whether the file system is in memory.
    pub in_memory: bool,
    /// The ranks, with the disk of each.
    pub sharing: &'a Sharing,
}

impl<'a> Whole<'a> {
    fn rows_where(&self, is_selected: impl Fn(&Row) -> bool) -> Option<Vec<&'a Row>> {
        rows_where(self.rows, is_selected)
    }
}

/// Returns each finding of the ranks once. Rank 0's rest on all ranks' rows; findings of other
/// ranks name them. Adds findings that only all ranks together show.
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

/// Returns whether two ranks found the same; of fallbacks, the same fallback.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let is_equal = |key: &str| one.evidence.get(key) == other.evidence.get(key);
    one.id == other.id && ["wanted", "got", "because"].into_iter().all(is_equal)
}

/// Returns the rate of the median rank divided by the slowest one's: the median over the runs.
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

/// Finds ranks that share a device: their figures are parts of it.
fn shared_device(sharing: &Sharing) -> Option<Finding> {
    let mut users: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for node in &sharing.ranks.nodes {
        for rank in &node.ranks {
            if let Some(device) = &sharing.users[*rank as usize].device {
                users.entry((&node.name, device)).or_default().push(*rank);
            }
        }
    }
    let ((node, device), ranks) = users
        .into_iter()
        .filter(|(_, ranks)| ranks.len() > 1)
        .max_by_key(|(_, ranks)| ranks.len())?;
    let list: Vec<String> = ranks.iter().map(u32::to_string).collect();
    let list = some_of(&list, NAMES_MAX);
    let finding = match sharing.own_paths {
        true => Finding::warning(
            "shared-device",
            format!(
                "ranks {list} have different paths, and all of these are on one device, \
                 {device} of {node}: the total is that of one device"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{row, target};
    use wrote_result::document::{Node, RankFiles, RankRun};

    fn sharing(nodes: &[&[u32]], devices: &[Option<&str>], own_paths: bool) -> Sharing {
        let node = |(number, ranks): (usize, &&[u32])| Node {
            name: format!("node{number}"),
            ranks: ranks.to_vec(),
            ..Node::default()
        };
        let user = |device: &Option<&str>| User {
            path: "/mnt/shared".into(),
            device: device.map(str::to_owned),
        };
        let ranks = Ranks {
            ranks: devices.len() as u32,
            ranks_per_node: 1,
            files: RankFiles::PerRank,
            reorder: None,
            nodes: nodes.iter().enumerate().map(node).collect(),
        };
        Sharing { ranks, users: devices.iter().map(user).collect(), own_paths }
    }

    /// Returns a row of two runs: rank 3 does `slowest_iops` operations per second, the median rank
    /// 1000.
    fn spread_row(slowest_iops: f64, elapsed_s: f64) -> Row {
        let rank = |rank, iops| RankRun { rank, node: "node1".into(), bytes: 1, elapsed_s, iops };
        let mut row = row("stream/direct-psync", "os-crash", &[1e9, 1e9]);
        for run in &mut row.runs {
            run.elapsed_s = elapsed_s;
            run.ranks = Some(Spread {
                slowest: rank(3, slowest_iops),
                fastest: rank(0, 1100.0),
                median_iops: 1000.0,
                started_within_s: 0.0,
                stonewalled_bytes_per_s: 1e9,
            });
        }
        row
    }

    fn found(rows: &[Row], sharing: &Sharing, target: &Target) -> Vec<Finding> {
        together(vec![Vec::new()], &Whole { target, rows, in_memory: false, sharing })
    }

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id.as_str()).collect()
    }

    #[test]
    fn a_rank_that_others_wait_for_is_named_with_its_node() {
        let apart = sharing(&[&[0, 1], &[2, 3]], &[None; 4], false);
        let straggling = found(&[spread_row(700.0, 1.0)], &apart, &target());
        assert_eq!(ids(&straggling), ["stragglers"]);
        assert!(
            straggling[0].text.contains("rank 3 on node1, 2 of 2 times"),
            "{}",
            straggling[0].text
        );
        assert_eq!(straggling[0].evidence["rank"], 3);
    }

    #[test]
    fn ranks_that_are_nearly_alike_and_runs_that_are_short_have_no_stragglers() {
        let apart = sharing(&[&[0, 1], &[2, 3]], &[None; 4], false);
        assert!(found(&[spread_row(850.0, 1.0)], &apart, &target()).is_empty());
        assert!(found(&[spread_row(100.0, 0.05)], &apart, &target()).is_empty());
    }

    #[test]
    fn ranks_on_one_device_share_it_and_with_paths_of_their_own_that_is_a_warning() {
        use wrote_result::document::Severity::{Info, Warning};
        let sda = Some("sda");
        for (own_paths, severity) in [(false, Info), (true, Warning)] {
            let found = found(&[], &sharing(&[&[0, 1]], &[sda, sda], own_paths), &target());
            assert_eq!((ids(&found), found[0].severity), (vec!["shared-device"], severity));
            assert_eq!(found[0].evidence["ranks"], serde_json::json!([0, 1]));
        }
    }

    #[test]
    fn ranks_with_a_device_each_share_none() {
        let own = sharing(&[&[0, 1]], &[Some("sda"), Some("sdb")], true);
        let of_a_name = sharing(&[&[0], &[1]], &[Some("sda"), Some("sda")], false);
        let network = sharing(&[&[0, 1]], &[None, None], false);
        for sharing in [own, of_a_name, network] {
            assert!(found(&[], &sharing, &target()).is_empty(), "{sharing:?}");
        }
    }

    fn cached(share: f64) -> Row {
        let mut row = row("rand/read", "power-loss", &[1e9]);
        (row.direction, row.survives) = (Direction::Read, None);
        let run = &mut row.runs[0];
        run.cached_before_bytes = Some((run.bytes as f64 * share) as u64);
        row
    }

    #[test]
    fn reads_that_a_cache_could_answer_in_place_of_servers_are_found() {
        let network = Target { device: None, ..target() };
        let nodes = sharing(&[&[0], &[1]], &[None, None], false);
        let found = found(&[cached(0.5)], &nodes, &network);
        assert_eq!(ids(&found), ["cache-not-server"]);
        assert!(found[0].text.contains("50 %") && found[0].text.contains("--reorder"));
    }

    #[test]
    fn reads_of_a_local_disk_or_past_the_cache_are_not() {
        let network = Target { device: None, ..target() };
        let nodes = sharing(&[&[0], &[1]], &[None, None], false);
        assert!(found(&[cached(0.05)], &nodes, &network).is_empty());
        assert!(found(&[cached(0.9)], &nodes, &target()).is_empty(), "its counters tell");
        let mut direct = cached(0.9);
        direct.runs[0].cached_before_bytes = None;
        assert!(found(&[direct], &nodes, &network).is_empty());
    }

    #[test]
    fn a_finding_of_several_ranks_stands_once_with_the_ranks() {
        let fallback = |got: &str| {
            Finding::warning("fallback", format!("O_DIRECT was wanted, {got} was used"))
                .with("wanted", "O_DIRECT")
                .with("got", got)
        };
        let all = vec![
            vec![fallback("cached")],
            vec![fallback("cached"), Finding::warning("noisy", "of one rank")],
            vec![fallback("threads"), Finding::info("too-hot", "hot")],
        ];
        let nodes = sharing(&[&[0], &[1], &[2]], &[None; 3], false);
        let (rows, target) = ([], target());
        let whole = Whole { target: &target, rows: &rows, in_memory: false, sharing: &nodes };
        let found = together(all, &whole);
        assert_eq!(ids(&found), ["fallback", "fallback", "too-hot"], "noise is of the whole");
        assert_eq!(found[0].evidence["ranks"], serde_json::json!([0, 1]));
        assert!(found[1].text.starts_with("rank 2: O_DIRECT"), "{}", found[1].text);
    }
}
