//! Full and frozen disks: nothing is accepted without room, and the server recovers on its own.

use crate::serving::{Serving, connect};
use fixtures::{Mounted, leave_room_for, or_skip};
use rustix::fs::statvfs;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use wrote::{Log, SyncPolicy};

/// Returns a line of 1000 bytes that contains `number`.
fn numbered(number: usize) -> Vec<u8> {
    format!("{number:0999}\n").into_bytes()
}

#[test]
fn a_full_disk_holds_senders_without_answers_until_there_is_room() {
    const LINES: usize = 12_000;
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let folder = mounted.path().join("log");
    let serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.free_bytes = 0;
        config.logs[0].folder = folder.clone();
        config.logs[0].options = Log::options().sync(SyncPolicy::No).segment_bytes(512 << 10);
        config.logs[0].buffer_bytes = Some(32 << 10);
    });
    let ballast = leave_room_for(mounted.path(), 4 << 20);
    let listen = serving.listen.clone();
    let sender = std::thread::spawn(move || {
        let mut stream = connect(&listen);
        (0..LINES).for_each(|number| stream.write_all(&numbered(number)).unwrap());
    });
    // Data that exceeds the kernel's buffers remains with the sender.
    serving.wait_until(|_| {
        let free = statvfs(mounted.path()).unwrap();
        free.f_bavail * free.f_frsize < 512 << 10
    });
    let mut late = serving.connect();
    late.write_all(b"late\n").unwrap();
    drop(late);
    fs::remove_file(ballast).unwrap();
    sender.join().unwrap();
    serving.wait_until(|figures| figures.messages == 1 + LINES as u64);
    assert_eq!(serving.figures().refused, 0);
    let mut records = serving.stop();
    let late = records.iter().position(|record| record == b"late").expect("it came late");
    records.remove(late);
    assert!(records.is_sorted());
    assert_eq!(records.len(), LINES);
    assert_eq!(records.last().unwrap()[..], numbered(LINES - 1)[..999]);
}

#[test]
fn below_its_floor_of_free_space_the_server_holds_senders_without_answers() {
    let mut serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.free_bytes = u64::MAX;
    });
    let mut stream = serving.connect();
    stream.write_all(b"held\n").unwrap();
    drop(stream);
    serving.config.limits.free_bytes = 0;
    assert_eq!((serving.figures().messages, serving.figures().refused), (0, 0));
    serving.reload().unwrap();
    serving.wait_until(|figures| figures.messages == 1);
    assert_eq!(serving.stop(), [b"held"]);
}

#[test]
fn a_server_that_ends_refuses_the_senders_that_it_holds() {
    let serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.free_bytes = u64::MAX;
    });
    let mut stream = serving.connect();
    stream.write_all(b"held\n").unwrap();
    assert_eq!(serving.stop(), Vec::<Vec<u8>>::new());
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

/// A file system whose writes are suspended (`FIFREEZE`) until the value is dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new(folder: &Path) -> Frozen {
        fixtures::run("fsfreeze", &[Path::new("--freeze"), folder]).unwrap();
        Frozen(folder.to_owned())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // A frozen file system could not be unmounted.
        let _ = fixtures::run("fsfreeze", &[Path::new("--unfreeze"), &self.0]);
    }
}

// W8
#[test]
fn a_disk_that_stands_still_stops_its_senders_and_loses_nothing() {
    const LINE: &[u8] = &[b'x'; 1000];
    let mounted = or_skip!(Mounted::image("ext4", 512 << 20));
    let serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.free_bytes = 0;
        config.logs[0].folder = mounted.path().join("log");
    });
    let mut stream = serving.connect();
    stream.write_all(b"first\n").unwrap();
    serving.wait_until(|figures| figures.messages == 1);
    let frozen = Frozen::new(mounted.path());
    stream.set_nonblocking(true).unwrap();
    let bytes = [LINE, b"\n"].concat().repeat(64);
    let (mut sent, mut pauses) = (0, 0);
    // The kernel's buffers accept some data, and then no more.
    while pauses < 5 {
        match stream.write(&bytes[sent % bytes.len()..]) {
            Ok(written) => (sent, pauses) = (sent + written, 0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                pauses += 1;
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 256 << 20, "a sender is not stopped");
    }
    // The limit is two buffers of the log, and one buffer in the server.
    assert!(serving.figures().bytes <= 3 * (16 << 10) + 5, "{:?}", serving.figures());
    drop(frozen);
    stream.set_nonblocking(false).unwrap();
    let rest = &bytes[sent % bytes.len()..];
    stream.write_all(rest).unwrap();
    let count = (sent + rest.len()) / (LINE.len() + 1);
    serving.wait_until(|figures| figures.messages == 1 + count as u64);
    assert_eq!(serving.figures().refused, 0);
    drop(stream);
    let records = serving.stop();
    assert_eq!((records.len(), &records[0][..]), (1 + count, &b"first"[..]));
    assert!(records[1..].iter().all(|record| record == LINE));
}
