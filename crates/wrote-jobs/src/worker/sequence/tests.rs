//! Tests of a job's operations as a whole.

#![allow(clippy::single_range_in_vec_init, reason = "the regions of one file")]

use super::*;
use crate::spec::{BlockShare, READ, WRITE};
use proptest::prelude::*;
use std::collections::HashMap;

const MIX: Rw = Rw { read: true, write: true, random: false };

fn job(rw: Rw) -> JobSpec {
    JobSpec::new("job", rw, 4096)
}

fn outline(spec: JobSpec, regions: &[Range<u64>]) -> Outline {
    Outline { spec, regions: regions.to_vec() }
}

fn operations(outline: Outline) -> Vec<Next> {
    Sequence::new(outline).unwrap().collect()
}

fn random(rw: Rw) -> Rw {
    Rw { random: true, ..rw }
}

fn split(sizes: &[(u64, u32)]) -> BlockSizes {
    BlockSizes::Split(sizes.iter().map(|&(bytes, percent)| BlockShare { bytes, percent }).collect())
}

fn bytes(operations: &[Next]) -> u64 {
    operations.iter().map(|next| next.len as u64).sum()
}

#[test]
fn a_sequential_job_goes_from_start_to_end_of_each_file_one_operation_to_each_in_turn() {
    let all = operations(outline(job(WRITE), &[0..12288, 8192..16384]));
    let places: Vec<(usize, u64)> = all.iter().map(|next| (next.file, next.offset)).collect();
    assert_eq!(places, [(0, 0), (1, 8192), (0, 4096), (1, 12288), (0, 8192)]);
    assert!(all.iter().all(|next| next.write && next.len == 4096));
}

#[test]
fn a_random_job_takes_each_block_once_and_in_another_order_in_each_loop() {
    for rw in [READ, WRITE, MIX].map(random) {
        let regions = [4096..4096 * 101, 0..4096 * 50];
        let all = operations(outline(job(rw).with(|job| job.pace.loops = 2), &regions));
        assert_eq!(all.len(), 300);
        let (first, second) = all.split_at(150);
        for pass in [first, second] {
            let mut places: Vec<_> = pass.iter().map(|next| (next.file, next.offset)).collect();
            places.sort_unstable();
            let blocks = |file: usize, region: &Range<u64>| {
                region.clone().step_by(4096).map(move |offset| (file, offset)).collect::<Vec<_>>()
            };
            let expected = [blocks(0, &regions[0]), blocks(1, &regions[1])].concat();
            assert_eq!(places, expected);
        }
        let offsets = |pass: &[Next]| pass.iter().map(|next| next.offset).collect::<Vec<_>>();
        assert_ne!(offsets(first), offsets(second));
    }
}

#[test]
fn without_the_map_blocks_may_come_again_and_as_many_bytes_are_moved() {
    let unmapped = job(random(READ)).with(|job| job.order.norandommap = true);
    let all = operations(outline(unmapped, &[0..4096 * 500]));
    assert_eq!(all.len(), 500);
    let distinct: std::collections::HashSet<u64> = all.iter().map(|next| next.offset).collect();
    // On average, a share of 1 - 1/e of the blocks is used.
    assert!((250..400).contains(&distinct.len()), "{}", distinct.len());
}

#[test]
fn each_direction_of_a_sequential_mix_goes_on_from_its_own_last_operation() {
    let mix = outline(job(MIX).with(|job| job.order.rwmixread_percent = 70), &[0..4096 * 1000]);
    let all = operations(mix);
    assert_eq!(all.len(), 1000, "reads and writes together are the size");
    for write in [false, true] {
        let offsets = all.iter().filter(|next| next.write == write).map(|next| next.offset);
        assert!(offsets.enumerate().all(|(index, offset)| offset == 4096 * index as u64));
    }
    let reads = all.iter().filter(|next| !next.write).count();
    assert!((650..750).contains(&reads), "{reads}");
}

#[test]
fn the_sizes_of_a_split_have_their_shares() {
    let sizes = split(&[(4096, 10), (65536, 40), (16384, 50)]);
    for rw in [WRITE, random(WRITE)] {
        let mut spec = job(rw);
        (spec.order.write_bs, spec.pace.io_bytes) = (sizes.clone(), Some(1 << 30));
        let all = operations(outline(spec, &[0..1 << 30]));
        let mut counts: HashMap<usize, f64> = HashMap::new();
        all.iter().for_each(|next| *counts.entry(next.len).or_default() += 1.0);
        let BlockSizes::Split(shares) = &sizes else { unreachable!("it is a split") };
        for share in shares {
            let part = counts[&(share.bytes as usize)] / all.len() as f64 * 100.0;
            assert!((part - f64::from(share.percent)).abs() < 3.0, "{share:?}: {part}");
        }
        assert_eq!(bytes(&all), 1 << 30);
    }
}

#[test]
fn the_sizes_of_a_range_are_its_multiples_and_come_equally_often() {
    let sizes = BlockSizes::Range { least_bytes: 4096, most_bytes: 12 << 12 };
    for rw in [WRITE, random(WRITE)] {
        let mut spec = job(rw);
        (spec.order.write_bs, spec.pace.io_bytes) = (sizes.clone(), Some(1 << 30));
        let all = operations(outline(spec, &[0..1 << 30]));
        let mut counts: HashMap<usize, f64> = HashMap::new();
        all.iter().for_each(|next| *counts.entry(next.len).or_default() += 1.0);
        for len in (1..=12).map(|times| times << 12) {
            let part = counts.remove(&len).unwrap_or(0.0) / all.len() as f64 * 12.0;
            assert!((0.9..1.1).contains(&part), "{len}: {part}");
        }
        assert!(counts.len() <= 1, "only the last may be less: {counts:?}");
        assert_eq!(bytes(&all), 1 << 30);
    }
}

#[test]
fn a_part_of_the_operations_is_random_and_each_other_one_follows_the_last() {
    for percent in [0, 30, 70, 100] {
        let mut spec = job(random(WRITE));
        (spec.order.percentage_random, spec.pace.io_bytes) = (Some([9, percent]), Some(40 << 20));
        let all = operations(outline(spec, &[0..1 << 30]));
        let follows = all.windows(2).filter(|two| two[1].offset == two[0].offset + 4096).count();
        let part = follows as f64 / (all.len() - 1) as f64 * 100.0;
        assert!((part - f64::from(100 - percent)).abs() < 2.0, "{percent}: {part}");
        assert_eq!(all.len(), 10 << 10);
    }
}

#[test]
fn bytes_are_exact_for_loops_and_for_less_and_more_than_the_files() {
    for rw in [READ, WRITE, random(READ), random(WRITE), MIX, random(MIX)] {
        for norandommap in [false, true] {
            for (io_bytes, loops, expected) in [
                (None, 1, 40960),
                (None, 3, 3 * 40960),
                (Some(8192), 1, 8192),
                (Some(8192), 3, 3 * 8192),
                (Some(100 * 4096), 2, 200 * 4096),
            ] {
                let mut spec = job(rw);
                (spec.pace.io_bytes, spec.pace.loops) = (io_bytes, loops);
                spec.order.norandommap = norandommap;
                let outline = outline(spec, &[0..20480, 0..20480]);
                assert_eq!(outline.total_bytes(), Some(expected));
                assert_eq!(bytes(&operations(outline)), expected, "{rw:?} {io_bytes:?} {loops}");
            }
        }
    }
}

#[test]
fn a_rest_that_is_less_than_a_block_is_left_out() {
    for rw in [READ, random(READ)] {
        let all = operations(outline(job(rw), &[100..100 + 10_000]));
        assert_eq!(bytes(&all), 8192, "{rw:?}");
        assert!(all.iter().all(|next| next.offset + 4096 <= 10_100));
    }
}

#[test]
fn an_endless_job_begins_again() {
    let endless = outline(job(WRITE).with(|job| job.pace.time_based = true), &[0..8192]);
    assert_eq!(endless.total_bytes(), None);
    let offsets: Vec<u64> =
        Sequence::new(endless).unwrap().take(5).map(|next| next.offset).collect();
    assert_eq!(offsets, [0, 4096, 0, 4096, 0]);
}

#[test]
fn a_sequence_that_would_never_end_is_none() {
    for regions in [vec![], vec![0..0], vec![0..4095, 8192..9000]] {
        assert!(Sequence::new(outline(job(READ), &regions)).is_none());
    }
    let uneven =
        outline(job(MIX).with(|job| job.order.write_bs = BlockSizes::one(8192)), &[0..4096]);
    assert!(Sequence::new(uneven).is_none(), "reads have room, writes have not");
    assert!(Sequence::new(outline(job(READ).with(|job| job.pace.loops = 0), &[0..8192])).is_none());
}

#[test]
fn the_same_seed_gives_the_same_operations_and_another_seed_others() {
    let seeded =
        |seed| operations(outline(job(random(MIX)).with(|job| job.seed = seed), &[0..1 << 20]));
    assert_eq!(seeded(3), seeded(3));
    assert_ne!(seeded(3), seeded(4));
}

proptest! {
    #[test]
    fn no_operation_leaves_its_file_and_random_offsets_are_multiples_of_the_least_block(
        kind in 0..6_usize,
        sizes in prop::collection::vec(1..20_000_u64, 1..4),
        regions in prop::collection::vec((0..100_000_u64, 0..200_000_u64), 1..4),
        io_bytes in prop::option::of(1..1_000_000_u64),
        loops in 1..3_u32,
        norandommap: bool,
        range in prop::option::of((1..5000_u64, 1..9_u64)),
        percentage_random in prop::option::of([0..=100_u32, 0..=100]),
        seed: u64,
    ) {
        let percent = 100 / sizes.len() as u32;
        let sizes = match range {
            Some((least_bytes, times)) => {
                BlockSizes::Range { least_bytes, most_bytes: least_bytes * times }
            }
            None => BlockSizes::Split(
                sizes.iter().map(|&bytes| BlockShare { bytes, percent }).collect(),
            ),
        };
        let rw = [READ, WRITE, MIX, random(READ), random(WRITE), random(MIX)][kind];
        let regions: Vec<Range<u64>> =
            regions.iter().map(|&(start, len)| start..start + len).collect();
        let mut spec = job(rw);
        (spec.order.read_bs, spec.order.write_bs) = (sizes.clone(), sizes.clone());
        (spec.pace.io_bytes, spec.pace.loops) = (io_bytes, loops);
        spec.order.norandommap = norandommap;
        spec.order.percentage_random = percentage_random;
        spec.seed = seed;
        let outline = outline(spec, &regions);
        let total = outline.total_bytes().unwrap();
        let Some(sequence) = Sequence::new(outline) else { return Ok(()) };
        let mut moved = 0;
        for next in sequence.take(2000) {
            let region = &regions[next.file];
            prop_assert!(region.contains(&next.offset));
            prop_assert!(next.offset + next.len as u64 <= region.end);
            prop_assert_eq!(sizes.at_most(next.len as u64), Some(next.len as u64));
            if rw.random && percentage_random.is_none() {
                prop_assert!((next.offset - region.start).is_multiple_of(sizes.least_bytes()));
            }
            moved += next.len as u64;
        }
        prop_assert!(moved <= total);
    }
}

#[test]
fn cut_operations_use_each_block_once_and_are_as_many_more_as_fios() {
    let sizes = split(&[(4096, 50), (65_536, 50)]);
    let spec = job(random(WRITE)).with(|job| {
        (job.order.write_bs, job.order.as_fio) = (sizes.clone(), true);
    });
    let all = operations(outline(spec.clone(), &[0..64 << 20]));
    let mut blocks: Vec<u64> = all
        .iter()
        .flat_map(|next| (next.offset..next.offset + next.len as u64).step_by(4096))
        .collect();
    blocks.sort_unstable();
    assert_eq!(blocks, (0..64 << 20).step_by(4096).collect::<Vec<u64>>());
    let whole = operations(outline(spec.with(|job| job.order.as_fio = false), &[0..64 << 20]));
    let more = all.len() as f64 / whole.len() as f64;
    assert!((1.3..2.0).contains(&more), "{more}");
}
