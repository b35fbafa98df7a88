//! Workers: threads that serve connections, each with its own runtime.
//!
//! A connection stays with one worker. Work stealing would wake other workers, which costs more
//! than it saves for short tasks.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// The maximum time for which the shutdown of a worker waits for blocking calls.
const END: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Worker {
    pub number: usize,
    pub runtime: Handle,
    connections: AtomicUsize,
}

/// A connection's assignment to a worker, which is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Worker>);

/// All workers. Dropping this value stops them.
#[derive(Debug)]
pub(crate) struct Workers {
    pub all: Arc<[Arc<Worker>]>,
    threads: Vec<JoinHandle<()>>,
    end: Option<watch::Sender<()>>,
}

impl Workers {
    /// Starts `count` workers, at least one.
    pub(crate) fn start(count: usize) -> Result<Workers, Error> {
        let (end, _) = watch::channel(());
        let (mut all, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count.max(1) {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .thread_name("wrote-serve")
                .build()
                .map_err(Error::Runtime)?;
            let (handle, mut ended) = (runtime.handle().clone(), end.subscribe());
            let serve = move || {
                // The value never changes; the wait ends when the sender is dropped.
                let _ = runtime.block_on(ended.changed());
                runtime.shutdown_timeout(END);
            };
            let thread = thread::Builder::new().name("wrote-serve".to_owned());
            threads.push(thread.spawn(serve).map_err(Error::Runtime)?);
            let connections = AtomicUsize::new(0);
            all.push(Arc::new(Worker { number, runtime: handle, connections }));
        }
        Ok(Workers { all: all.into(), threads, end: Some(end) })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.end = None;
        for thread in self.threads.drain(..) {
            // A worker that panicked has also ended.
            let _ = thread.join();
        }
    }
}

impl Seat {
    /// Assigns a connection to the worker that has the fewest connections.
    pub(crate) fn of(workers: &[Arc<Worker>]) -> Seat {
        let load = |worker: &&Arc<Worker>| worker.connections.load(Ordering::Relaxed);
        let worker = workers.iter().min_by_key(load).expect("there is one");
        worker.connections.fetch_add(1, Ordering::Relaxed);
        Seat(worker.clone())
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
