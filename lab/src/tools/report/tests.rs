//! Tests of the report and of its counts.

use super::*;

fn finished(stdout: &str) -> Finished {
    Finished { trouble: None, exit_code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

const OUTPUT: &str = "
running 3 tests
test save::a_file_is_whole ... ok
test save::a_failed_flush_is_told ... FAILED
test src/lib.rs - example (line 3) ... ignored
test stats::false_alarms_are_rare ... ignored, nightly

test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s

test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

#[test]
fn the_results_of_all_test_programs_are_added_up() {
    let counts = Counts::read(&finished(OUTPUT), "SKIPPED: xfs: no loop devices\nnoise\n");
    assert_eq!(counts.passed, 13);
    assert_eq!(counts.failed, 1);
    assert_eq!(counts.failures, ["save::a_failed_flush_is_told"]);
    assert_eq!(counts.skipped, ["xfs: no loop devices"]);
    assert_eq!(counts.ignored, ["src/lib.rs - example (line 3): ignored"]);
    assert_eq!(counts.campaigns, ["stats::false_alarms_are_rare"]);
}

#[test]
fn a_skip_that_is_said_twice_is_counted_once() {
    let mut finished = finished(OUTPUT);
    finished.stderr = "noise\nSKIPPED: xfs: not root\nSKIPPED: btrfs: not root\n".to_owned();
    let counts = Counts::read(&finished, "SKIPPED: xfs: not root\n");
    assert_eq!(counts.skipped, ["xfs: not root", "btrfs: not root"]);
}

#[test]
fn a_test_that_skipped_itself_is_not_counted_as_passed() {
    let mut report = Report::default();
    let tests = || {
        let finished = Finished { trouble: Some("exit code 101".into()), ..finished(OUTPUT) };
        Ok(Outcome::Tests(Counts::read(&finished, "SKIPPED: xfs: no loop devices\n")))
    };
    report.step("tests", tests).expect("no signal");
    report.step("fmt", || Ok(())).expect("no signal");
    report.skip("lab", "no /dev/fuse".into()).expect("no signal");
    report.leave("soak", "cargo xtask nightly soak");
    report.steps.clear();
    assert_eq!(
        report.summary(),
        "
Left out:
  stats::false_alarms_are_rare: cargo xtask nightly
  soak: cargo xtask nightly soak

Skipped:
  xfs: no loop devices
  src/lib.rs - example (line 3): ignored
  lab: no /dev/fuse

Failed:
  tests: save::a_failed_flush_is_told

13 passed, 1 failed, 3 skipped"
    );
    assert!(report.finish().is_err());
}

#[test]
fn tests_that_did_not_compile_are_one_failure() {
    let mut report = Report::default();
    let finished = Finished { trouble: Some("exit code 101".into()), ..finished("") };
    let tests = || Ok(Outcome::Tests(Counts::read(&finished, "")));
    report.step("tests", tests).expect("no signal");
    assert!(report.summary().ends_with("\n0 passed, 1 failed, 0 skipped"));
}

#[test]
fn steps_are_printed_with_the_longest_first() {
    let mut report = Report::default();
    let seconds = [("fmt", 3), ("tests", 200), ("doc", 40)];
    let steps = seconds.map(|(name, s)| (name.to_owned(), Duration::from_secs(s)));
    report.steps.extend(steps);
    assert!(report.summary().starts_with(
        "
Steps, longest first:
    200.0 s  tests
     40.0 s  doc
      3.0 s  fmt
"
    ));
}

#[test]
fn a_signal_ends_the_report() {
    let mut report = Report::default();
    assert!(report.step("tests", || Err::<(), _>(Failure::Interrupted)).is_err());
}

#[test]
fn a_step_whose_time_is_over_is_left_out_and_named() {
    let mut report = Report::default();
    assert!(report.step("lab sim", || Err::<(), _>(Failure::OutOfTime)).is_ok());
    assert!(report.is_green());
    assert!(report.summary().contains("lab sim: it did not end in the time that was left"));
}
