//! The choice of the system below engines. It is a separate file because it opens engines, and the
//! system itself does not know them.

use super::names::Folder;
use super::{Callers, Engine, Options, Sim};
use crate::Error;
#[cfg(feature = "log")]
use crate::device;
use std::path::Path;

/// The system below engines: the kernel, or a simulated disk.
#[derive(Clone)]
pub(crate) enum System {
    Kernel,
    Simulated(Sim),
}

impl System {
    /// Holds the folder of a log open. If it is missing, `make` creates it first. A simulated disk
    /// only has names of folders, so nothing is created there.
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

    /// Examines the storage below a folder, as far as it is known.
    #[cfg(feature = "log")]
    pub(crate) fn examine(&self, folder: &Path) -> Result<device::Target, Error> {
        match self {
            System::Kernel => device::examine(folder),
            System::Simulated(_) => Ok(device::Target::default()),
        }
    }

    /// Returns whether time passes by itself, so that calls can be timed and a thread can do the
    /// work for which no caller waits. If it does not, a seed repeats a run.
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
