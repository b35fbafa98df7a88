//! A disk that becomes full within a batch or a segment, and later has room again.

use lab::verbs::sim::{End, Flavour, How, Life, Opening, Program, Step, Tally, carry_out};
use wrote::SyncPolicy;

/// Returns steps that append the records of some batches. The records of each batch are waited for
/// together, as in a group commit.
fn steps(room_bytes: u64) -> Vec<Step> {
    let append = |len, how| Step::Append { len, how, flavour: Flavour::Random };
    let mut steps = vec![append(1000, How::AndWait), Step::Room { bytes: room_bytes }];
    for _ in 0..6 {
        steps.extend([
            append(1500, How::Append),
            append(2500, How::Append),
            append(3000, How::Append),
            Step::Wait { back: 2 },
            Step::Wait { back: 0 },
        ]);
    }
    steps.push(Step::Sync);
    steps
}

fn opening(sync: SyncPolicy, zeros: bool) -> Opening {
    Opening {
        sync,
        dsync: true,
        zeros: Some(zeros),
        buffers: 3,
        buffer_bytes: 4096,
        segment_buffers: 3,
        retain_bytes: None,
        prepared_bytes: 0,
    }
}

fn with_room_for(opening: Opening, room_bytes: u64) -> Tally {
    let life = |steps, end| Life { opening, planned: Vec::new(), steps, end };
    let full = life(steps(room_bytes), End::Drop);
    // Once there is room again, the steps are repeated.
    let after = life(steps(1 << 30), End::Close);
    let program = Program { lives: vec![full, after] };
    carry_out(&program, room_bytes)
        .unwrap_or_else(|broken| panic!("{opening:?}, room for {room_bytes} bytes: {broken}"))
}

#[test]
fn a_full_disk_fails_the_right_tickets_and_the_log_goes_on_when_there_is_room() {
    for (sync, zeros) in
        [(SyncPolicy::Always, true), (SyncPolicy::Always, false), (SyncPolicy::No, false)]
    {
        let opening = opening(sync, zeros);
        let mut all = Tally::default();
        for room_bytes in (0..70_000).step_by(1111) {
            all.add(&with_room_for(opening, room_bytes));
        }
        assert!(all.errors > 10, "{opening:?}: {all:?}");
    }
}

#[test]
fn a_log_goes_on_in_the_life_in_which_the_disk_was_full() {
    for zeros in [true, false] {
        let opening = opening(SyncPolicy::Always, zeros);
        let with_room_for = |room_bytes| {
            let steps = [steps(room_bytes), steps(1 << 30)].concat();
            let life = Life { opening, planned: Vec::new(), steps, end: End::Close };
            let program = Program { lives: vec![life] };
            carry_out(&program, room_bytes)
                .unwrap_or_else(|broken| panic!("zeros: {zeros}, room for {room_bytes}: {broken}"))
        };
        let undisturbed = with_room_for(1 << 30);
        let mut errors = 0;
        for room_bytes in (0..70_000).step_by(1777) {
            let tally = with_room_for(room_bytes);
            assert_eq!(tally.closed, undisturbed.closed, "zeros: {zeros}, room for {room_bytes}");
            errors += tally.errors;
        }
        assert!(errors > 10, "zeros: {zeros}: {errors} errors");
    }
}
