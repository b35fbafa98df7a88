//! Findings on long writes: the point where a disk slows down, and its steady state, as the
//! scenario `sustained` finds them. These tests take a minute. The tests next to the scenario's
//! code use simulated rates.

use crate::scene::{alone, bench, of, silent};
use crate::strange;
use fixtures::or_skip;
use wrote_result::document::{Document, Interval, Sustained};

const MB: u64 = 1_000_000;

/// A cliff: after 1.2 GB, a tenth of the rate until the disk has rested. The file system
/// compensates for threads that wake up late.
const CLIFF_BYTES: u64 = 1200 * MB;
const FAST_BYTES_PER_S: f64 = 400e6;
const SLOW_BYTES_PER_S: f64 = 40e6;
const CLIFF: &str = "--forget --capacity-mib 20000 --fast-bytes 1200MB \
                     --fast-rate 400MB/s --slow-rate 40MB/s --idle-restores 1s";

/// Returns the result of the scenario with these options.
fn sustained(strange: &fixtures::Strange, more: &str) -> Document {
    bench(strange.path(), &format!("--only sustained {more}"))
}

fn row(document: &Document) -> &Sustained {
    let mut rows = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    rows.find_map(|row| row.sustained.as_ref()).expect("a row of sustained")
}

fn assert_near(found: &Interval, expected: f64) {
    let share = found.median / expected;
    assert!((0.9..=1.1).contains(&share), "{found:?}, not {expected}");
}

#[test]
#[ignore = "nightly"]
fn cache_cliff_is_said_with_its_place_and_both_rates() {
    alone(|| {
        let strange = or_skip!(strange::mount(CLIFF));
        let document = sustained(&strange, "--size 1600MB --idle 2s");
        let found = row(&document);
        let [change] = &found.changes[..] else { panic!("{:?}", found.changes) };
        let place = change.at_bytes as f64 / CLIFF_BYTES as f64;
        assert!((0.95..=1.05).contains(&place), "{change:?}");
        assert_near(&found.burst_bytes_per_s, FAST_BYTES_PER_S);
        assert_near(&found.sustained_bytes_per_s, SLOW_BYTES_PER_S);
        let recovered = found.recovered_bytes_per_s.as_ref().expect("it was examined again");
        assert_near(recovered, FAST_BYTES_PER_S);
        of(&document, "cache-cliff");
    });
}

#[test]
#[ignore = "nightly"]
fn cache_cliff_is_not_said_of_a_disk_without_one_in_20_runs() {
    alone(|| {
        let strange = or_skip!(strange::mount("--forget --capacity-mib 20000 --slow-rate 200MB/s"));
        for run in 1..=20 {
            let document = sustained(&strange, "--size 100MB --idle 0s");
            let found = row(&document);
            assert!(found.changes.is_empty(), "run {run}: {:?}", found.changes);
            silent(&document, "cache-cliff");
        }
    });
}

#[test]
#[ignore = "nightly"]
fn not_steady_is_said_of_a_disk_that_is_fast_and_slow_in_turn() {
    alone(|| {
        let strange = or_skip!(strange::mount(
            "--forget --capacity-mib 20000 --swing 300ms --fast-rate 200MB/s --slow-rate 20MB/s"
        ));
        // A round takes 200 ms, and any five consecutive rounds differ.
        let document = sustained(&strange, "--size 2GB --time 5s --idle 0s");
        assert_eq!(row(&document).steady_state.as_ref().map(|state| state.reached), Some(false));
        of(&document, "not-steady");
    });
}

#[test]
#[ignore = "nightly"]
fn not_steady_is_not_said_of_one_that_keeps_its_pace() {
    alone(|| {
        let strange = or_skip!(strange::mount("--forget --capacity-mib 20000 --slow-rate 100MB/s"));
        let document = sustained(&strange, "--size 500MB --idle 0s");
        assert_eq!(row(&document).steady_state.as_ref().map(|state| state.reached), Some(true));
        silent(&document, "not-steady");
    });
}

#[test]
#[ignore = "nightly"]
fn concurrent_iops_is_said_of_a_disk_that_takes_more_with_many_in_flight() {
    alone(|| {
        let folder = fixtures::folder();
        let document = bench(folder.path(), "--only rand/write --size 64MiB --runs 2");
        of(&document, "concurrent-iops");
    });
}

/// Returns the result of a stream on a disk that writes new blocks at this rate, and written blocks
/// at 400 MB/s.
fn new_blocks_at(rate: &str) -> Result<Document, String> {
    let strange = strange::mount(&format!(
        "--forget --capacity-mib 20000 --first-rate {rate} --slow-rate 400MB/s"
    ))?;
    Ok(bench(strange.path(), "--only stream/direct-psync --within 20s"))
}

#[test]
#[ignore = "nightly"]
fn first_touch_is_said_of_blocks_that_are_slow_to_write_once() {
    alone(|| {
        let document = or_skip!(new_blocks_at("40MB/s"));
        let finding = of(&document, "first-touch");
        let first = finding.evidence["first_bytes_per_s"].as_f64().expect("a rate");
        assert!((0.8..=1.1).contains(&(first / 40e6)), "{finding:?}");
    });
}
