//! `Work`: one call on a thread of libuv's pool, behind a promise.

use crate::error::raise;
use napi::bindgen_prelude::{AsyncTask, Buffer, ToNapiValue, TypeName};
use napi::{Env, Status, Task};
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use wrote::Error;

/// How many calls have begun and not ended, and a signal for when none has.
static BEGUN: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A call that has begun; dropped at its end.
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

/// Waits until every call has ended: one that `process.exit()` cuts short would leave a file beside
/// that which it replaces.
#[napi(catch_unwind)]
pub fn finish_work() {
    let begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ENDED.wait_while(begun, |begun| *begun > 0));
}

/// A call that may wait for the disk.
pub struct Work<T> {
    /// Taken by the pool's thread.
    run: Option<(Run<T>, Begun)>,
    /// The bytes of JavaScript that it reads, which are released by JavaScript's own thread.
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

/// Starts a call that reads bytes of JavaScript. They are not copied, so until its end they should
/// stay as they are, as with `node:fs`.
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
        // No panic leaves the library.
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
