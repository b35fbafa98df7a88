//! The parts of `ptrace(2)` and `waitpid(2)` that are needed.
//!
//! nix does not know signals above 31, which programs may use. It is therefore not used for waiting
//! and resuming.

use super::filter::ARCHITECTURE;
use libc::{c_int, c_long, c_void, pid_t};
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;
use std::io;
use std::ptr::null_mut;

/// An event of a task that has stopped or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The task exited with this code.
    Exited(i32),
    /// A signal killed the process.
    Killed(i32),
    /// The task is at the start of a call selected by the filter.
    Call,
    /// The task is at the end of a call.
    Return,
    /// The task is about to exit, but still has its memory.
    Ending,
    /// The task has executed another program. Its previous ID was this one.
    Exec(pid_t),
    /// The task has created this task.
    Spawned(pid_t),
    /// The task's whole process was stopped by this signal, or the task was just created.
    Stopped(i32),
    /// This signal is about to be delivered.
    Signal(i32),
}

/// How far to resume a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the next call selected by the filter.
    Call,
    /// To the end of the current call.
    Return,
}

/// A call as the kernel reports it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Whether the call is of another architecture, such as a 32-bit call.
    pub is_foreign: bool,
    /// The call's number.
    pub number: c_long,
    /// The call's arguments.
    pub arguments: [u64; 6],
    /// The address of the instruction that makes the call.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
}

/// Starts tracing a child and its descendants without stopping them. They are killed when this
/// thread exits.
pub fn seize(task: pid_t) -> io::Result<()> {
    let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESECCOMP;
    Ok(ptrace::seize(Pid::from_raw(task), OPTIONS | options)?)
}

/// Stops a running thread and starts tracing it and its descendants. They continue untraced when
/// the calling thread exits.
pub fn join(task: pid_t) -> io::Result<()> {
    ptrace::seize(Pid::from_raw(task), OPTIONS)?;
    Ok(ptrace::interrupt(Pid::from_raw(task))?)
}

const OPTIONS: Options = Options::PTRACE_O_TRACESYSGOOD
    .union(Options::PTRACE_O_TRACEEXEC)
    .union(Options::PTRACE_O_TRACEEXIT)
    .union(Options::PTRACE_O_TRACEFORK)
    .union(Options::PTRACE_O_TRACEVFORK)
    .union(Options::PTRACE_O_TRACECLONE);

/// Waits for the next event of any task that this thread traces; `None` if there are no more tasks.
///
/// # Errors
///
/// `Interrupted` if a signal was delivered to this thread.
pub fn wait() -> io::Result<Option<(pid_t, Event)>> {
    wait_for(-1)
}

fn wait_for(task: pid_t) -> io::Result<Option<(pid_t, Event)>> {
    let mut status = 0;
    // SAFETY: `status` is writable.
    match unsafe { libc::waitpid(task, &mut status, libc::__WALL | libc::__WNOTHREAD) } {
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
            error => Err(error),
        },
        task => Ok(Some((task, event(task, status)))),
    }
}

fn event(task: pid_t, status: c_int) -> Event {
    const SYSCALL: c_int = libc::SIGTRAP | 0x80;
    if libc::WIFEXITED(status) {
        return Event::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Event::Killed(libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => Event::Call,
        libc::PTRACE_EVENT_EXIT => Event::Ending,
        libc::PTRACE_EVENT_EXEC => Event::Exec(new_task(task)),
        libc::PTRACE_EVENT_STOP => Event::Stopped(signal),
        0 if signal == SYSCALL => Event::Return,
        0 => Event::Signal(signal),
        _ => Event::Spawned(new_task(task)),
    }
}

/// Returns the number that accompanies an event: the ID of a created task, or the former ID of a
/// task that has executed another program.
fn new_task(task: pid_t) -> pid_t {
    ptrace::getevent(Pid::from_raw(task)).map_or(task, |number| number as pid_t)
}

/// Resumes a stopped task, delivering a signal unless it is 0.
fn resume(task: pid_t, until: Until, signal: i32) -> io::Result<()> {
    let how = if until == Until::Call { libc::PTRACE_CONT } else { libc::PTRACE_SYSCALL };
    request(how, task, signal)
}

/// Lets a task continue after an event.
pub fn proceed(task: pid_t, event: Event, until: Until) -> io::Result<()> {
    match event {
        Event::Exited(_) | Event::Killed(_) => Ok(()),
        Event::Signal(signal) => resume(task, until, signal),
        // A new task starts with such a stop.
        Event::Stopped(libc::SIGTRAP) => resume(task, until, 0),
        // The task stays stopped until a signal continues its process.
        Event::Stopped(_) => request(libc::PTRACE_LISTEN, task, 0),
        _ => resume(task, until, 0),
    }
}

/// Lets all tasks of this thread run unobserved until they end.
pub fn keep() {
    loop {
        match wait() {
            Ok(Some((task, event))) => drop(proceed(task, event, Until::Call)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Returns the call that a task is about to make; `None` if the task is not at the start of a call.
pub fn entry(task: pid_t) -> io::Result<Option<Entry>> {
    let info = ptrace::syscall_info(Pid::from_raw(task))?;
    // SAFETY: the kernel has filled the member that `op` names (`ptrace(2)`).
    let (number, arguments) = unsafe {
        match info.op {
            libc::PTRACE_SYSCALL_INFO_SECCOMP => (info.u.seccomp.nr, info.u.seccomp.args),
            libc::PTRACE_SYSCALL_INFO_ENTRY => (info.u.entry.nr, info.u.entry.args),
            _ => return Ok(None),
        }
    };
    let (instruction, stack) = (info.instruction_pointer, info.stack_pointer);
    let is_foreign = ARCHITECTURE != Some(info.arch);
    Ok(Some(Entry { is_foreign, number: number as c_long, arguments, instruction, stack }))
}

/// Returns the result of the call that a task has just made: its value or error number.
pub fn result(task: pid_t) -> io::Result<Result<u64, i32>> {
    let info = ptrace::syscall_info(Pid::from_raw(task))?;
    // SAFETY: a task at `Event::Return` has filled this member (`ptrace(2)`).
    let exit = unsafe { info.u.exit };
    Ok(match exit.is_error {
        0 => Ok(exit.sval as u64),
        _ => Err(-exit.sval as i32),
    })
}

/// Returns the general registers of a stopped task.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn registers(task: pid_t) -> io::Result<libc::user_regs_struct> {
    Ok(ptrace::getregset::<ptrace::regset::NT_PRSTATUS>(Pid::from_raw(task))?)
}

/// Makes a task call the kernel with one argument, and returns the result. The task must be new, or
/// at the end of a call. Its registers and signals are restored afterwards.
#[cfg(target_arch = "x86_64")]
pub fn call(task: pid_t, number: c_long, argument: u64) -> io::Result<u64> {
    use nix::sys::ptrace::regset::NT_PRSTATUS;
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let id = Pid::from_raw(task);
    let before = ptrace::getregset::<NT_PRSTATUS>(id)?;
    let instruction = before.rip.wrapping_sub(SYSCALL.len() as u64);
    let code = ptrace::read(id, instruction as *mut c_void)?.to_le_bytes();
    if !code.starts_with(&SYSCALL) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (rip, rax, rdi) = (instruction, number as u64, argument);
    let made = libc::user_regs_struct { rip, rax, rdi, orig_rax: u64::MAX, ..before };
    // Otherwise, a signal's handler could run in between.
    let mask = signals(task, libc::PTRACE_GETSIGMASK, 0)?;
    signals(task, libc::PTRACE_SETSIGMASK, u64::MAX)?;
    ptrace::setregset::<NT_PRSTATUS>(id, made)?;
    // The task stops at the call's start and end, and in between if the filter selects the call.
    let mut stops = 0;
    while stops < 2 {
        resume(task, Until::Return, 0)?;
        match wait_for(task)? {
            Some((_, Event::Return)) => stops += 1,
            Some((_, Event::Call)) => {}
            _ => break,
        }
    }
    let returned = if stops == 2 { result(task) } else { Err(io::ErrorKind::Interrupted.into()) };
    ptrace::setregset::<NT_PRSTATUS>(id, before)?;
    signals(task, libc::PTRACE_SETSIGMASK, mask)?;
    returned?.map_err(io::Error::from_raw_os_error)
}

/// Not supported, because other architectures name their registers differently.
#[cfg(not(target_arch = "x86_64"))]
pub fn call(_: pid_t, _: c_long, _: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns or sets the signals that a task blocks.
#[cfg(target_arch = "x86_64")]
fn signals(task: pid_t, what: libc::c_uint, mut mask: u64) -> io::Result<u64> {
    // SAFETY: the mask is the given number of bytes, and can be read and written.
    let done = unsafe { libc::ptrace(what, task, size_of::<u64>(), &raw mut mask) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(mask) }
}

/// Makes a call that has started fail with an error.
#[cfg(target_arch = "x86_64")]
pub fn refuse(task: pid_t, error: i32) -> io::Result<()> {
    use std::mem::offset_of;
    // The kernel skips a call with number -1, and leaves the return register as it is.
    let [number, result] =
        [offset_of!(libc::user_regs_struct, orig_rax), offset_of!(libc::user_regs_struct, rax)];
    ptrace::write_user(Pid::from_raw(task), number as *mut c_void, -1)?;
    Ok(ptrace::write_user(Pid::from_raw(task), result as *mut c_void, -c_long::from(error))?)
}

/// Not supported, because other architectures name their registers differently.
#[cfg(not(target_arch = "x86_64"))]
pub fn refuse(_: pid_t, _: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn request(what: libc::c_uint, task: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: none of the requests passed here accesses memory of this process.
    let done = unsafe { libc::ptrace(what, task, null_mut::<c_void>(), signal as usize) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
