//! Ranks as threads: letters in any order, ranks that fail, hang or come late.

use super::*;
use crate::peers::threads::ThreadPost;
use std::cell::Cell;
use std::sync::{Arc, Barrier, Mutex};

/// Runs each rank as a thread, and returns the result of each.
fn ranks<T: Send>(
    count: u32,
    hung_after: Duration,
    ahead_s: fn(u32) -> f64,
    rank: impl Fn(&Ranks<ThreadPost>) -> T + Sync,
) -> Vec<T> {
    let place = |rank: u32| (format!("node{}", rank / 2), ahead_s(rank / 2));
    std::thread::scope(|scope| {
        let rank = &rank;
        let thread = |post| {
            scope.spawn(move || {
                let mut joined = Ranks::new(post, Stop::new(), LONG);
                joined.join().expect("all are there");
                joined.hung_after = hung_after;
                // No rank continues while another still joins. A failure after that may be reported
                // here.
                let _ = (&joined as &dyn Peers).barrier("joined");
                rank(&joined)
            })
        };
        let posts = ThreadPost::many(count, place);
        let threads: Vec<_> = posts.into_iter().map(thread).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

const LONG: Duration = Duration::from_secs(300);

#[test]
fn all_have_the_answer_that_rank_0_made_of_what_all_said() {
    for count in [1, 2, 3, 7, 64, 100] {
        let said = ranks(
            count,
            LONG,
            |_| 0.0,
            |peers| {
                let peers = peers as &dyn Peers;
                peers.barrier("a").unwrap();
                peers.agree("b", peers.rank(), Ok).unwrap()
            },
        );
        let all: Vec<u32> = (0..count).collect();
        assert!(said.iter().all(|one| *one == all), "{count}: {said:?}");
    }
}

#[test]
fn clocks_that_differ_are_known_to_half_of_a_round_trip() {
    let places = ranks(6, LONG, |node| f64::from(node) * 1000.0, |peers| peers.places().clone());
    for one in &places {
        assert_eq!(*one, places[0], "all know the same");
        for (number, node) in one.nodes.iter().enumerate() {
            let wrong_s = (node.clock_offset_s - number as f64 * 1000.0).abs();
            // A double of seconds since 1970 is precise to a quarter of a microsecond.
            assert!(wrong_s <= node.round_trip_s.unwrap() / 2.0 + 1e-6, "{node:?}");
        }
        assert_eq!(one.of_rank, [0, 0, 1, 1, 2, 2]);
    }
}

#[test]
fn the_first_error_is_that_of_all_and_rank_0_names_its_rank() {
    let errors = ranks(
        5,
        LONG,
        |_| 0.0,
        |peers| {
            let peers = peers as &dyn Peers;
            let met = match peers.rank() {
                3 => Err(peers.fail(Error::Failed("full".into()))),
                _ => peers.barrier("a"),
            };
            let again = peers.barrier("b").unwrap_err().to_string();
            peers.part();
            (met.unwrap_err().to_string(), again)
        },
    );
    assert_eq!(errors[0].0, "rank 3 on node1: full");
    for (rank, (met, again)) in errors.iter().enumerate() {
        assert!(met.contains("full"), "{rank}: {met}");
        assert_eq!(met, again, "{rank}: once broken, it stays broken");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named_and_keeps_no_rank_waiting() {
    for hung in [0, 2] {
        let errors = ranks(
            4,
            Duration::from_secs(5),
            |_| 0.0,
            |peers| {
                let peers = peers as &dyn Peers;
                (peers.rank() != hung).then(|| {
                    let error = peers.barrier("a").unwrap_err().to_string();
                    (error, peers.tells())
                })
            },
        );
        assert!(errors[hung as usize].is_none());
        for (error, tells) in errors.into_iter().flatten() {
            assert!(error.contains(&format!("rank {hung} on node")), "{error}");
            assert!(tells || hung != 0, "where rank 0 is gone, the others tell");
        }
    }
}

#[test]
fn a_rank_that_is_at_another_step_is_an_error_and_no_deadlock() {
    let errors = ranks(
        3,
        LONG,
        |_| 0.0,
        |peers| {
            let peers = peers as &dyn Peers;
            let step = if peers.rank() == 1 { "other" } else { "one" };
            peers.barrier(step).unwrap_err().to_string()
        },
    );
    assert!(errors[0].starts_with("rank 1 on node0: is at other"), "{}", errors[0]);
}

/// A post that notes the messages of meetings: their sender, whether they announce a rank, and
/// their bytes.
#[derive(Debug)]
struct NotedPost {
    post: ThreadPost,
    noted: Arc<Mutex<Vec<(u32, bool, usize)>>>,
}

impl Post for NotedPost {
    fn rank(&self) -> u32 {
        self.post.rank()
    }

    fn ranks(&self) -> u32 {
        self.post.ranks()
    }

    fn node(&self) -> String {
        self.post.node()
    }

    fn send(&self, to: u32, bytes: Vec<u8>) {
        let letter = Letter::read(self.rank(), bytes.clone());
        if let Message::Here { .. } | Message::Go { .. } = letter.message {
            let is_here = matches!(letter.message, Message::Here { .. });
            self.noted.lock().unwrap().push((self.rank(), is_here, bytes.len()));
        }
        self.post.send(to, bytes);
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        self.post.receive()
    }

    fn rest(&self, time: Duration) {
        self.post.rest(time);
    }
}

#[test]
fn a_meeting_takes_two_messages_a_rank_and_few_of_them_from_rank_0() {
    const RANKS: u32 = 300;
    let noted = Arc::new(Mutex::new(Vec::new()));
    let [before, after] = [(), ()].map(|()| Barrier::new(RANKS as usize));
    let rank = |post: ThreadPost| {
        let mut ranks = Ranks::new(NotedPost { post, noted: noted.clone() }, Stop::new(), LONG);
        ranks.join().unwrap();
        if before.wait().is_leader() {
            noted.lock().unwrap().clear();
        }
        after.wait();
        (&ranks as &dyn Peers).barrier("the start of a run").unwrap();
    };
    std::thread::scope(|scope| {
        for post in ThreadPost::many(RANKS, |rank| (format!("node{}", rank / 20), 0.0)) {
            scope.spawn(|| rank(post));
        }
    });
    let noted = noted.lock().unwrap();
    type Noted = Vec<(u32, bool, usize)>;
    let (to_first, down): (Noted, Noted) = noted.iter().partition(|(_, is_here, _)| *is_here);
    assert_eq!((to_first.len(), down.len()), (299, 299));
    let of_first = down.iter().filter(|(rank, ..)| *rank == 0).count();
    assert_eq!(of_first as u32, RANKS.next_power_of_two().ilog2());
    let most = down.iter().map(|(rank, ..)| down.iter().filter(|of| of.0 == *rank).count());
    assert_eq!(most.max(), Some(of_first), "no rank passes more on");
    assert!(to_first.iter().all(|(.., bytes)| *bytes < 60));
    assert!(down.iter().all(|(.., bytes)| *bytes < 30));
}

#[test]
fn an_error_before_the_clocks_are_known_breaks_the_group_and_rank_0_names_the_rank() {
    for hung in [0, 2] {
        let posts = ThreadPost::many(3, |_| ("node".into(), 0.0));
        let errors: Vec<_> = std::thread::scope(|scope| {
            let rank = |post: ThreadPost| {
                scope.spawn(move || {
                    if post.rank() == hung {
                        return None;
                    }
                    let mut ranks = Ranks::new(post, Stop::new(), Duration::from_secs(1));
                    let error = ranks.join().unwrap_err();
                    Some((ranks.fail(error).to_string(), ranks.tells(), ranks.part()))
                })
            };
            let threads: Vec<_> = posts.into_iter().map(rank).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (rank, (error, tells, are_there)) in
            errors.into_iter().enumerate().filter_map(|(rank, error)| Some((rank, error?)))
        {
            assert!(error.contains(&format!("rank {hung} did not come")), "{error}");
            assert_eq!(tells, rank == 0 || hung == 0, "{rank} without {hung}");
            assert_eq!(are_there, rank != 0 && hung != 0, "{rank} without {hung}");
        }
    }
}

type Letters = Vec<(u32, Vec<u8>)>;

/// A post with a fault.
#[derive(Debug)]
struct StrangePost {
    post: ThreadPost,
    /// The time that a reading of its clock takes.
    clock_takes: Duration,
    /// Letters of other ranks that are held back until rank 0 asks for the time.
    held: Option<RefCell<Letters>>,
    is_asked: Cell<bool>,
}

impl StrangePost {
    fn new(post: ThreadPost) -> StrangePost {
        let is_asked = Cell::new(false);
        StrangePost { post, clock_takes: Duration::ZERO, held: None, is_asked }
    }
}

impl Post for StrangePost {
    fn rank(&self) -> u32 {
        self.post.rank()
    }

    fn ranks(&self) -> u32 {
        self.post.ranks()
    }

    fn node(&self) -> String {
        self.post.node()
    }

    fn clock_s(&self) -> f64 {
        std::thread::sleep(self.clock_takes);
        self.post.clock_s()
    }

    fn send(&self, to: u32, message: Vec<u8>) {
        self.post.send(to, message);
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        let Some(held) = &self.held else { return self.post.receive() };
        let is_asked = |of: &(u32, Vec<u8>)| of.1.starts_with(b"\"Ask\"");
        let mut held = held.borrow_mut();
        held.extend(std::iter::from_fn(|| self.post.receive()));
        // Then the others come, one by one.
        let next = held.iter().position(is_asked);
        let next = next.or((self.is_asked.get() && !held.is_empty()).then_some(0))?;
        self.is_asked.set(true);
        Some(held.remove(next))
    }

    fn rest(&self, time: Duration) {
        self.post.rest(time);
    }
}

/// Joins ranks of one node, whose posts `change` has changed. Returns whether each has joined.
fn joined(
    count: u32,
    hung_after: Duration,
    change: impl Fn(&mut StrangePost) + Sync,
) -> Vec<Result<(), Error>> {
    let posts = ThreadPost::many(count, |_| ("node".into(), 0.0));
    std::thread::scope(|scope| {
        let change = &change;
        let rank = |post: ThreadPost| {
            scope.spawn(move || {
                let mut post = StrangePost::new(post);
                change(&mut post);
                Ranks::new(post, Stop::new(), hung_after).join()
            })
        };
        let threads: Vec<_> = posts.into_iter().map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_rank_that_waits_for_slow_clocks_waits_as_long_as_rank_0_does() {
    // Rank 1 answers late repeatedly, but each time within the limit.
    let joined = joined(3, Duration::from_secs(2), |post| {
        post.clock_takes = Duration::from_millis(if post.rank() == 1 { 400 } else { 0 });
    });
    assert!(joined.iter().all(Result::is_ok), "{joined:?}");
}

#[test]
fn letters_of_several_ranks_may_come_in_any_order() {
    // Rank 2 releases rank 3, which learns of it only after rank 0 has asked for its time.
    let joined = joined(4, LONG, |post| {
        post.held = (post.rank() == 3).then(RefCell::default);
    });
    assert!(joined.iter().all(Result::is_ok), "{joined:?}");
}

#[test]
fn a_rank_may_be_given_longer_than_the_limit() {
    let met = ranks(
        3,
        Duration::from_secs(5),
        |_| 0.0,
        |peers| {
            let limit = peers.hung_after + 2 * TELL_EVERY;
            let peers = peers as &dyn Peers;
            if peers.rank() == 0 {
                std::thread::sleep(limit + Duration::from_secs(1));
            }
            peers.barrier_within(LONG, "the builds of rank 0").is_ok()
        },
    );
    assert_eq!(met, [true; 3]);
}

#[test]
fn a_stop_of_one_rank_ends_all() {
    let errors = ranks(
        3,
        LONG,
        |_| 0.0,
        |peers| {
            if peers.rank() == 2 {
                peers.stop.request();
            }
            // The stopping rank may have reached this barrier; then the next one fails.
            let again = std::iter::repeat_with(|| (peers as &dyn Peers).barrier("a"));
            again.take(3).find_map(Result::err)
        },
    );
    let is_stopped = |error: &Option<Error>| matches!(error, Some(Error::Interrupted));
    assert!(errors.iter().all(is_stopped), "{errors:?}");
}
