//! The native part of the npm package. `lib/` builds promises, streams and errors of Node.js on it.

// A test exports nothing to Node.js, so it leaves code unused. The package's tests are in `test/`.
#![cfg_attr(test, allow(dead_code))]

mod files;
mod lines;
mod log;
mod records;

use napi::bindgen_prelude::{
    AsyncTask, Buffer, Function, JsObjectValue, Object, ToNapiValue, TypeName, Unknown,
};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, JsError, Status, Task, check_status, sys};
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
use wrote::Error;
use wrote_bindings::{Signal, Wakeup, offset, text};

/// Returns the version of the library.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The number of calls in progress, and a signal for when there are none.
static BEGUN: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A call in progress; dropped when the call has finished.
struct Begun;

impl Begun {
    fn new() -> Begun {
        *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Begun
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// Waits until every call has finished. A call that `process.exit()` interrupted would leave a
/// temporary file next to the file that it replaces.
#[napi(catch_unwind)]
pub fn finish_work() {
    let begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ENDED.wait_while(begun, |begun| *begun > 0));
}

/// A call that may wait for the disk.
pub struct Work<T> {
    /// The work, which the pool's thread takes.
    run: Option<(Run<T>, Begun)>,
    /// The JavaScript bytes that the call reads, which JavaScript's own thread releases.
    data: Vec<Buffer>,
}

type Run<T> = Box<dyn FnOnce(&[Buffer]) -> Result<T, Error> + Send>;

/// Starts a call.
pub fn work<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> AsyncTask<Work<T>>
where
    Work<T>: Task,
{
    work_with(Vec::new(), |_| run())
}

/// Starts a call that reads JavaScript bytes. They are not copied, so they should not change until
/// the call has finished, as with `node:fs`.
pub fn work_with<T: Send + 'static>(
    data: Vec<Buffer>,
    run: impl FnOnce(&[Buffer]) -> Result<T, Error> + Send + 'static,
) -> AsyncTask<Work<T>>
where
    Work<T>: Task,
{
    AsyncTask::new(Work { run: Some((Box::new(run), Begun::new())), data })
}

impl<T: Send + ToNapiValue + TypeName + 'static> Task for Work<T> {
    type Output = Result<T, Error>;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<Result<T, Error>> {
        let Work { run, data } = self;
        // Every panic must be caught in the library.
        let run = run.take().map(|(run, _begun)| catch_unwind(AssertUnwindSafe(|| run(data))));
        match run {
            Some(Ok(result)) => Ok(result),
            _ => Err(napi::Error::new(Status::GenericFailure, "the library panicked".to_owned())),
        }
    }

    fn resolve(&mut self, env: Env, output: Result<T, Error>) -> napi::Result<T> {
        output.map_err(|error| raise(&env, &error))
    }
}

/// JavaScript's names of the options that Rust's errors mention.
const OPTIONS: [&str; 2] = ["bufferBytes of openLog()", "bufferBytes of lines()"];

/// Returns an error as an exception, with its parts as properties.
pub fn raise(env: &Env, error: &Error) -> napi::Error {
    match with_parts(env, error) {
        Ok(value) => napi::Error::from(value),
        Err(other) => other,
    }
}

fn with_parts<'env>(env: &'env Env, error: &Error) -> napi::Result<Unknown<'env>> {
    let raised = napi::Error::new(Status::GenericFailure, text(error, OPTIONS));
    let unknown = JsError::from(raised).into_unknown(*env);
    // SAFETY: an error is an object.
    let mut object: Object<'_> = unsafe { unknown.cast()? };
    object.set_named_property("kind", kind(error))?;
    object.set_named_property("errno", error.errno())?;
    let path = error.path().map(|path| path.to_string_lossy().into_owned());
    object.set_named_property("path", path)?;
    object.set_named_property("offset", offset(error).map(|offset| offset as f64))?;
    Ok(unknown)
}

/// Returns the exception for an invalid argument.
pub fn invalid(text: String) -> napi::Error {
    napi::Error::new(Status::InvalidArg, text)
}

fn kind(error: &Error) -> &'static str {
    match error {
        Error::File { .. } => "File",
        Error::NotYet { .. } => "NotYet",
        Error::Poisoned { .. } => "Poisoned",
        Error::Alignment { .. } => "Alignment",
        Error::TooLong { .. } => "TooLong",
        Error::Refused { .. } => "Refused",
        Error::Interfered { .. } => "Interfered",
        Error::Truncated { .. } => "Truncated",
        Error::Differs { .. } => "Differs",
        Error::Damaged { .. } => "Damaged",
        Error::Foreign { .. } => "Foreign",
        Error::Interrupted => "Interrupted",
        Error::Forked => "Forked",
        Error::Engine { .. } => "Engine",
        _ => "Other",
    }
}

/// A JavaScript function that any thread can cause to be called. The bell uses no thread, and keeps
/// the process alive only while it is held.
pub struct Bell {
    wakeup: Arc<Wakeup<Call>>,
    is_held: AtomicBool,
}

/// A function that does not keep the event loop alive by itself.
type Weak = ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>;

struct Call(Weak);

impl Signal for Call {
    fn give(&self) {
        // This fails only if the event loop no longer runs, and then its promises no longer exist
        // either.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl Bell {
    /// Creates a bell that calls `function`.
    pub fn new(function: Function<'_, (), Unknown<'static>>) -> napi::Result<Bell> {
        let builder = function.build_threadsafe_function::<()>().weak::<true>();
        let call = Call(builder.build_callback(|_| Ok(()))?);
        Ok(Bell { wakeup: Wakeup::of(call), is_held: AtomicBool::new(false) })
    }

    /// Clears the signal. The function must call this first.
    pub fn clear(&self) {
        self.wakeup.clear();
    }

    /// Returns a waker that calls the function.
    pub fn waker(&self) -> Waker {
        self.wakeup.waker()
    }

    /// Keeps the process alive while `is_held`.
    pub fn hold(&self, env: &Env, is_held: bool) -> napi::Result<()> {
        if self.is_held.swap(is_held, Ordering::Relaxed) == is_held {
            return Ok(());
        }
        let function = self.wakeup.signal().0.raw();
        let change = match is_held {
            true => sys::napi_ref_threadsafe_function,
            false => sys::napi_unref_threadsafe_function,
        };
        // SAFETY: the function lives as long as the bell, and this is its environment's thread.
        check_status!(unsafe { change(env.raw(), function) })
    }
}
