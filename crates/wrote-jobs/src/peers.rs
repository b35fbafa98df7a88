//! Processes that measure together, each a rank. They have one kind of exchange: every rank sends
//! rank 0 a value or its error, and rank 0 sends all of them one answer.

#[cfg(test)]
pub(crate) mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
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
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> u32;

    /// Returns the number of ranks.
    fn ranks(&self) -> u32;

    /// Returns the name of the node that this rank is on.
    fn node(&self) -> String;

    /// Sends a message without waiting for its receiver.
    fn send(&self, to: u32, message: Vec<u8>);

    /// Returns the next message with its sender, if there is one.
    fn receive(&self) -> Option<(u32, Vec<u8>)>;

    /// Ends this rank with an exit code; if one of them `is_lost`, all.
    fn end(self: Box<Self>, code: u8, is_lost: bool);
}

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
    /// The timed parts of the run so far, by rank 0's clock.
    parts: RefCell<Vec<Part>>,
}

/// A timed part of a run: its start and its end in seconds since 1970.
pub type Part = (f64, f64);

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
        let (nodes, broken) = (Vec::new(), RefCell::default());
        let (is_lost, parts) = (Cell::default(), RefCell::default());
        Ranks { post, stop, hung_after, nodes, met, broken, is_lost, parts }
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
            clock_s.push(now_s());
        }
        let mine = (self.post.node(), clock_s);
        self.nodes = peers.agree("clocks", mine, |all| Ok(nodes(&all)))?;
        Ok(())
    }

    /// Returns the ranks, to be passed on.
    pub fn peers(&self) -> Peers<'_> {
        Peers(Some(self))
    }

    /// Returns whether a rank did not come, or rank 0 did not answer: not all end by themselves.
    pub fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// Ends this rank with an exit code. If one of the ranks is lost, ends all ranks.
    pub fn end(self, code: u8) {
        self.post.end(code, self.is_lost.get());
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
        let answer = match self.post.rank() {
            0 => self.lead(step, mine, choose),
            _ => self.follow(step, &mine),
        };
        self.met.set(Instant::now());
        if let Err(error) = &answer {
            *self.broken.borrow_mut() = Some(error.clone());
        }
        answer
    }

    /// On rank 0: waits for all others, and sends them the answer.
    fn lead<T: DeserializeOwned, A: Serialize>(
        &self,
        step: &str,
        mine: Result<T, Error>,
        choose: impl FnOnce(Vec<T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        let mut said: BTreeMap<u32, Result<T, Error>> = BTreeMap::from([(0, mine)]);
        let (began, limit) = (Instant::now(), self.limit());
        let ranks = 0..self.post.ranks();
        while said.len() < ranks.len() && began.elapsed() <= limit {
            self.stop.check()?;
            match self.post.receive() {
                Some((from, message)) => drop(said.insert(from, read(step, &message))),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
        let missing: Vec<u32> = ranks.clone().filter(|rank| !said.contains_key(rank)).collect();
        self.is_lost.set(!missing.is_empty());
        // The first error is everybody's; a rank that does not come may only follow from it.
        let all =
            said.into_iter().map(|(rank, said)| said.map_err(|error| self.named(rank, error)));
        let answer = match all.collect::<Result<Vec<T>, Error>>() {
            Ok(_) if self.is_lost.get() => Err(self.missing(&missing, step, began.elapsed())),
            all => all.and_then(choose),
        };
        let message = written(step, &answer);
        ranks.skip(1).for_each(|rank| self.post.send(rank, message.clone()));
        answer
    }

    /// On another rank: reports to rank 0, and waits for the answer.
    fn follow<A: DeserializeOwned>(
        &self,
        step: &str,
        mine: &Result<impl Serialize, Error>,
    ) -> Result<A, Error> {
        let (began, limit) = (Instant::now(), self.limit() * SLOWER_MAX);
        self.post.send(0, written(step, mine));
        while began.elapsed() <= limit {
            self.stop.check()?;
            if let Some((_, message)) = self.post.receive() {
                return read(step, &message);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.is_lost.set(true);
        Err(self.missing(&[0], step, began.elapsed()))
    }

    /// Returns how long to wait for others, by the time that this rank needed for the same work.
    fn limit(&self) -> Duration {
        self.hung_after.max(self.met.get().elapsed() * SLOWER_MAX)
    }

    /// Names the rank that failed. All ranks refuse bad usage alike.
    fn named(&self, rank: u32, error: Error) -> Error {
        match error {
            Error::Failed(text) => Error::Failed(format!("{}: {text}", self.name(rank))),
            other => other,
        }
    }

    fn name(&self, rank: u32) -> String {
        match self.peers().node(rank) {
            Some(node) => format!("rank {rank} on {}", node.name),
            None => format!("rank {rank}"),
        }
    }

    fn missing(&self, ranks: &[u32], step: &str, time: Duration) -> Error {
        let names: Vec<String> = ranks.iter().map(|rank| self.name(*rank)).collect();
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

    /// Returns the number of this process, from 0.
    pub fn rank(self) -> u32 {
        self.0.map_or(0, |ranks| ranks.post.rank())
    }

    /// Returns the number of processes.
    pub fn ranks(self) -> u32 {
        self.0.map_or(1, |ranks| ranks.post.ranks())
    }

    /// Returns whether several processes measure together.
    pub fn are_many(self) -> bool {
        self.0.is_some()
    }

    /// Returns whether this is the rank that decides, and reports to the user.
    pub fn is_first(self) -> bool {
        self.rank() == 0
    }

    /// Returns the node of a rank, if there are several and they have joined.
    pub fn node(self, rank: u32) -> Option<&'a Node> {
        self.0?.nodes.iter().find(|node| node.ranks.contains(&rank))
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

    /// Returns when every rank has called `barrier`.
    ///
    /// # Errors
    ///
    /// As [`Peers::agree`].
    pub fn barrier(self, step: &str) -> Result<(), Error> {
        self.agree(step, (), |_| Ok(()))
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
    pub fn end(self, done: Result<(), Error>) -> Result<(), Error> {
        match self.0 {
            // The starter asks every rank to stop.
            Some(ranks) if !matches!(done, Err(Error::Interrupted)) => {
                ranks.exchange("the end", done, |_| Ok(()))
            }
            _ => done,
        }
    }

    /// Adds a timed part of a run, which all ranks began together. It began and ended at these
    /// seconds since 1970 by this rank's clock.
    pub fn is_over(self, (began_s, ended_s): Part) {
        let ahead_s = self.node(self.rank()).map_or(0.0, |node| node.clock_offset_s);
        let part = (began_s - ahead_s, ended_s - ahead_s);
        self.0.inspect(|ranks| ranks.parts.borrow_mut().push(part));
    }

    /// Takes the timed parts since the last call, by rank 0's clock.
    pub(crate) fn parts(self) -> Vec<Part> {
        self.0.map(|ranks| ranks.parts.take()).unwrap_or_default()
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

/// Returns the time by this machine's clock, in seconds since 1970.
pub(crate) fn now_s() -> f64 {
    jiff::Timestamp::now().as_nanosecond() as f64 / 1e9
}

/// The only message: a step, and the sender's value or the error that ends its work.
fn written(step: &str, said: &Result<impl Serialize, Error>) -> Vec<u8> {
    serde_json::to_vec(&(step, said)).expect("a message is JSON")
}

fn read<T: DeserializeOwned>(step: &str, message: &[u8]) -> Result<T, Error> {
    let unusable = |error| Error::Failed(format!("a message of a rank: {error}"));
    let message = serde_json::from_slice(message).map_err(unusable)?;
    let (at, said): (String, Result<Value, Error>) = message;
    match said? {
        said if at == step => serde_json::from_value(said).map_err(unusable),
        _ => Err(Error::Failed(format!("is at {at}, and rank 0 at {step}"))),
    }
}
