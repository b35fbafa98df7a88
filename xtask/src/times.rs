//! The time of each step of the suite: recorded by each run, measured in a fresh clone, and kept in
//! `times.txt`.

use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The parts of `.ci/run`, in order, with the minutes allowed for each on two idle cores.
const PARTS: [(&str, u64); 3] = [("check", 6), ("test", 10), ("short", 9)];
/// The minutes allowed for one step there.
const STEP_MAX: u64 = 4;
/// Steps below this number of seconds are left out of the page.
const SHOWN_MIN_S: f64 = 5.0;
/// The page, and its first lines.
const PAGE: &str = "xtask/src/times.txt";
const HEAD: &str = "# Seconds of each part and step of `.ci/run` on two idle cores, without steps of \
    less than 5.\n# `cargo xtask times --write` writes them, and `cargo xtask check` limits them.\n";
/// Where `.ci/run` makes a copy of the tree, and runs everything.
const UNPACKED: &str = "target/unpacked here/wrote-main";
/// The name of a whole part.
const ALL: &str = "all";

/// Time `.ci/run` in a fresh clone of the last commit, by step.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the times into xtask/src/times.txt
    #[arg(long)]
    write: bool,
    /// Run nothing; take the times that runs with this target folder recorded
    #[arg(long, value_name = "TARGET")]
    from: Option<PathBuf>,
}

/// Runs `.ci/run` in a clone, unless it has run already, and prints the time of each step.
pub fn times(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(target) = &arguments.from {
        return show(target, arguments);
    }
    // On a disk: /tmp may be memory.
    let folder = tempfile::tempdir_in(target()).tried(target().display())?;
    let clone = folder.path().join("wrote");
    let mut git = Command::new("git");
    output(git.arg("clone").arg("-q").arg(root()).arg(&clone), "git clone")?;
    let begin = Instant::now();
    let mut command = Command::new("bash");
    command.arg(".ci/run").current_dir(&clone);
    // Variables that cargo set for this program.
    command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_MANIFEST_DIR");
    let finished = run(&mut command, 4 * HANG, Show::Live)?;
    println!("\n.ci/run: {} s", begin.elapsed().as_secs());
    show(&clone.join(UNPACKED).join("target"), arguments)?;
    finished.success(".ci/run").map(drop)
}

/// Prints the times that runs with this target folder recorded, and writes them where asked.
fn show(target: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let steps = recorded(target)?;
    for (part, steps) in &steps {
        println!("\n{part}: {:.0} s", sum_s(steps));
        steps.iter().for_each(|(name, seconds)| println!("{seconds:>7.1} s  {name}"));
    }
    if arguments.write {
        fs::write(root().join(PAGE), lines(&steps)).tried(PAGE)?;
    }
    Ok(())
}

/// The steps of each part, longest first, with their seconds.
type Steps = BTreeMap<String, Vec<(String, f64)>>;

/// Records the time of each step as the part `name` of the suite, and finishes.
pub fn finish(report: Report, name: &str) -> Result<(), Failure> {
    record(name, report.steps())?;
    report.finish()
}

/// Keeps the times of a part's steps in the target folder.
fn record(part: &str, steps: &[(String, Duration)]) -> Result<(), Failure> {
    let path = file(&target(), part);
    let line = |(name, time): &(String, Duration)| format!("{:.1}\t{name}\n", time.as_secs_f64());
    let lines: String = steps.iter().map(line).collect();
    fs::create_dir_all(target()).and_then(|()| fs::write(&path, lines)).tried(path.display())
}

fn file(target: &Path, part: &str) -> PathBuf {
    target.join(format!("xtask-{part}-times"))
}

fn recorded(target: &Path) -> Result<Steps, Failure> {
    let mut all = Steps::new();
    for (part, _) in PARTS {
        // A part that did not run has no file.
        let Ok(text) = fs::read_to_string(file(target, part)) else { continue };
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let mut steps: Vec<(String, f64)> = lines
            .filter_map(|(seconds, name)| Some((plain(name), seconds.parse().ok()?)))
            .collect();
        steps.sort_by(|one, other| other.1.total_cmp(&one.1));
        all.insert(part.to_owned(), steps);
    }
    match all.is_empty() {
        true => Err(Failure::Failed(format!("{}: no recorded times", target.display()))),
        false => Ok(all),
    }
}

/// Returns the name of a step without its seed, which differs from run to run.
fn plain(name: &str) -> String {
    let end = [" from ", ", seed "].iter().filter_map(|word| name.find(word)).min();
    name[..end.unwrap_or(name.len())].to_owned()
}

/// Returns the seconds of a part. The programs of tests are parts of the step `tests`.
fn sum_s(steps: &[(String, f64)]) -> f64 {
    let whole = steps.iter().filter(|(name, _)| !name.starts_with("tests: "));
    whole.map(|(_, seconds)| seconds).sum()
}

/// Returns the page's text of these steps: a line "part\tstep\tseconds" for each, and for the sum
/// of each part.
fn lines(steps: &Steps) -> String {
    let mut lines = HEAD.to_owned();
    for (part, steps) in PARTS.iter().filter_map(|(part, _)| Some((part, steps.get(*part)?))) {
        let _ = writeln!(lines, "{part}\t{ALL}\t{:.0}", sum_s(steps));
        for (step, seconds) in steps.iter().filter(|(_, seconds)| *seconds >= SHOWN_MIN_S) {
            let _ = writeln!(lines, "{part}\t{step}\t{seconds:.0}");
        }
    }
    lines
}

/// Fails if a part or a step took more than its share of an idle machine, by the page.
pub fn check() -> Result<(), Failure> {
    match over(include_str!("times.txt")).as_slice() {
        [] => Ok(()),
        faults => Err(Failure::Failed(faults.join("; "))),
    }
}

fn over(page: &str) -> Vec<String> {
    let over = page.lines().filter_map(|line| {
        let [part, step, seconds] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        // The tests themselves get the time of their part.
        let is_whole = step == ALL || step == "tests";
        let minutes = PARTS.iter().find(|(name, _)| is_whole && *name == part);
        let share_s = minutes.map_or(STEP_MAX, |(_, minutes)| *minutes) * 60;
        let took_s = seconds.parse().ok().filter(|seconds: &u64| *seconds > share_s)?;
        Some(format!("{part}, {step}: {took_s} s, at most {share_s} s"))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_each_part_and_its_longer_steps_and_a_step_over_its_share_is_found() {
        let steps = |steps: &[(&str, f64)]| {
            steps.iter().map(|(name, seconds)| (plain(name), *seconds)).collect::<Vec<_>>()
        };
        let test = steps(&[("tests", 590.4), ("tests: wrote: it", 300.0), ("doc", 100.0)]);
        let short = steps(&[("lab sim: 5000 seeds from 12", 241.0), ("lab kill, seed 7", 1.0)]);
        let page = lines(&Steps::from([("short".to_owned(), short), ("test".to_owned(), test)]));
        assert!(page.contains("test\tall\t690\n") && page.contains("test\tdoc\t100\n"), "{page}");
        assert!(page.contains("short\tlab sim: 5000 seeds\t241\n"), "{page}");
        assert!(!page.contains("kill"), "{page}");
        let faults = [
            "test, all: 690 s, at most 600 s",
            "test, tests: wrote: it: 300 s, at most 240 s",
            "short, lab sim: 5000 seeds: 241 s, at most 240 s",
        ];
        assert_eq!(over(&page), faults);
    }
}
