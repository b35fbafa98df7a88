//! The results of commands, read from the guest's second serial port.

use crate::tools::report::Counts;

/// One command of the plan, usually a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The name in the plan, such as `it: engine::a_test`.
    pub name: String,
    /// The exit code, or `timeout` if the time limit was reached; `None` if the guest shut down
    /// first.
    pub end: Option<String>,
    /// The output of the command.
    pub said: String,
}

impl Test {
    /// Returns whether the test passed or skipped itself.
    pub fn passed(&self) -> bool {
        self.end.as_deref() == Some("0")
    }

    /// Returns `ok`, or how the test failed.
    pub fn word(&self) -> String {
        match self.end.as_deref() {
            Some("0") => "ok".to_owned(),
            Some("timeout") => "FAILED (its time was over)".to_owned(),
            Some(code) => format!("FAILED (exit code {code})"),
            None => "FAILED (the guest ended before it)".to_owned(),
        }
    }

    /// Returns the facts that the test reported, in lines that begin with `FACT: `.
    pub fn facts(&self) -> impl Iterator<Item = &str> {
        self.said.lines().filter_map(|line| line.strip_prefix("FACT: "))
    }
}

/// Everything that the guest reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The kernel's release; `None` until the guest has booted.
    pub booted: Option<String>,
    /// The commands, in the order in which they began.
    pub tests: Vec<Test>,
    /// Whether all commands have run.
    pub done: bool,
}

impl Results {
    /// Reads the lines that `lab/guest/init.sh` describes, except for an unfinished last line.
    pub fn read(text: &str) -> Results {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut results = Results::default();
        for line in whole.lines() {
            results.line(line.trim_end_matches('\r'));
        }
        results
    }

    fn line(&mut self, line: &str) {
        let (marker, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (marker, self.tests.last_mut()) {
            ("BOOTED", _) => self.booted = Some(rest.to_owned()),
            ("BEGIN", _) => {
                self.tests.push(Test { name: rest.to_owned(), end: None, said: String::new() });
            }
            ("END", Some(test)) => test.end = Some(rest.to_owned()),
            ("DONE", _) => self.done = true,
            (_, Some(test)) => {
                if let Some(said) = line.strip_prefix("  ") {
                    test.said += said;
                    test.said.push('\n');
                }
            }
            _ => {}
        }
    }

    /// Returns the commands that have ended.
    pub fn ended(&self) -> &[Test] {
        let unknown = self.tests.iter().position(|test| test.end.is_none());
        &self.tests[..unknown.unwrap_or(self.tests.len())]
    }

    /// Counts the results; `planned` is the number of commands in the plan.
    pub fn counts(&self, planned: usize) -> Counts {
        let mut counts = Counts::default();
        for test in &self.tests {
            if test.passed() {
                counts.passed += 1;
            } else {
                counts.fail(format!("{}: {}", test.name, test.word()));
            }
            // A skip is reported in the same form as on the host.
            counts.skip(&test.said);
        }
        let missing = planned.saturating_sub(self.tests.len());
        if missing > 0 {
            counts.failed += u32::try_from(missing).unwrap_or(u32::MAX);
            counts.failures.push(format!("{missing} of {planned} tests were not begun"));
        }
        if !self.done && counts.failed == 0 {
            counts.fail("the guest ended before the last test".to_owned());
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "BOOTED 6.1.0-56-amd64
BEGIN engine: a_test
  running 1 test
  SKIPPED: a_test: no disk
  END 1

END 0
BEGIN polled: b
  FACT: ext4: 3 interrupts
END timeout
BEGIN polled: c
  thread panicked
END 101
BEGIN polled: d
  begun";

    #[test]
    fn each_test_ends_as_the_guest_said() {
        let results = Results::read(SAID);
        assert_eq!(results.booted.as_deref(), Some("6.1.0-56-amd64"));
        assert!(!results.done);
        let ends: Vec<_> =
            results.tests.iter().map(|test| (&*test.name, test.end.as_deref())).collect();
        let expected = [
            ("engine: a_test", Some("0")),
            ("polled: b", Some("timeout")),
            ("polled: c", Some("101")),
            ("polled: d", None),
        ];
        assert_eq!(ends, expected);
        assert_eq!(results.ended().len(), 3);
        assert_eq!(results.tests[1].facts().collect::<Vec<_>>(), ["ext4: 3 interrupts"]);
    }

    #[test]
    fn failed_tests_are_counted_and_named() {
        let counts = Results::read(SAID).counts(6);
        assert_eq!((counts.passed, counts.failed), (1, 5));
        let expected = [
            "polled: b: FAILED (its time was over)",
            "polled: c: FAILED (exit code 101)",
            "polled: d: FAILED (the guest ended before it)",
            "2 of 6 tests were not begun",
        ];
        assert_eq!(counts.failures, expected);
        assert_eq!(counts.skipped, ["a_test: no disk"]);
    }

    #[test]
    fn nothing_is_known_of_a_guest_that_said_nothing() {
        assert_eq!(Results::read(""), Results::default());
        assert_eq!(Results::read("BOOTED 6.1").booted, None, "the line is not whole");
    }
}
