//! `wrote._wrote`: the native part of the Python package. `python/wrote` builds files of Python and
//! tasks of asyncio on it. This file is short because it only lists what the module exports.

mod border;
mod files;
mod lines;
mod log;
mod log_reader;

/// The native part of the package `wrote`.
#[pyo3::pymodule]
mod _wrote {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python gives it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::border::{
        Alignment, Damaged, Differs, Engine, Foreign, Forked, Interfered, Interrupted, NotYet,
        Poisoned, Refused, TooLong, Truncated,
    };
    #[pymodule_export]
    use crate::files::{
        AtomicWrites, RawReader, RawWriter, Written, atomic_writes, copy, write, write_new,
    };
    #[pymodule_export]
    use crate::lines::Lines;
    #[pymodule_export]
    use crate::log::{Log, Ticket, Waits};
    #[pymodule_export]
    use crate::log_reader::{LogReader, Record};
}
