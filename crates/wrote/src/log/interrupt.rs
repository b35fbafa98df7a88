//! The flag that ends long reads of a log.

use crate::Error;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The flag of the call that this thread is in.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Calls `work`. Once `stop` is set, by any thread or a signal handler, every read of a log within
/// `work` ends with [`Error::Interrupted`]: of a reader, a summary, a verification, a repair, and
/// of recovery on open.
///
/// The flag is checked before each disk request, of at most a few megabytes. A reader opened in
/// `work` keeps the flag. An interrupted repair or recovery is left as after a crash, and the next
/// one completes it.
pub fn until<T>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<AtomicBool>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STOP.set(self.0.take());
        }
    }
    let _before = Restore(STOP.replace(Some(stop.clone())));
    work()
}

/// The flag under which files were opened.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Option<Arc<AtomicBool>>);

impl Interrupt {
    pub(super) fn of_thread() -> Interrupt {
        Interrupt(STOP.with_borrow(Clone::clone))
    }

    /// Returns whether there is a flag that may be set.
    pub(super) fn has_flag(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_set = self.0.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if is_set { Err(Error::Interrupted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_segments;
    use super::super::{Log, LogReader, repair, summary, verify};
    use super::*;

    #[test]
    fn a_flag_that_is_set_ends_every_read_of_a_log_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in two_segments().files(folder.path()) {
            std::fs::write(path, bytes).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(true));
        let path = folder.path();
        type Call<'a> = &'a dyn Fn() -> Result<(), Error>;
        let calls: [(&str, Call); 6] = [
            ("read", &|| LogReader::open(path, 0)?.try_for_each(|record| record.map(drop))),
            ("follow", &|| {
                LogReader::open(path, 9)?.following()?.try_for_each(|record| record.map(drop))
            }),
            ("summary", &|| summary(path).map(drop)),
            ("verify", &|| verify(path, None).map(drop)),
            ("repair", &|| repair(path).map(drop)),
            ("open", &|| Log::options().open(path).map(drop)),
        ];
        for (name, call) in calls {
            let ended = until(&stop, call);
            assert!(matches!(ended, Err(Error::Interrupted)), "{name}: {ended:?}");
        }
        assert_eq!(verify(path, None).unwrap().records, 10);
    }

    #[test]
    fn a_reader_keeps_the_flag_under_which_it_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in two_segments().files(folder.path()) {
            std::fs::write(path, bytes).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut follower =
            until(&stop, || LogReader::open(folder.path(), 0).and_then(LogReader::following))
                .unwrap();
        assert_eq!(follower.next().unwrap().unwrap().sequence, 0);
        std::thread::scope(|scope| {
            let rest = scope.spawn(|| follower.last());
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(rest.join().unwrap(), Some(Err(Error::Interrupted))));
        });
    }
}
