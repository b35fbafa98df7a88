//! The ranks under `mpirun` that measure together.

#[cfg(feature = "mpi")]
#[allow(unsafe_code)]
mod post;

use crate::args::Command;
use std::time::Duration;
use wrote_jobs::peers::{Peers, Ranks};
use wrote_result::{Error, Stop};

/// The environment variables with the number of ranks, from Open MPI, from MPICH and others (PMI),
/// and from Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
/// The environment variables with the number of this rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The ranks that measure together; `None` for a single process.
#[derive(Default)]
pub struct Group(Option<Ranks>);

/// Returns whether this is a rank above 0, according to the launcher's variables. Rank 0 reports
/// for all.
pub fn is_quiet() -> bool {
    number(&RANKS).is_some_and(|rank| rank > 0)
}

impl Group {
    /// Joins the ranks under `mpirun`, if there are several and the command measures. Returns the
    /// group even after an error, because [`Group::end`] must still be called.
    ///
    /// The error is [`Error::Usage`] if there are several ranks but the command measures with a
    /// single process, or if this program was built without MPI. Otherwise, it is an error of
    /// [`Ranks::join`].
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
                Err(Error::Usage("langs runs as one process; mpirun started several".into()))
            }
            _ => Ok(()),
        };
        (group, joined)
    }

    #[cfg(feature = "mpi")]
    fn start(&mut self, _size: u32, stop: &Stop, hung_after: Duration) -> Result<(), Error> {
        let post = post::MpiPost::start()?;
        if wrote_jobs::peers::Post::ranks(&post) == 1 {
            let text = "the launcher started several processes, but MPI sees one: mpirun belongs \
                        to another MPI than the one that this program was built with";
            return Err(Error::Usage(text.into()));
        }
        self.0.insert(Ranks::new(Box::new(post), stop.clone(), hung_after)).join()
    }

    #[cfg(not(feature = "mpi"))]
    fn start(&mut self, size: u32, _stop: &Stop, _hung_after: Duration) -> Result<(), Error> {
        Err(Error::Usage(format!(
            "started as one of {size} ranks, but this program was built without MPI and would \
             measure {size} times: build it with --features mpi, or start it once"
        )))
    }

    /// Returns the ranks, or this process alone.
    pub fn peers(&self) -> Peers<'_> {
        self.0.as_ref().map_or(Peers::ALONE, Ranks::peers)
    }

    /// Returns whether this process reports errors that occur on all ranks. Rank 0 does, according
    /// to the launcher's variables, and so does each rank that has lost another.
    pub fn tells(&self) -> bool {
        !is_quiet() || self.0.as_ref().is_some_and(Ranks::is_lost)
    }

    /// Ends this rank with this exit code. If a rank is lost, ends all ranks.
    pub fn end(self, code: u8) {
        if let Some(ranks) = self.0 {
            ranks.end(code);
        }
    }
}

/// Returns the value of the first of these variables that is set to a number; `None` if there is
/// none.
fn number(names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
