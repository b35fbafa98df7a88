//! Processes that measure together, each a rank, and their meetings.

mod places;
mod post;
mod protocol;
pub mod threads;

pub use places::Places;
pub use post::Post;
pub use protocol::Ranks;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::Duration;
use wrote_result::Error;

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
