//! Builds programs in C and C++ against the library, and runs them: directly, with
//! AddressSanitizer, and under valgrind.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the library's folder, which cargo fills before it builds this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.ancestors().nth(2).expect("cargo's folder").to_owned()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The libraries that a static libwrote needs, as listed in wrote.pc.
const PRIVATE: [&str; 4] = ["-lgcc_s", "-lpthread", "-ldl", "-lm"];

/// Builds a program, runs it in an empty folder, and returns its output.
fn run(source: &str, flags: &[&str], is_static: bool, by: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let is_cpp = source.ends_with("cpp");
    let mut build = Command::new(if is_cpp { "c++" } else { "cc" });
    build.arg(if is_cpp { "-std=c++17" } else { "-std=c11" }).args(["-D_GNU_SOURCE", "-g", "-O1"]);
    build.args(["-Wall", "-Wextra", "-Wredundant-decls", "-Wno-missing-field-initializers"]);
    build.args(["-Werror", "-pthread"]);
    build.args(flags).arg("-I").arg(here("include"));
    build.arg(here("tests/programs").join(source)).arg("-o").arg(&program);
    if is_static {
        build.arg(libraries().join("libwrote.a")).args(PRIVATE);
    } else {
        build.arg("-L").arg(libraries()).arg("-lwrote");
    }
    let built = build.output().expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // The name under which programs load the shared library (its soname).
    std::os::unix::fs::symlink(
        libraries().join("libwrote.so"),
        folder.path().join("libwrote.so.0"),
    )
    .expect("a link");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let mut words = by.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    words.push(program.display().to_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(&data).env("LD_LIBRARY_PATH", folder.path());
    let ran = command.output().expect("the program");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{source} {flags:?} {by:?}: {:?}\n{out}{err}", ran.status);
    out.into_owned()
}

const SURFACE: &str = "the surface is whole\n";
const HANDLES: &str = "every handle was freed\n";
const SANITIZED: [&str; 2] = ["-fsanitize=address", "-fno-omit-frame-pointer"];
const VALGRIND: [&str; 5] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite",
];

#[test]
fn a_program_in_c_calls_every_function() {
    assert_eq!(run("surface.c", &[], false, &[]), SURFACE);
}

#[test]
fn a_program_in_c_links_the_static_library() {
    assert_eq!(run("surface.c", &[], true, &[]), SURFACE);
}

#[test]
fn a_program_in_cpp_has_handles_that_free_themselves() {
    assert_eq!(run("raii.cpp", &[], false, &[]), "every handle freed itself\n");
}

#[test]
fn ten_thousand_handles_are_freed_in_odd_orders() {
    assert_eq!(run("handles.c", &[], false, &[]), HANDLES);
}

#[test]
fn no_handle_leaks_or_is_used_after_it_is_freed() {
    for source in ["surface.c", "handles.c", "raii.cpp"] {
        run(source, &SANITIZED, false, &[]);
    }
}

#[test]
fn valgrind_finds_no_fault() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return println!("left out: valgrind is not installed");
    }
    for source in ["surface.c", "raii.cpp"] {
        run(source, &[], false, &VALGRIND);
    }
}
