//! Tests of awaiting a `Log`: room without blocking a thread, owned tickets, and each level of
//! safety with any promise of the log.

use crate::small_log::{BUFFER_BYTES, append_when_room, block_on, folder, read, record, small};
use futures_util::future::join_all;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use wrote::{Error, Log, Survives, SyncPolicy, Ticket};

/// Appends until every buffer is full, and returns the number of records.
fn fill(log: &Log) -> u64 {
    let bytes = vec![b'x'; BUFFER_BYTES / 2];
    let mut records = 0;
    while log.try_append(&[&bytes]).unwrap().is_some() {
        records += 1;
    }
    records
}

#[test]
fn one_thread_appends_for_many_tasks_more_than_the_buffers_hold() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let tasks = (0..50).map(|task| {
        let log = &log;
        async move {
            for number in 0..20 {
                let ticket = append_when_room(log, &record(task * 20 + number)).await.unwrap();
                if number == 19 {
                    ticket.await.unwrap();
                }
            }
        }
    });
    block_on(join_all(tasks));
    log.close().unwrap();
    let mut records: Vec<_> = read(&folder).into_iter().map(|(_, bytes)| bytes).collect();
    let mut expected: Vec<_> = (0..1000).map(record).collect();
    records.sort();
    expected.sort();
    assert!(records == expected);
}

#[test]
fn tasks_of_one_thread_that_are_ready_share_a_flush() {
    let (_folder, folder) = folder();
    let log = Log::options().sync(SyncPolicy::Always).open(&folder).unwrap();
    log.append(b"first").unwrap().wait().unwrap();
    let before = log.stats().flushes;
    let tasks = (0..64).map(|number| {
        let log = &log;
        async move { append_when_room(log, &record(number)).await.unwrap().await.unwrap() }
    });
    block_on(join_all(tasks));
    let flushes = log.stats().flushes - before;
    assert!((1..=16).contains(&flushes), "{flushes} flushes of 64 records");
}

#[test]
fn an_append_that_is_dropped_while_it_waits_for_room_appends_nothing() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let mut dropped = 0;
    while dropped < 20 {
        let _ = fill(&log);
        let mut append = pin!(append_when_room(&log, b"dropped"));
        match append.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => dropped += 1,
            Poll::Ready(ticket) => assert_eq!(ticket.unwrap().survives(), Survives::Nothing),
        }
    }
    block_on(append_when_room(&log, b"the last")).unwrap().wait().unwrap();
    log.close().unwrap();
    let records = read(&folder);
    assert_eq!(records.last().unwrap().1, b"the last");
    assert_eq!(records.last().unwrap().0 + 1, records.len() as u64);
}

#[test]
fn an_append_that_waits_for_room_ends_with_its_log() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A closed log refuses the record, whatever the append was waiting for.
            while block_on(append_when_room(&log, &[b'x'; 1000])).is_ok() {}
        });
        while log.written_sequence() < 100 {
            std::thread::yield_now();
        }
        log.close().unwrap();
    });
    assert!(matches!(block_on(append_when_room(&log, b"late")), Err(Error::Refused { .. })));
    assert!(read(&folder).len() >= 100);
}

#[test]
fn a_ticket_waits_for_what_it_is_told_whatever_the_log_promises() {
    let (_folder, path) = folder();
    let log = small().sync(SyncPolicy::No).open(&path).unwrap();
    for ticket in
        [log.append(b"blocking").unwrap(), block_on(append_when_room(&log, b"x")).unwrap()]
    {
        let sequence = ticket.sequence();
        ticket.until_durable().wait().unwrap();
        assert_eq!(log.survives(sequence), Survives::PowerLoss);
    }
    let ticket = log.append(b"awaited").unwrap().until_durable();
    block_on(ticket).unwrap();
    assert_eq!(log.durable_sequence(), 3);
    block_on(log.append(b"written").unwrap()).unwrap();
    assert_eq!(log.durable_sequence(), 3, "nothing asked for a flush");
    log.close().unwrap();

    let (_folder, path) = folder();
    let log = small().sync(SyncPolicy::Always).open(&path).unwrap();
    let ticket = log.append(b"written").unwrap().until_written();
    block_on(ticket).unwrap();
    assert!(log.written_sequence() == 1 && log.survives(0) >= Survives::ProcessCrash);
    log.close().unwrap();
}

#[test]
fn an_owned_ticket_is_sent_and_stored_and_outlives_its_log() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let tickets: Vec<Ticket<'static>> = (0..100)
        .map(|number| log.append(&record(number)).unwrap().until_durable().into_owned())
        .collect();
    let others = tickets.into_iter().map(|ticket| std::thread::spawn(|| block_on(ticket)));
    others.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    let ticket = log.append(b"of a log that was dropped").unwrap().into_owned();
    drop(log);
    assert_eq!(ticket.survives(), Survives::PowerLoss, "the last clone closed the log");
    ticket.wait().unwrap();
}

#[test]
fn a_ticket_that_is_told_another_level_after_it_was_polled_waits_for_that_level() {
    let (_folder, folder) = folder();
    let log = small().sync(SyncPolicy::No).open(&folder).unwrap();
    let mut ticket = log.append(b"x").unwrap();
    let context = &mut Context::from_waker(Waker::noop());
    if pin!(&mut ticket).poll(context).is_ready() {
        ticket = log.ticket(0);
    }
    block_on(ticket.until_durable().into_owned()).unwrap();
    assert_eq!(log.survives(0), Survives::PowerLoss);
}
