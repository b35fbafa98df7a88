//! How ranks meet: each tells rank 0 that it is there, and rank 0 lets all go at once.
//!
//! A rank that fails tells rank 0 and leaves, rank 0 tells all others, and each hears of it when it
//! comes to the next meeting. So no rank waits for one that failed. One that does not come within
//! the time limit is named.

use super::places::Look;
use super::{Answer, Peers, Places, Post};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

/// The distance of two looks at the post.
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// Rank 0 tells those that wait that it waits too.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// A rank may take so many times as long as another for the same work.
const SLOWER_MAX: u32 = 10;
/// Round trips to a clock, of which the shortest counts.
const ROUND_TRIPS: u32 = 40;
/// Of more ranks only one on each node is asked for its clock.
const CLOCKS_MAX: u32 = 64;
/// How long the ranks of a group that broke wait for each other's farewell.
const PARTING: Duration = Duration::from_secs(5);

/// The messages of ranks.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// To rank 0: a rank is at its meeting of this number. What it says follows the message.
    Here {
        number: u32,
        step: String,
    },
    /// From rank 0, by way of others: all were there. The answer follows the message.
    Go {
        number: u32,
    },
    /// From rank 0 to those that wait: it is there, and waits for others.
    Waiting,
    /// To rank 0, and from it to all: the group is broken.
    Broken(Ending),
    /// Asks for the time.
    Ask,
    Time(f64),
    /// To rank 0: a rank ends.
    Farewell,
}

/// A message as it came, with what follows it.
#[derive(Debug)]
struct Letter {
    from: u32,
    message: Message,
    payload: Vec<u8>,
}

impl Letter {
    /// The bytes of a message: a line of JSON, and what follows it.
    fn bytes(message: &Message, payload: &[u8]) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(message).expect("a message is JSON");
        bytes.push(b'\n');
        bytes.extend_from_slice(payload);
        bytes
    }

    fn read(from: u32, mut bytes: Vec<u8>) -> Letter {
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let message = serde_json::from_slice(&bytes[..line]).expect("ranks are of one program");
        Letter { from, message, payload: bytes.split_off(bytes.len().min(line + 1)) }
    }
}

/// An error on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Ending {
    Usage(String),
    Failed(String),
    Interrupted,
}

impl Ending {
    fn of(error: &Error) -> Ending {
        match error {
            Error::Usage(text) => Ending::Usage(text.clone()),
            Error::Interrupted => Ending::Interrupted,
            other => Ending::Failed(other.to_string()),
        }
    }

    fn error(&self) -> Error {
        match self {
            Ending::Usage(text) => Error::Usage(text.clone()),
            Ending::Failed(text) => Error::Failed(text.clone()),
            Ending::Interrupted => Error::Interrupted,
        }
    }
}

/// Ranks that meet by a post.
#[derive(Debug)]
pub struct Ranks<P> {
    post: P,
    stop: Stop,
    /// How long the slowest may be waited for, at least.
    hung_after: Duration,
    places: Places,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// The number of the next meeting.
    number: u32,
    /// The end of the last one.
    met: Instant,
    broken: Option<Ending>,
    /// Rank 0 did not answer.
    first_is_gone: bool,
    /// Messages that came before they were waited for.
    early: VecDeque<Letter>,
    /// Of rank 0: the ranks that have said farewell.
    parted: Vec<bool>,
}

impl<P: Post> Ranks<P> {
    /// Joins the ranks of a post: each learns the nodes and clocks of all.
    ///
    /// A rank that comes `hung_after` later than another, and later than ten times the time that
    /// the other needed, is taken for hung.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn join(post: P, stop: Stop, hung_after: Duration) -> Result<Ranks<P>, Error> {
        let parted = vec![false; post.ranks() as usize];
        let state = State {
            number: 0,
            met: Instant::now(),
            broken: None,
            first_is_gone: false,
            early: VecDeque::new(),
            parted,
        };
        let places = Places::default();
        let mut ranks = Ranks { post, stop, hung_after, places, state: RefCell::new(state) };
        let peers = &ranks as &dyn Peers;
        let names = peers.agree("start", ranks.post.node(), Ok)?;
        let mut looks = vec![None; names.len()];
        for rank in ranks.asked_for_clocks(&names) {
            looks[rank as usize] = ranks.look_at_clock(rank)?;
        }
        let looks: Vec<Option<(f64, f64)>> =
            looks.iter().map(|look| look.map(|of: Look| (of.offset_s, of.round_trip_s))).collect();
        let looks = peers.of_first("clocks", looks)?;
        let look = |(offset_s, round_trip_s)| Look { offset_s, round_trip_s };
        let looks: Vec<Option<Look>> = looks.into_iter().map(|one| one.map(look)).collect();
        ranks.places = Places::of(names, &looks);
        Ok(ranks)
    }

    /// The post, for what is left to do when the group has ended.
    pub fn into_post(self) -> P {
        self.post
    }

    fn asked_for_clocks(&self, names: &[String]) -> Vec<u32> {
        let is_asked = |rank: u32| {
            let name = &names[rank as usize];
            rank > 0 && (self.post.ranks() <= CLOCKS_MAX || !names[..rank as usize].contains(name))
        };
        (0..self.post.ranks()).filter(|rank| is_asked(*rank)).collect()
    }

    /// Rank 0 asks a rank for its time, and takes half of the round trip for the way.
    fn look_at_clock(&self, rank: u32) -> Result<Option<Look>, Error> {
        let mut best: Option<Look> = None;
        for _ in 0..ROUND_TRIPS {
            if self.post.rank() == rank {
                self.await_from(0, "clocks", |message| matches!(message, Message::Ask))?;
                self.say(0, &Message::Time(self.post.clock_s()));
            } else if self.post.rank() == 0 {
                let asked_s = self.post.clock_s();
                self.say(rank, &Message::Ask);
                let is_time = |message: &Message| matches!(message, Message::Time(_));
                let told = self.await_from(rank, "clocks", is_time)?;
                let round_trip_s = self.post.clock_s() - asked_s;
                if let Message::Time(theirs_s) = told
                    && best.is_none_or(|best| round_trip_s < best.round_trip_s)
                {
                    let offset_s = theirs_s - asked_s - round_trip_s / 2.0;
                    best = Some(Look { offset_s, round_trip_s });
                }
            }
        }
        Ok(best)
    }

    fn say(&self, to: u32, message: &Message) {
        self.post.send(to, Letter::bytes(message, &[]));
    }

    /// Returns a message of `from` that is wanted; looks without a rest, since its time counts.
    fn await_from(
        &self,
        from: u32,
        step: &'static str,
        is_wanted: impl Fn(&Message) -> bool,
    ) -> Result<Message, Error> {
        let began = Instant::now();
        loop {
            self.read_post()?;
            if let Some(message) =
                self.take(|letter| letter.from == from && is_wanted(&letter.message))
            {
                return Ok(message);
            }
            if began.elapsed() > self.hung_after {
                return Err(self.breaks(self.missing(&[from], step, began.elapsed())));
            }
            std::thread::yield_now();
        }
    }

    /// Takes in what came by post. An error where the group is broken, or this rank is to stop.
    fn read_post(&self) -> Result<(), Error> {
        while let Some((from, bytes)) = self.post.receive() {
            let letter = Letter::read(from, bytes);
            match letter.message {
                Message::Broken(ending) => {
                    return Err(self.breaks(self.named(from, ending.error())));
                }
                Message::Farewell => self.state.borrow_mut().parted[from as usize] = true,
                _ => self.state.borrow_mut().early.push_back(letter),
            }
        }
        if self.stop.is_requested() {
            return Err(self.breaks(Error::Interrupted));
        }
        Ok(())
    }

    fn take(&self, is_wanted: impl Fn(&Letter) -> bool) -> Option<Message> {
        let early = &mut self.state.borrow_mut().early;
        let place = early.iter().position(is_wanted)?;
        early.remove(place).map(|letter| letter.message)
    }

    fn next_letter(&self) -> Option<Letter> {
        self.state.borrow_mut().early.pop_front()
    }

    /// Rank 0 names the rank whose error it passes on.
    fn named(&self, from: u32, error: Error) -> Error {
        match error {
            _ if self.post.rank() != 0 => error,
            Error::Usage(text) => Error::Usage(text),
            Error::Interrupted => Error::Interrupted,
            other => Error::Failed(format!("{}: {other}", self.name(from))),
        }
    }

    fn name(&self, rank: u32) -> String {
        match self.places.of_rank.len() {
            0 => format!("rank {rank}"),
            _ => format!("rank {rank} on {}", self.places.node(rank)),
        }
    }

    fn missing(&self, ranks: &[u32], step: &str, time: Duration) -> Error {
        let names: Vec<String> = ranks.iter().map(|rank| self.name(*rank)).collect();
        Error::Failed(format!(
            "{} did not come to the others within {:.0} s ({step}): it hangs, or is far slower",
            wrote_result::units::some_of(&names, wrote_result::finding::NAMES_MAX),
            time.as_secs_f64(),
        ))
    }

    /// Breaks the group with its first error, and tells those that have to know.
    fn breaks(&self, error: Error) -> Error {
        if let Some(known) = &self.state.borrow().broken {
            return known.error();
        }
        let ending = Ending::of(&error);
        self.state.borrow_mut().broken = Some(ending.clone());
        let others = match self.post.rank() {
            0 => 1..self.post.ranks(),
            _ => 0..1,
        };
        others.for_each(|to| self.say(to, &Message::Broken(ending.clone())));
        error
    }

    /// Rank 0 waits for all others, makes the answer, and lets them go.
    fn lead(
        &self,
        number: u32,
        step: &'static str,
        mine: Vec<u8>,
        answer: Answer,
    ) -> Result<Vec<u8>, Error> {
        let count = self.post.ranks() as usize;
        let mut said: Vec<Option<Vec<u8>>> = vec![None; count];
        said[0] = Some(mine);
        let mut left = count - 1;
        let (began, limit) = (Instant::now(), self.patience());
        let mut told = began;
        while left > 0 {
            self.read_post()?;
            while let Some(Letter { from, message, payload }) = self.next_letter() {
                match message {
                    Message::Here { number: theirs, step: of } => {
                        if theirs != number || of != step {
                            let text =
                                format!("is at {of} ({theirs}), and rank 0 at {step} ({number})");
                            return Err(self.breaks(self.named(from, Error::Failed(text))));
                        }
                        left -= usize::from(said[from as usize].replace(payload).is_none());
                    }
                    other => debug_assert!(false, "{other:?}"),
                }
            }
            if left == 0 {
                break;
            }
            let missing =
                || (0..).zip(&said).filter(|(_, said)| said.is_none()).map(|(rank, _)| rank);
            if began.elapsed() > limit {
                let missing: Vec<u32> = missing().collect();
                return Err(self.breaks(self.missing(&missing, step, began.elapsed())));
            }
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                let here = (1..).zip(&said[1..]).filter(|(_, said)| said.is_some());
                here.for_each(|(rank, _)| self.say(rank, &Message::Waiting));
            }
            self.post.rest(LOOK_EVERY);
        }
        let said = said.into_iter().map(|said| said.expect("all were there")).collect();
        let answer = answer(said).map_err(|error| self.breaks(error))?;
        self.pass_on(number, &answer);
        Ok(answer)
    }

    /// Another rank tells rank 0 that it is there, and waits for the answer.
    fn follow(&self, number: u32, step: &'static str, mine: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.post.send(0, Letter::bytes(&Message::Here { number, step: step.into() }, &mine));
        let limit = self.patience() + 2 * TELL_EVERY;
        let mut heard = Instant::now();
        loop {
            self.read_post()?;
            match self.next_letter() {
                Some(Letter { message: Message::Go { number: theirs }, payload, .. })
                    if theirs == number =>
                {
                    self.pass_on(number, &payload);
                    return Ok(payload);
                }
                Some(Letter { message: Message::Waiting, .. }) => heard = Instant::now(),
                Some(other) => debug_assert!(false, "{other:?}"),
                None if heard.elapsed() > limit => {
                    self.state.borrow_mut().first_is_gone = true;
                    return Err(self.breaks(self.missing(&[0], step, heard.elapsed())));
                }
                None => self.post.rest(LOOK_EVERY),
            }
        }
    }

    /// Passes the answer down a binomial tree: all have it after as many steps as the number of
    /// ranks has bits.
    fn pass_on(&self, number: u32, answer: &[u8]) {
        let bytes = Letter::bytes(&Message::Go { number }, answer);
        let (rank, ranks) = (u64::from(self.post.rank()), u64::from(self.post.ranks()));
        let lowest = if rank == 0 { ranks.next_power_of_two() } else { rank & rank.wrapping_neg() };
        let mut step = lowest >> 1;
        while step > 0 {
            if rank + step < ranks {
                self.post.send((rank + step) as u32, bytes.clone());
            }
            step >>= 1;
        }
    }

    /// How long others may be waited for: they do what took this rank so long.
    fn patience(&self) -> Duration {
        self.hung_after.max(self.state.borrow().met.elapsed() * SLOWER_MAX)
    }
}

impl<P: Post> Peers for Ranks<P> {
    fn rank(&self) -> u32 {
        self.post.rank()
    }

    fn ranks(&self) -> u32 {
        self.post.ranks()
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn meet(&self, step: &'static str, mine: Vec<u8>, answer: Answer) -> Result<Vec<u8>, Error> {
        if let Some(known) = &self.state.borrow().broken {
            return Err(known.error());
        }
        let number = self.state.borrow().number;
        let met = match self.post.rank() {
            0 => self.lead(number, step, mine, answer),
            _ => self.follow(number, step, mine),
        };
        let mut state = self.state.borrow_mut();
        (state.number, state.met) = (number + 1, Instant::now());
        met
    }

    fn fail(&self, error: Error) -> Error {
        let error = match self.post.rank() {
            0 => self.named(0, error),
            _ => error,
        };
        self.breaks(error)
    }

    fn tells(&self) -> bool {
        self.post.rank() == 0 || self.state.borrow().first_is_gone
    }

    fn part(&self) -> bool {
        if self.post.rank() != 0 {
            self.say(0, &Message::Farewell);
            return !self.state.borrow().first_is_gone;
        }
        let began = Instant::now();
        self.state.borrow_mut().parted[0] = true;
        loop {
            // What else they have to say is of no interest any more.
            while let Some((from, bytes)) = self.post.receive() {
                if let Message::Farewell = Letter::read(from, bytes).message {
                    self.state.borrow_mut().parted[from as usize] = true;
                }
            }
            if self.state.borrow().parted.iter().all(|parted| *parted) {
                return true;
            }
            if began.elapsed() > PARTING {
                return false;
            }
            self.post.rest(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::threads::ThreadPost;

    /// Runs each rank as a thread, and returns what each of them comes to.
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
                    let mut joined = Ranks::join(post, Stop::new(), LONG).expect("all are there");
                    joined.hung_after = hung_after;
                    // None goes on while another still joins. One that fails then may be heard of
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
        let places =
            ranks(6, LONG, |node| f64::from(node) * 1000.0, |peers| peers.places().clone());
        for one in &places {
            assert_eq!(*one, places[0], "all know the same");
            for (number, node) in one.nodes.iter().enumerate() {
                let wrong_s = (node.clock_offset_s - number as f64 * 1000.0).abs();
                // A double of seconds since 1970 is a quarter of a microsecond wrong.
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
                (peers as &dyn Peers).barrier("a").unwrap_err()
            },
        );
        assert!(errors.iter().all(|error| matches!(error, Error::Interrupted)), "{errors:?}");
    }
}
