//! A server whose log is on a simulated disk that fails at every operation.

use crate::serving::Serving;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wrote::engine::{Fault, Sim};
use wrote::{Log, LogReader, SyncPolicy};

const FOLDER: &str = "/log";
/// The error number of a failed flush.
const EIO: i32 = 5;
const COUNT: usize = 40;

/// A simulated disk that contains a server's log. A simulated log has no thread of its own, so this
/// value drives it.
struct Disk {
    sim: Sim,
    log: Arc<Mutex<Option<Log>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    fn new(seed: u64) -> Disk {
        let log: Arc<Mutex<Option<Log>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::default());
        let thread = {
            let (log, is_over) = (log.clone(), is_over.clone());
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let open = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if let Some(log) = open {
                        // The server must notice the failure.
                        let _ = log.sync();
                    }
                    thread::sleep(Duration::from_micros(200));
                }
            })
        };
        Disk { sim: Sim::new(seed), log, is_over, thread: Some(thread) }
    }

    fn serve(&self, url: &str) -> Serving {
        let (sim, slot) = (self.sim.clone(), self.log.clone());
        let options = Log::options()
            .sync(SyncPolicy::Always)
            .buffers(3)
            .buffer_bytes(16 << 10)
            .segment_bytes(64 << 10);
        let change = |config: &mut wrote_serve::Config| config.logs[0].options = options;
        Serving::start_with(url, change, move |config| {
            let log = config.options.clone().on(&sim.disk()).open(FOLDER)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(log.clone());
            Ok(log)
        })
    }

    /// Simulates a power loss, and returns the surviving records.
    fn records(&self) -> Vec<Vec<u8>> {
        self.sim.restart();
        let reader = LogReader::open_on(&self.sim.disk(), FOLDER, 0).unwrap();
        reader.map(|record| record.unwrap().bytes).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How messages are sent over a protocol, and how the answers are counted.
struct Client {
    url: &'static str,
    stream: fn(usize) -> String,
    /// Returns whether a line of an answer acknowledges a message.
    acknowledges: fn(&str) -> bool,
}

const RESP: Client = Client {
    url: "resp://127.0.0.1:0",
    stream: |from| (from..COUNT).map(|number| format!("RPUSH log {number}\r\n")).collect(),
    acknowledges: |line| line.starts_with(':'),
};

const RELP: Client = Client {
    url: "relp://127.0.0.1:0",
    stream: |from| {
        let frame = |(at, number): (usize, usize)| {
            let number = number.to_string();
            format!("{at} syslog {} {number}\n", number.len())
        };
        let frames: String = (2..).zip(from..COUNT).map(frame).collect();
        format!("1 open 14 relp_version=0\n{frames}")
    },
    acknowledges: |line| line.ends_with(" rsp 6 200 OK"),
};

const HTTP: Client = Client {
    url: "http://127.0.0.1:0",
    stream: |from| {
        let request = |number: usize| {
            let body = number.to_string();
            let len = body.len();
            format!("POST /append HTTP/1.1\r\nHost: [::1]\r\nContent-Length: {len}\r\n\r\n{body}")
        };
        (from..COUNT).map(request).collect()
    },
    acknowledges: |line| line.starts_with("HTTP/1.1 200 "),
};

impl Client {
    /// Sends messages until the server refuses one or has answered all of them. Returns how many
    /// were acknowledged.
    fn send(&self, serving: &Serving, from: usize) -> usize {
        let mut stream = serving.connect();
        if stream.write_all((self.stream)(from).as_bytes()).is_err() {
            return 0;
        }
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut bytes).unwrap_or(0);
            text.push_str(str::from_utf8(&bytes[..read]).unwrap());
            assert!(!text.contains(" 500 "), "a 500 would lose the message: {text}");
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            let refuses = |line: &str| line.starts_with('-') || line.starts_with("HTTP/1.1 503 ");
            let before = whole.lines().take_while(|line| !refuses(line));
            let acknowledged = before.filter(|line| (self.acknowledges)(line)).count();
            let is_refused = whole.lines().any(refuses);
            if read == 0 || is_refused || acknowledged == COUNT - from {
                return acknowledged;
            }
        }
    }
}

/// Runs a server whose disk fails permanently at the given operation after the first messages, and
/// then loses power.
fn fails_at(client: &Client, operation: u64) {
    let disk = Disk::new(operation);
    let mut serving = disk.serve(client.url);
    disk.sim.fault(disk.sim.operations() + operation, Fault::Forever(EIO));
    let mut acknowledged = 0;
    loop {
        acknowledged += client.send(&serving, acknowledged);
        if acknowledged == COUNT {
            break;
        }
        disk.sim.restart();
        // The server checks a failed log every second.
        thread::sleep(Duration::from_millis(50));
    }
    // The operation that fails may be performed only now.
    let _ = serving.end();
    let records = disk.records();
    let last = |number: usize| {
        records.iter().rposition(|record| *record == number.to_string().into_bytes())
    };
    // A message that was resent occurs twice. The last copies are in order.
    let places: Vec<_> = (0..COUNT).map(last).collect();
    assert!(places.iter().all(Option::is_some), "{}, {operation}: {places:?}", client.url);
    assert!(places.is_sorted(), "{}, {operation}: {places:?}", client.url);
}

// W1, W2
#[test]
fn after_a_failed_flush_nothing_is_acknowledged_and_what_was_is_there() {
    thread::scope(|scope| {
        for client in [&RESP, &RELP, &HTTP] {
            for operation in 0..12 {
                scope.spawn(move || fails_at(client, operation));
            }
        }
    });
}
