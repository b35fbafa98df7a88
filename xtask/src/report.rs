//! What passed, failed and was skipped, said as it happens and summed up at the end.

use crate::failure::Failure;
use crate::run::Finished;
use std::fmt::Write as _;
use std::time::Instant;

/// The results so far.
#[derive(Debug, Default)]
pub struct Report {
    passed: u32,
    failed: u32,
    /// Each failure: its name and why.
    failures: Vec<String>,
    /// Each thing that was skipped: its name and why.
    skipped: Vec<String>,
}

/// What a step came to.
pub enum Outcome {
    /// It passed.
    Passed,
    /// It could not be done here, and why.
    Skipped(String),
    /// It is many tests: what each of them came to, and why the whole failed where it did.
    Tests(Counts, Option<String>),
}

impl Report {
    /// Does one step and counts it. Fails only where a signal came.
    pub fn step(
        &mut self,
        name: &str,
        action: impl FnOnce() -> Result<Outcome, Failure>,
    ) -> Result<(), Failure> {
        eprintln!("\n==> {name}");
        let begin = Instant::now();
        let result = action();
        let word = match result {
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                let because = failure.to_string();
                self.fail(name, &because);
                format!("FAILED: {because}")
            }
            Ok(Outcome::Passed) => {
                self.passed += 1;
                "passed".to_owned()
            }
            Ok(Outcome::Skipped(because)) => {
                self.skipped.push(format!("{name}: {because}"));
                format!("SKIPPED: {because}")
            }
            Ok(Outcome::Tests(counts, trouble)) => self.tests(name, &counts, trouble),
        };
        eprintln!("<== {name}: {word} ({:.1} s)", begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Prints the sum on stdout; a failure where anything failed.
    pub fn finish(self) -> Result<(), Failure> {
        println!("{}", self.summary());
        if self.failed == 0 { Ok(()) } else { Err(Failure::Reported) }
    }

    fn fail(&mut self, name: &str, because: &str) {
        self.failed += 1;
        self.failures.push(format!("{name}: {because}"));
    }

    fn tests(&mut self, name: &str, counts: &Counts, trouble: Option<String>) -> String {
        // To the test harness a test that skips itself has passed.
        let themselves = u32::try_from(counts.skipped.len()).unwrap_or(u32::MAX);
        let passed = counts.passed.saturating_sub(themselves);
        self.passed += passed;
        self.failed += counts.failed;
        self.failures.extend(counts.failures.iter().map(|test| format!("{name}: {test}")));
        self.skipped.extend(counts.skipped.iter().chain(&counts.ignored).cloned());
        // It ended badly though every test that ran passed: it did not compile, or was killed.
        match trouble {
            Some(trouble) if counts.failed == 0 => self.fail(name, &trouble),
            _ => {}
        }
        let skipped = counts.skipped.len() + counts.ignored.len();
        format!("{passed} passed, {} failed, {skipped} skipped", counts.failed)
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        for (title, lines) in [("Skipped", &self.skipped), ("Failed", &self.failures)] {
            if !lines.is_empty() {
                let _ = write!(text, "\n{title}:\n  {}\n", lines.join("\n  "));
            }
        }
        let _ = write!(
            text,
            "\n{} passed, {} failed, {} skipped",
            self.passed,
            self.failed,
            self.skipped.len()
        );
        text
    }
}

/// What the tests of one `cargo test`, or of one test program, came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that the harness calls passed.
    pub passed: u32,
    /// Tests that failed.
    pub failed: u32,
    /// Names of those that failed.
    pub failures: Vec<String>,
    /// Name and reason of each that skipped itself.
    pub skipped: Vec<String>,
    /// Name of each that the harness was told to ignore.
    pub ignored: Vec<String>,
}

impl Counts {
    /// Reads the harness's stdout, and stderr and `skips`, in which tests say why they skipped
    /// themselves: a line `SKIPPED: name: reason` each.
    pub fn read(finished: &Finished, skips: &str) -> Counts {
        let mut counts = Counts::default();
        for line in finished.stdout.lines().map(str::trim) {
            if let Some(result) = line.strip_prefix("test result: ") {
                counts.passed += number_before(result, "passed");
                counts.failed += number_before(result, "failed");
            } else if let Some(test) = line.strip_prefix("test ") {
                if let Some(name) = test.strip_suffix(" ... FAILED") {
                    counts.failures.push(name.to_owned());
                } else if let Some((name, because)) = test.split_once(" ... ignored") {
                    counts.ignored.push(format!("{name}: ignored{because}"));
                }
            }
        }
        // A test may say it in both places.
        let skips = skips.lines().chain(finished.stderr.lines());
        for skip in skips.filter_map(|line| line.strip_prefix("SKIPPED: ")) {
            if !counts.skipped.iter().any(|known| known == skip) {
                counts.skipped.push(skip.to_owned());
            }
        }
        counts
    }
}

/// The number before `word` in "ok. 3 passed; 0 failed; …".
fn number_before(result: &str, word: &str) -> u32 {
    let mut words = result.split([' ', ';']).filter(|part| !part.is_empty());
    let mut before = "";
    loop {
        match words.next() {
            Some(found) if found == word => return before.parse().unwrap_or(0),
            Some(other) => before = other,
            None => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(stdout: &str) -> Finished {
        Finished {
            trouble: None,
            exit_code: Some(0),
            stdout: stdout.to_owned(),
            stderr: String::new(),
        }
    }

    const OUTPUT: &str = "
running 3 tests
test save::a_file_is_whole ... ok
test save::a_failed_flush_is_told ... FAILED
test src/lib.rs - example (line 3) ... ignored

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s

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
            let counts = Counts::read(&finished(OUTPUT), "SKIPPED: xfs: no loop devices\n");
            Ok(Outcome::Tests(counts, Some("exit code 101".into())))
        };
        report.step("tests", tests).expect("no signal");
        report.step("fmt", || Ok(Outcome::Passed)).expect("no signal");
        report.step("lab", || Ok(Outcome::Skipped("no /dev/fuse".into()))).expect("no signal");
        assert_eq!(
            report.summary(),
            "
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
        let tests = || Ok(Outcome::Tests(Counts::default(), Some("exit code 101".into())));
        report.step("tests", tests).expect("no signal");
        assert!(report.summary().ends_with("\n0 passed, 1 failed, 0 skipped"));
    }

    #[test]
    fn a_signal_ends_the_report() {
        let mut report = Report::default();
        assert!(report.step("tests", || Err(Failure::Interrupted)).is_err());
    }
}
