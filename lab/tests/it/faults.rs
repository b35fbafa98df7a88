//! Injects each fault at every operation of a log that begins several segments.

use lab::verbs::sim::{
    End, Flavour, How, Life, Opening, PlannedFault, Program, Step, Tally, carry_out,
};
use wrote::SyncPolicy;
use wrote::engine::Fault;

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const OPENING: Opening = Opening {
    sync: SyncPolicy::Always,
    dsync: true,
    zeros: Some(true),
    buffers: 3,
    buffer_bytes: 4096,
    segment_buffers: 3,
    retain_bytes: None,
    prepared_bytes: 0,
};

/// Returns options with each method of making records durable and preparing segments.
fn openings() -> [Opening; 5] {
    [
        OPENING,
        Opening { dsync: false, zeros: Some(false), ..OPENING },
        Opening { sync: SyncPolicy::No, zeros: None, ..OPENING },
        Opening { sync: SyncPolicy::No, dsync: false, prepared_bytes: 8192, ..OPENING },
        Opening { retain_bytes: Some(2 * 4096), segment_buffers: 2, ..OPENING },
    ]
}

const fn append(len: usize, how: How) -> Step {
    Step::Append { len, how, flavour: Flavour::Random }
}

/// Steps that produce batches of one record and of many, several in flight, in more than two
/// segments.
const SCRIPT: [Step; 27] = [
    append(100, How::AndWait),
    append(3000, How::Append),
    append(1500, How::Append),
    append(40, How::Append),
    Step::Wait { back: 1 },
    Step::All { count: 3, len: 300, tries: true, flavour: Flavour::Random },
    append(0, How::Append),
    append(3800, How::Append),
    append(3800, How::Append),
    append(700, How::Try),
    Step::Stats,
    append(2000, How::AndWait),
    append(10, How::AndWait),
    Step::TooLong,
    append(3000, How::Append),
    append(3000, How::Append),
    Step::Await { back: 1 },
    Step::Sync,
    append(3500, How::Append),
    append(3500, How::Append),
    append(3500, How::Append),
    append(512, How::Append),
    Step::Wait { back: 3 },
    Step::Wait { back: 0 },
    append(1, How::AndWait),
    append(900, How::Append),
    Step::Sync,
];

/// Returns a life that performs the script with these faults.
fn script(opening: Opening, end: End, planned: Vec<PlannedFault>) -> Life {
    Life { opening, planned, steps: SCRIPT.to_vec(), end }
}

/// Returns a life that opens the log again and performs a few steps.
fn again(opening: Opening, planned: Vec<PlannedFault>) -> Life {
    let steps = vec![append(50, How::Append), append(2000, How::AndWait), Step::Sync];
    Life { opening, planned, steps, end: End::Cut }
}

/// Runs the program with each of the openings, and with the fault at every operation of its last
/// life. Returns the sum of the counts.
fn at_every_operation(
    openings: &[Opening],
    fault: Fault,
    lives: impl Fn(Opening, Vec<PlannedFault>) -> Vec<Life>,
) -> Tally {
    let mut all = Tally::default();
    for &opening in openings {
        let with = |planned, seed| {
            let program = Program { lives: lives(opening, planned) };
            carry_out(&program, seed)
                .unwrap_or_else(|broken| panic!("{opening:?}, {fault:?} at {seed}: {broken}"))
        };
        let undisturbed = with(Vec::new(), 0);
        assert!(undisturbed.segments >= 2, "it begins segments: {undisturbed:?}");
        for operation in 0..undisturbed.last_life_operations {
            all.add(&with(vec![PlannedFault { operation, fault }], operation));
        }
    }
    all
}

/// Injects the fault while the log writes, ends and is opened again.
fn in_the_script(openings: &[Opening], fault: Fault) -> Tally {
    let mut all = Tally::default();
    for end in [End::Drop, End::Cut] {
        let lives = |opening, planned| vec![script(opening, end, planned)];
        all.add(&at_every_operation(openings, fault, lives));
    }
    all
}

/// Injects the fault while the log is opened after a power loss, with a torn end.
fn in_the_opening(openings: &[Opening], fault: Fault) -> Tally {
    let all = at_every_operation(openings, fault, |opening, planned| {
        vec![torn(opening), again(opening, planned)]
    });
    assert!(all.torn > 0, "{all:?}");
    all
}

/// Returns a life in which the power is lost while the kernel has many bytes that were never
/// flushed.
fn torn(opening: Opening) -> Life {
    let opening = Opening { sync: SyncPolicy::No, ..opening };
    let is_flushed = |step: &Step| matches!(step, Step::Sync);
    let steps = SCRIPT.iter().copied().take_while(|step| !is_flushed(step)).collect();
    Life { opening, planned: Vec::new(), steps, end: End::Cut }
}

/// Returns the options of a log that keeps all records, and of one that recycles its segments.
fn two_openings() -> [Opening; 2] {
    let [first, .., last] = openings();
    [first, last]
}

#[test]
fn short_transfers_and_interruptions_are_not_seen() {
    short_transfers_are_not_seen(&two_openings());
}

#[test]
#[ignore = "nightly"]
fn short_transfers_and_interruptions_are_not_seen_whatever_the_opening() {
    short_transfers_are_not_seen(&openings());
}

fn short_transfers_are_not_seen(openings: &[Opening]) {
    // W4
    for fault in [Fault::Short(1), Fault::Short(512), Fault::Once(EINTR)] {
        for all in [in_the_script(openings, fault), in_the_opening(openings, fault)] {
            assert_eq!(all.errors + all.failed_openings, 0, "{fault:?}");
        }
    }
}

#[test]
fn after_an_error_at_any_operation_nothing_more_is_promised_and_what_was_is_kept() {
    after_an_error_what_was_promised_is_kept(&two_openings());
}

#[test]
#[ignore = "nightly"]
fn after_an_error_at_any_operation_what_was_promised_is_kept_whatever_the_opening() {
    after_an_error_what_was_promised_is_kept(&openings());
}

fn after_an_error_what_was_promised_is_kept(openings: &[Opening]) {
    // W1, W2
    for errno in [EIO, ENOSPC] {
        for fault in [Fault::Once(errno), Fault::Forever(errno)] {
            let written = in_the_script(openings, fault);
            assert!(written.errors > 0, "{fault:?}: {written:?}");
            let opened = in_the_opening(openings, fault);
            assert!(opened.failed_openings > 0, "{fault:?}: {opened:?}");
        }
    }
}

#[test]
fn after_a_power_loss_at_any_operation_what_was_acknowledged_is_there_and_the_log_goes_on() {
    // W1, W9
    let written = in_the_script(&openings(), Fault::PowerLoss);
    assert!(written.errors > 0 && written.torn > 0, "{written:?}");
    let opened = in_the_opening(&openings(), Fault::PowerLoss);
    assert!(opened.failed_openings > 0, "{opened:?}");
}
