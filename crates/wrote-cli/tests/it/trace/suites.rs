//! Tests of the crash tests in `docs/ci.md`, in the test frameworks of other languages. Each passes
//! as printed, and fails with the smallest state once its flush is removed. A crash test also fails
//! if its save or check does not run in the child process.

use super::installed;
use fixtures::{Finished, finish, folder, or_skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../../docs/ci.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the page's code block in a language, and the file name on its first line.
fn example(language: &str) -> (&'static str, &'static str) {
    let block = PAGE.split_once(&format!("\n```{language}\n")).unwrap().1;
    let block = block.split_once("\n```\n").unwrap().0;
    let (name, _) = block.split_once('\n').unwrap();
    (name.trim_start_matches(['/', '#', ' ']), block)
}

/// Runs the example in a language in `place`, once unchanged and once without its `flush`.
fn both(place: &Path, language: &str, flush: &str, command: &[&str]) -> [Finished; 2] {
    let (name, block) = example(language);
    assert!(block.contains(flush), "{block}");
    [block.to_owned(), block.replace(flush, "")].map(|text| run(place, name, &text, command))
}

/// Runs a command in `place`, with this text in a file of this name.
fn run(place: &Path, name: &str, text: &str, command: &[&str]) -> Finished {
    let (file, temporary) = (place.join(name), place.join("tmp"));
    fs::create_dir_all(&temporary).unwrap();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    let mut run = Command::new(command[0]);
    run.args(&command[1..]).current_dir(place);
    run.env("WROTE", env!("CARGO_BIN_EXE_wrote")).env("TMPDIR", &temporary);
    run.env_remove("WROTE_CRASH").env_remove("PYTEST_ADDOPTS");
    finish(run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Asserts that a test has failed, and that its output contains each of these reasons.
fn is_refused(finished: &Finished, reasons: &[&str]) {
    assert_ne!(finished.code(), Some(0), "{finished:?}");
    let said = finished.stdout.clone() + &finished.stderr;
    reasons.iter().for_each(|reason| assert!(said.contains(reason), "{reason}: {finished:?}"));
}

const NO_SAVE: &str = "the child did not reach the end of the save:";
const NO_CHECK: &str = "the child did not reach the end of the check:";

/// Asserts that the first run passes, and that the second names the lost write, with its line if
/// the language has line numbers.
fn judge([good, bad]: [Finished; 2], language: &str, write: Option<&str>) {
    assert_eq!(good.code(), Some(0), "{good:?}");
    assert_ne!(bad.code(), Some(0), "{bad:?}");
    let said = bad.stdout.clone() + &bad.stderr;
    let block = example(language).1;
    let line = write.and_then(|write| block.lines().position(|line| line.contains(write)));
    assert_eq!(line.is_some(), write.is_some());
    let told = match line {
        Some(line) => format!(":{})", line + 1),
        None => String::new(),
    };
    // Reports may break lines.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let lost = words.split_once("lost a write of 3 bytes to settings");
    let lost = lost.unwrap_or_else(|| panic!("{bad:?}")).1.split_once(" kept ").unwrap().0;
    assert!(lost.contains(&told), "{told}: {bad:?}");
    assert!(words.contains("command wrote trace crash "), "{bad:?}");
}

/// Creates a crate that depends on the helper.
fn crate_in(place: &Path) {
    let helper = root().join("bindings/rust");
    let manifest = format!(
        "[package]\nname = \"settings\"\nedition = \"2021\"\n[workspace]\n[dev-dependencies]\n\
         wrote-crash = {{ path = {helper:?} }}\n[profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    fs::create_dir(place.join("src")).unwrap();
    fs::write(place.join("src/lib.rs"), "").unwrap();
    fs::write(place.join("Cargo.toml"), manifest).unwrap();
}

const CARGO: [&str; 7] =
    ["cargo", "test", "--offline", "--test", "crash", "--target-dir", "target"];

#[test]
fn the_crash_test_of_the_page_runs_in_cargo_test() {
    let place = folder();
    crate_in(place.path());
    let flush = "    file.sync_all()?;\n";
    judge(both(place.path(), "rust", flush, &CARGO), "rust", Some("file.write_all("));
}

#[test]
fn a_test_that_the_child_does_not_run_fails_in_cargo_test() {
    let place = folder();
    crate_in(place.path());
    let tests = "use std::path::Path;\n\
        fn no(_: &Path) { panic!(\"no\") }\n\
        #[test] fn save() { if std::env::var(\"WROTE_CRASH\").is_err() \
            { wrote_crash::test(no, |_| ()) } }\n\
        #[test] fn check() { wrote_crash::test(|_| (), |_| std::process::exit(0)) }\n\
        #[test] fn twice() { wrote_crash::test(|_| (), |_| ()); wrote_crash::test(no, no) }\n";
    let finished = run(place.path(), "tests/crash.rs", tests, &CARGO);
    is_refused(&finished, &[NO_SAVE, NO_CHECK, "a test can have one crash test", "3 failed"]);
}

/// Copies the module of the Python package to `place`, without its library.
fn pytest_in(place: &Path) -> Result<(), &'static str> {
    let has_pytest = Command::new("python3").args(["-c", "import pytest"]).output();
    let helper = root().join("bindings/python/python/wrote/testing.py");
    fs::copy(helper, place.join("testing.py")).unwrap();
    match has_pytest {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("pytest is not installed"),
    }
}

const PYTEST: [&str; 7] = ["python3", "-m", "pytest", "-p", "no:cacheprovider", "-p", "testing"];

#[test]
fn the_crash_test_of_the_page_runs_in_pytest() {
    let place = folder();
    or_skip!(pytest_in(place.path()));
    let flush = "        file.flush()\n        os.fsync(file.fileno())\n";
    judge(both(place.path(), "python", flush, &PYTEST), "python", Some("with open(path"));
}

#[test]
fn a_test_that_the_child_does_not_run_fails_in_pytest() {
    let place = folder();
    or_skip!(pytest_in(place.path()));
    // An option of the test run also applies in the child process.
    let option = "import pytest\n\
        def pytest_addoption(parser):\n    parser.addoption('--slow', action='store_true')\n\
        @pytest.fixture\n\
        def slow(request):\n    request.config.getoption('slow') or pytest.skip()\n";
    fs::write(place.path().join("conftest.py"), option).unwrap();
    let tests = "import os, pytest\n\
        def fine(folder): pass\n\
        def no(folder): raise ValueError('no')\n\
        @pytest.mark.skipif('WROTE_CRASH' in os.environ, reason='of the child')\n\
        def test_save(crash): crash(no, fine)\n\
        def test_twice(crash): crash(fine, fine); crash(no, no)\n\
        def test_slow(slow, crash): crash(fine, fine)\n\
        def test_slow_save(slow, crash): crash(no, fine)\n";
    let command = [&PYTEST[..], &["--slow", "test_crash.py"]].concat();
    let finished = run(place.path(), "test_crash.py", tests, &command);
    is_refused(&finished, &[NO_SAVE, "crash() is called twice", "3 failed, 1 passed"]);
}

/// Installs the parts of the package that the helper needs.
fn package_in(place: &Path) {
    let package = place.join("node_modules/wrote");
    fs::create_dir_all(package.join("lib")).unwrap();
    for name in ["package.json", "lib/test.js"] {
        fs::copy(root().join("bindings/node").join(name), package.join(name)).unwrap();
    }
}

#[test]
fn the_crash_test_of_the_page_runs_in_node() {
    or_skip!(installed("node"));
    let place = folder();
    package_in(place.path());
    let flush = ", { flush: true }";
    judge(both(place.path(), "js", flush, &["node", "--test"]), "js", None);
}

#[test]
fn a_test_that_the_child_does_not_run_fails_in_node() {
    or_skip!(installed("node"));
    let place = folder();
    package_in(place.path());
    let test = |text: &str| {
        let text = "import { crash } from 'wrote/test'\nimport { test } from 'node:test'\n\
            const fine = () => {}, no = () => { throw 1 }, never = () => new Promise(fine)\n"
            .to_owned()
            + text;
        run(place.path(), "a.test.mjs", &text, &["node", "--test"])
    };
    is_refused(&test("test('outer', async () => { await crash('x', no, no) })"), &[NO_SAVE]);
    is_refused(&test("crash('x', never, fine)"), &[NO_SAVE]);
    is_refused(&test("crash('x', fine, never)"), &["ended with exit code 13"]);
    is_refused(&test("crash('x', fine, () => process.exit(0))"), &[NO_CHECK]);
    let twice = test("crash('x', fine, fine)\ncrash('x', no, no)");
    is_refused(&twice, &["crash(): two tests have the name x"]);
    let foreign = test("globalThis.it = fine\ncrash('x', fine, fine)");
    is_refused(&foreign, &["crash() needs node --test"]);
}

/// Creates a module that depends on the helper.
fn module_in(place: &Path) {
    let helper = root().join("bindings/go");
    let module = format!(
        "module settings\n\ngo 1.21\n\nrequire wrote.example/go v0.0.0\n\n\
         replace wrote.example/go => {helper:?}\n"
    );
    fs::write(place.join("go.mod"), module).unwrap();
}

const GO: [&str; 6] = ["go", "test", "-count=1", "-gcflags=-dwarf=true", "-ldflags=-w=0", "./..."];

#[test]
fn the_crash_test_of_the_page_runs_in_go() {
    or_skip!(installed("go"));
    let place = folder();
    module_in(place.path());
    judge(both(place.path(), "go", "\tfile.Sync()\n", &GO), "go", Some("file.WriteString("));
}

#[test]
fn a_test_that_the_child_does_not_run_fails_in_go() {
    or_skip!(installed("go"));
    let place = folder();
    module_in(place.path());
    let tests = "package settings\n\
        import (\"errors\"; \"testing\"; \"wrote.example/go/crash\")\n\
        func no(string) error { return errors.New(\"no\") }\n\
        func fine(string) error { return nil }\n\
        func TestBoth(t *testing.T) {\n\
            crash.Test(t, t.TempDir(), fine, fine)\n\
            t.Run(\"save\", func(t *testing.T) { crash.Test(t, t.TempDir(), no, no) })\n\
        }\n\
        func TestCheck(t *testing.T) {\n\
            skip := func(string) error { t.Skip(); return nil }\n\
            crash.Test(t, t.TempDir(), fine, skip)\n\
        }\n\
        func TestTwice(t *testing.T) {\n\
            crash.Test(t, t.TempDir(), fine, fine)\n\
            crash.Test(t, t.TempDir(), no, no)\n\
        }\n";
    let finished = run(place.path(), "crash_test.go", tests, &GO);
    let failed = ["TestBoth/save", "TestCheck", "TestTwice"];
    let failed = failed.map(|test| format!("--- FAIL: {test} "));
    is_refused(&finished, &failed.each_ref().map(String::as_str));
    is_refused(&finished, &[NO_SAVE, NO_CHECK, "crash.Test is called twice in this test"]);
}

#[test]
fn a_helper_without_the_program_or_tracing_fails_clearly_unless_asked_to_skip() {
    or_skip!(installed("node"));
    let place = folder();
    let script = "const { crash } = require(process.env.HELPER)\n\
        crash('nothing is saved', () => {}, () => {})\n";
    fs::write(place.path().join("a.test.js"), script).unwrap();
    // A program that replaces `wrote`, and behaves as if the kernel refused tracing.
    let refuses = place.path().join("refuses");
    fs::write(&refuses, "#!/bin/sh\necho ptrace is refused >&2; exit 125\n").unwrap();
    let mut make = Command::new("chmod");
    finish(make.arg("+x").arg(&refuses));
    let run = |program: &Path, crash: &str| {
        let mut node = Command::new("node");
        node.arg("--test").current_dir(place.path()).env("WROTE", program);
        node.env("HELPER", root().join("bindings/node/lib/test.js")).env("WROTE_CRASH", crash);
        finish(node.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let missing = run(Path::new("/nonexistent/wrote"), "");
    assert_eq!(missing.code(), Some(1), "{missing:?}");
    assert!(missing.stdout.contains("install wrote, or set WROTE to its path"), "{missing:?}");
    let refused = run(&refuses, "");
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    assert!(refused.stdout.contains("ptrace is refused"), "{refused:?}");
    let skipped = run(&refuses, "skip");
    assert_eq!(skipped.code(), Some(0), "{skipped:?}");
    assert!(skipped.stdout.contains("# SKIP ptrace is refused"), "{skipped:?}");
}

#[test]
fn the_script_of_the_action_keeps_reports_and_the_verdict() {
    let place = folder();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), "old").unwrap();
    let script = root().join("bindings/github/crash-test.sh");
    let (reports, summary) = (place.path().join("reports"), place.path().join("summary"));
    let run = |save: &str, check: &str| {
        let mut command = Command::new(&script);
        command.current_dir(place.path()).env("WROTE", env!("CARGO_BIN_EXE_wrote"));
        command.env("COMMAND", save).env("CHECK", check).env("FOLDER", "data");
        command.env("REPORTS", &reports).env("GITHUB_STEP_SUMMARY", &summary);
        finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let save = "cd data; printf new > t; sync t; mv t a; sync .";
    let good = run(save, "grep -qE 'old|new' DIR/a");
    assert_eq!(good.code(), Some(0), "{good:?}");
    let bad = run("cd data; printf new > t; mv t a", "test -s DIR/a");
    assert_eq!(bad.code(), Some(1), "{bad:?}");
    assert!(bad.stdout.starts_with("::error "), "{bad:?}");
    let names = ["wrote.html", "wrote.sarif", "wrote.txt", "wrote.xml"];
    assert_eq!(fixtures::names(&reports), names);
    assert!(fs::read_to_string(&summary).unwrap().contains("The check fails in crash state "));
    let found = run("cd data; printf new > t; mv t a", "");
    assert_eq!(found.code(), Some(1), "{found:?}");
}
