//! Tests of one disk used by many threads: operations that block, are awaited on executors of any
//! kind, or are dropped anywhere.

use crate::folder;
use std::future::Future;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use wrote::engine::Options;
use wrote::file::{DirectFile, DiskBuffer, Operation};
use wrote::{Disk, FileOptions, Ioengine, Sim};

const KERNELS: [Ioengine; 2] = [Ioengine::Threads, Ioengine::IoUring];
const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];
const BLOCK_BYTES: usize = 4096;
/// A time limit that only a hang can reach.
const HANG: Duration = Duration::from_secs(60);

fn options(ioengine: Ioengine, buffers: u32) -> Options {
    Options::new(ioengine, 8, BLOCK_BYTES).buffers(buffers)
}

fn new() -> FileOptions {
    FileOptions::new().create_new(true).write(true).direct(true)
}

fn offset(block: u64) -> u64 {
    block * BLOCK_BYTES as u64
}

/// Creates a file of `blocks` blocks, each filled with its number.
fn numbered(disk: &Disk, path: &Path, blocks: u8) -> DirectFile {
    let file = disk.open_file(path, &new()).unwrap();
    for block in 0..blocks {
        let mut buffer = disk.lease().unwrap();
        buffer.fill(block);
        file.write(buffer, offset(block.into())).unwrap();
    }
    file
}

/// A waker that counts its calls, and sends a message at each.
struct Counted {
    wakes: AtomicUsize,
    sender: Mutex<Sender<()>>,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.sender.lock().unwrap().send(()).unwrap();
    }
}

/// Runs a future on this thread with a simple executor that knows nothing of disks. Returns the
/// output and the number of polls.
fn run<F: Future>(future: F) -> (F::Output, usize) {
    let (sender, woken) = channel();
    let counted = Arc::new(Counted { wakes: AtomicUsize::new(0), sender: Mutex::new(sender) });
    let waker = Waker::from(Arc::clone(&counted));
    let mut future = pin!(future);
    for polls in 1.. {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, polls);
        }
        woken.recv_timeout(HANG).expect("a pending operation is over at some time");
    }
    unreachable!()
}

#[test]
fn disks_files_operations_and_bytes_move_between_threads_and_outlive_every_borrow() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    fn is_sent<T: Send + Sync + 'static>() {}
    fn is_future<T: Future + Send + 'static>(_: &T) {}
    is_shared::<Disk>();
    is_shared::<DirectFile>();
    is_sent::<DiskBuffer>();
    is_sent::<Operation<DiskBuffer>>();
    let sim = Sim::new(1);
    let disk = Disk::simulated(&sim, &options(Ioengine::IoUring, 8)).unwrap();
    let file = numbered(&disk, Path::new("/sim/file"), 1);
    is_future(&file.start_read(0, 1));
    is_future(&file.start_write(disk.lease().unwrap(), 0));
    is_future(&file.start_write_durable(disk.lease().unwrap(), 0));
    is_future(&file.start_allocate(0, 1));
    is_future(&file.start_sync_data());
    is_future(&file.start_sync_all());
    is_future(&disk.start_lease());
}

#[test]
fn a_pending_operation_takes_no_cpu_its_task_is_woken_once_and_polled_twice() {
    for rung in KERNELS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 8)).unwrap();
        let file = numbered(&disk, &path, 8);
        for block in 0..8 {
            let (sender, woken) = channel();
            let wakes = AtomicUsize::new(0);
            let counted = Arc::new(Counted { wakes, sender: Mutex::new(sender) });
            let waker = Waker::from(Arc::clone(&counted));
            let mut read = file.start_read(offset(block), BLOCK_BYTES);
            let poll =
                |read: &mut Operation<_>| Pin::new(read).poll(&mut Context::from_waker(&waker));
            let Poll::Pending = poll(&mut read) else { continue };
            woken.recv_timeout(HANG).expect("the disk's thread wakes the task");
            assert!(read.is_over());
            let Poll::Ready(bytes) = poll(&mut read) else { panic!("woken for nothing") };
            assert!(bytes.unwrap() == [block as u8; BLOCK_BYTES][..]);
            assert_eq!(counted.wakes.load(Ordering::SeqCst), 1);
        }
    }
}

/// A worker that changes and reads its own blocks of the shared file, awaiting or blocking, and
/// checks them.
struct Worker {
    disk: Disk,
    file: DirectFile,
    first: u64,
    done: Arc<AtomicU64>,
}

const ROUNDS: u8 = 20;
const BLOCKS_EACH: u64 = 4;

impl Worker {
    async fn awaits(self) {
        for round in 0..ROUNDS {
            for block in self.first..self.first + BLOCKS_EACH {
                let mut buffer = self.disk.start_lease().await.unwrap();
                buffer.fill(round ^ block as u8);
                let write = self.file.start_write(buffer, offset(block));
                let read = self.file.start_read(offset(block) + 7, 100);
                // A dropped write continues, and the read is executed after it.
                match round % 3 {
                    0 => drop(write),
                    _ => write.await.unwrap(),
                }
                assert!(read.await.unwrap() == [round ^ block as u8; 100][..]);
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            if round % 8 == 0 {
                self.file.start_sync_data().await.unwrap();
            }
        }
    }

    fn blocks(self) {
        for round in 0..ROUNDS {
            for block in self.first..self.first + BLOCKS_EACH {
                let mut buffer = self.disk.lease().unwrap();
                buffer.fill(round ^ block as u8);
                self.file.write(buffer, offset(block)).unwrap();
                let read = self.file.read(offset(block) + 7, 100).unwrap();
                assert!(read == [round ^ block as u8; 100][..]);
                self.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn threads_that_block_and_tasks_on_every_kind_of_executor_share_one_file_and_few_buffers() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        // Each worker holds at most two buffers, and returns them.
        let disk = Disk::open(&options(rung, 3)).unwrap();
        let file = disk.open_file(&path, &new()).unwrap();
        let done = Arc::new(AtomicU64::new(0));
        let worker = |number: u64| Worker {
            disk: disk.clone(),
            file: file.clone(),
            first: number * BLOCKS_EACH,
            done: Arc::clone(&done),
        };
        let (sender, ended) = channel();
        for number in 0..12 {
            let (worker, sender) = (worker(number), sender.clone());
            std::thread::spawn(move || {
                match number % 3 {
                    0 => worker.blocks(),
                    1 => run(worker.awaits()).0,
                    _ => worker.disk.clone().block_on(worker.awaits()),
                }
                sender.send(number).unwrap();
            });
        }
        for _ in 0..12 {
            let ended = ended.recv_timeout(HANG);
            ended.unwrap_or_else(|_| panic!("{rung:?}: {:?}, {done:?} done", disk));
        }
        disk.drain().unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 12 * u64::from(ROUNDS) * BLOCKS_EACH);
        assert_eq!((disk.buffers_free(), disk.outstanding()), (3, 0));
        let found = std::fs::read(&path).unwrap();
        for (block, bytes) in (0_u64..).zip(found.chunks(BLOCK_BYTES)) {
            assert!(bytes.iter().all(|&byte| byte == (ROUNDS - 1) ^ block as u8), "block {block}");
        }
    }
}

/// A waker that drops its content, and then sends a message.
struct Dropper<T> {
    held: Mutex<Option<T>>,
    sender: Mutex<Sender<()>>,
}

impl<T: Send + 'static> Wake for Dropper<T> {
    fn wake(self: Arc<Self>) {
        drop(self.held.lock().unwrap().take());
        self.sender.lock().unwrap().send(()).unwrap();
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_a_waker_on_the_disks_own_thread() {
    // W5
    for rung in KERNELS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 8)).unwrap();
        let file = numbered(&disk, &path, 8);
        let mut buffer = disk.lease().unwrap();
        buffer.fill(77);
        let mut read = file.start_read(0, 10);
        // The write continues after the last handle has been dropped.
        let write = file.start_write(buffer, offset(1));
        let (sender, dropped) = channel();
        let (held, sender) = (Mutex::new(None), Mutex::new(sender));
        let dropper = Arc::new(Dropper { held, sender });
        *dropper.held.lock().unwrap() = Some((disk, file, write));
        let waker = Waker::from(dropper);
        if Pin::new(&mut read).poll(&mut Context::from_waker(&waker)).is_pending() {
            dropped.recv_timeout(HANG).expect("woken");
            drop(read);
        } else {
            waker.wake();
        }
        // The thread closes the file after calling the waker.
        let is_there = || std::fs::read(&path).unwrap()[BLOCK_BYTES] == 77;
        assert!((0..HANG.as_millis()).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            is_there()
        }));
    }
}

#[test]
fn a_waker_that_panics_ends_no_other_task() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics, as the test wants");
        }
    }
    for rung in KERNELS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 8)).unwrap();
        let file = numbered(&disk, &path, 8);
        for block in 0..8 {
            let mut read = file.start_read(offset(block), 1);
            let waker = Waker::from(Arc::new(Panics));
            let _ = Pin::new(&mut read).poll(&mut Context::from_waker(&waker));
            let (bytes, _) = run(file.start_read(offset(block), 1));
            assert!(bytes.unwrap() == [block as u8][..]);
        }
    }
}

#[test]
fn operations_that_are_dropped_by_tasks_on_other_threads_hold_their_buffers() {
    // W5, and W8
    for rung in KERNELS {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(rung, 8)).unwrap();
        let file = numbered(&disk, &path, 32);
        std::thread::scope(|scope| {
            for number in 0..4_u64 {
                let (disk, file) = (&disk, &file);
                scope.spawn(move || {
                    for round in 0..50 {
                        let block = number * 8 + round % 8;
                        let mut read = file.start_read(offset(block), BLOCK_BYTES);
                        let mut context = Context::from_waker(Waker::noop());
                        if round % 2 == 0 {
                            let _ = Pin::new(&mut read).poll(&mut context);
                        }
                        drop(read);
                        // The dropped read must not change the bytes of a buffer that now belongs
                        // to another owner.
                        if let Some(mut buffer) = disk.try_lease() {
                            buffer.fill(0xEE);
                            std::thread::yield_now();
                            assert!(buffer.iter().all(|&byte| byte == 0xEE));
                        }
                        let found = run(file.start_read(offset(block), BLOCK_BYTES)).0.unwrap();
                        assert!(found == [block as u8; BLOCK_BYTES][..]);
                    }
                });
            }
        });
        disk.drain().unwrap();
        assert_eq!(disk.buffers_free(), 8);
    }
}

#[test]
fn ten_thousand_files_are_open_on_one_disk() {
    const FILES: usize = 10_000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.current.is_some_and(|files| files < FILES as u64 + 200) {
        let because = format!("{:?} files may be open here (RLIMIT_NOFILE)", limit.current);
        return fixtures::skip("ten_thousand_files_are_open_on_one_disk", &because);
    }
    let (folder, _path) = folder();
    let disk = Disk::open(&options(Ioengine::IoUring, 8)).unwrap();
    let files: Vec<DirectFile> = (0..FILES)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            disk.open_file(path, &new().direct(false)).unwrap()
        })
        .collect();
    let write = async |number: usize| {
        let mut buffer = disk.start_lease().await.unwrap();
        buffer.set_len(100);
        buffer.fill(number as u8);
        files[number].start_write(buffer, 0).await.unwrap();
    };
    disk.block_on(futures_util::future::join_all((0..FILES).map(write)));
    for number in (0..FILES).step_by(997) {
        assert!(files[number].read(0, 200).unwrap() == [number as u8; 100][..]);
    }
}
