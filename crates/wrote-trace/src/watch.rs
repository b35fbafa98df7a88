//! Watches a program, stopping it at each call that changes files.

mod aio;
mod calls;
mod descriptors;
mod filter;
mod mapped;
mod maps;
mod memory;
mod near;
mod pages;
mod places;
mod ptrace;
mod python;
mod ring;
mod start;

use crate::call::{Act, Call, FileId, PlaceId};
use crate::front::{Front, status};
use crate::wanted::Wanted;
use calls::{Begin, Begun, Reader, Work};
pub use descriptors::Output;
use filter::When;
use libc::{c_int, c_long, pid_t};
use near::Near;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, getsid, gettid};
pub use places::Places;
use ptrace::{Event, Until};
use start::{Limit, refused};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use wrote_result::trace::{End, Watching};
use wrote_result::units::some_of;

/// The signal that interrupts a call of the watching thread.
const WAKES: Signal = Signal::SIGUSR2;

/// A program to be watched.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program to be started. It keeps its standard streams, terminal and signals.
    Command(Vec<OsString>, Option<Front>),
    /// A running process, which continues if the watch ends first.
    Process(pid_t),
}

impl Subject {
    fn front(&self) -> Option<&Front> {
        match self {
            Subject::Command(_, front) => front.as_ref(),
            Subject::Process(_) => None,
        }
    }
}

/// The result of watching a program.
#[derive(Debug, Default)]
pub struct Watched {
    /// How the program ended.
    pub end: End,
    /// The time in seconds until the last process ended or was no longer watched.
    pub elapsed_s: f64,
    /// The overhead of watching the program.
    pub watching: Watching,
    /// Whether processes are still running.
    pub leaves: bool,
    /// Descriptions of calls that were not observed.
    pub unseen: BTreeSet<String>,
    /// Those descriptions in `unseen` whose calls may have changed any file.
    pub unjudged: BTreeSet<String>,
    /// The outputs that were written to and are not judged.
    pub outputs: BTreeSet<Output>,
    /// The source locations of the calls.
    pub places: Places,
}

/// A message from the watching thread.
enum Report<D> {
    /// The watching thread's number.
    Thread(pid_t),
    /// The program has ended, and the described processes are still watched.
    Remaining(String),
    /// The watch has ended.
    Done(io::Result<Box<(D, Watched)>>),
}

/// Watches a program, passing each call to `see`, which returns the files that it has forgotten.
/// Returns when the program's last process that is not a daemon has ended, or when `stop` is
/// raised. If processes remain for a while after the program has ended, calls `say` with a line
/// about them.
///
/// # Errors
///
/// If the program can't be started (with the error of `execve(2)`), does not exist or may not be
/// traced.
pub fn watch<D: Send + 'static>(
    subject: Subject,
    wanted: Wanted,
    desk: D,
    see: fn(&mut D, &Call) -> Vec<FileId>,
    stop: &Arc<AtomicBool>,
    say: &dyn Fn(&str),
) -> io::Result<(D, Watched)> {
    // The tracer of a task is a thread, and the task is released when that thread ends.
    let (report, reports) = mpsc::channel();
    let (is_raised, front) = (Arc::clone(stop), subject.front().cloned());
    let watching = thread::Builder::new().name("watch".into()).spawn(move || {
        let done = on_this_thread(&subject, wanted, desk, see, &is_raised, &report);
        let keeps = subject.front().is_some();
        let _ = report.send(Report::Done(done.map(Box::new)));
        if keeps {
            ptrace::keep();
        }
    })?;
    let Some(done) = await_end(&reports, stop, say) else {
        let panic = watching.join().expect_err("a watch that returns reports that");
        std::panic::resume_unwind(panic)
    };
    if let (Ok((_, Watched { leaves: true, .. })), Some(front)) = (&done, front) {
        front.keep(watching);
    }
    done
}

fn on_this_thread<D>(
    subject: &Subject,
    wanted: Wanted,
    mut desk: D,
    see: fn(&mut D, &Call) -> Vec<FileId>,
    stop: &AtomicBool,
    report: &mpsc::Sender<Report<D>>,
) -> io::Result<(D, Watched)> {
    let nothing = SigAction::new(SigHandler::Handler(ignore), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, and no other code of this process uses this signal.
    unsafe { sigaction(WAKES, &nothing) }?;
    let blocked = match subject {
        Subject::Command(_, Some(front)) => front.mask(),
        _ => SigSet::thread_get_mask()?,
    };
    SigSet::from(WAKES).thread_unblock()?;
    let _ = report.send(Report::Thread(gettid().as_raw()));
    let started = Instant::now();
    let calls = filter::watched(&wanted);
    let daemons = wanted.daemons;
    let limit = Limit::raise()?;
    let (program, own, asked) = match subject {
        Subject::Command(command, front) => {
            let filter = filter::filter(&calls)?;
            let program = start::start(command, &filter, &blocked, &limit.before())?;
            front.iter().for_each(|front| front.started(program));
            (program, std::process::id() as pid_t, None)
        }
        Subject::Process(process) => (*process, *process, Some(calls)),
    };
    let see = &mut |call: &Call| see(&mut desk, call);
    let remain = &|text| drop(report.send(Report::Remaining(text)));
    let mut watch = Watch {
        see,
        remain,
        front: subject.front(),
        reader: Reader::new(wanted, own, limit.files_max()),
        started,
        now_ns: 0,
        program,
        session: getsid(Some(Pid::from_raw(own))).ok(),
        daemons,
        tasks: HashMap::new(),
        near: Near::default(),
        has_begun: asked.is_some(),
        is_halted: false,
        has_ended: false,
        is_over: false,
        is_told: false,
        watched: Watched::default(),
        asked,
    };
    if watch.asked.is_some() {
        seize_all(program)?;
        let unseen = watch.reader.join(program);
        for what in unseen {
            watch.not_seen(what);
        }
        watch.see_news(program, 0);
    }
    watch.run(stop)?;
    if let (false, Some(number)) = (watch.has_begun, watch.watched.end.code) {
        return Err(io::Error::from_raw_os_error(number));
    }
    let watched = watch.finish();
    Ok((desk, watched))
}

/// Waits for a watch to end. Once `stop` is raised, interrupts the watching thread repeatedly until
/// it has ended. Returns `None` after a panic.
fn await_end<D>(
    reports: &mpsc::Receiver<Report<D>>,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Option<io::Result<(D, Watched)>> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    /// Remaining processes that end within this time are not mentioned.
    const PATIENCE: Duration = Duration::from_secs(1);
    let (mut thread, mut remaining) = (None, None);
    loop {
        match reports.recv_timeout(LOOK_EVERY) {
            Ok(Report::Thread(number)) => thread = Some(number),
            Ok(Report::Remaining(text)) => remaining = Some((Instant::now(), text)),
            Ok(Report::Done(done)) => return Some(done.map(|done| *done)),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let (true, Some(number)) = (stop.load(Ordering::Relaxed), thread) {
            // SAFETY: the call reads no memory of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), number, WAKES) };
        }
        if let Some((_, text)) = remaining.take_if(|(since, _)| since.elapsed() >= PATIENCE) {
            say(&text);
        }
    }
}

/// Joins all threads of a process, including threads that it creates during the call.
fn seize_all(process: pid_t) -> io::Result<()> {
    let mut known = BTreeSet::new();
    loop {
        let mut is_all = true;
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            let task = entry?.file_name().to_string_lossy().parse().unwrap_or(process);
            if known.insert(task) {
                is_all = false;
                match ptrace::join(task) {
                    // The thread has ended, or was joined together with the thread that created it.
                    Err(_) if task != process => {}
                    joined => joined.map_err(|error| refused(process, error))?,
                }
            }
        }
        if is_all {
            return Ok(());
        }
    }
}

extern "C" fn ignore(_: c_int) {}

struct Watch<'a> {
    /// Processes a call, and returns the files that were forgotten.
    see: &'a mut dyn FnMut(&Call) -> Vec<FileId>,
    /// Called once with a description of the processes that are still watched after the program has
    /// ended.
    remain: &'a dyn Fn(String),
    front: Option<&'a Front>,
    reader: Reader,
    started: Instant,
    now_ns: u64,
    program: pid_t,
    /// The session in which the program was started. Its daemons have left this session.
    session: Option<Pid>,
    /// Whether daemons are watched until they end.
    daemons: bool,
    tasks: HashMap<pid_t, Task>,
    near: Near,
    /// Whether the program itself is running, rather than the code that prepares its start.
    has_begun: bool,
    /// Whether the program's process is stopped, for example by Ctrl-Z.
    is_halted: bool,
    has_ended: bool,
    /// Whether only daemons remain.
    is_over: bool,
    /// Whether the remaining processes have been reported.
    is_told: bool,
    watched: Watched,
    /// The calls of interest, if the program has no filter that selects them.
    asked: Option<Vec<(c_long, When)>>,
}

/// A process or thread.
struct Task {
    process: pid_t,
    /// The call in progress, the time at which it began, and its location.
    in_call: Option<(Begun, u64, Option<PlaceId>)>,
    /// Whether the task has made calls of another architecture.
    is_foreign: bool,
}

impl Watch<'_> {
    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !self.is_over && !stop.load(Ordering::Relaxed) {
            let (task, event) = match ptrace::wait() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let begun = Instant::now();
            self.near.stopped(task, begun);
            match self.take(task, event) {
                // A killed task may be gone before it can be resumed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                done => done?,
            }
            self.watched.watching.stopped_s += begun.elapsed().as_secs_f64();
        }
        Ok(())
    }

    fn finish(mut self) -> Watched {
        self.reader.look(|_| true);
        self.see_stores(self.program);
        self.watched.outputs = self.reader.outputs();
        if let Some(what) = self.reader.take_doubt() {
            self.not_seen(what);
        }
        self.watched.elapsed_s = self.started.elapsed().as_secs_f64();
        let left = self.remaining();
        self.watched.leaves = !left.is_empty();
        if self.has_ended && self.watched.leaves {
            let verb = if left.len() == 1 { "runs" } else { "run" };
            let mut text = format!("{} {verb} on unwatched", names(&left));
            if self.front.is_some() {
                let own = std::process::id();
                text += &format!("; wrote (PID {own}) is needed for their calls until they end");
            }
            self.watched.unseen.insert(text);
        }
        self.watched
    }

    fn take(&mut self, task: pid_t, event: Event) -> io::Result<()> {
        self.reap();
        let until = match event {
            Event::Exited(code) => {
                self.gone(task, End { code: Some(code), signal: None });
                return Ok(());
            }
            Event::Killed(signal) => {
                self.gone(task, End { code: None, signal: Some(signal) });
                return Ok(());
            }
            Event::Call => self.begin(task),
            Event::Return => {
                match self.asked {
                    // Without a filter, the start and the end of a call cause the same kind of
                    // stop.
                    Some(_) if matches!(ptrace::entry(task), Ok(Some(_))) => drop(self.begin(task)),
                    _ => self.end(task),
                }
                self.until(task)
            }
            Event::Ending => {
                if let Some(process) = self.tasks.get(&task).map(|of| of.process) {
                    self.reader.end(process);
                    self.see_stores(task);
                }
                self.until(task)
            }
            Event::Exec(before) => {
                self.executed(task, before);
                self.until(task)
            }
            Event::Spawned(new) => {
                // The task's end may already have been reported. In that case, it no longer has a
                // tracer, although it remains in `/proc` until its parent waits for it.
                if status(new, "TracerPid:").is_some_and(|tracer| tracer != 0) {
                    self.task(new);
                }
                self.until(task)
            }
            Event::Stopped(signal) => {
                self.stopped(task, signal);
                self.until(task)
            }
            Event::Signal(_) => self.until(task),
        };
        let proceed = || ptrace::proceed(task, event, until);
        match event {
            // Not done with `-p`: if this thread is killed, a task that is not killed with it would
            // keep its restriction to one processor.
            Event::Call | Event::Return if self.asked.is_none() => self.near.resume(proceed),
            _ => proceed(),
        }
    }

    /// Handles the stop or continuation of a process, or the start of a new task.
    fn stopped(&mut self, task: pid_t, signal: i32) {
        let is_new = !self.tasks.contains_key(&task);
        if self.task(task).process == task && signal == libc::SIGTRAP {
            self.reader.born(task);
            self.see_stores(task);
        }
        let is_halted = signal != libc::SIGTRAP;
        if task == self.program && is_halted != self.is_halted {
            self.is_halted = is_halted;
            self.front.iter().for_each(|front| front.halt(is_halted));
        }
        if is_new {
            self.look_at_remaining();
        }
    }

    /// Returns how far to resume a task. A call interrupted by a signal still has to return.
    fn until(&self, task: pid_t) -> Until {
        let is_in_call = self.tasks.get(&task).is_some_and(|task| task.in_call.is_some());
        if is_in_call || self.asked.is_some() { Until::Return } else { Until::Call }
    }

    fn begin(&mut self, task: pid_t) -> Until {
        let Ok(Some(entry)) = ptrace::entry(task) else { return Until::Call };
        let number = filter::newer(entry.number, entry.arguments).0;
        if entry.is_foreign || filter::PROCESSORS.contains(&number) {
            self.near.apart();
        }
        if entry.is_foreign {
            let of = self.task(task);
            let (process, is_known) = (of.process, std::mem::replace(&mut of.is_foreign, true));
            if !is_known {
                let program = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
                self.not_seen(&format!("32-bit calls of {} are not seen", program.display()));
            }
            return Until::Call;
        }
        let is_asked = |(number, when): &(c_long, When)| {
            *number == entry.number && when.is_met(&entry.arguments)
        };
        if self.asked.as_ref().is_some_and(|asked| !asked.iter().any(is_asked)) {
            return Until::Return;
        }
        self.watched.watching.stopped_calls += 1;
        let process = self.task(task).process;
        let tasks = &self.tasks;
        let tasks = &|| tasks.iter().map(|(task, of)| (*task, of.process)).collect();
        let begin = self.reader.begin(process, task, entry, tasks);
        let is_awaited = matches!(begin, Begin::Await(_));
        let place = is_awaited.then(|| self.watched.places.at(process, task, &entry)).flatten();
        // The time of the examination is not part of the call's duration.
        let at_ns = self.now_ns();
        self.see_news(task, at_ns);
        let unseen = match begin {
            Begin::Pass => return Until::Call,
            Begin::Queued(queue, mut operations) => {
                let is_idle = operations.iter().all(|(_, of)| of.work.is_nothing());
                let place = (!is_idle).then(|| self.watched.places.at(process, task, &entry));
                let place = place.flatten();
                for (_, operation) in &mut operations {
                    (operation.at_ns, operation.place) = (at_ns, place);
                    // The message may reach the outside immediately.
                    if let (Work::Call(Begun::Sure(Act::Tell)), 0) =
                        (&operation.work, operation.waits)
                    {
                        operation.work = Work::Nothing;
                        let call = Call::new(at_ns, Act::Tell);
                        (self.see)(&Call { place, task: task as u32, ..call });
                    }
                }
                self.reader.queue(queue, operations);
                return Until::Call;
            }
            Begin::Await(begun) => {
                self.task(task).in_call = Some((begun, at_ns, place));
                return Until::Return;
            }
            Begin::Refuse(error, why) if ptrace::refuse(task, error).is_ok() => why,
            Begin::Refuse(..) => return self.not_seen(calls::IO_URING_UNSEEN),
            Begin::Unseen(what) => return self.not_seen(what),
        };
        self.watched.unseen.insert(unseen.into());
        Until::Call
    }

    /// Notes that a call may change any file unobserved, and lets it run.
    fn not_seen(&mut self, what: &str) -> Until {
        self.watched.unseen.insert(what.into());
        self.watched.unjudged.insert(what.into());
        Until::Call
    }

    /// Returns the current time, which is always later than any time returned before.
    fn now_ns(&mut self) -> u64 {
        self.now_ns = (self.started.elapsed().as_nanos() as u64).max(self.now_ns + 1);
        self.now_ns
    }

    fn end(&mut self, task: pid_t) {
        let ended_ns = self.now_ns();
        let known = self.task(task);
        let process = known.process;
        let Some((mut begun, at_ns, place)) = known.in_call.take() else { return };
        let Ok(result) = ptrace::result(task) else { return };
        if matches!(begun, Begun::NewSession) {
            return self.look_at_remaining();
        }
        let (descriptor, data) = (begun.descriptor(), begun.take_data());
        let act = self.reader.act(process, task, begun, result);
        self.see_news(task, at_ns);
        if let Some(act) = act {
            let data = self.reader.data(process, &act, descriptor, data);
            let took_ns = ended_ns.saturating_sub(at_ns);
            let gone = (self.see)(&Call {
                at_ns,
                took_ns,
                place,
                task: task as u32,
                act,
                data,
                after: Vec::new(),
            });
            self.reader.forget_files(&gone);
        }
    }

    /// Processes the queued operations that have ended, in the order of each queue.
    fn reap(&mut self) {
        while let Some(ended) = self.reader.next_ended() {
            let ended_ns = self.now_ns();
            let (at_ns, place) = (ended.operation.at_ns, ended.operation.place);
            let (ended_task, after) = (ended.operation.task, ended.operation.after.clone());
            let task = ended_task as u32;
            let done = self.reader.finish(ended, ended_ns);
            self.see_news(ended_task, at_ns);
            if let Some((act, data)) = done {
                let took_ns = ended_ns - at_ns;
                let gone = (self.see)(&Call { at_ns, took_ns, place, task, act, data, after });
                self.reader.forget_files(&gone);
            }
        }
        if let Some(what) = self.reader.take_doubt() {
            self.not_seen(what);
        }
    }

    /// Processes the files and stores that the reader found outside a call.
    fn see_stores(&mut self, task: pid_t) {
        let at_ns = self.now_ns();
        self.see_news(task, at_ns);
    }

    /// Processes the files and stores that the reader found at a task's call.
    fn see_news(&mut self, task: pid_t, at_ns: u64) {
        for act in self.reader.news() {
            let data = self.reader.stored_data(&act);
            let call = Call { task: task as u32, data, ..Call::new(at_ns, act) };
            let gone = (self.see)(&call);
            self.reader.forget_files(&gone);
        }
    }

    /// Handles an exec by `task`, whose ID was `before`. If a thread other than the main one calls
    /// exec, its ID becomes the process's ID.
    fn executed(&mut self, task: pid_t, before: pid_t) {
        self.has_begun = true;
        // The task has already been counted as a thread.
        let was_known = [before, task].map(|task| self.tasks.remove(&task).is_some());
        self.watched.watching.tasks -= u64::from(was_known.contains(&true));
        let process = self.task(task).process;
        self.reader.forget(process);
        self.see_stores(task);
        self.watched.places.forget(process);
        self.watched.unseen.extend(unlike_alone(process));
    }

    fn gone(&mut self, task: pid_t, end: End) {
        self.tasks.remove(&task);
        self.reader.forget(task);
        self.see_stores(task);
        self.watched.places.forget(task);
        if task == self.program {
            self.watched.end = end;
            self.has_ended = true;
            if let (Some(front), Some(signal)) = (self.front, end.signal) {
                front.killed(signal);
            }
            if std::mem::take(&mut self.is_halted) {
                self.front.iter().for_each(|front| front.halt(false));
            }
        }
        self.look_at_remaining();
    }

    /// Ends the watch once the program has ended and only daemons remain.
    fn look_at_remaining(&mut self) {
        if !self.has_ended {
            return;
        }
        let remaining = self.remaining();
        if remaining.is_empty() {
            return;
        }
        let is_daemon =
            |process: &pid_t| getsid(Some(Pid::from_raw(*process))).ok() != self.session;
        self.is_over = !self.daemons && remaining.iter().all(is_daemon);
        if !self.is_over && !std::mem::replace(&mut self.is_told, true) {
            (self.remain)(format!(
                "the program has ended; still watching {}; Ctrl-C ends the watch alone",
                names(&remaining)
            ));
        }
    }

    /// Returns the processes that have not ended.
    fn remaining(&self) -> BTreeSet<pid_t> {
        self.tasks.values().map(|task| task.process).collect()
    }

    fn task(&mut self, task: pid_t) -> &mut Task {
        let watching = &mut self.watched.watching;
        self.tasks.entry(task).or_insert_with(|| {
            watching.tasks += 1;
            Task {
                process: status(task, "Tgid:").unwrap_or(task),
                in_call: None,
                is_foreign: false,
            }
        })
    }
}

/// Names the first few processes, and counts the others.
fn names(processes: &BTreeSet<pid_t>) -> String {
    const SHOWN_MAX: usize = 3;
    let name = |process: &pid_t| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        format!("{} (PID {process})", name.trim_end())
    };
    some_of(&processes.iter().map(name).collect::<Vec<_>>(), SHOWN_MAX)
}

/// Returns why a program behaves differently when it is traced; `None` if no reason is known.
fn unlike_alone(process: pid_t) -> Option<String> {
    let link = format!("/proc/{process}/exe");
    let name = fs::read_link(&link).ok()?;
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
