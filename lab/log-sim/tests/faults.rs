//! Each fault at every operation of a log that begins several segments.

use log_sim::{End, Flavour, How, Life, Opening, Planned, Program, Step, Tally, carry_out};
use wrote::log::Prepare;
use wrote::{Durable, Fault, Format, Sync};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

const OPENING: Opening = Opening {
    sync: Sync::Always,
    durable: Durable::Dsync,
    prepare: Some(Prepare::Write),
    buffers: 3,
    buffer_bytes: 4096,
    segment_buffers: 3,
    retain_bytes: None,
};

/// Each way to make records durable, and each to make segments ready.
fn openings() -> [Opening; 5] {
    [
        OPENING,
        Opening { durable: Durable::Fdatasync, prepare: Some(Prepare::Allocate), ..OPENING },
        Opening { sync: Sync::No, prepare: None, ..OPENING },
        Opening { sync: Sync::No, durable: Durable::Fdatasync, ..OPENING },
        Opening { retain_bytes: Some(3 * 4096), buffer_bytes: 8192, ..OPENING },
    ]
}

const fn append(len: usize, how: How) -> Step {
    Step::Append { len, how, flavour: Flavour::Random }
}

/// Batches of one record and of many, several in flight at once, more than two segments of them.
const SCRIPT: [Step; 27] = [
    append(100, How::AndWait),
    append(3000, How::Append),
    append(1500, How::Append),
    append(40, How::Append),
    Step::Wait { back: 1 },
    Step::Panic { len: 300 },
    append(0, How::With),
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

/// The script with this fault, and then a short life in which nothing fails.
fn program(format: Format, opening: Opening, end: End, planned: Vec<Planned>) -> Program {
    let script = Life { opening, planned, steps: SCRIPT.to_vec(), end };
    let steps = vec![append(50, How::Append), append(2000, How::AndWait)];
    let after = Life { opening, planned: Vec::new(), steps, end: End::Drop };
    Program { format, lives: vec![script, after] }
}

/// Runs the script with the fault at every operation, in every mode, and tells what that came to. A life
/// may go on after the fault, by itself or by another log after it, or end with it.
fn at_every_operation(format: Format, fault: Fault) -> Tally {
    let mut all = Tally::default();
    for opening in openings() {
        for end in [End::Drop, End::Cut, End::Close] {
            let undisturbed = carry_out(&program(format, opening, end, Vec::new()), 0).unwrap();
            assert!(undisturbed.segments >= 3, "the script begins segments: {undisturbed:?}");
            for operation in 0..undisturbed.first_life_operations {
                let planned = vec![Planned { operation, fault }];
                let tally = carry_out(&program(format, opening, end, planned), operation);
                all.add(&tally.unwrap_or_else(|broken| {
                    panic!("{format}, {opening:?}, {end:?}, {fault:?} at {operation}: {broken}")
                }));
            }
        }
    }
    all
}

const FORMATS: [Format; 2] = [Format::Framed, Format::Lines];

#[test]
fn short_transfers_and_interruptions_are_not_seen() {
    // W4
    for format in FORMATS {
        for fault in [Fault::Short(1), Fault::Short(512), Fault::Once(EINTR), Fault::Once(EAGAIN)] {
            let all = at_every_operation(format, fault);
            assert_eq!(all.errors + all.failed_openings, 0, "{fault:?}");
        }
    }
}

#[test]
fn after_an_error_at_any_operation_nothing_more_is_promised_and_what_was_is_kept() {
    // W1, W2
    for format in FORMATS {
        for errno in [EIO, ENOSPC] {
            for fault in [Fault::Once(errno), Fault::Forever(errno)] {
                let all = at_every_operation(format, fault);
                assert!(all.errors > 0 && all.failed_openings > 0, "{fault:?}: {all:?}");
            }
        }
    }
}

#[test]
fn after_a_power_loss_at_any_operation_what_was_acknowledged_is_there_and_the_log_goes_on() {
    // W1, W9
    for format in FORMATS {
        let all = at_every_operation(format, Fault::PowerLoss);
        assert!(all.errors > 0 && all.torn > 0, "{all:?}");
    }
}
