//! `cargo xtask picture`: takes the pictures for the documents: a benchmark's page next to its
//! text, and the charts of results.

use crate::contests::site::release_wrote;
use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::repository::{root, target};
use lab::tools::run::{HANG, Show, run};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The folder with the results whose charts are shown, and with the program that takes pictures.
const RESULTS: &str = "crates/wrote-cli/tests/pages";
const PICTURES: &str = "docs/pictures";
/// The name shown for the measured folder.
const PATH_SHOWN: &str = "/data";

/// The charts of the benchmark that this program runs: for each, the picture's name and the chart's
/// question.
const OF_NOW: [(&str, &str); 3] = [
    ("ladder", "How fast is each method, and what does an acknowledged write survive?"),
    ("percentiles", "How long do the slowest operations take?"),
    ("histogram", "Latency distribution"),
];

/// The charts of results that are kept for tests: for each, the result's name and the chart's
/// question.
const KEPT: [(&str, &str); 8] = [
    ("peak", "Which size and which method are fastest?"),
    ("rand", "How fast is each method?"),
    ("load", "How does the latency rise with the load, and where does it bend?"),
    ("sustained", "How does the speed hold as more is written?"),
    ("latency", "How long does a save take, with and without sync?"),
    ("langs", "How fast is each method, and what does it survive?"),
    ("compare", "Which rows became faster or slower?"),
    ("trace", "When was each file written, flushed and named?"),
];

/// Measures the disk that contains the build folder, creates the pages, and takes pictures of them.
pub fn make() -> Result<(), Failure> {
    packages::install(&["chromium", "node"])?;
    clients::pages(true)?;
    let wrote = release_wrote()?;
    let folder = tempfile::tempdir_in(target()).tried(target().display())?;
    let at = |name: &str| folder.path().join(name);
    let mut bench = Command::new(&wrote);
    bench.arg("bench").arg(folder.path()).arg("--html").arg(at("now.html"));
    bench.env("COLUMNS", "80").env("LANG", "C.UTF-8");
    let measured = run(&mut bench, HANG, Show::Quiet)?.success("wrote bench")?;
    let page = std::fs::read_to_string(at("now.html")).tried("the page of wrote bench")?;
    for (name, text) in [("now.txt", measured.stdout), ("now.html", page)] {
        let text = text.replace(&at("now.html").display().to_string(), "report.html");
        let text = text.replace(&folder.path().display().to_string(), PATH_SHOWN);
        let text = text.replace(&wrote.display().to_string(), "wrote");
        std::fs::write(at(name), text).tried(name)?;
    }
    for (name, _) in KEPT {
        let result = root().join(RESULTS).join(format!("results/{name}.json"));
        let mut report = Command::new(&wrote);
        report.arg("report").arg(result).arg("-o").arg(at(&format!("{name}.html")));
        run(&mut report, HANG, Show::Quiet)?.success("wrote report")?;
    }
    let mut node = Command::new("node");
    node.arg(root().join(RESULTS).join("pictures.mjs"));
    node.args([std::path::absolute(target().join("pages")).tried("target/pages")?]);
    node.arg(at("now.txt")).arg(at("now.html")).arg(picture("report"));
    for (name, question) in OF_NOW {
        chart(&mut node, &at("now.html"), name, question);
    }
    for (name, question) in KEPT {
        chart(&mut node, &at(&format!("{name}.html")), name, question);
    }
    run(&mut node, HANG, Show::Live)?.success("node").map(drop)
}

fn chart(node: &mut Command, page: &Path, name: &str, question: &str) {
    node.arg(page).arg(question).arg(picture(&format!("report-{name}")));
}

fn picture(name: &str) -> OsString {
    root().join(PICTURES).join(format!("{name}.png")).into()
}
