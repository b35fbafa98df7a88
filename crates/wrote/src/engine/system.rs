//! The choice between the kernel and a simulated disk, and the opening of engines on it. It is a
//! separate file because a backend knows nothing of engines.

use super::names::Folder;
use super::{Callers, Engine, Options, Sim};
use crate::Error;
#[cfg(feature = "log")]
use crate::device;
use std::path::Path;

/// The system on which an engine runs: the kernel, or a simulated disk.
#[derive(Clone)]
pub(crate) enum System {
    Kernel,
    Simulated(Sim),
}

impl System {
    /// Holds the folder of a log open. If it is missing, `make` creates it first. On a simulated
    /// disk, folders are only names, so nothing is created.
    #[cfg(feature = "log")]
    pub(crate) fn hold(
        &self,
        folder: &Path,
        make: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Folder, Error> {
        match self {
            System::Kernel => make().and_then(|()| Folder::open(folder)),
            System::Simulated(_) => Ok(Folder::named(folder)),
        }
    }

    /// Examines the storage below a folder. A simulated disk has none that can be examined.
    #[cfg(feature = "log")]
    pub(crate) fn examine(&self, folder: &Path) -> Result<device::Target, Error> {
        match self {
            System::Kernel => device::examine(folder),
            System::Simulated(_) => Ok(device::Target::default()),
        }
    }

    /// Returns whether time passes by itself, so that calls can be timed and a thread can do the
    /// work for which no caller waits. If time does not pass by itself, a seed reproduces a run
    /// exactly.
    #[cfg(feature = "log")]
    pub(crate) fn has_time(&self) -> bool {
        matches!(self, System::Kernel)
    }

    pub(crate) fn open(&self, options: &Options, callers: Callers) -> Result<Engine, Error> {
        match self {
            System::Kernel => Engine::open_for(options, callers),
            System::Simulated(sim) => Engine::on(sim.backend(), options, callers),
        }
    }
}
