//! Tests of pages in a browser, headless Chromium.

use fixtures::{Running, folder};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A time limit that only a hanging browser reaches.
const HANG: Duration = Duration::from_secs(900);

/// Returns the folder with the script that checks pages, and with the results.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}

/// Returns the program in `PATH`, or why there is none.
fn program(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|program| program.is_file()).ok_or(format!("there is no program {name}"))
}

/// Returns the folder of the modules that `cargo xtask test` installs, or why there is none.
fn modules() -> Result<PathBuf, String> {
    let program = std::env::current_exe().expect("a program has a path");
    let folder = program.ancestors().nth(3).expect("cargo built the program").join("pages");
    match folder.join("node_modules/playwright-core").is_dir() {
        true => Ok(folder),
        false => Err(format!("{} is missing: cargo xtask test installs it", folder.display())),
    }
}

fn make(page: &Path, results: &[PathBuf]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wrote"));
    command.arg("report").args(results).arg("-o").arg(page).stdin(Stdio::null());
    let made = command.output().expect("wrote can be run");
    assert!(made.status.success(), "{results:?}: {made:?}");
}

/// Returns a result that this program has just measured, with histograms.
fn measured(folder: &Path) -> PathBuf {
    let path = folder.join("measured.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wrote"));
    command.arg("bench").arg(folder).args(["--only", "small", "--runs", "2", "--size", "1MB"]);
    command.args(["--format", "json", "-o"]).arg(&path).stdin(Stdio::null());
    let made = command.output().expect("wrote can be run");
    assert!(made.status.success(), "{made:?}");
    path
}

/// The programs that examine a page.
struct Eyes {
    chromium: PathBuf,
    node: PathBuf,
    modules: PathBuf,
}

impl Eyes {
    fn find() -> Result<Eyes, String> {
        Ok(Eyes { chromium: program("chromium")?, node: program("node")?, modules: modules()? })
    }

    /// Examines pages, each with a name and its results: at every width, in light and dark mode,
    /// without the script, and on paper.
    fn look(&self, folder: &Path, pages: &[(&str, Vec<PathBuf>)]) {
        let mut look = Command::new(&self.node);
        look.arg(here().join("look.mjs")).args([&self.modules, &self.chromium]).arg(folder);
        for (name, results) in pages {
            let page = folder.join(format!("{name}.html"));
            make(&page, results);
            look.arg(page);
        }
        look.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let looked = Running::start(&mut look).within(HANG).finish();
        assert_eq!(looked.code(), Some(0), "{}\n{}", looked.stdout, looked.stderr);
    }

    /// Examines a page for each of these results.
    fn look_at(&self, names: &[&'static str]) {
        let pages: Vec<_> = names.iter().map(|name| (*name, vec![result(name)])).collect();
        self.look(folder().path(), &pages);
    }
}

fn result(name: &str) -> PathBuf {
    here().join(format!("results/{name}.json"))
}

#[test]
fn the_page_of_a_default_run_is_whole_in_a_browser() {
    fixtures::or_skip!(Eyes::find()).look_at(&["ladder"]);
}

#[test]
#[ignore = "nightly"]
fn pages_of_ways_and_messages_are_whole_in_a_browser() {
    fixtures::or_skip!(Eyes::find()).look_at(&["append", "ways"]);
}

#[test]
#[ignore = "nightly"]
fn pages_of_grids_loads_saves_and_long_writes_are_whole_in_a_browser() {
    let eyes = fixtures::or_skip!(Eyes::find());
    eyes.look_at(&["peak", "rand", "load", "latency", "sustained"]);
}

#[test]
#[ignore = "nightly"]
fn a_page_with_histograms_is_whole_in_a_browser() {
    let eyes = fixtures::or_skip!(Eyes::find());
    let folder = folder();
    eyes.look(folder.path(), &[("measured", vec![measured(folder.path())])]);
}

#[test]
#[ignore = "nightly"]
fn pages_of_languages_comparisons_traces_and_several_results_are_whole_in_a_browser() {
    let eyes = fixtures::or_skip!(Eyes::find());
    let fio = here().join("../../../wrote-jobs/src/import/samples/directions.json");
    let pages = [
        ("langs", vec![result("langs")]),
        ("compare", vec![result("compare")]),
        ("doctor", vec![result("doctor")]),
        ("trace", vec![result("trace")]),
        ("fio", vec![fio]),
        ("over-time", vec![result("small1"), result("small2")]),
    ];
    eyes.look(folder().path(), &pages);
}
