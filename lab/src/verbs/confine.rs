//! `lab confine`: runs a command as in a restrictive container, with io_uring refused or lockable
//! memory limited.

use super::Trouble;
use clap::ValueEnum;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `io_uring_setup(2)`, `io_uring_enter(2)` and `io_uring_register(2)`. Calls added in Linux 5.0
/// and later have the same number on all architectures.
const IO_URING_CALLS: [i64; 3] = [425, 426, 427];

/// Run a command with less allowed.
#[derive(clap::Args)]
pub struct Arguments {
    /// Refuse io_uring: `eperm` as a container's seccomp profile does, `enosys` as an old kernel.
    #[arg(long, value_name = "ERRNO")]
    io_uring: Option<Refusal>,
    /// Limit locked memory to N bytes (RLIMIT_MEMLOCK), and drop CAP_IPC_LOCK, which would lift the
    /// limit.
    #[arg(long, value_name = "N")]
    memlock_bytes: Option<u64>,
    /// The command and its arguments.
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The error of a refused call.
#[derive(Clone, Copy, ValueEnum)]
enum Refusal {
    Eperm,
    Enosys,
}

impl Refusal {
    fn errno(self) -> Errno {
        match self {
            Refusal::Eperm => Errno::PERM,
            Refusal::Enosys => Errno::NOSYS,
        }
    }
}

/// Confines this process and then executes the command. Returns only if that fails.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    if let Some(bytes) = arguments.memlock_bytes {
        limit_memlock(bytes).map_err(|error| format!("limiting RLIMIT_MEMLOCK: {error}"))?;
    }
    if let Some(refusal) = arguments.io_uring {
        refuse_io_uring(refusal).map_err(|error| format!("installing the filter: {error}"))?;
    }
    let (program, rest) = arguments.command.split_first().ok_or("no command")?;
    let error = Command::new(program).args(rest).exec();
    Err(format!("{}: {error}", program.display()).into())
}

/// Sets RLIMIT_MEMLOCK, and drops CAP_IPC_LOCK, which would lift the limit (`capabilities(7)`,
/// `setrlimit(2)`).
fn limit_memlock(bytes: u64) -> Result<(), Errno> {
    setrlimit(Resource::Memlock, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    // A program executed by root regains the capabilities in the bounding set, so that set is
    // changed first.
    if capability_is_in_bounding_set(CapabilitySet::IPC_LOCK)?
        && rustix::process::geteuid().is_root()
    {
        remove_capability_from_bounding_set(CapabilitySet::IPC_LOCK)?;
    }
    let mut sets = capabilities(None)?;
    // A capability that is neither permitted nor inheritable is removed from the ambient set
    // automatically.
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    sets.permitted.remove(CapabilitySet::IPC_LOCK);
    sets.inheritable.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, sets)
}

/// Makes all io_uring calls of this process and its children fail with `refusal`, using
/// `seccomp(2)`.
fn refuse_io_uring(refusal: Refusal) -> Result<(), Trouble> {
    let filter = SeccompFilter::new(
        IO_URING_CALLS.into_iter().map(|number| (number, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(refusal.errno().raw_os_error().cast_unsigned()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    let program = BpfProgram::try_from(filter)?;
    Ok(seccompiler::apply_filter(&program)?)
}
