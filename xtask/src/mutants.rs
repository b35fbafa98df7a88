//! The campaign `mutants`: cargo-mutants puts one small mistake after the other into the code that
//! keeps the promises about writes, and the tests of its crate must notice each.
//!
//! `lab/mutants.txt` lists the mistakes that may stay unnoticed, each with its reason. Fails on
//! others, and on listed ones that are noticed or gone.

use crate::tools::{self, CARGO_MUTANTS};
use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{root, target};
use lab::tools::run::{Show, run};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

/// The survivors that are known: `FILE: MISTAKE -- REASON`.
const KNOWN: &str = "lab/mutants.txt";
/// Each crate, its files below `src`, and the arguments of `cargo test`: the tests of these files,
/// which notice nearly every mistake within a second, and all tests, which get the rest.
const CRATES: [(&str, &str, [&str; 2]); 2] = [
    (
        "wrote",
        "engine/judge.rs file/entry.rs log/claim.rs log/recovery*",
        ["--lib -- engine:: file:: log::claim log::recovery", "--lib --test it --test log"],
    ),
    (
        "wrote-trace",
        "content.rs disk.rs judge.rs names.rs states.rs tree.rs",
        ["--lib -- content:: disk:: judge:: names:: states:: tree:: --skip forgotten", "--lib"],
    ),
];
/// How long one round of tests may take for the mistakes of a crate, each with its build.
const LIMIT: Duration = Duration::from_secs(3 * 60 * 60);

/// Runs the campaign.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    for (package, files, tests) in CRATES {
        report.step(&format!("mutants of {package}"), || {
            let known = std::fs::read_to_string(root().join(KNOWN)).tried(KNOWN)?;
            let survivors = survivors(package, files, tests, install)?;
            let differences = differences(&survivors, &known, package);
            differences.iter().for_each(|line| println!("{line}"));
            match differences.len() {
                0 => Ok(()),
                count => Err(Failure::Failed(format!("{count} mutants differ from {KNOWN}"))),
            }
        })?;
    }
    Ok(())
}

/// Tries every mistake in a copy of the tree; returns the unnoticed ones.
fn survivors(
    package: &str,
    files: &str,
    rounds: [&str; 2],
    install: bool,
) -> Result<BTreeSet<String>, Failure> {
    let program = tools::provide(&CARGO_MUTANTS, install)?;
    let folder = target().join(format!("mutants-of-{package}"));
    let found = folder.join("mutants.out");
    // A round continues with what the one before it left.
    let _ = std::fs::remove_dir_all(&folder);
    for tests in rounds {
        let mut command = Command::new(&program);
        // Dependencies are built once, and a failure needs no smallest example.
        command.env("CARGO_TARGET_DIR", target().join("mutants"));
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.current_dir(root()).args(["mutants", "--package", package, "--iterate"]);
        command.args(files.split(' ').map(|file| format!("--file=crates/{package}/src/{file}")));
        command.arg("--output").arg(&folder).arg("--").args(tests.split(' '));
        let finished = run(&mut command, LIMIT, Show::Live)?;
        // 2: some were missed, 3: the tests of some did not end, which notices them too.
        if !matches!(finished.exit_code, Some(0 | 2 | 3)) {
            finished.success("cargo mutants")?;
        }
        // The next round need not wait for these again.
        std::fs::rename(found.join("timeout.txt"), found.join("previously_caught.txt"))
            .tried(found.display())?;
    }
    let missed = std::fs::read_to_string(found.join("missed.txt")).tried(found.display())?;
    Ok(missed.lines().map(without_place).collect())
}

/// Returns a line `FILE:LINE:COLUMN: MISTAKE` without the place, which moves with each change.
fn without_place(line: &str) -> String {
    let (place, mistake) = line.split_once(": ").unwrap_or((line, ""));
    format!("{}: {mistake}", place.split(':').next().unwrap_or(place))
}

/// Returns the survivors that are not known with a reason, and the known ones that are gone.
fn differences(survivors: &BTreeSet<String>, known: &str, package: &str) -> Vec<String> {
    let own = format!("crates/{package}/");
    let known = known.lines().filter(|line| line.starts_with(&own));
    let known: BTreeSet<&str> = known.filter_map(|line| Some(line.split_once(" -- ")?.0)).collect();
    let new = survivors.iter().filter(|survivor| !known.contains(&***survivor));
    let new = new.map(|survivor| format!("no test notices: {survivor}"));
    let gone = known.iter().filter(|known| !survivors.contains(**known));
    new.chain(gone.map(|gone| format!("remove it from {KNOWN}: {gone}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survivors_need_a_reason_and_a_reason_needs_its_survivor() {
        let lines =
            ["crates/a/src/x.rs:7:5: replace f -> bool with true", "crates/a/src/y.rs:1:2: z"];
        let survivors = lines.map(without_place).into();
        let known = "# Why.\ncrates/a/src/x.rs: replace f -> bool with true -- f only saves time\n\
                     crates/a/src/gone.rs: z -- a reason\ncrates/b/src/x.rs: z -- a reason\n";
        let expected = [
            "no test notices: crates/a/src/y.rs: z",
            "remove it from lab/mutants.txt: crates/a/src/gone.rs: z",
        ];
        assert_eq!(differences(&survivors, known, "a"), expected);
    }
}
