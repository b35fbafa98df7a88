//! The ranks under `mpirun` that a command measures with.

#[cfg(feature = "mpi")]
#[allow(unsafe_code)]
mod post;

use crate::args::Command;
#[cfg(feature = "mpi")]
use post::Mpi;
use std::time::Duration;
use wrote_jobs::peers::{Alone, Peers};
#[cfg(feature = "mpi")]
use wrote_jobs::peers::{Post, Ranks};
use wrote_result::{Error, Stop};

/// Variables with the number of ranks, of Open MPI, of MPICH and others (PMI), and of Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
/// Variables with the number of this rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The ranks that a command measures with.
#[derive(Debug, Default)]
pub struct Group {
    #[cfg(feature = "mpi")]
    joined: Option<Ranks<Mpi>>,
}

/// Returns whether this is a rank above 0 by its starter's variables: rank 0 reports for all.
pub fn is_quiet() -> bool {
    numbers(&RANKS, |name| std::env::var(name).ok()).is_some_and(|rank| rank > 0)
}

impl Group {
    /// Joins the ranks under `mpirun`, where the command measures and there are several. Returns
    /// the group also after an error: it must be ended.
    ///
    /// The error is [`Error::Usage`] where there are several ranks and this program was built
    /// without MPI; else it is one of [`Peers::meet`].
    pub fn join(command: &Command, stop: &Stop) -> (Group, Result<(), Error>) {
        let Some(hung_after) = hung_after(command) else { return (Group::default(), Ok(())) };
        let read = |name: &str| std::env::var(name).ok();
        let size = numbers(&SIZES, read).unwrap_or(1);
        let rank = numbers(&["PMIX_RANK"], read).unwrap_or(0);
        if size.max(rank + 1) == 1 {
            return (Group::default(), Ok(()));
        }
        Group::of_many(size, stop, hung_after)
    }

    #[cfg(feature = "mpi")]
    fn of_many(_size: u32, stop: &Stop, hung_after: Duration) -> (Group, Result<(), Error>) {
        let mpi = match Mpi::start() {
            Ok(mpi) => mpi,
            Err(error) => return (Group::default(), Err(error)),
        };
        if mpi.ranks() == 1 {
            let text = "the starter of this process says that there are several, and MPI says one: \
                        the MPI of mpirun is not the one that this program was built with";
            return (Group::default(), Err(Error::Usage(text.into())));
        }
        let mut ranks = Ranks::new(mpi, stop.clone(), hung_after);
        let joined = ranks.join();
        (Group { joined: Some(ranks) }, joined)
    }

    #[cfg(not(feature = "mpi"))]
    fn of_many(size: u32, _stop: &Stop, _hung_after: Duration) -> (Group, Result<(), Error>) {
        let refused = Error::Usage(format!(
            "started as one of {size} ranks, and this program was built without MPI: it would \
             measure {size} times; build it with --features mpi, or start it once"
        ));
        (Group::default(), Err(refused))
    }

    /// The ranks, or only this process.
    pub fn peers(&self) -> &dyn Peers {
        #[cfg(feature = "mpi")]
        if let Some(joined) = &self.joined {
            return joined;
        }
        &Alone
    }

    /// Ends the ranks with this exit code. If one of them does not end, all are ended.
    pub fn end(self, code: u8) {
        #[cfg(feature = "mpi")]
        if let Some(ranks) = self.joined {
            if code > 128 {
                // Interrupted: each rank ends by itself, since the others may be gone.
                ranks.leave();
                return ranks.into_post().leave();
            }
            let are_there = (code == 0 && ranks.rank() == 0) || ranks.part();
            let mpi = ranks.into_post();
            match are_there {
                true => mpi.end(),
                false => mpi.abort(code.into()),
            }
        }
        #[cfg(not(feature = "mpi"))]
        let _ = code;
    }
}

/// Returns how long a rank may keep the others waiting; `None` for a command that does not measure.
fn hung_after(command: &Command) -> Option<Duration> {
    match command {
        Command::Bench(of) if !of.list && !of.schema => Some(of.ranks.rank_timeout),
        Command::Run(of) if !of.check => Some(of.ranks.rank_timeout),
        Command::Langs(of) if !of.list => Some(of.rank_timeout.rank_timeout),
        _ => None,
    }
}

/// The first of these variables that is a number.
fn numbers(names: &[&str], read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    names.iter().find_map(|name| read(name)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranks_is_that_of_whichever_starter_says_it() {
        let say = |known: &'static str| move |name: &str| (name == known).then(|| "4".to_owned());
        for known in SIZES {
            assert_eq!(numbers(&SIZES, say(known)), Some(4), "{known}");
        }
        assert_eq!(numbers(&SIZES, say("HOME")), None);
        assert_eq!(numbers(&SIZES, |_| Some("many".into())), None);
    }
}
