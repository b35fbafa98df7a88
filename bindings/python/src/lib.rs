//! `wrote._wrote`: the native part of the Python package. `python/wrote` makes files of Python and
//! tasks of asyncio from it.

mod buffer;
mod error;
mod log;
mod log_reader;
mod path;
mod reader;
mod save;
mod sync;
mod waits;
mod writer;

/// The native part of the package `wrote`.
#[pyo3::pymodule]
mod _wrote {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python gives it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::error::{
        Alignment, Damaged, Differs, Engine, Foreign, Forked, Interfered, Interrupted, NotYet,
        Poisoned, Refused, TooLong, Truncated,
    };
    #[pymodule_export]
    use crate::log::{Log, Ticket};
    #[pymodule_export]
    use crate::log_reader::{LogReader, Record};
    #[pymodule_export]
    use crate::reader::RawReader;
    #[pymodule_export]
    use crate::save::{copy, write, write_new};
    #[pymodule_export]
    use crate::waits::Waits;
    #[pymodule_export]
    use crate::writer::{RawWriter, Written};
}
