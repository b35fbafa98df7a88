//! Processes that measure together, each a rank. They do one thing with each other: every rank
//! sends rank 0 a value or its error, and rank 0 sends all of them one answer.

#[cfg(test)]
pub(crate) mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug, Formatter};
use std::time::{Duration, Instant};
use wrote_result::document::{self, Node};
use wrote_result::{Error, Stop, finding, units};

/// The interval between two checks of the post.
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// A rank may be slower than another at the same work by this factor.
const SLOWER_MAX: u32 = 10;
/// Meetings after which all read their clocks. The quickest release counts.
const CLOCK_READS: usize = 10;

/// Carries messages from rank to rank. Messages from one rank to another arrive in order.
pub trait Post {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// The number of ranks.
    fn ranks(&self) -> u32;

    /// The name of the node that this rank is on.
    fn node(&self) -> String;

    /// Sends a message without waiting for its receiver.
    fn send(&self, to: u32, message: Vec<u8>);

    /// Returns the next message with its sender, if there is one.
    fn receive(&self) -> Option<(u32, Vec<u8>)>;
}

/// The only message: the value of a step, or the error that ends the sender's work.
type Message = (String, Result<Value, Error>);

/// One of several ranks.
pub struct Ranks {
    post: Box<dyn Post>,
    stop: Stop,
    /// The least time after which a rank that does not come counts as hung.
    hung_after: Duration,
    nodes: Vec<Node>,
    /// When the last exchange ended.
    met: Cell<Instant>,
    broken: RefCell<Option<Error>>,
    is_lost: Cell<bool>,
}

impl Debug for Ranks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.post.rank(), self.post.ranks())
    }
}

impl Ranks {
    /// Returns the ranks of a post. They know nothing about each other yet.
    ///
    /// A rank counts as hung if it comes `hung_after` later than rank 0, and later than ten times
    /// the time that rank 0 needed. Rank 0 is waited for ten times as long.
    pub fn new(post: Box<dyn Post>, stop: Stop, hung_after: Duration) -> Ranks {
        let met = Cell::new(Instant::now());
        let (nodes, broken, is_lost) = (Vec::new(), RefCell::default(), Cell::default());
        Ranks { post, stop, hung_after, nodes, met, broken, is_lost }
    }

    /// Joins the ranks: each learns the nodes of all, and their clocks as they are when the answer
    /// of a meeting arrives.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn join(&mut self) -> Result<(), Error> {
        let (peers, mut clock_s) = (self.peers(), Vec::new());
        for _ in 0..CLOCK_READS {
            peers.barrier("start")?;
            clock_s.push(jiff::Timestamp::now().as_nanosecond() as f64 / 1e9);
        }
        let mine = (self.post.node(), clock_s);
        self.nodes = peers.agree("clocks", mine, |all| Ok(nodes(&all)))?;
        Ok(())
    }

    /// The ranks, to be passed on.
    pub fn peers(&self) -> Peers<'_> {
        Peers(Some(self))
    }

    /// Whether a rank did not come, or rank 0 did not answer: not all end by themselves.
    pub fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    fn exchange<T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned>(
        &self,
        step: &str,
        mine: Result<T, Error>,
        choose: impl FnOnce(Vec<T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        if let Some(known) = &*self.broken.borrow() {
            return Err(known.clone());
        }
        let mine = mine.and_then(packed);
        let answer = match self.post.rank() {
            0 => self.lead(step, mine, choose),
            _ => self.follow(step, mine),
        };
        self.met.set(Instant::now());
        let answer = answer.and_then(unpacked);
        if let Err(error) = &answer {
            *self.broken.borrow_mut() = Some(error.clone());
        }
        answer
    }

    /// On rank 0: waits for all others, and sends them the answer.
    fn lead<T: DeserializeOwned, A: Serialize>(
        &self,
        step: &str,
        mine: Result<Value, Error>,
        choose: impl FnOnce(Vec<T>) -> Result<A, Error>,
    ) -> Result<Value, Error> {
        let mut said: Vec<Option<Result<Value, Error>>> = vec![None; self.post.ranks() as usize];
        said[0] = Some(mine);
        let (began, limit) = (Instant::now(), self.limit());
        while said.iter().any(Option::is_none) && !self.is_lost.get() {
            self.stop.check()?;
            match self.post.receive() {
                Some((from, message)) => {
                    let (at, mut theirs) = read(&message)?;
                    if at != step && theirs.is_ok() {
                        theirs = Err(Error::Failed(format!("is at {at}, and rank 0 at {step}")));
                    }
                    said[from as usize] = Some(theirs);
                }
                None if began.elapsed() > limit => self.is_lost.set(true),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
        // The first error is everybody's; a rank that does not come may only follow from it.
        let failed = |(rank, said): (u32, &Option<Result<Value, Error>>)| {
            Some(self.named(rank, said.as_ref()?.as_ref().err()?))
        };
        let answer = match (0..).zip(&said).find_map(failed) {
            Some(error) => Err(error),
            None if self.is_lost.get() => {
                let missing = (0..).zip(&said).filter(|(_, said)| said.is_none());
                Err(self.missing(missing.map(|(rank, _)| rank), step, began.elapsed()))
            }
            None => {
                let all = said.into_iter().flatten().flatten().map(unpacked);
                all.collect::<Result<Vec<T>, Error>>().and_then(choose).and_then(packed)
            }
        };
        let message = written(step, &answer);
        (1..self.post.ranks()).for_each(|rank| self.post.send(rank, message.clone()));
        answer
    }

    /// On another rank: reports to rank 0, and waits for the answer.
    fn follow(&self, step: &str, mine: Result<Value, Error>) -> Result<Value, Error> {
        let (began, limit) = (Instant::now(), self.limit() * SLOWER_MAX);
        self.post.send(0, written(step, &mine));
        loop {
            self.stop.check()?;
            if let Some((_, message)) = self.post.receive() {
                return read(&message)?.1;
            }
            if began.elapsed() > limit {
                self.is_lost.set(true);
                return Err(self.missing([0].into_iter(), step, began.elapsed()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// How long to wait for others, by the time that this rank needed for the same work.
    fn limit(&self) -> Duration {
        self.hung_after.max(self.met.get().elapsed() * SLOWER_MAX)
    }

    /// Names the rank that failed. All ranks refuse bad usage alike.
    fn named(&self, rank: u32, error: &Error) -> Error {
        match error {
            Error::Failed(text) => Error::Failed(format!("{}: {text}", self.name(rank))),
            other => other.clone(),
        }
    }

    fn name(&self, rank: u32) -> String {
        match self.peers().node(rank) {
            Some(node) => format!("rank {rank} on {}", node.name),
            None => format!("rank {rank}"),
        }
    }

    fn missing(&self, ranks: impl Iterator<Item = u32>, step: &str, time: Duration) -> Error {
        let names: Vec<String> = ranks.map(|rank| self.name(rank)).collect();
        Error::Failed(format!(
            "{} did not come to the others within {:.0} s ({step}): it hangs, or is far slower",
            units::some_of(&names, finding::NAMES_MAX),
            time.as_secs_f64(),
        ))
    }
}

/// The processes that measure together.
///
/// Every rank makes the same calls in the same order. Where a call returns an error, the group is
/// broken: each later call returns that error at once.
#[derive(Clone, Copy, Debug)]
pub struct Peers<'a>(Option<&'a Ranks>);

impl<'a> Peers<'a> {
    /// A single process: rank 0 of 1.
    pub const ALONE: Peers<'static> = Peers(None);

    /// The number of this process, from 0.
    pub fn rank(self) -> u32 {
        self.0.map_or(0, |ranks| ranks.post.rank())
    }

    /// The number of processes.
    pub fn ranks(self) -> u32 {
        self.0.map_or(1, |ranks| ranks.post.ranks())
    }

    /// Whether several processes measure together.
    pub fn are_many(self) -> bool {
        self.0.is_some()
    }

    /// Whether this is the rank that decides, and reports to the user.
    pub fn is_first(self) -> bool {
        self.rank() == 0
    }

    /// Whether this rank reports errors: rank 0 does, and each rank that lost rank 0.
    pub fn tells(self) -> bool {
        self.is_first() || self.0.is_some_and(|ranks| ranks.is_lost.get())
    }

    /// The node of a rank, if there are several and they have joined.
    pub fn node(self, rank: u32) -> Option<&'a Node> {
        self.0?.nodes.iter().find(|node| node.ranks.contains(&rank))
    }

    /// Returns how far this rank's clock is ahead of rank 0's, in seconds.
    pub fn ahead_s(self) -> f64 {
        self.node(self.rank()).map_or(0.0, |node| node.clock_offset_s)
    }

    /// Returns them as in a result; `None` for a single process.
    pub fn shown(self, files: document::RankFiles) -> Option<document::Ranks> {
        let nodes = self.0?.nodes.clone();
        let on_node = nodes.iter().map(|node| node.ranks.len() as u32);
        let ranks_per_node = on_node.max().unwrap_or(1);
        Some(document::Ranks { ranks: self.ranks(), ranks_per_node, files, nodes })
    }

    /// Returns the result of `choose` on all ranks' values, the same on each rank.
    ///
    /// # Errors
    ///
    /// The errors of `choose`. [`Error::Failed`] names the rank that failed, or does not come
    /// within the time limit. [`Error::Interrupted`] if this rank was asked to stop.
    pub fn agree<T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned>(
        self,
        step: &str,
        mine: T,
        choose: impl FnOnce(Vec<T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        match self.0 {
            Some(ranks) => ranks.exchange(step, Ok(mine), choose),
            None => choose(vec![mine]),
        }
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn barrier(self, step: &str) -> Result<(), Error> {
        self.agree(step, (), |_| Ok(()))
    }

    /// Returns the least of all ranks' values.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn least(self, step: &str, mine: f64) -> Result<f64, Error> {
        self.agree(step, mine, |all| Ok(all.into_iter().fold(f64::INFINITY, f64::min)))
    }

    /// Returns rank 0's value on each rank.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn of_first<T: Serialize + DeserializeOwned>(
        self,
        step: &str,
        mine: T,
    ) -> Result<T, Error> {
        self.agree(step, mine, |all| Ok(all.into_iter().next().expect("rank 0 is there")))
    }

    /// Ends a part of the work of all ranks: an error of any is the error of all.
    ///
    /// # Errors
    ///
    /// The error of `done`, or as [`Peers::agree`].
    pub fn end<T>(self, done: Result<T, Error>) -> Result<T, Error> {
        match (self.0, done) {
            (Some(ranks), Ok(done)) => {
                ranks.exchange("the end", Ok(()), |_| Ok(()))?;
                Ok(done)
            }
            // The starter asks every rank to stop.
            (Some(ranks), Err(error)) if !matches!(error, Error::Interrupted) => {
                ranks.exchange("the end", Err(error), |_: Vec<()>| Ok(()))?;
                unreachable!("the answer to an error is one")
            }
            (_, done) => done,
        }
    }
}

/// Returns the nodes of ranks that read these clocks after the same meetings.
fn nodes(all: &[(String, Vec<f64>)]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let least = |of: &mut dyn Iterator<Item = f64>| of.fold(f64::INFINITY, f64::min);
    let first_s = &all[0].1;
    let meeting_s = least(&mut first_s.windows(2).map(|pair| pair[1] - pair[0]));
    for (rank, (name, clock_s)) in (0..).zip(all) {
        // The ranks of a node share a clock.
        match nodes.iter_mut().find(|node| node.name == *name) {
            Some(node) => node.ranks.push(rank),
            None => nodes.push(Node {
                name: name.clone(),
                ranks: vec![rank],
                clock_offset_s: least(&mut clock_s.iter().zip(first_s).map(|(a, b)| a - b)),
                round_trip_s: (rank > 0).then_some(meeting_s),
            }),
        }
    }
    nodes
}

fn packed<T: Serialize>(value: T) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(unusable)
}

fn unpacked<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(unusable)
}

fn unusable(error: serde_json::Error) -> Error {
    Error::Failed(format!("a message of a rank: {error}"))
}

fn written(step: &str, said: &Result<Value, Error>) -> Vec<u8> {
    serde_json::to_vec(&(step, said)).expect("a message is JSON")
}

fn read(message: &[u8]) -> Result<Message, Error> {
    serde_json::from_slice(message).map_err(unusable)
}
