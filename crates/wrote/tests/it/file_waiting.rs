//! Tests of waiting for operations on a `DirectFile`: by blocking, by the disk itself, and on an
//! executor that knows nothing of disks.

use crate::folder;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use wrote::engine::Options;
use wrote::file::DirectFile;
use wrote::{Disk, Error, FileOptions, Ioengine, Sim};

const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];
const BLOCK_BYTES: usize = 4096;
const NEW: FileOptions = FileOptions::new().create_new(true).write(true).direct(true);

fn options(ioengine: Ioengine, buffers: u32) -> Options {
    Options::new(ioengine, 8, BLOCK_BYTES).buffers(buffers)
}

/// Creates a simulated disk with a file of 16 blocks, each filled with its number.
fn simulated(seed: u64, buffers: u32) -> (Sim, Disk, DirectFile) {
    let sim = Sim::new(seed);
    let disk = Disk::simulated(&sim, &options(Ioengine::IoUring, buffers)).unwrap();
    let file = disk.open_file(Path::new("/sim/file"), &NEW).unwrap();
    for block in 0..16 {
        write_block(&disk, &file, block);
    }
    (sim, disk, file)
}

fn write_block(disk: &Disk, file: &DirectFile, block: u8) {
    let mut buffer = disk.lease().unwrap();
    buffer.fill(block);
    file.write(buffer, u64::from(block) * BLOCK_BYTES as u64).unwrap();
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// An executor that polls only tasks that have been woken, in order, and sleeps when there are
/// none.
struct Executor<'a> {
    tasks: Vec<(Option<Task<'a>>, Arc<Woken>)>,
}

struct Woken {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<'a> Executor<'a> {
    fn of(tasks: impl IntoIterator<Item = Task<'a>>) -> Executor<'a> {
        let (is_woken, thread) = (|| AtomicBool::new(true), std::thread::current());
        let woken = || Arc::new(Woken { is_woken: is_woken(), thread: thread.clone() });
        Executor { tasks: tasks.into_iter().map(|task| (Some(task), woken())).collect() }
    }

    fn run(mut self) {
        while self.tasks.iter().any(|(task, _)| task.is_some()) {
            let mut polled = false;
            for (place, woken) in &mut self.tasks {
                let Some(task) =
                    place.as_mut().filter(|_| woken.is_woken.swap(false, Ordering::AcqRel))
                else {
                    continue;
                };
                polled = true;
                let waker = Waker::from(Arc::clone(woken));
                if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    *place = None;
                }
            }
            if !polled {
                std::thread::park();
            }
        }
    }
}

#[test]
fn operations_that_are_awaited_together_are_in_flight_together() {
    for rung in [Ioengine::Threads, Ioengine::IoUring] {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 16)).unwrap();
        let file = disk.open_file(&path, &NEW).unwrap();
        disk.block_on(async {
            let write = async |block: u8| {
                let mut buffer = disk.start_lease().await?;
                buffer.fill(block);
                file.start_write(buffer, u64::from(block) * BLOCK_BYTES as u64).await
            };
            join_all((0..50).map(write)).await.into_iter().collect::<Result<(), Error>>()
        })
        .unwrap();
        assert_eq!(disk.effective().iodepth_reached, 8, "as deep as was asked for");
        let expected: Vec<u8> = (0..50).flat_map(|block| [block; BLOCK_BYTES]).collect();
        assert!(std::fs::read(&path).unwrap() == expected);
    }
}

#[test]
fn two_disks_in_one_future_both_go_on() {
    let (_sim, first, first_file) = simulated(1, 4);
    let (_sim, _second, second_file) = simulated(2, 4);
    first.block_on(async {
        for block in 0..10 {
            let offset = block * BLOCK_BYTES as u64;
            let (one, two) = (first_file.start_read(offset, 1), second_file.start_read(offset, 1));
            assert!(one.await.unwrap() == [block as u8][..]);
            assert!(two.await.unwrap() == [block as u8][..]);
        }
    });
}

#[test]
fn a_future_that_is_woken_by_another_thread_is_seen() {
    let (_sim, disk, file) = simulated(1, 4);
    let (sender, receiver) = std::sync::mpsc::channel::<Waker>();
    let there = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&there);
    let thread = std::thread::spawn(move || {
        let waker = receiver.recv().unwrap();
        other.store(true, Ordering::Release);
        waker.wake();
    });
    disk.block_on(async {
        file.start_read(0, 1).await.unwrap();
        let mut sender = Some(sender);
        std::future::poll_fn(|context| {
            if let Some(sender) = sender.take() {
                sender.send(context.waker().clone()).unwrap();
            }
            if there.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        file.start_read(0, 1).await.unwrap();
    });
    thread.join().unwrap();
}

#[test]
fn blocking_inside_a_future_leaves_the_others_their_results() {
    let (_sim, disk, file) = simulated(5, 16);
    disk.block_on(async {
        let reads: Vec<_> = (0..8).map(|block| file.start_read(block * 4096, 3)).collect();
        assert!(file.read(9 * 4096, 3).unwrap() == [9; 3][..]);
        for (block, bytes) in (0..).zip(join_all(reads).await) {
            assert!(bytes.unwrap() == [block; 3][..]);
        }
    });
}

#[test]
fn blocking_forms_wait_for_buffers_in_flight_and_for_those_that_another_thread_holds() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 3)).unwrap();
        let file = disk.open_file(&path, &NEW).unwrap();
        // Ten writes share three buffers.
        let writes: Vec<_> = (0..10)
            .map(|block| {
                let mut buffer = disk.lease().unwrap();
                buffer.fill(block);
                file.start_write(buffer, u64::from(block) * BLOCK_BYTES as u64)
            })
            .collect();
        writes.into_iter().for_each(|write| write.wait().unwrap());
        let held = [0, 1].map(|block| file.read(block * BLOCK_BYTES as u64, BLOCK_BYTES).unwrap());
        let buffer = disk.lease().unwrap();
        assert!(disk.try_lease().is_none());
        let waiting = [file.start_read(0, BLOCK_BYTES + 1), file.start_read(7, 1)];
        assert!(waiting.iter().all(|read| !read.is_over()));
        // Operations that hold a buffer or need none continue.
        file.sync_data().unwrap();
        let writer = std::thread::spawn({
            let file = file.clone();
            move || {
                file.write(buffer, 3 * BLOCK_BYTES as u64).unwrap();
                drop(held);
            }
        });
        for read in waiting {
            assert!(!read.wait().unwrap().is_empty());
        }
        writer.join().unwrap();
        assert_eq!(file.read(0, 3 * BLOCK_BYTES).unwrap().len(), 3 * BLOCK_BYTES);
        assert_eq!(disk.buffers_free(), 3);
    }
}

#[test]
fn a_read_returns_buffers_that_it_does_not_lend_to_the_read_that_waits_for_them() {
    let (_sim, disk, file) = simulated(5, 3);
    let held = disk.lease().unwrap();
    // In one case, bytes from two buffers are copied; in the other, there are no bytes, because the
    // offset is beyond the end.
    for (offset, len, found) in [(0, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES), (1 << 20, 2, 0)] {
        let reads = [file.start_read(offset, len), file.start_read(0, 2 * BLOCK_BYTES)];
        assert_eq!(reads.map(|read| read.wait().unwrap().len()), [found, 2 * BLOCK_BYTES]);
    }
    drop(held);
    assert_eq!(disk.buffers_free(), 3);
}

#[test]
fn tasks_share_one_buffer_when_each_gives_it_back() {
    for seed in 0..20 {
        let (_sim, disk, file) = simulated(seed, 1);
        let seen = RefCell::new(Vec::new());
        let task = async |block: u8| {
            let bytes = file.start_read(u64::from(block) * BLOCK_BYTES as u64, 1).await.unwrap();
            seen.borrow_mut().push(bytes[0]);
        };
        Executor::of((0..10).map(|block| Box::pin(task(block)) as Task)).run();
        disk.block_on(join_all((10..16).map(task)));
        assert_eq!(*seen.borrow(), (0..16).collect::<Vec<u8>>(), "in the order in which they came");
    }
}

#[test]
fn a_write_that_holds_the_buffer_of_a_read_before_it_waits_for_the_read_and_not_for_ever() {
    let (sim, disk, file) = simulated(3, 2);
    let mut buffer = disk.lease().unwrap();
    buffer.fill(77);
    let read = file.start_read(0, 2 * BLOCK_BYTES);
    let write = file.start_write(buffer, 0);
    write.wait().unwrap();
    let bytes = read.wait().unwrap();
    assert!(bytes[..] == [[0; BLOCK_BYTES], [1; BLOCK_BYTES]].concat());
    drop(bytes);
    assert_eq!(disk.buffers_free(), 2);
    assert_eq!(sim.contents(Path::new("/sim/file")).unwrap()[..BLOCK_BYTES], [77; BLOCK_BYTES]);
}

#[test]
fn writes_to_one_block_happen_in_the_order_in_which_they_were_started() {
    // W3: if the order were wrong, the engine's own check would end the test.
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 8)).unwrap();
        let file = disk.open_file(&path, &NEW).unwrap();
        let mut started = VecDeque::new();
        for version in 0..100_u8 {
            let mut buffer = disk.lease().unwrap();
            buffer.fill(version);
            started.push_back(file.start_write(buffer, 0));
        }
        assert!(file.read(7, 9).unwrap() == [99; 9][..]);
        started.into_iter().for_each(|write| write.wait().unwrap());
    }
}

#[test]
fn a_waker_that_drops_other_operations_finds_the_disk_free() {
    thread_local! {
        static TASK: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
    }
    /// A waker that drops one task when it wakes another, as an executor may do.
    struct AbortingWaker;
    impl Wake for AbortingWaker {
        fn wake(self: Arc<Self>) {
            TASK.with(|task| drop(task.borrow_mut().take()));
        }
    }
    let (_sim, disk, file) = simulated(4, 2);
    let held = [disk.lease().unwrap(), disk.lease().unwrap()];
    let (mut first, other) = (file.start_read(0, 1), file.start_read(BLOCK_BYTES as u64, 1));
    let waker = Waker::from(Arc::new(AbortingWaker));
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    TASK.with(|task| *task.borrow_mut() = Some(Box::new(other)));
    drop(held);
    disk.drain().unwrap();
    assert!(TASK.with(|task| task.borrow().is_none()), "it was woken");
    assert_eq!(disk.outstanding(), 0);
}

#[test]
fn waiting_for_what_is_over_hands_what_was_started_since_to_the_kernel() {
    // Returns the number of bytes that this thread has read from the device (`/proc/pid/io` in
    // `proc(5)`).
    let read_bytes = || -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap().parse().unwrap()
    };
    let (_folder, path) = folder();
    let disk = Disk::open(&options(Ioengine::IoUring, 8)).unwrap();
    let file = disk.open_file(&path, &NEW).unwrap();
    (0..4).for_each(|block| write_block(&disk, &file, block));
    if !file.is_direct() || disk.effective().ioengine != Ioengine::IoUring {
        let because = "only direct reads by io_uring are counted for the thread that submits them";
        return fixtures::skip("waiting_for_what_is_over", because);
    }
    let first = file.start_read(0, BLOCK_BYTES);
    disk.drain().unwrap();
    let second = file.start_read(BLOCK_BYTES as u64, BLOCK_BYTES);
    let before = read_bytes();
    assert_eq!(first.wait().unwrap(), [0; BLOCK_BYTES][..]);
    assert!(read_bytes() > before, "the second read waits in this process");
    assert_eq!(second.wait().unwrap(), [1; BLOCK_BYTES][..]);
}
