//! Parses and checks a program's report of its run, which is one line of JSON.

use super::workload::{Table, Task};
use crate::child::shown;
use serde::Deserialize;
use wrote_result::units;

/// The maximum number of characters of an invalid line that are shown.
pub(super) const SHOWN_CHARS_MAX: usize = 60;
/// The maximum lead of a program's clock over ours, as a fraction: clocks are adjusted by at most
/// 0.05 % (adjtimex(2)), and a program may read one that is not adjusted.
const CLOCK_SHARE_MAX: f64 = 0.01;
/// An additional lead that a program's clock may have because its resolution is coarse.
const CLOCK_S_MAX: f64 = 0.001;
/// The maximum rate that a program may report. No core copies memory so fast.
const BYTES_PER_S_MAX: f64 = 1e12;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    /// The timings, by the program's monotonic clock: COUNT timings, or one for lines.
    pub elapsed_ns: Vec<u64>,
    /// The number of file bytes processed in one timing.
    pub bytes: u64,
    /// The sum of all bytes read in one timing, for `bytes-read` only.
    pub sum: Option<u64>,
}

/// Returns the maximum length of an answer for `table`.
pub(super) fn bytes_max(table: &Table) -> usize {
    // A number of nanoseconds has at most 20 digits, plus a comma and a space.
    4096 + 24 * usize::try_from(table.timings()).unwrap_or(usize::MAX / 32)
}

/// Parses a program's output. The error is one line.
pub(super) fn parse(stdout: &str) -> Result<Answer, String> {
    let mut lines = stdout.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().ok_or("printed no answer")?;
    let answer = serde_json::from_str(first).map_err(|_| no_answer(first))?;
    match lines.next() {
        None => Ok(answer),
        Some(second) if serde_json::from_str::<Answer>(second).is_ok() => {
            Err("printed more than one answer".into())
        }
        Some(second) => Err(no_answer(second)),
    }
}

fn no_answer(line: &str) -> String {
    format!("printed something that is not an answer: {}", shown(line, SHOWN_CHARS_MAX))
}

/// Checks the answer of a program whose process ran for `process_s` seconds. The error is one line.
pub(super) fn judge(answer: &Answer, table: &Table, process_s: f64) -> Result<(), String> {
    let timings = answer.elapsed_ns.len() as u64;
    if timings != table.timings() {
        return Err(format!("reports {timings} timings, not {}", table.timings()));
    }
    if answer.bytes != table.timing_bytes() {
        let did = if table.task == Task::BytesRead { "read" } else { "wrote" };
        let (said, asked) = (answer.bytes, table.timing_bytes());
        return Err(format!("reports that it {did} {said} bytes instead of {asked}"));
    }
    judge_sum(answer.sum, table.sum())?;
    judge_times(answer, process_s)
}

fn judge_sum(said: Option<u64>, expected: Option<u64>) -> Result<(), String> {
    match (said, expected) {
        (Some(said), Some(expected)) if said != expected => {
            Err(format!("reports {said} as the sum of the bytes, which is {expected}"))
        }
        (None, Some(_)) => Err("does not report the sum of the bytes".into()),
        _ => Ok(()),
    }
}

fn judge_times(answer: &Answer, process_s: f64) -> Result<(), String> {
    // A sum of floating-point numbers cannot overflow.
    let elapsed_s = answer.elapsed_s();
    if elapsed_s > process_s * (1.0 + CLOCK_SHARE_MAX) + CLOCK_S_MAX {
        return Err(format!(
            "reports that it took {}, but its process lived {}",
            units::seconds(elapsed_s),
            units::seconds(process_s)
        ));
    }
    let too_fast = |elapsed_ns: &&u64| {
        **elapsed_ns == 0 || answer.bytes as f64 / (**elapsed_ns as f64 / 1e9) > BYTES_PER_S_MAX
    };
    match answer.elapsed_ns.iter().find(too_fast) {
        Some(elapsed_ns) => Err(format!(
            "reports that {} took {elapsed_ns} ns, faster than any memory",
            units::bytes(answer.bytes)
        )),
        None => Ok(()),
    }
}

impl Answer {
    /// Returns the sum of all timings, in seconds.
    pub(super) fn elapsed_s(&self) -> f64 {
        self.elapsed_ns.iter().map(|elapsed_ns| *elapsed_ns as f64).sum::<f64>() / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(task: Task, size: u64, count: u64) -> Table {
        Table { task, size, count, cold: false, in_time: false }
    }

    fn refused(stdout: &str) -> String {
        let because = parse(stdout).unwrap_err();
        assert_eq!(because.lines().count(), 1, "{because}");
        because
    }

    #[test]
    fn the_line_of_the_protocol_is_an_answer_and_may_be_followed_by_empty_ones() {
        let line = r#"{"elapsed_ns": [1234567, 1234599], "bytes": 256000000, "sum": 32640000000}"#;
        let answer = parse(&format!("{line}\n\n")).unwrap();
        assert_eq!(answer.elapsed_ns, [1_234_567, 1_234_599]);
        assert_eq!((answer.bytes, answer.sum), (256_000_000, Some(32_640_000_000)));
        assert_eq!(parse(r#"{"bytes":1,"elapsed_ns":[2]}"#).unwrap().sum, None);
    }

    #[test]
    fn other_output_than_an_answer_is_one_bounded_line_without_control_characters() {
        assert_eq!(refused(""), "printed no answer");
        assert_eq!(refused("\n \n"), "printed no answer");
        assert_eq!(refused("hello\n"), "printed something that is not an answer: hello");
        let long = refused(&"x".repeat(100_000));
        assert!(long.ends_with("xx..") && long.len() < 110, "{long}");
        assert!(!refused("\x1b[2Jred\u{7}").contains(['\x1b', '\u{7}']));
        let good = r#"{"elapsed_ns": [1], "bytes": 1}"#;
        assert_eq!(refused(&format!("{good}\n{good}\n")), "printed more than one answer");
        assert!(refused(&format!("{good}\nready.\n")).ends_with(": ready."));
        for bad in [
            r#"{"elapsed_ns": [1.5], "bytes": 1}"#,
            r#"{"elapsed_ns": [-1], "bytes": 1}"#,
            r#"{"elapsed_ns": [1]}"#,
            r#"[1]"#,
        ] {
            assert!(refused(bad).contains("not an answer"), "{bad}");
        }
    }

    fn judged(answer: &Answer, table: &Table, process_s: f64) -> Option<String> {
        judge(answer, table, process_s).err()
    }

    fn answer(elapsed_ns: &[u64], bytes: u64, sum: Option<u64>) -> Answer {
        Answer { elapsed_ns: elapsed_ns.to_vec(), bytes, sum }
    }

    #[test]
    fn an_answer_is_believed_only_where_its_numbers_are_those_that_were_asked_for() {
        let write = table(Task::BytesWrite, 1000, 1);
        let good = answer(&[5000], 1000, None);
        assert_eq!(judged(&good, &write, 0.1), None);
        assert_eq!(
            judged(&answer(&[5000, 1], 1000, None), &write, 0.1).unwrap(),
            "reports 2 timings, not 1"
        );
        assert_eq!(
            judged(&answer(&[5000], 999, None), &write, 0.1).unwrap(),
            "reports that it wrote 999 bytes instead of 1000"
        );
        let read = table(Task::BytesRead, 1000, 1);
        let sum = read.sum().unwrap();
        assert_eq!(judged(&answer(&[5000], 1000, Some(sum)), &read, 0.1), None);
        assert!(judged(&answer(&[5000], 1000, Some(sum + 1)), &read, 0.1).is_some());
        assert!(judged(&good, &read, 0.1).unwrap().contains("the sum of the bytes"));
        let lines = table(Task::Lines, 64, 10);
        assert_eq!(judged(&answer(&[5000], 640, None), &lines, 0.1), None);
    }

    #[test]
    fn times_that_cannot_be_are_not_believed() {
        let save = table(Task::Save, 500, 2);
        let of = |elapsed_ns: [u64; 2], process_s| {
            judged(&answer(&elapsed_ns, 500, None), &save, process_s)
        };
        assert_eq!(of([500_000_000, 500_000_000], 1.0), None);
        assert_eq!(
            of([500_000_000, 500_000_000], 0.2).unwrap(),
            "reports that it took 1.00 s, but its process lived 200 ms"
        );
        assert!(of([0, 1000], 0.2).is_some());
        let of_all = table(Task::BytesWrite, 256_000_000, 1);
        assert_eq!(
            judged(&answer(&[1], 256_000_000, None), &of_all, 1.0).unwrap(),
            "reports that 256 MB took 1 ns, faster than any memory"
        );
        assert!(judged(&answer(&[u64::MAX, u64::MAX], 500, None), &save, 1e6).is_some());
    }

    #[test]
    fn every_answer_fits_what_is_read_of_a_program() {
        for count in [1, 1000, 1_000_000] {
            let table = table(Task::Save, 500, count);
            let timings = vec![u64::MAX.to_string(); count as usize].join(", ");
            let line = format!(
                r#"{{"elapsed_ns": [{timings}], "bytes": {}, "sum": {}}}"#,
                u64::MAX,
                u64::MAX
            );
            assert!(line.len() <= bytes_max(&table));
        }
    }

    proptest! {
        #[test]
        fn any_output_is_an_answer_or_one_short_line(stdout in any::<String>()) {
            if let Err(because) = parse(&stdout) {
                prop_assert_eq!(because.lines().count(), 1);
                prop_assert!(because.chars().count() < 110);
            }
        }

        #[test]
        fn a_time_up_to_its_processs_is_believed(
            elapsed_ns in prop::collection::vec(1_000..1_000_000_000_u64, 1..20),
            more_s in 0.0..10.0_f64,
        ) {
            let count = elapsed_ns.len() as u64;
            let answer = Answer { elapsed_ns, bytes: 500, sum: None };
            let process_s = answer.elapsed_s() + more_s;
            prop_assert!(judge(&answer, &table(Task::Save, 500, count), process_s).is_ok());
        }
    }
}
