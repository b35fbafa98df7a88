//! Records which steps passed, failed or were skipped, and prints totals and durations.

use crate::tools::failure::Failure;
use crate::tools::run::Finished;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The reason given by tests that `cargo xtask test` leaves to `cargo xtask nightly`: `#[ignore =
/// "nightly"]`.
const NIGHTLY: &str = "nightly";

/// The results so far.
#[derive(Debug, Default)]
pub struct Report {
    /// The counts of steps and tests, with reasons for all that failed or did not run.
    sum: Counts,
    /// The name and the duration of each step.
    steps: Vec<(String, Duration)>,
}

/// The result of a step.
pub enum Outcome {
    /// The step passed.
    Passed,
    /// The step ran a number of tests.
    Tests(Counts),
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome::Passed
    }
}

impl Report {
    /// Runs a step and counts it. If the time limit has been reached, the step is left out. Fails
    /// only after a signal.
    pub fn step<T: Into<Outcome>>(
        &mut self,
        name: &str,
        action: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        eprintln!("\n==> {name}");
        let begin = Instant::now();
        let result = action().map(T::into);
        let elapsed = begin.elapsed();
        let word = match result {
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(Failure::OutOfTime) => {
                self.leave(name, "it did not end in the time that was left");
                "left unfinished".to_owned()
            }
            Err(Failure::Skipped(because)) => {
                self.sum.skipped.push(format!("{name}: {because}"));
                format!("SKIPPED: {because}")
            }
            Err(failure) => {
                self.sum.fail(format!("{name}: {failure}"));
                format!("FAILED: {failure}")
            }
            Ok(Outcome::Passed) => {
                self.sum.passed += 1;
                "passed".to_owned()
            }
            Ok(Outcome::Tests(counts)) => self.tests(name, &counts),
        };
        eprintln!("<== {name}: {word} ({:.1} s)", elapsed.as_secs_f64());
        self.time(name, elapsed);
        Ok(())
    }

    /// Runs a step whose result is needed by later steps. Returns `None` if the step failed.
    pub fn make<T>(
        &mut self,
        name: &str,
        action: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let mut made = None;
        self.step(name, || {
            made = Some(action()?);
            Ok(())
        })?;
        Ok(made)
    }

    /// Reports a step that cannot run here, and the reason.
    pub fn skip(&mut self, name: &str, because: String) -> Result<(), Failure> {
        self.step(name, || Err::<(), _>(Failure::Skipped(because)))
    }

    /// Reports a step that this run leaves out, and the reason.
    pub fn leave(&mut self, name: &str, because: &str) {
        self.sum.campaigns.push(format!("{name}: {because}"));
    }

    /// Adds the duration of a part of a step, which [`Report::finish`] prints.
    pub fn time(&mut self, name: &str, elapsed: Duration) {
        self.steps.push((name.to_owned(), elapsed));
    }

    /// Returns the number of steps and tests that have failed so far.
    pub fn failed(&self) -> u32 {
        self.sum.failed
    }

    /// Returns whether no step has failed so far.
    pub fn is_green(&self) -> bool {
        self.failed() == 0
    }

    /// Prints the totals on stdout. Fails if a step has failed.
    pub fn finish(mut self) -> Result<(), Failure> {
        println!("{}", self.summary());
        if self.is_green() { Ok(()) } else { Err(Failure::Reported) }
    }

    fn tests(&mut self, name: &str, counts: &Counts) -> String {
        // The harness counts tests that skip themselves as passed.
        let themselves = u32::try_from(counts.skipped.len()).unwrap_or(u32::MAX);
        let passed = counts.passed.saturating_sub(themselves);
        let sum = &mut self.sum;
        sum.passed += passed;
        sum.failed += counts.failed;
        sum.failures.extend(counts.failures.iter().map(|test| format!("{name}: {test}")));
        sum.skipped.extend(counts.skipped.iter().chain(&counts.ignored).cloned());
        sum.campaigns
            .extend(counts.campaigns.iter().map(|test| format!("{test}: cargo xtask nightly")));
        let skipped = counts.skipped.len() + counts.ignored.len();
        format!("{passed} passed, {} failed, {skipped} skipped", counts.failed)
    }

    fn summary(&mut self) -> String {
        self.steps.sort_by_key(|(_, elapsed)| std::cmp::Reverse(*elapsed));
        let line = |(name, elapsed): &(String, Duration)| {
            format!("{:>7.1} s  {name}", elapsed.as_secs_f64())
        };
        let steps = self.steps.iter().map(line).collect();
        let (sum, mut text) = (&self.sum, String::new());
        for (title, lines) in [
            ("Steps, longest first", &steps),
            ("Left out", &sum.campaigns),
            ("Skipped", &sum.skipped),
            ("Failed", &sum.failures),
        ] {
            if !lines.is_empty() {
                let _ = write!(text, "\n{title}:\n  {}\n", lines.join("\n  "));
            }
        }
        let (passed, failed, skipped) = (sum.passed, sum.failed, sum.skipped.len());
        let _ = write!(text, "\n{passed} passed, {failed} failed, {skipped} skipped");
        text
    }
}

/// The results of one `cargo test`, or of several test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of tests that the harness reports as passed.
    pub passed: u32,
    /// The number of tests that failed.
    pub failed: u32,
    /// The name of each failed test.
    pub failures: Vec<String>,
    /// The name of each test that skipped itself, and the reason.
    pub skipped: Vec<String>,
    /// The name of each test that the harness ignored.
    pub ignored: Vec<String>,
    /// The name of each test that the harness ignored because the test belongs to a campaign.
    pub campaigns: Vec<String>,
}

impl Counts {
    /// Reads the harness's stdout. A test that skips itself writes `SKIPPED: name: reason` to
    /// stderr or to the file `skips`.
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
                    match because.strip_prefix(", ") {
                        Some(NIGHTLY) => counts.campaigns.push(name.to_owned()),
                        _ => counts.ignored.push(format!("{name}: ignored{because}")),
                    }
                }
            }
        }
        // A test may report its reason in both.
        counts.skip(skips);
        counts.skip(&finished.stderr);
        // If no test failed, the program failed to compile or was killed.
        if let (Some(trouble), 0) = (&finished.trouble, counts.failed) {
            counts.fail(trouble.clone());
        }
        counts
    }

    /// Adds the name and the reason of each test that skipped itself according to `text`, without
    /// duplicates.
    pub fn skip(&mut self, text: &str) {
        for skip in text.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")) {
            if !self.skipped.iter().any(|known| known == skip) {
                self.skipped.push(skip.to_owned());
            }
        }
    }

    /// Adds a failure with this name.
    pub fn fail(&mut self, name: String) {
        self.failed += 1;
        self.failures.push(name);
    }

    /// Adds the results of `other`.
    pub fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend_from_slice(&other.failures);
        self.skipped.extend_from_slice(&other.skipped);
        self.ignored.extend_from_slice(&other.ignored);
        self.campaigns.extend_from_slice(&other.campaigns);
    }
}

/// Returns the number before `word` in text such as "ok. 3 passed; 0 failed; …".
fn number_before(result: &str, word: &str) -> u32 {
    let number = result.split_once(word).and_then(|(before, _)| before.split(' ').nth_back(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
