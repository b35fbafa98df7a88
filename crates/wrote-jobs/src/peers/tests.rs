//! Tests with ranks that are threads: the answers that they get, and ranks that fail, hang or
//! arrive late.

use super::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

type Letters = Mutex<VecDeque<(u32, Vec<u8>)>>;

/// The post of a rank that is a thread. Each node has two ranks.
struct ThreadPost {
    rank: u32,
    boxes: Arc<Vec<Letters>>,
}

impl Post for ThreadPost {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.boxes.len() as u32
    }

    fn node(&self) -> String {
        format!("node{}", self.rank / 2)
    }

    fn send(&self, to: u32, message: Vec<u8>) {
        self.boxes[to as usize].lock().unwrap().push_back((self.rank, message));
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        self.boxes[self.rank as usize].lock().unwrap().pop_front()
    }

    fn end(self: Box<Self>, _: u8, _: bool) {}
}

/// Runs each rank as a thread, and returns the result of each.
pub(crate) fn ranks<T: Send>(
    count: u32,
    hung_after: Duration,
    rank: impl Fn(Peers) -> T + Sync,
) -> Vec<T> {
    let boxes: Arc<Vec<Letters>> = Arc::new((0..count).map(|_| Letters::default()).collect());
    std::thread::scope(|scope| {
        let work = &rank;
        let thread = |rank| {
            let post = Box::new(ThreadPost { rank, boxes: boxes.clone() });
            scope.spawn(move || {
                let mut joined = Ranks::new(post, Stop::new(), LONG);
                joined.join().expect("all are there");
                joined.hung_after = hung_after;
                work(joined.peers())
            })
        };
        let threads: Vec<_> = (0..count).map(thread).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// A time limit that only a hang reaches.
pub(crate) const LONG: Duration = Duration::from_secs(300);

#[test]
fn all_have_the_answer_that_rank_0_made_of_the_values_of_all() {
    for count in [2, 3, 7] {
        let answers = ranks(count, LONG, |peers| {
            assert_eq!(peers.of_first("a text", peers.rank().to_string()).unwrap(), "0");
            peers.end(Ok(())).unwrap();
            peers.agree("all", peers.rank(), Ok).unwrap()
        });
        assert!(answers.iter().all(|all| *all == (0..count).collect::<Vec<_>>()), "{answers:?}");
    }
}

#[test]
fn a_clock_is_off_by_the_least_difference_of_two_reads_and_ranks_of_a_node_share_it() {
    let read = |name: &str, clock_s: [f64; 3]| (name.to_owned(), clock_s.to_vec());
    let all = [
        read("a", [100.0, 101.0, 101.5]),
        read("b", [90.5, 91.25, 91.625]),
        read("a", [100.5, 101.5, 102.0]),
    ];
    let nodes = nodes(&all);
    assert_eq!([&nodes[0].ranks[..], &nodes[1].ranks[..]], [&[0, 2][..], &[1][..]]);
    assert_eq!([nodes[0].clock_offset_s, nodes[1].clock_offset_s], [0.0, -9.875]);
    assert_eq!([nodes[0].round_trip_s, nodes[1].round_trip_s], [None, Some(0.5)]);
}

#[test]
fn the_first_error_is_that_of_all_and_rank_0_names_its_rank() {
    let errors = ranks(5, LONG, |peers| {
        let done = match peers.rank() {
            3 => peers.end(Err(Error::Failed("the disk is full".into()))),
            _ => peers.barrier("a step"),
        };
        let error = done.unwrap_err().to_string();
        assert_eq!(peers.barrier("later").unwrap_err().to_string(), error);
        assert_eq!(peers.end(Ok(())).unwrap_err().to_string(), error);
        error
    });
    let first = "rank 3 on node1: the disk is full";
    assert!(errors.iter().all(|error| error == first), "{errors:?}");
}

#[test]
fn a_rank_that_does_not_come_is_named_and_keeps_no_rank_waiting() {
    let errors = ranks(4, Duration::from_millis(200), |peers| match peers.rank() {
        2 => None,
        _ => Some(peers.barrier("a step").unwrap_err().to_string()),
    });
    for error in errors.into_iter().flatten() {
        assert!(error.starts_with("rank 2 on node1 was more than"), "{error}");
    }
}

#[test]
fn a_rank_that_is_at_another_step_is_an_error_and_no_deadlock() {
    let errors = ranks(3, LONG, |peers| {
        let step = if peers.rank() == 1 { "another" } else { "a step" };
        peers.barrier(step).unwrap_err().to_string()
    });
    let first = "rank 1 on node0: is at another, and rank 0 at a step";
    assert!(errors.iter().all(|error| error == first), "{errors:?}");
}
