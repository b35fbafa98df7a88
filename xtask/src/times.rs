//! The time of each step of the suite: recorded by each run, measured in a fresh clone, and kept in
//! `xtask/times.md`.

use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The parts of `.ci/run`, in order, with the minutes allowed for each on two idle cores.
const PARTS: [(&str, u64); 3] = [("check", 6), ("test", 10), ("short", 9)];
/// The minutes allowed for one step there.
const STEP_MAX: u64 = 4;
/// Steps below this number of seconds are left out of the page.
const SHOWN_MIN_S: f64 = 5.0;
/// The page, and the marks around its table.
const PAGE: &str = "xtask/times.md";
const MARKS: [&str; 2] = ["<!-- times:begin -->\n", "<!-- times:end -->"];

/// Time `.ci/run` in a fresh clone of the last commit, by step.
#[derive(clap::Args)]
pub struct Arguments {
    /// Keep this number of processors busy during the run
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: usize,
    /// Write the times into xtask/times.md
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
    let finished = beside(arguments.busy, || {
        let mut command = Command::new("bash");
        command.arg(".ci/run").current_dir(&clone);
        // Variables that cargo set for this program.
        command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_MANIFEST_DIR");
        run(&mut command, 4 * HANG, Show::Live)
    })?;
    println!("\n.ci/run: {} s", begin.elapsed().as_secs());
    show(&clone.join("target"), arguments)?;
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
        let page = root().join(PAGE);
        let text = fs::read_to_string(&page).tried(PAGE)?;
        fs::write(&page, written(&text, &steps, arguments.busy > 0)?).tried(PAGE)?;
    }
    Ok(())
}

/// Runs `action` while `count` threads compute.
fn beside<T>(count: usize, action: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let mut sum = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    sum = std::hint::black_box(sum.wrapping_add(1));
                }
            });
        }
        let done = action();
        is_over.store(true, Ordering::Relaxed);
        done
    })
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

/// The name of a step without its seed, which differs from run to run.
fn plain(name: &str) -> String {
    let end = [" from ", ", seed "].iter().filter_map(|word| name.find(word)).min();
    name[..end.unwrap_or(name.len())].to_owned()
}

/// The seconds of a part. The programs of tests are parts of the step `tests`.
fn sum_s(steps: &[(String, f64)]) -> f64 {
    let whole = steps.iter().filter(|(name, _)| !name.starts_with("tests: "));
    whole.map(|(_, seconds)| seconds).sum()
}

/// A row of the page's table: part, step (`all` for the whole part), seconds idle and busy.
#[derive(Clone, Debug, PartialEq)]
struct Timed {
    part: String,
    step: String,
    seconds: [Option<f64>; 2],
}

const ALL: &str = "all";

/// Puts the steps of a run into the table of the page: replaces the run's own column, and keeps the
/// other.
fn written(text: &str, steps: &Steps, is_busy: bool) -> Result<String, Failure> {
    let (before, old, after) = parts(text)?;
    let old = rows(old);
    let mut new = Vec::new();
    for (part, _) in PARTS {
        let Some(steps) = steps.get(part) else {
            new.extend(old.iter().filter(|row| row.part == part).cloned());
            continue;
        };
        let whole = (ALL.to_owned(), sum_s(steps));
        let shown = steps.iter().filter(|(_, seconds)| *seconds >= SHOWN_MIN_S).cloned();
        for (step, now_s) in std::iter::once(whole).chain(shown) {
            let known = old.iter().find(|row| (&*row.part, &*row.step) == (part, &*step));
            let mut seconds = known.map_or([None; 2], |row| row.seconds);
            seconds[usize::from(is_busy)] = Some(now_s);
            new.push(Timed { part: part.to_owned(), step, seconds });
        }
    }
    let mut table = "| part | step | idle, s | busy, s |\n|---|---|---|---|\n".to_owned();
    let shown = |seconds: Option<f64>| seconds.map_or(String::new(), |s| format!("{s:.0}"));
    for Timed { part, step, seconds: [idle, busy] } in new {
        let _ = writeln!(table, "| {part} | {step} | {} | {} |", shown(idle), shown(busy));
    }
    Ok([before, &table, after].concat())
}

fn parts(text: &str) -> Result<(&str, &str, &str), Failure> {
    let [begin, end] = MARKS.map(|mark| text.find(mark));
    let (Some(begin), Some(end)) = (begin, end) else {
        return Err(Failure::Failed(format!("{PAGE}: no lines {MARKS:?}")));
    };
    let begin = begin + MARKS[0].len();
    Ok((&text[..begin], &text[begin..end], &text[end..]))
}

fn rows(table: &str) -> Vec<Timed> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [part, step, idle, busy] = cells[..] else { return None };
        let seconds = [idle, busy].map(|cell| cell.parse().ok());
        Some(Timed { part: part.to_owned(), step: step.to_owned(), seconds })
    };
    table.lines().skip(2).filter_map(row).collect()
}

/// Fails if a part or a step took more than its share of an idle machine, by the page.
pub fn check() -> Result<(), Failure> {
    let text = fs::read_to_string(root().join(PAGE)).tried(PAGE)?;
    match over(parts(&text)?.1).as_slice() {
        [] => Ok(()),
        faults => Err(Failure::Failed(faults.join("; "))),
    }
}

fn over(table: &str) -> Vec<String> {
    let share_s = |row: &Timed| match PARTS.iter().find(|(part, _)| *part == row.part) {
        Some((_, minutes)) if row.step == ALL => minutes * 60,
        // The tests themselves get the time of their part.
        Some((_, minutes)) if row.step == "tests" => minutes * 60,
        _ => STEP_MAX * 60,
    };
    let rows = rows(table);
    let over = rows.iter().filter_map(|row| {
        let idle_s = row.seconds[0].filter(|idle_s| *idle_s > share_s(row) as f64)?;
        let (part, step) = (&row.part, &row.step);
        Some(format!("{part}, {step}: {idle_s:.0} s, at most {} s", share_s(row)))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n<!-- times:begin -->\n| part | step | idle, s | busy, s |\n\
        |---|---|---|---|\n| check | all | 9 | 9 |\n| test | all | 500 | 900 |\n\
        | test | gone | 6 | 7 |\n\
        <!-- times:end -->\nrest\n";

    fn steps() -> Steps {
        let steps = [("tests", 300.4), ("tests: wrote: it", 100.0), ("short", 1.0)];
        let steps = steps.map(|(name, seconds)| (name.to_owned(), seconds)).to_vec();
        Steps::from([("test".to_owned(), steps)])
    }

    #[test]
    fn a_run_writes_its_own_column_and_keeps_the_other() {
        let page = written(TEXT, &steps(), false).expect("marks");
        assert!(page.starts_with("# A\n<!-- times:begin -->\n| part |"), "{page}");
        assert!(page.ends_with("<!-- times:end -->\nrest\n"), "{page}");
        assert!(page.contains("| test | all | 301 | 900 |\n| test | tests | 300 |  |"), "{page}");
        assert!(!page.contains("gone") && page.contains("| check | all | 9 | 9 |"), "{page}");
        let page = written(&page, &steps(), true).expect("marks");
        assert!(page.contains("| test | all | 301 | 301 |"), "{page}");
        assert!(written("# A\n", &steps(), true).is_err());
    }

    #[test]
    fn a_step_over_its_share_is_found() {
        let table = "| part | step | idle, s | busy, s |\n|---|---|---|---|\n\
            | test | all | 700 | 900 |\n| test | tests | 590 | 900 |\n\
            | short | lab sim | 241 | |\n| check | doc | 200 | 2000 |\n";
        let faults = ["test, all: 700 s, at most 600 s", "short, lab sim: 241 s, at most 240 s"];
        assert_eq!(over(table), faults);
    }

    #[test]
    fn a_seed_is_no_part_of_a_steps_name() {
        assert_eq!(plain("lab sim: 5000 seeds from 12345"), "lab sim: 5000 seeds");
        assert_eq!(plain("lab kill: 10 times, seed 7"), "lab kill: 10 times");
        assert_eq!(plain("doc"), "doc");
    }
}
