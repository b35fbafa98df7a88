//! A test that no caller waits forever if the log's own thread panics in the program's code.

use log::{LevelFilter, Metadata, Record};
use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use wrote::{Log, SyncPolicy};

/// A time limit that only a hang can reach.
const HANG: Duration = Duration::from_secs(60);
/// The time for a caller to fall asleep. A caller that is later finds the panic, and the test
/// passes anyway.
const FALL_ASLEEP: Duration = Duration::from_millis(300);

/// A logger that panics in the thread of the test's log.
struct Panicking(Mutex<Option<(String, Sender<()>)>>);

static LOGGER: Panicking = Panicking(Mutex::new(None));

impl log::Log for Panicking {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let mut asked = self.0.lock().unwrap();
        let says = |folder: &str| record.args().to_string().contains(folder);
        let is_asked = asked.as_ref().is_some_and(|(folder, _)| says(folder));
        if is_asked && thread::current().name() == Some("wrote-log") {
            let (_, begun) = asked.take().unwrap();
            drop(asked);
            begun.send(()).unwrap();
            thread::sleep(FALL_ASLEEP);
            panic!("on purpose");
        }
    }

    fn flush(&self) {}
}

#[test]
fn callers_that_sleep_learn_that_the_logs_thread_has_panicked() {
    let folder = fixtures::folder();
    let options = Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(4096);
    let options = options.segment_bytes(12 << 10);
    let log = options.open(folder.path()).unwrap();
    (0..50).for_each(|_| log.append(&[b'x'; 1000]).unwrap().wait().unwrap());
    log.close().unwrap();
    let log = options.retain_bytes(1).open(folder.path()).unwrap();
    // Retention cannot remove a segment that is a folder, and logs an error.
    let first = folder.path().join(format!("{:020}.segment", 1));
    fs::remove_file(&first).unwrap();
    fs::create_dir(&first).unwrap();
    let (begun, has_begun) = channel();
    *LOGGER.0.lock().unwrap() = Some((folder.path().to_str().unwrap().to_owned(), begun));
    log::set_logger(&LOGGER).unwrap();
    log::set_max_level(LevelFilter::Warn);

    let (ended, has_ended) = channel();
    let appending = {
        let (log, ended) = (log.clone(), ended.clone());
        move || {
            // This appends until the buffers are full.
            while log.append(&[b'x'; 1000]).is_ok() {}
            ended.send(()).unwrap();
        }
    };
    thread::spawn(appending);
    has_begun.recv_timeout(HANG).expect("retention fails");
    let waiting = move || {
        assert!(log.sync().is_err());
        ended.send(()).unwrap();
        assert!(log.close().is_err());
        ended.send(()).unwrap();
    };
    thread::spawn(waiting);
    for _ in 0..3 {
        has_ended.recv_timeout(HANG).expect("every call ends");
    }
}
