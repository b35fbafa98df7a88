//! Tests of `Log` on the real kernel: its records, their order, and their safety.

use crate::small_log::{
    BUFFER_BYTES, PATIENCE, SYNCS, block_on, folder, read, record, segments, small,
};
use futures_util::future::join_all;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use wrote::{Error, Survives, SyncPolicy};

#[test]
fn records_come_back_as_they_were_in_the_order_in_which_they_were_appended() {
    for sync in SYNCS {
        let (_folder, folder) = folder();
        let log = small().sync(sync).open(&folder).unwrap();
        for number in 0..400 {
            let ticket = log.append(&record(number)).unwrap();
            assert_eq!(ticket.sequence(), number);
            if number % 10 == 9 {
                ticket.wait().unwrap();
                let through_the_log: Vec<_> =
                    log.reader(number).unwrap().map(|record| record.unwrap().bytes).collect();
                assert_eq!(through_the_log, [record(number)], "what was waited for can be read");
            }
        }
        log.close().unwrap();
        let expected: Vec<_> = (0..400).map(|number| (number, record(number))).collect();
        assert!(read(&folder) == expected, "{sync:?}");
        let segments = segments(&folder).len() as u64;
        assert!(segments > 2, "{segments} segments");
    }
}

#[test]
fn the_longest_record_fits_and_a_longer_one_is_refused_and_harms_nothing() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    log.append(b"before").unwrap().wait().unwrap();
    let error = log.append(&vec![b'x'; BUFFER_BYTES]).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    assert_eq!(error.errno(), libc::EMSGSIZE);
    assert!(error.to_string().ends_with(" do (LogOptions::buffer_bytes)"), "{error}");
    let longest = vec![b'y'; BUFFER_BYTES - 200];
    assert_eq!(log.append(&longest).unwrap().sequence(), 1);
    log.close().unwrap();
    assert!(read(&folder) == [(0, b"before".to_vec()), (1, longest)]);
}

#[test]
fn each_producers_records_stay_in_order_and_tickets_know_their_places() {
    // W9
    const PRODUCERS: u64 = 4;
    const RECORDS: u64 = 3000;
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let sequences: Vec<Vec<u64>> = thread::scope(|scope| {
        let produce = |producer: u64| {
            let log = log.clone();
            scope.spawn(move || {
                let append = |number| {
                    log.append(format!("{producer} {number}").as_bytes()).unwrap().sequence()
                };
                (0..RECORDS).map(append).collect()
            })
        };
        let threads: Vec<_> = (0..PRODUCERS).map(produce).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    log.close().unwrap();
    let found = read(&folder);
    assert_eq!(found.len() as u64, PRODUCERS * RECORDS);
    assert!(found.iter().zip(0..).all(|((sequence, _), place)| *sequence == place));
    for (producer, sequences) in sequences.iter().enumerate() {
        assert!(sequences.is_sorted(), "producer {producer}");
        for (number, sequence) in sequences.iter().enumerate() {
            let (_, bytes) = &found[usize::try_from(*sequence).unwrap()];
            assert_eq!(*bytes, format!("{producer} {number}").into_bytes());
        }
    }
}

#[test]
fn tickets_can_be_awaited_together_on_an_executor_that_knows_nothing_of_logs() {
    for sync in SYNCS {
        let (_folder, folder) = folder();
        let log = small().sync(sync).open(&folder).unwrap();
        let tickets: Vec<_> = (0..200).map(|number| log.append(&record(number)).unwrap()).collect();
        let done = block_on(join_all(tickets));
        assert!(done.into_iter().all(|done| done.is_ok()), "{sync:?}");
        let least =
            if sync == SyncPolicy::Always { log.survives(0) } else { Survives::ProcessCrash };
        assert!(least >= Survives::ProcessCrash);
        assert!((0..200).all(|sequence| log.survives(sequence) >= least));
        assert_eq!(read(&folder).len(), 200, "what was awaited is there for a reader");
    }
}

#[test]
fn a_log_that_syncs_by_itself_does_so_without_being_asked() {
    for sync in [SyncPolicy::EverySec, SyncPolicy::Interval(Duration::from_millis(20))] {
        let (_folder, folder) = folder();
        let log = small().sync(sync).open(&folder).unwrap();
        // A synced record survives the worst that a record on this file system can survive.
        drop(log.append(b"first").unwrap());
        log.sync().unwrap();
        let synced = log.survives(0);
        let ticket = log.append(b"second").unwrap();
        let patience = Instant::now() + PATIENCE;
        while ticket.survives() < synced {
            assert!(Instant::now() < patience, "{sync:?}: {:?}", log.stats());
            thread::sleep(Duration::from_millis(5));
        }
        // An acknowledgement needs no sync.
        ticket.wait().unwrap();
    }
}

#[test]
fn a_sync_makes_all_that_was_appended_as_safe_as_it_gets_and_its_absence_does_not() {
    // W1
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let sequences: Vec<u64> =
        (0..20).map(|number| log.append(&record(number)).unwrap().sequence()).collect();
    log.ticket(19).wait().unwrap();
    assert!(log.survives(19) >= Survives::ProcessCrash);
    assert!(log.survives(19) < Survives::PowerLoss, "nobody has flushed it");
    log.sync().unwrap();
    let synced = log.survives(0);
    assert!(sequences.iter().all(|sequence| log.survives(*sequence) == synced));
    assert!(log.stats().durable_sequence == 20 && log.stats().flushes > 0);
    assert_eq!(log.survives(20), Survives::Nothing, "it was never appended");
    log.close().unwrap();
}

#[test]
fn an_append_that_need_not_wait_does_not() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let mut appended = 0;
    for number in 0..20_000 {
        if let Some(ticket) = log.try_append(&[record(number % 50)]).unwrap() {
            assert_eq!(ticket.sequence(), appended, "one that was not taken has no place");
            appended += 1;
        }
    }
    log.close().unwrap();
    assert!(appended > 0);
    assert_eq!(read(&folder).len() as u64, appended);
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

#[test]
fn a_waker_that_panics_stops_nobody_else() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let waker = Waker::from(Arc::new(PanickingWaker));
    let mut context = Context::from_waker(&waker);
    let mut ticket = log.append(b"first").unwrap();
    // The thread that writes the record, which is this one or the background thread, calls the
    // waker.
    let _ = std::pin::Pin::new(&mut ticket).poll(&mut context);
    log.append(b"second").unwrap().wait().unwrap();
    drop(ticket);
    log.close().unwrap();
    assert_eq!(read(&folder).len(), 2);
}

/// A task that the waking thread polls, as some executors do, and whether it has been woken since
/// its last poll.
struct Inline(
    std::sync::Mutex<Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>>,
    AtomicBool,
);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        self.1.store(true, Ordering::SeqCst);
        // If the task is woken during a poll, even by another thread, the thread that polls it
        // polls it again.
        while self.1.load(Ordering::SeqCst)
            && let Ok(mut task) = self.0.try_lock()
        {
            self.1.store(false, Ordering::SeqCst);
            let Some(future) = task.as_mut() else { return };
            if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *task = None;
            }
        }
    }
}

#[test]
fn a_waker_that_drops_the_last_clone_ends_the_log() {
    for sync in SYNCS {
        let (_folder, path) = folder();
        let log = small().sync(sync).open(&path).unwrap();
        let (send, done) = std::sync::mpsc::channel();
        let task = async move {
            log.append(b"the last record").unwrap().await.unwrap();
            drop(log);
            send.send(()).unwrap();
        };
        let task = std::sync::Mutex::new(Some(Box::pin(task) as _));
        Arc::new(Inline(task, AtomicBool::new(false))).wake();
        done.recv_timeout(PATIENCE).unwrap();
        let patience = Instant::now() + PATIENCE;
        // Another thread closes the log.
        let log = loop {
            match small().open(&path) {
                Ok(log) => break log,
                Err(error) => assert!(Instant::now() < patience, "{error}"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        assert!(log.stats().found_closed, "{sync:?}");
        assert_eq!(read(&path), [(0, b"the last record".to_vec())]);
    }
}

#[test]
fn sequences_and_lengths_that_no_log_has_are_refused_or_waited_for_and_never_reached() {
    // W1
    let (_folder, path) = folder();
    let log = small().retain_age(Duration::MAX).segment_age(Duration::MAX);
    let log = log.retain_bytes(u64::MAX).segment_bytes(u64::MAX).open(&path).unwrap();
    for number in 0..200 {
        log.append(&record(number)).unwrap().wait().unwrap();
    }
    let far = [u64::MAX, u64::MAX - 1, i64::MAX as u64 + 1, 1 << 62, (1 << 61) - 1];
    for sequence in far {
        let tickets = [
            log.ticket(sequence),
            log.ticket(sequence).until_durable(),
            log.ticket(sequence).until_written().into_owned(),
        ];
        for ticket in tickets {
            assert_eq!((ticket.sequence(), ticket.survives()), (sequence, Survives::Nothing));
            let refused = ticket.wait().unwrap_err();
            assert!(refused.to_string().contains("there is no record"), "{refused}");
        }
        let mut written = std::pin::pin!(log.written(sequence));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(written.as_mut().poll(context).is_pending(), "{sequence}");
        assert_eq!(log.survives(sequence), Survives::Nothing);
        let mut reader = log.reader(sequence).unwrap();
        assert!(reader.next().is_none());
        reader.seek(sequence).unwrap();
        assert!(reader.next_within(Duration::ZERO).unwrap().is_none());
        reader.seek(0).unwrap();
        assert_eq!(reader.by_ref().count(), 200);
        let mut follower = log.reader(sequence).unwrap().following().unwrap();
        assert!(follower.next_within(Duration::ZERO).unwrap().is_none());
        drop(log.reader(sequence).unwrap().following().unwrap().into_stream().unwrap());
        log.truncate_from(sequence).unwrap();
        reader.seek_time(SystemTime::UNIX_EPOCH + Duration::from_secs(sequence / 4)).unwrap();
    }
    assert_eq!(log.stats().next_sequence, 200);
    assert!(log.trim_before(u64::MAX).unwrap() < 200);
    let written = log.written(u64::MAX);
    log.close().unwrap();
    assert!(matches!(block_on(written), Err(Error::Refused { .. })));
}
