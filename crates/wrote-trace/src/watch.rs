//! Watches a program, stopping it at each call that changes files, until its last process ends.

mod calls;
mod descriptors;
mod filter;
mod memory;
mod places;
mod ptrace;
mod start;

use crate::call::{Call, PlaceId};
use crate::sign::Sign;
use calls::{Begin, Begun, Reader};
use filter::When;
use libc::{c_int, c_long, pid_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
pub use places::Places;
use ptrace::{Event, Until};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use wrote_result::trace::{End, Watching};

/// The things that a watch sees beside the calls that change files.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The acknowledgements.
    pub ack: Sign,
    /// Whether reads are watched, too.
    pub reads: bool,
    /// Whether the program may use io_uring, unseen.
    pub io_uring: bool,
    /// Whether the data of writes is needed.
    pub data: bool,
}

/// The result of watching a program.
#[derive(Debug, Default)]
pub struct Watched {
    /// How the program ended.
    pub end: End,
    /// The time until its last process ended, in seconds.
    pub elapsed_s: f64,
    /// The overhead.
    pub watching: Watching,
    /// Calls that were not observed, described for display.
    pub unseen: BTreeSet<String>,
    /// The places of the calls.
    pub places: Places,
}

/// Runs a program until its last process ends, and passes on each call. The program keeps its
/// standard streams, terminal and signals.
///
/// # Errors
///
/// If the program can't be started (with the error of `execve(2)`) or traced.
pub fn watch(
    command: &[OsString],
    wanted: Wanted,
    see: &mut dyn FnMut(&Call),
) -> io::Result<Watched> {
    let filter = filter::filter(&calls::watched(&wanted))?;
    let reader = Reader::new(wanted, std::process::id() as pid_t);
    let started = Instant::now();
    let program = start::start(command, &filter)?;
    let mut watch = Watch::new(program, started, reader, see);
    watch.run(&AtomicBool::new(false))?;
    if let (false, Some(number)) = (watch.has_begun, watch.watched.end.code) {
        return Err(io::Error::from_raw_os_error(number));
    }
    Ok(watch.finish())
}

/// Watches a program that runs, until it ends or `stop` is raised. It runs on then.
///
/// # Errors
///
/// If it may not be traced, or does not exist.
pub fn join(
    process: pid_t,
    wanted: Wanted,
    stop: &AtomicBool,
    see: &mut (dyn FnMut(&Call) + Send),
) -> io::Result<Watched> {
    // A thread is watched by a thread, and let go when that ends.
    let (begun, thread) = mpsc::channel();
    thread::scope(|scope| {
        let watching = scope.spawn(move || {
            // Dropped at its end.
            let begun = begun;
            let _ = begun.send(nix::unistd::gettid().as_raw());
            let asked = calls::watched(&wanted);
            let reader = Reader::new(wanted, process);
            let mut watch = Watch::new(process, Instant::now(), reader, see);
            watch.has_begun = true;
            watch.asked = Some(asked);
            seize_all(process)?;
            watch.run(stop)?;
            Ok(watch.finish())
        });
        wake_at(stop, &thread);
        watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Joins all threads of a process, those too that it makes in the course of that.
fn seize_all(process: pid_t) -> io::Result<()> {
    let mut known = BTreeSet::new();
    loop {
        let mut is_all = true;
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            let task = entry?.file_name().to_string_lossy().parse().unwrap_or(process);
            if known.insert(task) {
                is_all = false;
                match ptrace::join(task) {
                    // Gone, or joined with the thread that made it.
                    Err(_) if task != process => {}
                    joined => joined?,
                }
            }
        }
        if is_all {
            return Ok(());
        }
    }
}

/// Interrupts the call of the thread that sends its number once `stop` is raised, again and again
/// until it has ended.
fn wake_at(stop: &AtomicBool, thread: &mpsc::Receiver<pid_t>) {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let nothing = SigAction::new(SigHandler::Handler(ignore), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, and no other code uses this signal.
    let installed = unsafe { sigaction(Signal::SIGUSR2, &nothing) };
    let (Ok(number), Ok(_)) = (thread.recv(), installed) else { return };
    while thread.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        if stop.load(Ordering::Relaxed) {
            // SAFETY: the call reads no memory of this process.
            unsafe {
                libc::syscall(libc::SYS_tgkill, std::process::id(), number, libc::SIGUSR2);
            }
        }
    }
}

extern "C" fn ignore(_: c_int) {}

struct Watch<'a> {
    see: &'a mut dyn FnMut(&Call),
    reader: Reader,
    started: Instant,
    program: pid_t,
    tasks: HashMap<pid_t, Task>,
    /// Whether the program itself runs, not its preparation.
    has_begun: bool,
    watched: Watched,
    /// The calls of interest, if the program has no filter that stops only at them.
    asked: Option<Vec<(c_long, When)>>,
}

/// A process or thread.
struct Task {
    process: pid_t,
    /// The call in progress, when it began, and where.
    in_call: Option<(Begun, u64, Option<PlaceId>)>,
}

impl<'a> Watch<'a> {
    fn new(
        program: pid_t,
        started: Instant,
        reader: Reader,
        see: &'a mut dyn FnMut(&Call),
    ) -> Watch<'a> {
        let (tasks, watched) = (HashMap::new(), Watched::default());
        Watch { see, reader, started, program, tasks, has_begun: false, watched, asked: None }
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let (task, event) = match ptrace::wait() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let begun = Instant::now();
            match self.take(task, event) {
                // A killed task is gone before it can continue.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                done => done?,
            }
            self.watched.watching.stopped_s += begun.elapsed().as_secs_f64();
        }
        Ok(())
    }

    fn finish(mut self) -> Watched {
        self.watched.elapsed_s = self.started.elapsed().as_secs_f64();
        self.watched
    }

    fn take(&mut self, task: pid_t, event: Event) -> io::Result<()> {
        match event {
            Event::Exited(code) => self.gone(task, End { code: Some(code), signal: None }),
            Event::Killed(signal) => self.gone(task, End { code: None, signal: Some(signal) }),
            Event::Call => {
                let until = self.begin(task);
                return ptrace::resume(task, until, 0);
            }
            Event::Return => {
                match self.asked {
                    // The beginning of a call and its end are the same stop there.
                    Some(_) if matches!(ptrace::entry(task), Ok(Some(_))) => drop(self.begin(task)),
                    _ => self.end(task),
                }
                return ptrace::resume(task, self.until(task), 0);
            }
            Event::Exec(before) => {
                self.executed(task, before);
                return ptrace::resume(task, self.until(task), 0);
            }
            Event::Signal(signal) => return ptrace::resume(task, self.until(task), signal),
            // A new task starts with such a stop.
            Event::Stopped(libc::SIGTRAP) | Event::Spawned => {
                return ptrace::resume(task, self.until(task), 0);
            }
            Event::Stopped(_) => return ptrace::listen(task),
        }
        Ok(())
    }

    /// A call interrupted by a signal still has to return.
    fn until(&self, task: pid_t) -> Until {
        let is_in_call = self.tasks.get(&task).is_some_and(|task| task.in_call.is_some());
        if is_in_call || self.asked.is_some() { Until::Return } else { Until::Call }
    }

    fn begin(&mut self, task: pid_t) -> Until {
        let Ok(Some(entry)) = ptrace::entry(task) else { return Until::Call };
        let is_asked = |(number, when): &(c_long, When)| {
            *number == entry.number && when.is_met(&entry.arguments)
        };
        if self.asked.as_ref().is_some_and(|asked| !asked.iter().any(is_asked)) {
            return Until::Return;
        }
        self.watched.watching.stopped_calls += 1;
        let process = self.task(task).process;
        let begin = self.reader.begin(process, task, entry);
        let is_awaited = matches!(begin, Begin::Await(_));
        let place = is_awaited.then(|| self.watched.places.at(process, task, &entry)).flatten();
        // The examination is not counted as time of the call.
        let at_ns = self.now_ns();
        self.see_news(at_ns);
        let unseen = match begin {
            Begin::Pass => return Until::Call,
            Begin::Await(begun) => {
                self.task(task).in_call = Some((begun, at_ns, place));
                return Until::Return;
            }
            Begin::Refuse if ptrace::refuse(task).is_ok() => {
                "io_uring was refused, so that the program falls back to calls that are seen"
            }
            Begin::Refuse => calls::IO_URING_UNSEEN,
            Begin::Unseen(what) => what,
        };
        self.watched.unseen.insert(unseen.into());
        Until::Call
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn end(&mut self, task: pid_t) {
        let ended_ns = self.now_ns();
        let known = self.task(task);
        let process = known.process;
        let Some((begun, at_ns, place)) = known.in_call.take() else { return };
        let Ok(result) = ptrace::result(task) else { return };
        let descriptor = begun.descriptor();
        let act = self.reader.act(process, begun, result);
        self.see_news(at_ns);
        if let Some(act) = act {
            let data = self.reader.data(process, &act, descriptor);
            let took_ns = ended_ns.saturating_sub(at_ns);
            (self.see)(&Call { at_ns, took_ns, place, act, data });
        }
    }

    /// Passes on the files that a call has brought up.
    fn see_news(&mut self, at_ns: u64) {
        for act in self.reader.news() {
            (self.see)(&Call::new(at_ns, act));
        }
    }

    /// Handles an exec by `task`. If another thread of the process called it, that thread's ID
    /// changes to the process's.
    fn executed(&mut self, task: pid_t, before: pid_t) {
        self.has_begun = true;
        self.tasks.remove(&before);
        self.tasks.remove(&task);
        let process = self.task(task).process;
        self.reader.forget(process);
        self.watched.places.forget(process);
        self.watched.unseen.extend(unseen_program(process));
    }

    fn gone(&mut self, task: pid_t, end: End) {
        self.tasks.remove(&task);
        self.reader.forget(task);
        self.watched.places.forget(task);
        if task == self.program {
            self.watched.end = end;
        }
    }

    fn task(&mut self, task: pid_t) -> &mut Task {
        let watching = &mut self.watched.watching;
        self.tasks.entry(task).or_insert_with(|| {
            watching.tasks += 1;
            Task { process: process_of(task), in_call: None }
        })
    }
}

/// Returns the process of a task (`Tgid` in `/proc/TASK/status`).
fn process_of(task: pid_t) -> pid_t {
    let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    process.and_then(|process| process.trim().parse().ok()).unwrap_or(task)
}

/// Returns why a program's calls can't be observed, or why it runs differently than on its own.
fn unseen_program(process: pid_t) -> Option<String> {
    const CLASS_AT: usize = 4;
    const CLASS_32: u8 = 1;
    let link = format!("/proc/{process}/exe");
    let name = fs::read_link(&link).ok()?;
    let mut begins = [0; CLASS_AT + 1];
    File::open(&link).ok()?.read_exact(&mut begins).ok()?;
    if begins[CLASS_AT] == CLASS_32 {
        return Some(format!("calls of {}, a program of 32 bits, are not seen", name.display()));
    }
    let found = fs::metadata(&link).ok()?;
    let is = |bit| found.mode() & bit != 0;
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let of = match found {
        _ if is(libc::S_ISUID) && found.uid() != user => "owner",
        _ if is(libc::S_ISGID) && found.gid() != group => "group",
        _ => return None,
    };
    Some(format!("{} runs without the rights of its {of}", name.display()))
}
