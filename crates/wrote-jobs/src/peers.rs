//! Processes that measure together, each a rank: their meetings, nodes and messages.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::Duration;
use wrote_result::Error;
use wrote_result::document::{self, Node};

mod protocol;
pub mod threads;

pub use protocol::Ranks;

/// A timed part of a run: its start and its end in seconds since 1970, by the clock of rank 0.
pub type Part = (f64, f64);

/// Makes rank 0's answer from the values of all ranks, in the order of the ranks.
pub type Answer<'a> = &'a mut dyn FnMut(Vec<Vec<u8>>) -> Result<Vec<u8>, Error>;

/// The processes that measure together. A single process is [`Alone`].
///
/// Every rank makes the same calls in the same order. Where a call returns an error, the group is
/// broken: each later call returns that error at once.
pub trait Peers: Debug {
    /// The number of this process, from 0.
    fn rank(&self) -> u32;

    /// The number of processes.
    fn ranks(&self) -> u32;

    /// The nodes that the ranks are on, and their clocks.
    fn places(&self) -> &Places;

    /// Returns when every rank has called it, with the answer that rank 0 made from every rank's
    /// `mine`. A rank may come `patience` later than another, or later still as the implementation
    /// allows.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] names the rank that failed, is gone, or does not come within the time
    /// limit; [`Error::Interrupted`] if a rank was asked to stop.
    fn meet(
        &self,
        step: &'static str,
        patience: Duration,
        mine: Vec<u8>,
        answer: Answer,
    ) -> Result<Vec<u8>, Error>;

    /// Informs the other ranks that this one cannot continue, unless they know that the group is
    /// broken. Does not wait for them. Returns the error to report: the first one of the group.
    fn fail(&self, error: Error) -> Error;

    /// Whether this rank reports errors to the user: rank 0 does, and each rank that lost rank 0.
    fn tells(&self) -> bool {
        self.rank() == 0
    }

    /// Ends the group, and returns when each rank has called it, or some seconds later. Returns
    /// `false` where a rank did not come.
    fn part(&self) -> bool;
}

impl dyn Peers + '_ {
    /// Whether several processes measure together.
    pub fn are_many(&self) -> bool {
        self.ranks() > 1
    }

    /// Whether this is the rank that reports.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn barrier(&self, step: &'static str) -> Result<(), Error> {
        self.barrier_within(Duration::ZERO, step)
    }

    /// Returns when every rank has called it. Some ranks may first have work of up to `patience`
    /// that others do not have.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn barrier_within(&self, patience: Duration, step: &'static str) -> Result<(), Error> {
        match self.are_many() {
            true => self.meet(step, patience, Vec::new(), &mut |_| Ok(Vec::new())).map(drop),
            false => Ok(()),
        }
    }

    /// Returns the result of `choose` on all ranks' values, the same on each rank.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`], and the errors of `choose`.
    pub fn agree<T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned>(
        &self,
        step: &'static str,
        mine: T,
        choose: impl FnMut(Vec<T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        self.agree_within(Duration::ZERO, step, mine, choose)
    }

    /// Returns the result of `choose` on all ranks' values, the same on each rank. Some ranks may
    /// first have work of up to `patience` that others do not have.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`], and the errors of `choose`.
    pub fn agree_within<T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned>(
        &self,
        patience: Duration,
        step: &'static str,
        mine: T,
        mut choose: impl FnMut(Vec<T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        if !self.are_many() {
            return choose(vec![mine]);
        }
        let answer = self.meet(step, patience, packed(&mine)?, &mut |all| {
            let all = all.iter().map(|one| unpacked(one)).collect::<Result<Vec<T>, Error>>()?;
            packed(&choose(all)?)
        })?;
        unpacked(&answer)
    }

    /// Returns the least of all ranks' values.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn least(&self, step: &'static str, mine: f64) -> Result<f64, Error> {
        self.agree(step, mine, |all| Ok(all.into_iter().fold(f64::INFINITY, f64::min)))
    }

    /// Returns all ranks' values on rank 0, and nothing on the others.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn gather<T: Serialize + DeserializeOwned>(
        &self,
        step: &'static str,
        mine: T,
    ) -> Result<Vec<T>, Error> {
        let mut gathered = Vec::new();
        self.agree(step, mine, |all| {
            gathered = all;
            Ok(())
        })?;
        Ok(gathered)
    }

    /// Returns by how many ranks reads are shifted: to the next node, or on a single node to the
    /// next rank.
    pub fn shift(&self) -> u32 {
        let places = self.places();
        if places.nodes.len() == 1 { 1 } else { places.ranks_per_node() }
    }

    /// Returns rank 0's value on each rank.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn of_first<T: Serialize + DeserializeOwned>(
        &self,
        step: &'static str,
        mine: T,
    ) -> Result<T, Error> {
        self.agree(step, mine, |all| Ok(all.into_iter().next().expect("rank 0 is there")))
    }
}

fn packed(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::Failed(format!("a message: {error}")))
}

fn unpacked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Failed(format!("a message: {error}")))
}

/// One process: rank 0 of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Peers for Alone {
    fn rank(&self) -> u32 {
        0
    }

    fn ranks(&self) -> u32 {
        1
    }

    fn places(&self) -> &Places {
        static HERE: OnceLock<Places> = OnceLock::new();
        HERE.get_or_init(Places::alone)
    }

    fn meet(
        &self,
        _: &'static str,
        _: Duration,
        mine: Vec<u8>,
        answer: Answer,
    ) -> Result<Vec<u8>, Error> {
        answer(vec![mine])
    }

    fn fail(&self, error: Error) -> Error {
        error
    }

    fn part(&self) -> bool {
        true
    }
}

/// The nodes of the ranks, and the offsets of their clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// The nodes, in the order of their first ranks.
    pub nodes: Vec<Node>,
    /// The node of each rank, as its number in `nodes`.
    pub of_rank: Vec<usize>,
}

/// A clock as rank 0 sees it: the shortest of some round trips.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Look {
    pub offset_s: f64,
    pub round_trip_s: f64,
}

impl Places {
    /// The only rank on the only node.
    fn alone() -> Places {
        Places::of(vec![String::new()], &[None])
    }

    /// Returns the places of ranks on these nodes. `looks` has clock readings of some of them.
    fn of(names: Vec<String>, looks: &[Option<Look>]) -> Places {
        let mut places = Places::default();
        for (rank, (name, look)) in names.into_iter().zip(looks).enumerate() {
            let known = places.nodes.iter().position(|node| node.name == name);
            let number = known.unwrap_or(places.nodes.len());
            if known.is_none() {
                let node =
                    Node { name, ranks: Vec::new(), clock_offset_s: 0.0, round_trip_s: None };
                places.nodes.push(node);
            }
            let node = &mut places.nodes[number];
            node.ranks.push(rank as u32);
            // The ranks of a node share a clock, which the shortest round trip measures best.
            if let Some(look) = look
                && node.round_trip_s.is_none_or(|known_s| look.round_trip_s < known_s)
            {
                (node.clock_offset_s, node.round_trip_s) = (look.offset_s, Some(look.round_trip_s));
            }
            places.of_rank.push(number);
        }
        places
    }

    /// Returns how far a rank's clock is ahead of rank 0's. Ranks on rank 0's node share its clock.
    pub fn offset_s(&self, rank: u32) -> f64 {
        match self.of_rank[rank as usize] {
            0 => 0.0,
            node => self.nodes[node].clock_offset_s,
        }
    }

    /// Returns the name of a rank's node.
    pub fn node(&self, rank: u32) -> &str {
        &self.nodes[self.of_rank[rank as usize]].name
    }

    /// Returns the most ranks on a node.
    pub fn ranks_per_node(&self) -> u32 {
        self.nodes.iter().map(|node| node.ranks.len() as u32).max().unwrap_or(1)
    }

    /// Returns them as in a result.
    pub fn shown(&self, files: document::RankFiles, reorder: Option<u32>) -> document::Ranks {
        document::Ranks {
            ranks: self.of_rank.len() as u32,
            ranks_per_node: self.ranks_per_node(),
            files,
            reorder,
            nodes: self.nodes.clone(),
        }
    }
}

/// Carries messages from rank to rank. Messages from one rank to another arrive in order.
pub trait Post: Debug {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// The number of ranks.
    fn ranks(&self) -> u32;

    /// The name of the node that this rank is on.
    fn node(&self) -> String;

    /// The time by this rank's clock, in seconds since 1970.
    fn clock_s(&self) -> f64 {
        jiff::Timestamp::now().as_nanosecond() as f64 / 1e9
    }

    /// Sends a message without waiting for its receiver.
    fn send(&self, to: u32, message: Vec<u8>);

    /// Returns the next message with its sender, if there is one.
    fn receive(&self) -> Option<(u32, Vec<u8>)>;

    /// Waits a little for a message, at most `time`.
    fn rest(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
