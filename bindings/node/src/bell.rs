//! `Bell`: calls a function of JavaScript in a later turn of the event loop.

use napi::bindgen_prelude::{Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, check_status, sys};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use wrote_bindings::{Signal, Wakeup};

/// A function of JavaScript that any thread may ask for. It has no thread, and keeps the process
/// alive only while it is held.
pub struct Bell {
    wakeup: Arc<Wakeup<Call>>,
    is_held: AtomicBool,
}

/// A function that does not keep the event loop alive by itself.
type Weak = ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>;

struct Call(Weak);

impl Signal for Call {
    fn give(&self) {
        // Refused only where the event loop has ended, and its promises with it.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl Bell {
    /// Makes the bell of a function.
    pub fn new(function: Function<'_, (), Unknown<'static>>) -> napi::Result<Bell> {
        let builder = function.build_threadsafe_function::<()>().weak::<true>();
        let call = Call(builder.build_callback(|_| Ok(()))?);
        Ok(Bell { wakeup: Wakeup::of(call), is_held: AtomicBool::new(false) })
    }

    /// To be called first by the function.
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
