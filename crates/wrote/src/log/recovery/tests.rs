//! Tests of recovery on logs as crashes leave them.

use super::*;
use crate::engine::Fault;
use crate::log::batch::BatchHeader;
use crate::log::segment;
use crate::log::testing::{
    BLOCK_BYTES, LONGEST_BYTES, SampleLog, disk, files_of, folder, holding, long_segment, read,
    two_segments,
};
use crate::log::walk::{Walk, WalkStep};
use crate::{FileOptions, Sim};
use std::path::Path;

fn recovered(sim: &Sim) -> Result<Recovery, Error> {
    recover(&files_of(sim))
}

/// Writes the segment that cuts a log before record `next` of segment `number`, but does not
/// complete the cut.
fn begin_cut(sim: &Sim, number: u64, next: u64) {
    let files = files_of(sim);
    let place = cut::find(&files, &file(number), next, 3).unwrap();
    let _ = place.write(&files, &file(3), 4096);
}

fn file(number: u64) -> PathBuf {
    segment::path(folder(), number)
}

fn torn(path: &Path, number: u64) -> PathBuf {
    format!("{}.torn-{number}", path.display()).into()
}

fn disk_of(built: &SampleLog) -> Sim {
    disk(1, &built.files(folder()))
}

#[test]
fn a_new_log_has_nothing_and_a_number_of_its_own() {
    let found = recovered(&Sim::new(1)).unwrap();
    assert!(found.active.is_none() && found.sealed.is_empty());
    assert_ne!(found.log_id, recovered(&Sim::new(1)).unwrap().log_id);
}

#[test]
fn a_log_that_was_closed_is_found_as_it_was() {
    let built = two_segments().closed().prepared(10_000);
    let sim = disk_of(&built);
    let found = recovered(&sim).unwrap();
    let LogStats { found_records: records, found_closed: closed, torn_bytes, kept_aside, .. } =
        &found.recovered;
    assert_eq!((*records, *closed, *torn_bytes, kept_aside.len()), (10, true, 0, 0));
    assert_eq!((found.recovered.first_sequence, found.next_sequence), (0, 10));
    assert_eq!(found.sealed[0].end_sequence, 5);
    let active = found.active.unwrap();
    assert_eq!((active.path, active.number, active.after_cut), (file(2), 2, false));
    // The prepared space has been cut off.
    assert_eq!(sim.contents(file(2)).unwrap().len() as u64, active.bytes);
}

/// Returns the files of a log with one segment, without the padding after its last batch.
fn cut_behind_the_last_batch(built: &SampleLog) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = built.files(folder());
    files[0].1.truncate(built.segments[0].claims.last().unwrap().0.end);
    files
}

#[test]
fn a_long_log_that_was_closed_is_opened_without_a_look_at_its_records() {
    let built = long_segment().closed();
    let mut files = cut_behind_the_last_batch(&built);
    let middle = files[0].1.len() / 2;
    files[0].1[middle..middle + 4096].fill(7);
    let sim = disk(1, &files);
    let found = recovered(&sim).unwrap();
    assert!(found.recovered.found_closed);
    assert_eq!(found.next_sequence, built.next_sequence);
    assert_eq!(found.active.unwrap().longest_bytes, LONGEST_BYTES);
    assert_eq!(sim.contents(file(1)).unwrap(), files[0].1);
    // A reader detects the damage.
    assert!(matches!(read(&sim, 0).1, Err(Error::Damaged { .. })));
    // With one byte more, the end is not proved, so recovery reads every record.
    files[0].1.push(0);
    assert!(matches!(recovered(&disk(1, &files)), Err(Error::Damaged { .. })));
}

#[test]
fn a_record_that_holds_the_batch_which_closes_a_log_does_not_close_it() {
    let built = long_segment();
    let sequence = built.next_sequence + 50;
    let forged = BatchHeader {
        bytes: 48,
        first_sequence: sequence,
        durable_sequence: sequence,
        longest_bytes: LONGEST_BYTES,
        ..BatchHeader::default()
    };
    let holding = holding(&[forged, BatchHeader { closed: true, ..forged }]);
    let durable_sequence = built.next_sequence;
    let built = built.batch(durable_sequence, &[&holding]);
    let found = recovered(&disk(1, &cut_behind_the_last_batch(&built))).unwrap();
    assert_eq!(found.next_sequence, durable_sequence + 1);
    assert!(!found.recovered.found_closed);
}

#[test]
fn a_batch_that_closes_a_log_counts_only_behind_the_batch_before_it() {
    let built = long_segment().closed();
    let mut files = cut_behind_the_last_batch(&built);
    let place = *built.segments[0].batches.last().unwrap();
    let closing = files[0].1.split_off(place);
    // The closing batch is now as far from the last records as it would be after the padding of a
    // block.
    files[0].1.resize(place + BLOCK_BYTES as usize, 0);
    files[0].1.extend(closing);
    let found = recovered(&disk(1, &files));
    assert!(found.is_err() || found.is_ok_and(|found| !found.recovered.found_closed));
}

#[test]
fn files_in_which_nothing_was_written_yet_are_removed() {
    let built = two_segments().closed();
    let mut files = built.files(folder());
    files.push((file(3), vec![0; 5000]));
    files.push((file(4), Vec::new()));
    let sim = disk(1, &files);
    let found = recovered(&sim).unwrap();
    assert_eq!((found.next_sequence, found.recovered.found_closed), (10, true));
    assert_eq!(sim.names(), [file(1), file(2)]);
    assert!(found.recovered.kept_aside.is_empty());
}

#[test]
fn a_torn_end_is_kept_aside_and_cut() {
    let built = two_segments();
    let mut files = built.files(folder());
    // The last byte of record 9 never reached the disk.
    let end = files[1].1.iter().rposition(|&byte| byte != 0).unwrap();
    files[1].1[end] ^= 1;
    let sim = disk(1, &files);
    let found = recovered(&sim).unwrap();
    assert_eq!(found.next_sequence, 9);
    let active = found.active.unwrap();
    assert!(active.after_cut);
    assert_eq!(found.recovered.torn_bytes, 12);
    assert_eq!(found.recovered.kept_aside, [torn(&file(2), 0)]);
    assert_eq!(sim.contents(torn(&file(2), 0)).unwrap(), files[1].1[end - 11..=end]);
    assert_eq!(sim.contents(file(2)).unwrap(), files[1].1[..end - 11]);
    assert_eq!(sim.after_power_loss(file(2)).unwrap(), files[1].1[..end - 11]);
}

#[test]
fn the_durable_frontier_of_a_torn_end_is_stated_again_before_it_is_gone() {
    // W1
    let built = two_segments().batch(10, &[b"ten", b"eleven"]);
    let torn_batch = built.segments[1].batches[2];
    let behind = built.clone().batch(10, &[b"twelve"]);
    let later = two_segments().batch(5, &[b"ten", b"eleven"]).batch(10, &[b"twelve"]);
    // What reached the disk: the torn batch's first record, only its header, only a later batch, or
    // the first record and a later batch.
    let ways = [
        (&built, torn_batch + 63, 11),
        (&built, torn_batch + 50, 10),
        (&behind, torn_batch, 10),
        (&later, torn_batch + 63, 11),
    ];
    for (way, (built, byte, next)) in ways.into_iter().enumerate() {
        let mut files = built.files(folder());
        files[1].1[byte] ^= 1;
        let sim = disk(1, &files);
        let found = recovered(&sim).unwrap();
        assert_eq!((found.next_sequence, found.recovered.kept_aside.len()), (next, 1));
        let again = recovered(&sim).unwrap();
        assert_eq!((again.next_sequence, again.recovered.torn_bytes), (next, 0));
        // Only a removed later batch must be replaced by a statement, in a batch written now.
        assert_eq!(again.active.unwrap().written_at_ns > 0, way >= 2);
        assert_eq!(read(&sim, 0).0.len() as u64, next);
        for rotten in 0..files.len() {
            let mut files = files.clone();
            files.iter_mut().for_each(|(path, bytes)| *bytes = sim.contents(path).unwrap());
            files[rotten].1[120] ^= 1;
            let end = read(&disk(1, &files), 0).1;
            assert!(matches!(end, Err(Error::Damaged { .. })), "{next}: segment {}", rotten + 1);
        }
    }
}

#[test]
fn one_read_that_finds_other_bytes_takes_no_record_off() {
    let built = two_segments().batch(8, &[b"ten"]).prepared(20_000);
    for seed in 0..20 {
        for operation in 0.. {
            let sim = disk(seed, &built.files(folder()));
            let first = sim.operations();
            sim.fault(first + operation, Fault::Misdirected);
            let found = recovered(&sim);
            if sim.operations() <= first + operation {
                break;
            }
            let next = found.map_or(11, |found| found.next_sequence);
            let again = recovered(&sim).unwrap().next_sequence;
            assert_eq!((next, again), (11, 11), "operation {operation}, seed {seed}");
        }
    }
}

#[test]
fn one_read_that_finds_other_bytes_makes_no_torn_end_of_damage() {
    let only = SampleLog::default().segment().batch(0, &[b"zero"]).prepared(4096);
    let two = two_segments().batch(10, &[b"ten"]);
    // The damage is in a record, and in the only segment header.
    let record = two.segments[1].batches[1] + 60;
    for (built, segment, byte) in [(two, 1, record), (only, 0, 20)] {
        let mut files = built.files(folder());
        files[segment].1[byte] ^= 1;
        for seed in 0..20 {
            for operation in 0.. {
                let sim = disk(seed, &files);
                let first = sim.operations();
                sim.fault(first + operation, Fault::Misdirected);
                let found = recovered(&sim);
                assert!(found.is_err(), "byte {byte}, operation {operation}, seed {seed}");
                if sim.operations() <= first + operation {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_last_batch_is_looked_for_once_more_where_a_read_found_it() {
    let built = two_segments();
    let files = files_of(&disk_of(&built));
    let header = segment::SegmentHeader::decode(&built.segments[1].bytes).ok().unwrap();
    let mut walk = Walk::new(Input::open(&files, &file(2), true, false).unwrap(), &header);
    while !matches!(walk.next().unwrap(), WalkStep::End) {}
    assert!(walk.finds_last_again().unwrap());
    let place = *built.segments[1].batches.last().unwrap() as u64;
    let mut engine = files.engine();
    let other = engine.open_file(file(2), &FileOptions::new().write(true)).unwrap();
    engine.write(other, place, &[0; 48]).unwrap();
    drop(engine);
    assert!(!walk.finds_last_again().unwrap());
}

#[test]
fn a_batch_in_flight_that_never_arrived_ends_the_log_before_those_that_did() {
    let built = two_segments().batch(5, &[b"ten"]).batch(5, &[b"eleven"]);
    let mut files = built.files(folder());
    let missing = built.segments[1].batches[1];
    files[1].1[missing..missing + 512].fill(0);
    let sim = disk(1, &files);
    let found = recovered(&sim).unwrap();
    assert_eq!((found.next_sequence, found.recovered.kept_aside.len()), (8, 1));
    // The lost batch stated nothing that the previous batch does not state.
    let end = built.segments[1].claims[0].0.end;
    assert_eq!(sim.contents(file(2)).unwrap(), built.segments[1].bytes[..end]);
}

#[test]
fn a_record_that_was_durable_and_is_lost_is_an_error_that_says_where() {
    // The last batch of segment 2 states that all earlier records were durable.
    let built = two_segments().batch(10, &[b"ten"]);
    let mut files = built.files(folder());
    let at = built.segments[1].batches[1];
    files[1].1[at + 60] ^= 0x10;
    let before = files[1].1.clone();
    let sim = disk(1, &files);
    let error = recovered(&sim).unwrap_err();
    let Error::Damaged { path, offset, because } = error else { panic!("{error}") };
    assert_eq!((path, offset), (file(2), at as u64 + 48));
    assert!(because.ends_with("run `wrote log verify /log`, then `wrote log repair /log`"));
    assert_eq!(sim.contents(file(2)).unwrap(), before);
}

#[test]
fn a_durable_segment_that_is_missing_is_an_error() {
    let built = two_segments().segment().batch(10, &[b"ten"]).segment().batch(11, &[b"eleven"]);
    for missing in [1, 2] {
        let mut files = built.files(folder());
        files.remove(missing);
        assert!(matches!(recovered(&disk(1, &files)), Err(Error::Damaged { .. })), "{missing}");
    }
    // No promise was given for a segment that was not durable. Later segments are not part of the
    // log.
    let built = two_segments().segment().batch(5, &[b"ten"]);
    let mut files = built.files(folder());
    files.remove(1);
    let found = recovered(&disk(1, &files)).unwrap();
    // These are the headers of the segment, the batch and the record, and the record's bytes.
    assert_eq!(found.recovered.torn_bytes, 64 + 48 + 8 + 3);
    assert_eq!((found.next_sequence, found.recovered.kept_aside), (5, vec![torn(&file(3), 0)]));
}

#[test]
fn only_the_segments_that_were_not_durable_are_read() {
    // Segment 3 states that all earlier records were durable, so only a reader of segment 1 detects
    // the flipped bit.
    let built = two_segments().segment().batch(10, &[b"ten"]);
    let mut files = built.files(folder());
    files[0].1[200] ^= 1;
    assert_eq!(recovered(&disk(1, &files)).unwrap().next_sequence, 11);
}

#[test]
fn damage_before_the_durable_end_that_headers_and_lengths_tell_is_an_error() {
    let built = two_segments().closed().segment().batch(10, &[b"ten"]).closed();
    let end = built.segments[0].batches[1] + 700;
    type Way<'a> = &'a dyn Fn(&mut [Vec<u8>]);
    let ways: [Way; 3] =
        [&|files| files[0].truncate(end), &|files| files[1].truncate(64), &|files| {
            files[1][64..112].fill(0)
        }];
    for (way, damage) in ways.iter().enumerate() {
        let (paths, mut files): (Vec<_>, Vec<_>) = built.files(folder()).into_iter().unzip();
        damage(&mut files);
        let files: Vec<_> = paths.into_iter().zip(files).collect();
        let sim = disk(1, &files);
        assert!(matches!(recovered(&sim), Err(Error::Damaged { .. })), "{way}");
        assert!(files.iter().all(|(path, bytes)| sim.contents(path).unwrap() == *bytes));
    }
    // If only the closing batch is lost, no record is lost.
    let mut files = built.files(folder());
    files[1].1.truncate(built.segments[1].batches[2]);
    assert_eq!(recovered(&disk(1, &files)).unwrap().next_sequence, 11);
}

#[test]
fn the_first_segment_of_which_only_parts_arrived_is_put_aside() {
    let built = SampleLog::default().segment().batch(0, &[&[7; 2000]]).batch(0, &[b"one"]);
    let mut files = built.files(folder());
    files[0].1[..512].fill(0);
    let sim = disk(1, &files);
    let found = recovered(&sim).unwrap();
    assert!(found.active.is_none() && found.next_sequence == 0);
    assert_eq!(sim.names(), [torn(&file(1), 0)]);
}

#[test]
fn the_only_segment_with_a_damaged_header_is_no_new_log() {
    for durable in [0, 1] {
        let built = SampleLog::default().segment().batch(0, &[b"zero"]).batch(durable, &[b"one"]);
        for byte in 0..64 {
            let mut files = built.files(folder());
            files[0].1[byte] ^= 1;
            assert!(matches!(recovered(&disk(1, &files)), Err(Error::Damaged { .. })), "{byte}");
        }
    }
}

#[test]
fn a_header_that_was_there_when_its_batch_was_written_is_damaged() {
    let built = two_segments();
    let mut files = built.files(folder());
    files[1].1[20] ^= 1;
    assert!(matches!(recovered(&disk(1, &files)), Err(Error::Damaged { .. })));
    // Without the sector that holds both, the rest is a torn end.
    files[1].1[..512].fill(0);
    assert_eq!(recovered(&disk(1, &files)).unwrap().next_sequence, 5);
}

#[test]
fn a_log_goes_on_behind_a_cut_and_behind_the_next() {
    let end_of = |built: &SampleLog| built.segments[1].bytes.len();
    let header = |after_cut| crate::log::batch::BatchHeader { after_cut, ..Default::default() };
    let built = two_segments().batch(5, &[b"lost", b"lost"]);
    // Only the header of the batch reached the disk, twice in a row.
    let place = built.segments[1].batches[2];
    let built = built.cut(place + 48, 10).batch_of(header(true), &[b"lost again"]);
    let place = built.segments[1].batches[3];
    let built = built.cut(place + 48, 10).batch_of(header(true), &[b"ten", b"eleven"]);
    let found = recovered(&disk_of(&built)).unwrap();
    assert_eq!((found.next_sequence, found.recovered.torn_bytes), (12, 0));
    // Now a cut in the middle of a batch.
    let cut = end_of(&built) - 512 + 48 + 11;
    let built = built.cut(cut, 11).batch_of(header(true), &[b"another"]).closed();
    let found = recovered(&disk_of(&built)).unwrap();
    assert_eq!((found.next_sequence, found.recovered.found_closed), (12, true));
}

#[test]
fn a_cut_that_a_crash_interrupted_is_completed() {
    let built = two_segments().closed();
    let at = |segment: usize, batch: usize| built.segments[segment].batches[batch];
    for (number, next, end, names) in [
        (2, 8, at(1, 1), vec![file(1), file(2), file(3)]),
        (1, 3, at(0, 1), vec![file(1), file(3)]),
    ] {
        let sim = disk_of(&built);
        begin_cut(&sim, number, next);
        for _ in 0..2 {
            assert_eq!(recovered(&sim).unwrap().next_sequence, next);
            assert_eq!(sim.names(), names);
            assert_eq!(sim.contents(file(number)).unwrap().len(), end);
        }
    }
}

#[test]
fn a_cut_loses_no_other_record_where_the_power_fails_while_it_is_completed() {
    // W1: a copy of record 8 is in the segment that states the cut, whose name may not be durable.
    let built = two_segments().closed();
    for (error, loss) in (0..8).flat_map(|error| (0..40).map(move |loss| (error, loss))) {
        let sim = disk(loss, &built.files(folder()));
        let find = disk_of(&built);
        let first = find.operations();
        cut::find(&files_of(&find), &file(2), 9, 3).unwrap();
        sim.fault(sim.operations() + find.operations() - first + error, Fault::Once(libc::EIO));
        begin_cut(&sim, 2, 9);
        sim.fault(sim.operations() + loss, Fault::PowerLoss);
        let _ = recovered(&sim);
        sim.restart();
        let next = recovered(&sim).unwrap().next_sequence;
        assert!((9..=10).contains(&next), "{next}: error {error}, power loss {loss}");
    }
}

#[test]
fn a_log_continues_in_its_last_segment_unless_its_batches_or_the_clock_forbid() {
    let mut found = recovered(&disk_of(&two_segments())).unwrap();
    let layout = Layout {
        capacity: 4096,
        block_bytes: 512,
        segment_bytes: 1 << 20,
        ramp: None,
        log_id: found.log_id,
    };
    let end = found.active.as_ref().unwrap().bytes.next_multiple_of(512);
    let here = Start { first_sequence: 10, segment: 2, offset: end };
    let next = Start { segment: 3, offset: 0, ..here };
    for (longest_bytes, written_at_ns, start) in
        [(0, 0, here), (1, 0, next), (4095, 0, next), (4096, 0, here), (0, u64::MAX, next)]
    {
        let active = found.active.as_mut().unwrap();
        (active.longest_bytes, active.written_at_ns) = (longest_bytes, written_at_ns);
        assert_eq!(found.start(&layout), start, "{longest_bytes} {written_at_ns}");
    }
}

#[test]
fn a_folder_of_lines_is_refused_with_the_command_that_prints_them() {
    let sim = disk(1, &[(folder().join("00000000000000000000.log"), b"zero\n".to_vec())]);
    let error = recover(&files_of(&sim)).unwrap_err().to_string();
    assert!(error.contains("a log of lines") && error.contains("`cat`"), "{error}");
    assert_eq!(sim.names().len(), 1);
}
