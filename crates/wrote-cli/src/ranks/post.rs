//! MPI ranks as the peers of a measurement: their messages, start and end.
//!
//! Only the thread that called `Mpi::start` calls MPI functions.

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{Request, StaticScope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use std::cell::RefCell;
use std::time::{Duration, Instant};
use wrote_jobs::peers::Post;
use wrote_result::Error;

/// How long the ranks of an interrupted group wait for each other. Open MPI kills all ranks a
/// second after it has asked them to exit, or as soon as one of them has exited.
const LEAVING: Duration = Duration::from_millis(700);

/// A message that MPI has not copied yet. Its bytes are freed once they have been copied.
type OnItsWay = (Request<'static, [u8], StaticScope>, *mut [u8]);

/// A carrier of messages between MPI ranks. Dropping it calls `MPI_Finalize`, which waits until all
/// ranks call it.
pub struct MpiPost {
    on_their_way: RefCell<Vec<OnItsWay>>,
    world: SimpleCommunicator,
    _universe: Universe,
}

impl MpiPost {
    /// Starts MPI (`MPI_Init_thread`). A process without `mpirun` is rank 0 of 1.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if MPI has already been started.
    pub fn start() -> Result<MpiPost, Error> {
        let started = mpi::initialize_with_threading(Threading::Funneled);
        let failed = || Error::Failed("MPI can't be started in this process".into());
        let (universe, _) = started.ok_or_else(failed)?;
        let world = universe.world();
        Ok(MpiPost { on_their_way: RefCell::default(), world, _universe: universe })
    }

    /// Leaves MPI without finalizing it, because other ranks may have gone, and this process exits
    /// immediately. Briefly waits for ranks that are still cleaning up.
    fn leave(self) {
        let began = Instant::now();
        let mut all_are_here = Err(self.world.immediate_barrier());
        while let Err(request) = all_are_here {
            all_are_here = request.test();
            if all_are_here.is_err() && began.elapsed() > LEAVING {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::forget((all_are_here, self));
    }
}

impl Post for MpiPost {
    fn rank(&self) -> u32 {
        self.world.rank() as u32
    }

    fn ranks(&self) -> u32 {
        self.world.size() as u32
    }

    fn node(&self) -> String {
        mpi::environment::processor_name().unwrap_or_else(|_| "unknown".into())
    }

    /// Sends a message without blocking. The bytes are leaked until MPI has sent them, because they
    /// must outlive this call even if the message is never received.
    fn send(&self, to: u32, message: Vec<u8>) {
        let bytes = Box::into_raw(message.into_boxed_slice());
        // SAFETY: nothing writes to the bytes, and they are freed when the request is complete, or
        // never.
        let message: &'static [u8] = unsafe { &*bytes };
        let request = self.world.process_at_rank(to as i32).immediate_send(StaticScope, message);
        let mut on_their_way = self.on_their_way.borrow_mut();
        let waiting = on_their_way.drain(..).filter_map(|(request, bytes)| match request.test() {
            Ok(_) => {
                // SAFETY: the bytes come from `Box::into_raw`, and the request that read them is
                // complete and gone.
                drop(unsafe { Box::from_raw(bytes) });
                None
            }
            Err(request) => Some((request, bytes)),
        });
        let left: Vec<OnItsWay> = waiting.chain([(request, bytes)]).collect();
        *on_their_way = left;
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        let (message, status) = self.world.any_process().immediate_matched_probe()?;
        Some((status.source_rank() as u32, (message, status).matched_receive_vec().0))
    }

    fn end(self: Box<Self>, code: u8, is_lost: bool) {
        match is_lost {
            _ if code > 128 => self.leave(),
            // The launcher sends the ranks SIGTERM, and then SIGKILL.
            true => self.world.abort(code.into()),
            false => {}
        }
    }
}

impl Drop for MpiPost {
    fn drop(&mut self) {
        // Messages that the other ranks no longer receive must not block this rank.
        self.on_their_way.borrow_mut().drain(..).for_each(std::mem::forget);
    }
}
