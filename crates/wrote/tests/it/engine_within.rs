//! Tests of waiting for a completion or for a time, whichever comes first.

use crate::folder;
use fixtures::skip_here;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use wrote::engine::{Engine, FileId, Op, Options};
use wrote::{FileOptions, Ioengine};

const BUFFER_BYTES: usize = 4096;
const LONG: Duration = Duration::from_secs(3600);
const ENGINES: [Ioengine; 4] =
    [Ioengine::Psync, Ioengine::Mmap, Ioengine::Threads, Ioengine::IoUring];

fn opened(ioengine: Ioengine, path: &Path, create_new: bool) -> (Engine, FileId) {
    let mut engine = Engine::open(&Options::new(ioengine, 4, BUFFER_BYTES)).unwrap();
    let options = FileOptions::new().create_new(create_new).write(true);
    let file = engine.open_file(path, &options).unwrap();
    (engine, file)
}

#[test]
fn a_wait_for_a_time_returns_every_completion_and_loses_none() {
    for ioengine in ENGINES {
        let (_folder, path) = folder();
        let (mut engine, file) = opened(ioengine, &path, true);
        let mut completions = Vec::new();
        for number in 0..20_u64 {
            let buffer = engine.lease().unwrap();
            let offset = number * BUFFER_BYTES as u64;
            engine.queue(number, Op::Write { file, offset, buffer, durable: false });
            if number % 4 == 3 {
                while engine.outstanding() > 0 {
                    engine.reap_within(LONG, &mut completions).unwrap();
                }
            }
        }
        let mut numbers: Vec<u64> = completions.iter().map(|done| done.user_data).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<u64>>(), "{ioengine:?}");
        assert!(completions.iter().all(|done| done.result.as_ref().is_ok_and(|b| *b == 4096)));
    }
}

#[test]
fn with_nothing_outstanding_nobody_waits() {
    for ioengine in ENGINES {
        let (_folder, path) = folder();
        let (mut engine, _) = opened(ioengine, &path, true);
        let mut completions = Vec::new();
        // If the call waited, it would take an hour.
        engine.reap_within(LONG, &mut completions).unwrap();
        assert!(completions.is_empty());
    }
}

#[test]
fn the_while_ends_though_nothing_completes() {
    let (_folder, path) = folder();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    let (mut engine, pipe) = opened(Ioengine::IoUring, &path, false);
    if engine.effective().ioengine != Ioengine::IoUring {
        return skip_here!("there is no io_uring");
    }
    let buffer = engine.lease().unwrap();
    engine.queue(7, Op::Read { file: pipe, offset: 0, buffer });
    let mut completions = Vec::new();
    // If the call never returned, the test would hang.
    engine.reap_within(Duration::from_millis(5), &mut completions).unwrap();
    assert!(completions.is_empty());
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(&[1; BUFFER_BYTES]).unwrap();
    while completions.is_empty() {
        engine.reap_within(LONG, &mut completions).unwrap();
    }
    assert_eq!((completions[0].user_data, completions[0].result.as_ref().ok()), (7, Some(&4096)));
}
