//! MPI ranks as the peers of a measurement: messages, start and end.
//!
//! Only the thread that called `Mpi::start` speaks to MPI.

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{Request, StaticScope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};
use std::cell::RefCell;
use std::fmt;
use wrote_jobs::peers::Post;
use wrote_result::Error;

/// Messages in transit are checked when there are more than this.
const ON_THEIR_WAY_MAX: usize = 64;

/// A message that MPI has not copied yet. Its bytes are freed when it has.
struct OnItsWay {
    request: Request<'static, [u8], StaticScope>,
    bytes: *mut [u8],
}

/// The post of MPI's ranks.
pub struct Mpi {
    /// `None` once it was ended.
    universe: Option<Universe>,
    world: SimpleCommunicator,
    node: String,
    on_their_way: RefCell<Vec<OnItsWay>>,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.world.rank(), self.world.size())
    }
}

impl Mpi {
    /// Starts MPI (`MPI_Init_thread`). A process without `mpirun` is rank 0 of 1.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where MPI was started before.
    pub fn start() -> Result<Mpi, Error> {
        let started = mpi::initialize_with_threading(Threading::Funneled);
        let failed = || Error::Failed("MPI can't be started in this process".into());
        let (universe, _) = started.ok_or_else(failed)?;
        let world = universe.world();
        let node = mpi::environment::processor_name().unwrap_or_else(|_| "unknown".into());
        let on_their_way = RefCell::new(Vec::new());
        Ok(Mpi { universe: Some(universe), world, node, on_their_way })
    }

    /// Ends MPI where all ranks do (`MPI_Finalize`), and waits for them.
    pub fn end(mut self) {
        // Messages that the others no longer receive must not block this rank.
        self.abandon();
        drop(self.universe.take());
    }

    /// Does not end MPI, for a process that ends at once: others may be gone.
    pub fn leave(mut self) {
        self.abandon();
        std::mem::forget(self.universe.take());
    }

    /// Ends all ranks (`MPI_Abort`): their starter sends them SIGTERM, and then SIGKILL.
    pub fn abort(self, code: i32) -> ! {
        self.world.abort(code)
    }

    fn abandon(&self) {
        self.sent();
        self.on_their_way.borrow_mut().drain(..).for_each(std::mem::forget);
    }

    /// Frees the messages that MPI has copied.
    fn sent(&self) {
        let mut on_their_way = self.on_their_way.borrow_mut();
        let left = on_their_way.drain(..).filter_map(|OnItsWay { request, bytes }| {
            match request.test() {
                // SAFETY: the bytes come from `Box::into_raw`, and the request that read them is
                // complete and gone.
                Ok(_) => drop(unsafe { Box::from_raw(bytes) }),
                Err(request) => return Some(OnItsWay { request, bytes }),
            }
            None
        });
        let left: Vec<OnItsWay> = left.collect();
        *on_their_way = left;
    }
}

impl Post for Mpi {
    fn rank(&self) -> u32 {
        self.world.rank() as u32
    }

    fn ranks(&self) -> u32 {
        self.world.size() as u32
    }

    fn node(&self) -> String {
        self.node.clone()
    }

    /// MPI owns a copy of the message until it is sent. It must outlive this call, and must not
    /// block the sender if it is never received.
    fn send(&self, to: u32, message: Vec<u8>) {
        let bytes = Box::into_raw(message.into_boxed_slice());
        // SAFETY: nothing writes to the bytes, and they are freed when the request is complete, or
        // never.
        let message: &'static [u8] = unsafe { &*bytes };
        let request = self.world.process_at_rank(to as i32).immediate_send(StaticScope, message);
        self.on_their_way.borrow_mut().push(OnItsWay { request, bytes });
        if self.on_their_way.borrow().len() > ON_THEIR_WAY_MAX {
            self.sent();
        }
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        self.sent();
        let probed = self.world.any_process().immediate_matched_probe()?;
        let from = probed.1.source_rank() as u32;
        Some((from, probed.matched_receive_vec().0))
    }
}
