//! The user's process, which represents the traced program; the tracer is its child.
//!
//! The filter of a program stops the calls of all its processes until the last one exits. Once the
//! tracer is gone, the kernel makes these calls fail (`ENOSYS`, see `seccomp(2)`). The tracer
//! therefore has to outlive daemons that the program leaves behind, whereas the user's process has
//! to exit with the program. The user's process also stands in for the program: it forwards signals
//! that only it receives, and stops and continues with the program, as job control requires.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{
    ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, getpid, getppid, gettid, setsid,
};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::{ffi::c_int, process};
use wrote_result::Stop;

/// Signals that the front forwards if only it receives them. The terminal sends signals to both.
const PASSED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];
/// The signals that the terminal sends to stop background processes; they concern only the program.
const IGNORED: [Signal; 2] = [Signal::SIGTTIN, Signal::SIGTTOU];
/// The number that shells add to a signal's number for the exit code.
const EXIT_SIGNAL_BASE: i32 = 128;

/// The tracing process's view of the front.
#[derive(Clone, Debug)]
pub struct Front {
    process: Pid,
    link: Arc<UnixStream>,
    /// The signals that were blocked in the user's process.
    mask: SigSet,
    /// The thread that lets the calls of remaining processes proceed.
    keeper: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// A message to the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// The program's process, and the thread that traces it.
    Started(i32, i32),
    /// The signal that killed the program.
    Killed(i32),
    /// The report is complete, with this exit code; remaining processes are still traced.
    Ended(u8),
}

type MessageBytes = [[u8; 4]; 2];

impl Message {
    fn bytes(self) -> MessageBytes {
        let numbers = match self {
            Message::Started(program, thread) => [program, thread],
            // No process has the number -1 or 0.
            Message::Killed(signal) => [-1, signal],
            Message::Ended(code) => [0, i32::from(code)],
        };
        numbers.map(i32::to_ne_bytes)
    }

    fn of(bytes: MessageBytes) -> Message {
        match bytes.map(i32::from_ne_bytes) {
            [-1, signal] => Message::Killed(signal),
            [0, code] => Message::Ended(code as u8),
            [program, thread] => Message::Started(program, thread),
        }
    }
}

/// Calls `work` in a child process, which traces a program, while this process acts as the front.
/// Returns the exit code that `work` returned, even while the child still traces remaining
/// processes of the program. If a signal killed the program, this process kills itself with the
/// same signal. Once the program has exited, signals to the front raise `stop` in the child.
///
/// The process must have a single thread.
///
/// # Errors
///
/// If the kernel refuses to create a process, a socket or a `signalfd`.
pub fn attended(stop: &Stop, work: impl FnOnce(&Front) -> u8) -> io::Result<u8> {
    let mut passed = SigSet::empty();
    PASSED.into_iter().filter(|signal| !is_ignored(*signal)).for_each(|signal| passed.add(signal));
    let blocked: SigSet = passed.iter().chain(IGNORED).collect();
    let mut mask = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked), Some(&mut mask))?;
    let signals = SignalFd::with_flags(&passed, SfdFlags::SFD_CLOEXEC)?;
    let (link, of_child) = UnixStream::pair()?;
    let process = getpid();
    // SAFETY: a single-threaded process holds no locks that its child could wait for.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(of_child);
            stand(child, &link, &signals)
        }
        ForkResult::Child => {
            drop((link, signals));
            let link = Arc::new(of_child);
            let front = Front { process, link, mask, keeper: Arc::default() };
            front.die_with(Signal::SIGKILL.into());
            if getppid() != process {
                process::exit(1);
            }
            listen(stop.clone(), Arc::clone(&front.link))?;
            let code = work(&front);
            front.end(code)
        }
    }
}

/// Returns whether this process ignores a signal, as under `nohup`.
fn is_ignored(signal: Signal) -> bool {
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call only writes to `found`, and zeros are a valid value.
    unsafe {
        libc::sigaction(signal as c_int, std::ptr::null(), found.as_mut_ptr());
        found.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Raises `stop` for each byte that the front sends.
fn listen(stop: Stop, link: Arc<UnixStream>) -> io::Result<()> {
    let listening = move || {
        while matches!((&*link).read(&mut [0]), Ok(1)) {
            stop.request();
        }
    };
    thread::Builder::new().name("front".into()).spawn(listening).map(drop)
}

impl Front {
    /// Returns the signals that are blocked when the program starts.
    pub(crate) fn mask(&self) -> SigSet {
        self.mask
    }

    /// Reports the program's process, which this thread traces, to the front.
    pub(crate) fn started(&self, program: i32) {
        self.send(Message::Started(program, gettid().as_raw()));
    }

    /// Reports the signal that killed the program to the front.
    pub(crate) fn killed(&self, signal: i32) {
        self.send(Message::Killed(signal));
    }

    /// Stops or continues the front together with the program.
    pub(crate) fn halt(&self, is_halted: bool) {
        let signal = if is_halted { Signal::SIGSTOP } else { Signal::SIGCONT };
        // If the front was killed, this process is being killed, too.
        let _ = kill(self.process, signal);
    }

    /// Leaves the remaining processes to a thread that traces them until they exit. From now on,
    /// their calls depend on this process, not on the front.
    pub(crate) fn keep(&self, keeper: JoinHandle<()>) {
        self.die_with(None);
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
    }

    fn die_with(&self, signal: Option<Signal>) {
        // The call fails only for an unknown signal.
        let _ = set_pdeathsig(signal);
    }

    fn send(&self, message: Message) {
        // A send fails only if the front has been killed; in that case, this process is being
        // killed, too.
        let _ = (&*self.link).write_all(message.bytes().as_flattened());
    }

    /// Exits with this code. If processes of the program remain, lets only the front exit with it,
    /// and this process exits after them.
    fn end(self, code: u8) -> ! {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(keeper) = keeper else { process::exit(code.into()) };
        let _ = io::stdout().flush();
        self.send(Message::Ended(code));
        withdraw();
        let _ = keeper.join();
        process::exit(0)
    }
}

/// Detaches from the terminal, the working directory and all open files, like a daemon.
fn withdraw() {
    let _ = setsid();
    let _ = nix::unistd::chdir("/");
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
    // SAFETY: no code uses a file after this. The process exits without dropping any file.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// Forwards signals to the program until `tracer` exits or reports the exit code, and returns that
/// code.
fn stand(tracer: Pid, mut link: &UnixStream, signals: &SignalFd) -> io::Result<u8> {
    let (mut program, mut killed_by) = (None, None);
    loop {
        // Signals that arrive before the program starts stay pending until it does.
        let mut ready = vec![PollFd::new(link.as_fd(), PollFlags::POLLIN)];
        ready.extend(program.as_ref().map(|_| PollFd::new(signals.as_fd(), PollFlags::POLLIN)));
        match poll(&mut ready, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            polled => polled?,
        };
        let [has_message, has_signal] = [0, 1].map(|at| ready.get(at).and_then(PollFd::any));
        if has_message == Some(true) {
            let mut bytes = MessageBytes::default();
            match link.read_exact(bytes.as_flattened_mut()).map(|()| Message::of(bytes)) {
                Ok(Message::Started(process, thread)) => {
                    let process = rustix::process::Pid::from_raw(process);
                    let process = process.and_then(|of| pidfd_open(of, PidfdFlags::empty()).ok());
                    program = Some(Started { process, thread, tracer });
                }
                Ok(Message::Killed(signal)) => killed_by = Some(signal),
                Ok(Message::Ended(code)) => return Ok(as_program(code, killed_by)),
                Err(_) => return Ok(as_program(code_of(waitpid(tracer, None)?), killed_by)),
            }
        } else if let (Some(true), Some(program)) = (has_signal, &program)
            && let Some(signal) = signals.read_signal()?
            && !program.pass_on(&signal)
        {
            match signal.ssi_signo as c_int {
                libc::SIGCONT => {}
                libc::SIGTSTP => kill(getpid(), Signal::SIGSTOP)?,
                // The write fails only if the tracer has exited; in that case, there is nothing to
                // stop.
                _ => drop(link.write_all(&[0])),
            }
        }
    }
}

/// Returns `code`, unless a signal killed the program and `code` says so. In that case, kills this
/// process with the same signal: a shell's loop continues after a program that exited, but stops
/// after one that SIGINT killed.
fn as_program(code: u8, killed_by: Option<c_int>) -> u8 {
    if let Some(signal) = killed_by.filter(|signal| EXIT_SIGNAL_BASE + signal == i32::from(code)) {
        // Only the program's core dump is useful. A core dump that is piped to a program ignores
        // RLIMIT_CORE.
        let _ = set_dumpable(false);
        // SAFETY: `only` is a set once it is emptied, and the other calls read no memory.
        unsafe {
            let mut only = MaybeUninit::uninit();
            libc::sigemptyset(only.as_mut_ptr());
            libc::sigaddset(only.as_mut_ptr(), signal);
            libc::signal(signal, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), std::ptr::null_mut());
            libc::raise(signal);
        }
    }
    code
}

fn code_of(status: WaitStatus) -> u8 {
    let code = match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => EXIT_SIGNAL_BASE + signal as i32,
        _ => 1,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The front's view of the traced program.
struct Started {
    /// The descriptor of the process, whose number another process may reuse; `None` if the process
    /// had already exited.
    process: Option<OwnedFd>,
    thread: i32,
    tracer: Pid,
}

impl Started {
    /// Forwards a signal; returns `false` if the program has ended.
    fn pass_on(&self, signal: &siginfo) -> bool {
        let is_of_kernel = signal.ssi_code > 0;
        let sender = signal.ssi_pid as i32;
        // The program has already received the terminal's signals, and signals that it sends to its
        // own group.
        let is_for_all = is_of_kernel
            || sender == self.tracer.as_raw()
            || status(sender, "TracerPid:") == Some(self.thread);
        let Some(process) = &self.process else { return false };
        match rustix::process::Signal::from_named_raw(signal.ssi_signo as c_int) {
            Some(signal) if !is_for_all => {
                pidfd_send_signal(process, signal) != Err(rustix::io::Errno::SRCH)
            }
            // The descriptor is readable once the process has ended.
            _ => {
                let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
                poll(&mut ended, PollTimeout::ZERO) == Ok(0)
            }
        }
    }
}

/// Returns a numeric field of `/proc/PROCESS/status`; `None` if the process or the field is
/// missing.
pub(crate) fn status(process: i32, field: &str) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}
