//! The ranks under `mpirun` that a command measures with.

#[cfg(feature = "mpi")]
#[allow(unsafe_code)]
mod post;

use crate::args::Command;
use std::time::Duration;
use wrote_jobs::peers::{Peers, Ranks};
use wrote_result::{Error, Stop};

/// Variables with the number of ranks, of Open MPI, of MPICH and others (PMI), and of Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
/// Variables with the number of this rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The ranks that a command measures with; `None` for a single process.
#[derive(Default)]
pub struct Group(Option<Ranks>);

/// Returns whether this is a rank above 0 by its starter's variables: rank 0 reports for all.
pub fn is_quiet() -> bool {
    number(&RANKS).is_some_and(|rank| rank > 0)
}

impl Group {
    /// Joins the ranks under `mpirun`, where the command measures and there are several. Returns
    /// the group also after an error: it must be ended.
    ///
    /// The error is [`Error::Usage`] if there are several ranks, and the command measures by a
    /// single process, or this program was built without MPI; else it is one of [`Ranks::join`].
    pub fn join(command: &Command, stop: &Stop) -> (Group, Result<(), Error>) {
        let mut group = Group::default();
        let size = number(&SIZES).unwrap_or(1).max(number(&["PMIX_RANK"]).unwrap_or(0) + 1);
        let joined = match command {
            _ if size == 1 => Ok(()),
            Command::Bench(of) if !of.list && !of.schema => {
                group.start(size, stop, of.ranks.rank_timeout)
            }
            Command::Run(of) if !of.check => group.start(size, stop, of.ranks.rank_timeout),
            Command::Langs(of) if !of.list => {
                Err(Error::Usage("langs measures by one process; mpirun started several".into()))
            }
            _ => Ok(()),
        };
        (group, joined)
    }

    #[cfg(feature = "mpi")]
    fn start(&mut self, _size: u32, stop: &Stop, hung_after: Duration) -> Result<(), Error> {
        let post = post::MpiPost::start()?;
        if wrote_jobs::peers::Post::ranks(&post) == 1 {
            let text = "the starter of this process says that there are several, and MPI says one: \
                        the MPI of mpirun is not the one that this program was built with";
            return Err(Error::Usage(text.into()));
        }
        self.0.insert(Ranks::new(Box::new(post), stop.clone(), hung_after)).join()
    }

    #[cfg(not(feature = "mpi"))]
    fn start(&mut self, size: u32, _stop: &Stop, _hung_after: Duration) -> Result<(), Error> {
        Err(Error::Usage(format!(
            "started as one of {size} ranks, and this program was built without MPI: it would \
             measure {size} times; build it with --features mpi, or start it once"
        )))
    }

    /// Returns the ranks, or only this process.
    pub fn peers(&self) -> Peers<'_> {
        self.0.as_ref().map_or(Peers::ALONE, Ranks::peers)
    }

    /// Returns whether this process reports errors that all ranks meet: rank 0 does, by its
    /// starter's variables, and each rank that lost rank 0.
    pub fn tells(&self) -> bool {
        !is_quiet() || self.0.as_ref().is_some_and(Ranks::is_lost)
    }

    /// Ends the ranks with this exit code. If one of them hangs, all are ended.
    pub fn end(self, code: u8) {
        if let Some(ranks) = self.0 {
            ranks.end(code);
        }
    }
}

/// Returns the first of these variables that is a number.
fn number(names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
