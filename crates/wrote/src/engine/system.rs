//! The choice of the ground below engines. Apart, because an engine is opened from it, and the
//! ground itself knows no engine.

use super::names::Folder;
use super::{Callers, Engine, Options, Sim};
use crate::Error;
use std::path::Path;

/// The ground below engines: the kernel, or a simulated disk.
#[derive(Clone)]
pub(crate) enum System {
    Kernel,
    Simulated(Sim),
}

impl System {
    /// Holds the folder of a log open, after `make` has made it where it is missing; `None` on a
    /// disk without folders, where nothing is made.
    #[cfg(feature = "log")]
    pub(crate) fn hold(
        &self,
        folder: &Path,
        make: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Option<Folder>, Error> {
        match self {
            System::Kernel => make().and_then(|()| Folder::open(folder)).map(Some),
            System::Simulated(_) => Ok(None),
        }
    }

    pub(crate) fn open(&self, options: &Options, callers: Callers) -> Result<Engine, Error> {
        match self {
            System::Kernel => Engine::open_for(options, callers),
            System::Simulated(sim) => Engine::on(sim.backend(), options, callers),
        }
    }
}
