//! Disks that are full, or stand still: nothing is taken that has no room, and then the server goes
//! on by itself.

use crate::refused::send;
use crate::serving::Serving;
use fixtures::{Mounted, or_skip};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use wrote::{Format, Log, SyncPolicy};

/// Takes every block of a file system but for `bytes` bytes.
pub fn leave_room_for(folder: &Path, bytes: u64) -> PathBuf {
    let path = folder.join("ballast");
    let ballast = File::create(&path).unwrap();
    let free = statvfs(folder).unwrap();
    let len = (free.f_bavail * free.f_frsize).saturating_sub(bytes);
    fallocate(&ballast, FallocateFlags::empty(), 0, len).unwrap();
    path
}

/// Sends lines until the server closes the connection; returns how many were sent.
fn send_until_refused(serving: &Serving) -> u64 {
    let mut stream = serving.connect();
    stream.set_nonblocking(true).unwrap();
    let line = [vec![b'x'; 1000], b"\n".to_vec()].concat();
    for sent in 0.. {
        let mut rest = &line[..];
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                Err(_) => return sent,
            }
        }
    }
    unreachable!("a disk without end")
}

#[test]
fn a_full_disk_ends_connections_and_with_room_again_messages_are_taken_without_a_restart() {
    // Framed logs wait for room; a log of lines fails, and is opened again.
    for format in [Format::Framed, Format::Lines] {
        let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
        let folder = mounted.path().join("log");
        let serving = Serving::start("tcp://127.0.0.1:0", |config| {
            config.limits.free_bytes = 0;
            config.logs[0].folder = folder.clone();
            config.logs[0].options = Log::options()
                .sync(SyncPolicy::No)
                .format(format)
                .buffer_bytes(32 << 10)
                .segment_bytes(512 << 10);
        });
        let ballast = leave_room_for(mounted.path(), 4 << 20);
        let sent = send_until_refused(&serving);
        assert!(sent > 1000, "{format:?}: {sent} lines");
        let before = serving.figures();
        assert!(before.refused > 0, "{format:?}: a refusal is counted");
        fs::remove_file(ballast).unwrap();
        // Each attempt until the server has looked again ends with its connection.
        let last = (0..).find(|attempt| {
            let mut stream = serving.connect();
            let line = format!("with room again {attempt}\n");
            let taken = serving.figures().messages;
            let written = stream.write_all(line.as_bytes());
            let is_shut = stream.shutdown(std::net::Shutdown::Write).is_err();
            written.is_ok()
                && !is_shut
                && matches!(stream.read(&mut [0; 1]), Ok(0))
                && serving.figures().messages > taken
        });
        let last = format!("with room again {}", last.unwrap());
        let records = serving.stop();
        assert_eq!(records.last().unwrap(), last.as_bytes(), "{format:?}");
        // The first lines, in order, were not touched by what came after.
        assert!(records[..1000].iter().all(|record| *record == vec![b'x'; 1000]), "{format:?}");
    }
}

#[test]
fn below_its_floor_of_free_space_the_server_takes_no_message() {
    let serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.free_bytes = u64::MAX;
    });
    assert_eq!(send(&serving, b"refused\n"), b"", "the connection ends without an answer");
    serving.wait_until(|figures| figures.refused == 1 && figures.connections == 0);
    assert_eq!(serving.stop(), Vec::<Vec<u8>>::new());
}

/// A file system whose writes wait (`FIFREEZE`), until it is dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new(folder: &Path) -> Frozen {
        fixtures::run("fsfreeze", &[Path::new("--freeze"), folder]).unwrap();
        Frozen(folder.to_owned())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Else it could not be unmounted.
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
    // The kernel's buffers take some, and then no more.
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
    // Those in the log's buffers, and one that was in them before.
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
