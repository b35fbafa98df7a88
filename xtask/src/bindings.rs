//! `bindings/`, a separate workspace: the library for other languages, tested as its users would
//! use it.

use crate::check::{STRICT, step};
use crate::languages::check_added;
use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages::{provide, require};
use lab::tools::programs::cargo_tests;
use lab::tools::report::{Outcome, Report};
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The document with code that survives a power loss, in each language.
const RECIPES: &str = "docs/safe-writes.md";
/// The manifest of the workspace.
pub const MANIFEST: &str = "bindings/Cargo.toml";

/// Runs the example of each binding's README with an unoptimized build.
pub fn smoke(report: &mut Report) -> Result<(), Failure> {
    report.step("build of the bindings", || {
        let words = ["build", "--locked", "--workspace", "--manifest-path", MANIFEST];
        run(&mut cargo(&words), HANG, Show::Live)?.success("cargo build").map(drop)
    })?;
    report.step("example of libwrote", c)?;
    report.step("example of the Python package", python)?;
    report.step("example of the npm package", node)
}

/// The example in a README, which saves settings and appends to a log.
pub struct Example {
    document: &'static str,
    language: &'static str,
    /// The name of the program's file.
    file: &'static str,
    /// The beginning of the program's output.
    expected: &'static str,
}

/// The example in libwrote's README.
pub const C: Example = Example {
    document: "bindings/c/README.md",
    language: "c",
    file: "save.c",
    expected: "record 0 is durable\n",
};
const GO: Example = Example { language: "go", file: "save.go", ..C };
const JAVA: Example = Example { language: "java", file: "Save.java", ..C };
/// The example in the Python package's README.
pub const PYTHON: Example = Example {
    document: "bindings/python/README.md",
    language: "python",
    file: "example.py",
    expected: "durable: 65 records\n60 b'task 59'\n",
};
const NODE: Example = Example {
    document: "bindings/node/README.md",
    language: "js",
    file: "example.mjs",
    expected: "durable: 65 records\n60 task 59\n",
};

impl Example {
    /// Writes the program, which is the document's first block in its language, into `folder`.
    pub fn put(&self, folder: &Path) -> Result<(), Failure> {
        let Example { document, language, file, .. } = self;
        let text = std::fs::read_to_string(root().join(document)).tried(document)?;
        let block = text.split_once(&format!("```{language}\n"));
        let block = block.and_then(|(_, rest)| rest.split_once("```\n"));
        let none = || Failure::Failed(format!("{document}: no example in {language}"));
        std::fs::write(folder.join(file), block.ok_or_else(none)?.0).tried(file)
    }

    /// Fails unless the program's output and the file that it saved in `folder` are as expected.
    pub fn judge(&self, folder: &Path, said: &str) -> Result<(), Failure> {
        let saved = std::fs::read_to_string(folder.join("settings.ini")).tried("settings.ini")?;
        if said.starts_with(self.expected) && saved == "colour = green\n" {
            return Ok(());
        }
        Err(Failure::Failed(format!("the example printed {said:?} and saved {saved:?}")))
    }

    /// Writes the program into `folder`, and runs it there with `command`.
    fn run(&self, folder: &Path, command: &mut Command) -> Result<(), Failure> {
        self.put(folder)?;
        self.judge(folder, &output(command.current_dir(folder).arg(self.file), "the example")?)
    }
}

/// Runs the example in libwrote's README.
fn c() -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let folder = folder.path();
    // Programs load the library by this name.
    let (library, name) = (libraries("debug").join("libwrote.so"), folder.join("libwrote.so.0"));
    std::fs::copy(&library, &name).tried(library.display())?;
    compile_example(folder, &root().join("bindings/c/include"), folder)?;
    let mut run = Command::new("./save");
    run.current_dir(folder).env("LD_LIBRARY_PATH", folder);
    C.judge(folder, &output(&mut run, "the example")?)
}

/// Builds the example in libwrote's README as `save` in `folder`, with the header and the library
/// from the given folders.
pub fn compile_example(folder: &Path, headers: &Path, libraries: &Path) -> Result<(), Failure> {
    C.put(folder)?;
    let mut cc = Command::new("cc");
    cc.current_dir(folder).args(["-Wall", "-Werror", C.file, "-o", "save", "-I"]).arg(headers);
    output(cc.arg(libraries.join("libwrote.so.0")), "cc").map(drop)
}

/// Runs the example in the Python package's README.
fn python() -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    package(folder.path())?;
    run_python_example(folder.path(), folder.path())?;
    let calls = "replace('a', b'new\\n'), write_stream('s', [b'new\\n']), append('l', [b'new'])";
    let mut python = Command::new("python3");
    try_recipes(
        folder.path(),
        ["python", "recipes.py", calls],
        python.env("PYTHONPATH", folder.path()),
    )
}

/// Runs the code that `docs/safe-writes.md` contains for a language, with the package: writes it
/// into a file, followed by calls.
fn try_recipes(
    folder: &Path,
    [language, file, calls]: [&str; 3],
    command: &mut Command,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(root().join(RECIPES)).tried(RECIPES)?;
    let fence = format!("```{language} wrote\n");
    let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    let mut lines: Vec<&str> = Vec::new();
    for line in blocks.flat_map(str::lines).chain([calls]) {
        if !(line.starts_with("import ") && lines.contains(&line)) {
            lines.push(line);
        }
    }
    std::fs::write(folder.join(file), lines.join("\n")).tried(file)?;
    output(command.current_dir(folder).arg(file), file)?;
    let saved = ["a", "s"].map(|name| std::fs::read(folder.join(name)).unwrap_or_default());
    match saved.iter().all(|saved| saved == b"new\n") && folder.join("l").is_dir() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("{file}: {RECIPES} saved {saved:?}"))),
    }
}

/// Runs the example in the Python package's README in `folder`, with the package from `site`.
pub fn run_python_example(folder: &Path, site: &Path) -> Result<(), Failure> {
    PYTHON.run(folder, Command::new("python3").env("PYTHONPATH", site))
}

/// Builds the Python package in `folder` from its sources and the built library.
fn package(folder: &Path) -> Result<(), Failure> {
    let version = output(Command::new("python3").args(["-c", IS_NEW_ENOUGH]), "python3")?;
    if version.trim() != "True" {
        return Err(Failure::Skipped("python3 is older than 3.11".to_owned()));
    }
    let (from, to) = (root().join("bindings/python/python/wrote"), folder.join("wrote"));
    output(Command::new("cp").arg("-r").arg(&from).arg(&to), "cp")?;
    let library = libraries("debug").join("lib_wrote.so");
    std::fs::copy(&library, to.join("_wrote.abi3.so")).tried(library.display()).map(drop)
}

/// A program that prints whether this Python is new enough for the package.
const IS_NEW_ENOUGH: &str = "import sys; print(sys.version_info >= (3, 11))";

/// Runs the example in the npm package's README.
fn node() -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    npm_package(&folder.path().join("node_modules/wrote"), &libraries("debug"))?;
    run_node_example(folder.path())?;
    let calls = "await replace('a', 'new\\n'); await writeStream('s', ['new\\n']); \
        await append('l', ['new']);";
    try_recipes(folder.path(), ["js", "recipes.mjs", calls], &mut Command::new("node"))
}

/// Runs the example in the npm package's README in `folder`, where the package is installed.
pub fn run_node_example(folder: &Path) -> Result<(), Failure> {
    NODE.run(folder, &mut Command::new("node"))
}

/// The files of the npm package, except the built library.
const NPM: [&str; 7] =
    ["package.json", "index.js", "index.d.ts", "lib", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds the npm package in the absolute path `folder` from its sources and the library in
/// `libraries`.
pub fn npm_package(folder: &Path, libraries: &Path) -> Result<(), Failure> {
    require(&["node"], Failure::Skipped)?;
    std::fs::create_dir_all(folder).tried(folder.display())?;
    let mut copy = Command::new("cp");
    copy.current_dir(root().join("bindings/node")).arg("-r").args(NPM);
    output(copy.arg(folder), "cp")?;
    let library = libraries.join("libwrote_node.so");
    std::fs::copy(&library, folder.join("wrote.node")).tried(library.display()).map(drop)
}

/// Runs the campaign: lints and tests of every binding.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("Debian packages of the bindings", || provide(PROGRAMS, install))?;
    smoke(report)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--manifest-path", MANIFEST];
    step(report, "clippy of the bindings", &[&clippy[..], &STRICT].concat())?;
    report.step("tests of the bindings", || {
        let words = ["test", "--workspace", "--no-fail-fast", "--manifest-path", MANIFEST];
        cargo_tests(&mut cargo(&words))
    })?;
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let folder = folder.path();
    report.step("tests of the Python package", || {
        package(folder)?;
        let mut tests = Command::new("python3");
        tests.arg(root().join("bindings/python/tests/test_wrote.py")).env("PYTHONPATH", folder);
        run(&mut tests, HANG, Show::Live)?.success("the tests").map(drop)
    })?;
    report.step("tests of the npm package", || {
        npm_package(&folder.join("node_modules/wrote"), &libraries("debug"))?;
        let mut tests = Command::new("node");
        tests.current_dir(folder).arg("--test").arg(test_of_node(folder, "wrote.test.js")?);
        run(&mut tests, HANG, Show::Live)?.success("the tests").map(drop)
    })?;
    report.step("types of the npm package", || types(folder, install))?;
    report.step("rows of wrote langs", || languages(folder))?;
    report.step("example of libwrote from Go", || {
        require(&["go"], Failure::Skipped)?;
        example_over_c(folder, &GO, Command::new("go").arg("run"))
    })?;
    report.step("example of libwrote from Java", || {
        require_java()?;
        example_over_c(folder, &JAVA, Command::new("java").arg(NATIVE_ACCESS))
    })?;
    Ok(())
}

/// Runs the tasks of `wrote langs` with the packages in `folder`.
fn languages(folder: &Path) -> Result<Outcome, Failure> {
    let langs = root().join("bindings/langs");
    let folders = ["python-wrote", "node-wrote", "c-wrote"].map(|id| langs.join(id));
    let mut environment = libwrote(folder)?.to_vec();
    environment.push(("PYTHONPATH", folder.to_owned()));
    environment.push(("NODE_PATH", folder.join("node_modules")));
    check_added(&folders, LANGUAGES, &environment)
}

/// The rows of `wrote langs` for the packages: one for each package's folder, and rows in which
/// tasks append records, both with the package and by hand-written code.
const LANGUAGES: &str = "python-wrote python-log python-log-by-hand node-wrote node-log \
    node-log-by-hand c-wrote";

/// Copies libwrote into `folder`. Returns the environment variables that compilers and programs
/// need to find it.
fn libwrote(folder: &Path) -> Result<[(&'static str, PathBuf); 4], Failure> {
    let (own, library) = (root().join("bindings/c"), folder.join("lib"));
    std::fs::create_dir_all(&library).tried(library.display())?;
    for name in ["libwrote.so", "libwrote.so.0"] {
        std::fs::copy(libraries("debug").join("libwrote.so"), library.join(name)).tried(name)?;
    }
    Ok([
        ("C_INCLUDE_PATH", own.join("include")),
        ("PKG_CONFIG_PATH", own),
        ("LIBRARY_PATH", library.clone()),
        ("LD_LIBRARY_PATH", library),
    ])
}

/// The option that allows a Java program to call libwrote.
const NATIVE_ACCESS: &str = "--enable-native-access=ALL-UNNAMED";

/// Runs an example in libwrote's README with `command`, in a new folder.
fn example_over_c(folder: &Path, example: &Example, command: &mut Command) -> Result<(), Failure> {
    command.envs(libwrote(folder)?);
    let folder = folder.join(example.language);
    std::fs::create_dir(&folder).tried(folder.display())?;
    // The language's standard library is compiled only once, next to the programs of `wrote langs`.
    example.run(&folder, command.env("XDG_CACHE_HOME", target().join("langs")))
}

/// Skips the step unless the installed Java has the functions of `java.lang.foreign`.
fn require_java() -> Result<(), Failure> {
    require(&["java"], Failure::Skipped)?;
    let version = output(Command::new("java").arg("--version"), "java --version")?;
    let number = version.split([' ', '.']).nth(1).and_then(|number| number.parse::<u32>().ok());
    let old = || Failure::Skipped("java is older than 22".to_owned());
    number.filter(|number| *number >= 22).map(drop).ok_or_else(old)
}

/// The programs that build, run and examine the bindings.
const PROGRAMS: &[&str] = &["cc", "c++", "pkg-config", "valgrind", "python3", "node"];

/// Copies a test next to the installed npm package, and returns its path.
fn test_of_node(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let to = folder.join(name);
    std::fs::copy(root().join("bindings/node/test").join(name), &to).tried(name)?;
    Ok(to)
}

/// Compiles a program in TypeScript against the npm package in `folder`, and runs it.
fn types(folder: &Path, install: bool) -> Result<(), Failure> {
    clients::typescript(install)?;
    let modules = target().join("typescript/node_modules");
    let mut tsc = Command::new("node");
    tsc.current_dir(folder).arg(modules.join("typescript/bin/tsc"));
    tsc.args(["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"]);
    tsc.arg("--typeRoots").arg(modules.join("@types")).arg(test_of_node(folder, "types.ts")?);
    run(&mut tsc, HANG, Show::Live)?.success("tsc")?;
    let said = output(Command::new("node").current_dir(folder).arg("types.js"), "the program")?;
    match said.trim() == "4,power-loss,one,two,EEXIST" {
        true => Ok(()),
        false => Err(Failure::Failed(format!("the program printed {said:?}"))),
    }
}

/// Returns the folder into which cargo builds the bindings with a profile.
pub fn libraries(profile: &str) -> PathBuf {
    let own = || root().join(Path::new(MANIFEST).with_file_name("target"));
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, |_| target()).join(profile)
}
