//! Processes that measure together, each of them a rank. There is only one kind of exchange: every
//! rank sends rank 0 a value or an error, and rank 0 sends the same answer to all.

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

/// The interval between checks for new messages.
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// The maximum ratio of the times that two ranks may take for the same work.
const SLOWER_MAX: u32 = 10;
/// The number of barriers after which all ranks read their clocks. The smallest difference between
/// two clocks is taken as their offset.
const CLOCK_READS: usize = 10;

/// A carrier of messages between ranks. Messages from one rank to another arrive in order.
pub trait Post {
    /// Returns the number of this rank, starting at 0.
    fn rank(&self) -> u32;

    /// Returns the number of ranks.
    fn ranks(&self) -> u32;

    /// Returns the name of the node that this rank is on.
    fn node(&self) -> String;

    /// Sends a message without waiting for its receiver.
    fn send(&self, to: u32, message: Vec<u8>);

    /// Returns the next message and its sender; `None` if no message has arrived.
    fn receive(&self) -> Option<(u32, Vec<u8>)>;

    /// Ends this rank with an exit code. If any rank `is_lost`, ends all ranks.
    fn end(self: Box<Self>, code: u8, is_lost: bool);
}

/// All ranks, from the point of view of one of them.
pub struct Ranks {
    post: Box<dyn Post>,
    stop: Stop,
    /// The minimum time after which a missing rank is taken to hang.
    hung_after: Duration,
    nodes: Vec<Node>,
    /// When the last exchange ended.
    met: Cell<Instant>,
    broken: RefCell<Option<Error>>,
    is_lost: Cell<bool>,
    /// The timed parts of the run so far, in the time of rank 0's clock.
    parts: RefCell<Vec<Part>>,
}

/// A timed part of a run: its start and end, in seconds since 1970.
pub type Part = (f64, f64);

impl Debug for Ranks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.post.rank(), self.post.ranks())
    }
}

impl Ranks {
    /// Returns the ranks that `post` connects. They know nothing about each other yet.
    ///
    /// A rank is taken to hang if it arrives more than `hung_after` later than rank 0, and also
    /// later than ten times the time that rank 0 needed. The other ranks wait ten times as long for
    /// rank 0.
    pub fn new(post: Box<dyn Post>, stop: Stop, hung_after: Duration) -> Ranks {
        let met = Cell::new(Instant::now());
        let (nodes, broken) = (Vec::new(), RefCell::default());
        let (is_lost, parts) = (Cell::default(), RefCell::default());
        Ranks { post, stop, hung_after, nodes, met, broken, is_lost, parts }
    }

    /// Joins the ranks. Each rank learns the nodes of all ranks, and the offsets of their clocks,
    /// which the ranks read when the answer of an exchange arrives.
    ///
    /// # Errors
    ///
    /// The errors of [`Peers::agree`].
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

    /// Returns a handle on the ranks that can be passed on.
    pub fn peers(&self) -> Peers<'_> {
        Peers(Some(self))
    }

    /// Returns whether a rank has not arrived, or rank 0 has not answered. In that case, some ranks
    /// would never exit by themselves.
    pub fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// Ends this rank with an exit code. If a rank is lost, ends all ranks.
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

    /// As rank 0, waits for the values of all other ranks, and sends them the answer.
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
        // The first error becomes the error of all ranks. It takes precedence over a missing rank,
        // which may be a consequence of it.
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

    /// As any other rank, sends its value to rank 0, and waits for the answer.
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

    /// Returns how long to wait for other ranks, given the time that this rank needed for the same
    /// work.
    fn limit(&self) -> Duration {
        self.hung_after.max(self.met.get().elapsed() * SLOWER_MAX)
    }

    /// Adds the name of the failed rank to an error. Errors of usage are the same on all ranks, so
    /// they name no rank.
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
            "{} was more than {:.0} s behind the others ({step}): it hangs, or is far slower",
            units::some_of(&names, finding::NAMES_MAX),
            time.as_secs_f64(),
        ))
    }
}

/// The processes that measure together.
///
/// Every rank makes the same calls in the same order. Once a call has returned an error, the group
/// is broken, and each later call immediately returns that error.
#[derive(Clone, Copy, Debug)]
pub struct Peers<'a>(Option<&'a Ranks>);

impl<'a> Peers<'a> {
    /// A single process: rank 0 of 1.
    pub const ALONE: Peers<'static> = Peers(None);

    /// Returns the number of this process, starting at 0.
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

    /// Returns whether this rank makes the decisions and reports to the user.
    pub fn is_first(self) -> bool {
        self.rank() == 0
    }

    /// Returns the node of a rank; `None` for a single process, or before the ranks have joined.
    pub fn node(self, rank: u32) -> Option<&'a Node> {
        self.0?.nodes.iter().find(|node| node.ranks.contains(&rank))
    }

    /// Returns the ranks in the form used in results; `None` for a single process.
    pub fn shown(self, files: document::RankFiles) -> Option<document::Ranks> {
        let nodes = self.0?.nodes.clone();
        let on_node = nodes.iter().map(|node| node.ranks.len() as u32);
        let ranks_per_node = on_node.max().unwrap_or(1);
        Some(document::Ranks { ranks: self.ranks(), ranks_per_node, files, nodes })
    }

    /// Returns the result of `choose`, which rank 0 calls on the values of all ranks. Every rank
    /// gets the same result.
    ///
    /// # Errors
    ///
    /// The errors of `choose`. [`Error::Failed`] if a rank failed or did not arrive within the time
    /// limit; the message names the rank. [`Error::Interrupted`] if this rank has been asked to
    /// stop.
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

    /// Returns once every rank has called `barrier`.
    ///
    /// # Errors
    ///
    /// The errors of [`Peers::agree`].
    pub fn barrier(self, step: &str) -> Result<(), Error> {
        self.agree(step, (), |_| Ok(()))
    }

    /// Returns the value of rank 0, on every rank.
    ///
    /// # Errors
    ///
    /// The errors of [`Peers::agree`].
    pub fn of_first<T: Serialize + DeserializeOwned>(
        self,
        step: &str,
        mine: T,
    ) -> Result<T, Error> {
        self.agree(step, mine, |all| Ok(all.into_iter().next().expect("rank 0 is there")))
    }

    /// Ends a part of the work of all ranks. An error on one rank is returned on all ranks, except
    /// that an interrupted rank returns immediately.
    ///
    /// # Errors
    ///
    /// The error of `done`, or an error of [`Peers::agree`].
    pub fn end(self, done: Result<(), Error>) -> Result<(), Error> {
        match self.0 {
            // After an interruption, the launcher asks every rank to stop.
            Some(ranks) if !matches!(done, Err(Error::Interrupted)) => {
                ranks.exchange("the end", done, |_| Ok(()))
            }
            _ => done,
        }
    }

    /// Adds a timed part of a run, which all ranks began together. Its start and end are times of
    /// this rank's clock.
    pub fn is_over(self, (began_s, ended_s): Part) {
        let ahead_s = self.node(self.rank()).map_or(0.0, |node| node.clock_offset_s);
        let part = (began_s - ahead_s, ended_s - ahead_s);
        self.0.inspect(|ranks| ranks.parts.borrow_mut().push(part));
    }

    /// Returns the timed parts added since the last call, converted to rank 0's clock.
    pub(crate) fn parts(self) -> Vec<Part> {
        self.0.map(|ranks| ranks.parts.take()).unwrap_or_default()
    }
}

/// Returns the nodes of all ranks, given the node of each rank and the clock readings that it took
/// after each barrier.
fn nodes(all: &[(String, Vec<f64>)]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let least = |of: &mut dyn Iterator<Item = f64>| of.fold(f64::INFINITY, f64::min);
    let first_s = &all[0].1;
    let meeting_s = least(&mut first_s.windows(2).map(|pair| pair[1] - pair[0]));
    for (rank, (name, clock_s)) in (0..).zip(all) {
        // All ranks on a node have the same clock.
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

/// Returns the current time of this machine's clock, in seconds since 1970.
pub(crate) fn now_s() -> f64 {
    jiff::Timestamp::now().as_nanosecond() as f64 / 1e9
}

/// Returns a message: a step, with the sender's value or the error that ended its work. There are
/// no other messages.
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
