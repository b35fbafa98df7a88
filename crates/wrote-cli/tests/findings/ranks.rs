//! Findings on several ranks, from made-up measurements: the program needs MPI to have more than
//! one.

use fixtures::samples;
use wrote_jobs::findings::{Sharing, User, Whole, together};
use wrote_result::document::{
    Direction, Finding, Node, RankFiles, RankRun, Ranks, Row, Spread, Target,
};

/// Two ranks, each on a node, and on these devices.
fn sharing(devices: [Option<&str>; 2], nodes: u32) -> Sharing {
    let node = |number: u32| Node {
        name: format!("node{number}"),
        ranks: if nodes == 1 { vec![0, 1] } else { vec![number] },
        ..Node::default()
    };
    let ranks = Ranks {
        ranks: 2,
        ranks_per_node: 2 / nodes,
        files: RankFiles::PerRank,
        reorder: None,
        nodes: (0..nodes).map(node).collect(),
    };
    let user = |device: Option<&str>| User {
        path: "/mnt/shared".into(),
        device: device.map(str::to_owned),
    };
    Sharing { ranks, users: devices.map(user).to_vec(), own_paths: false }
}

fn ids(rows: &[Row], target: &Target, sharing: &Sharing) -> Vec<String> {
    let whole = Whole { target, rows, in_memory: false, sharing };
    let found: Vec<Finding> = together(vec![Vec::new()], &whole);
    found.into_iter().map(|finding| finding.id).collect()
}

/// A row in which the slowest rank does this part of the median one's operations.
fn row(part: f64) -> Row {
    let mut row = samples::document().scenarios[0].rows[0].clone();
    let rank = |rank, iops| RankRun { rank, node: "node1".into(), bytes: 1, elapsed_s: 1.0, iops };
    for run in &mut row.runs {
        run.elapsed_s = 1.0;
        run.ranks = Some(Spread {
            slowest: rank(1, 1000.0 * part),
            fastest: rank(0, 1000.0),
            median_iops: 1000.0,
            started_within_s: 0.0,
            stonewalled_bytes_per_s: 1.0,
        });
    }
    row
}

fn network() -> Target {
    Target { device: None, ..samples::document().target }
}

#[test]
fn stragglers_is_said_where_one_rank_is_far_slower() {
    assert_eq!(ids(&[row(0.5)], &network(), &sharing([None; 2], 2)), ["stragglers"]);
}

#[test]
fn stragglers_is_not_said_of_ranks_that_are_nearly_alike() {
    assert!(ids(&[row(0.9)], &network(), &sharing([None; 2], 2)).is_empty());
}

#[test]
fn shared_device_is_said_of_two_ranks_on_one() {
    let target = samples::document().target;
    assert_eq!(ids(&[], &target, &sharing([Some("sda"); 2], 1)), ["shared-device"]);
}

#[test]
fn shared_device_is_not_said_of_a_device_on_each_node() {
    let target = samples::document().target;
    assert!(ids(&[], &target, &sharing([Some("sda"); 2], 2)).is_empty());
}

fn cached(part: f64) -> Row {
    let mut row = row(1.0);
    row.direction = Direction::Read;
    for run in &mut row.runs {
        run.bytes = 1_000_000;
        run.cached_before_bytes = Some((1e6 * part) as u64);
    }
    row
}

#[test]
fn cache_not_server_is_said_of_reads_that_the_node_held() {
    assert_eq!(ids(&[cached(0.8)], &network(), &sharing([None; 2], 2)), ["cache-not-server"]);
}

#[test]
fn cache_not_server_is_not_said_of_reads_that_it_did_not_hold() {
    assert!(ids(&[cached(0.01)], &network(), &sharing([None; 2], 2)).is_empty());
}
