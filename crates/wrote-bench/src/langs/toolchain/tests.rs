//! Tests with toolchains that are shell scripts in temporary folders.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;

/// A time limit that no script of these tests reaches, even on the busiest machine.
const LONG: Duration = Duration::from_secs(100);

/// Creates a folder with these shell scripts, given by name.
fn bin(programs: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in programs {
        write(&folder.path().join(name), script, 0o755);
    }
    folder
}

fn write(path: &Path, script: &str, mode: u32) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn manifest(toolchains: &str) -> Manifest {
    let text = format!("name = 'A'\ninstall = 'apt install a'\n{toolchains}");
    Manifest::parse(&text, "a/manifest.toml").unwrap()
}

/// Returns a manifest with a single toolchain, which is a compiler.
fn compiler() -> Manifest {
    manifest(
        "[[toolchain]]\nversion = ['ac', '--version']\nbuild = ['ac', '{source}/a', '{build}']\n\
         run = ['{build}/program']\n",
    )
}

fn look(manifest: &Manifest, folders: &[&TempDir]) -> Result<Tools, String> {
    look_as(manifest, folders, None)
}

fn look_as(
    manifest: &Manifest,
    folders: &[&TempDir],
    wrote: Option<&Path>,
) -> Result<Tools, String> {
    let folders = folders.iter().map(|folder| folder.path().to_owned());
    let search = Search::of(folders.collect());
    find_within(manifest, wrote, &search, LONG, &Stop::new()).unwrap()
}

#[test]
fn a_toolchain_is_found_with_the_paths_of_its_programs_and_its_version() {
    let bin = bin(&[("ac", "test \"$1\" = --version && echo && echo ' ac 1.2  ' && echo more")]);
    let tools = look(&compiler(), &[&bin]).unwrap();
    assert_eq!(tools.version, "ac 1.2");
    let path = bin.path().join("ac").to_str().unwrap().to_owned();
    assert_eq!(tools.build, [path.as_str(), "{source}/a", "{build}"]);
    assert_eq!(tools.run, ["{build}/program"]);
}

#[test]
fn a_version_on_standard_error_is_one_too() {
    let script =
        "{ echo 'Picked up JAVA_TOOL_OPTIONS: -X'; echo 'WARNING: old'; echo 'info: ac 2'; } >&2";
    let bin = bin(&[("ac", script)]);
    assert_eq!(look(&compiler(), &[&bin]).unwrap().version, "ac 2");
}

#[test]
fn a_version_is_shown_without_control_characters_and_not_endless() {
    let bin = bin(&[("ac", "printf 'ac\\t1\\033\\r\\n'")]);
    assert_eq!(look(&compiler(), &[&bin]).unwrap().version, "ac 1");
    let long = version_line("é".repeat(200).as_bytes()).unwrap();
    assert_eq!(long.chars().count(), VERSION_CHARS + 2);
    assert!(long.ends_with("é.."));
    assert_eq!(version_line(b"\x1b\r "), None);
}

#[test]
fn each_missing_program_is_named_once() {
    let empty = bin(&[]);
    let because = look(&compiler(), &[&empty]).unwrap_err();
    assert_eq!(because, "ac: not found in PATH nor in ~/.local/bin");
    let needs = manifest(
        "[[toolchain]]\nversion = ['ac']\nneeds = ['ar', 'sh']\nbuild = ['ac']\nrun = ['a', \
         '{build}']\n",
    );
    let some = bin(&[("sh", "true")]);
    let because = look(&needs, &[&some]).unwrap_err();
    assert_eq!(because, "ac, a, ar: not found in PATH nor in ~/.local/bin");
    let all_but_needs = bin(&[("ac", "echo 1"), ("a", "true"), ("sh", "true")]);
    let because = look(&needs, &[&all_but_needs]).unwrap_err();
    assert_eq!(because, "ar: not found in PATH nor in ~/.local/bin");
}

#[test]
fn a_file_that_may_not_be_run_and_a_folder_are_no_programs() {
    let bin = bin(&[]);
    fs::create_dir(bin.path().join("ac")).unwrap();
    assert!(look(&compiler(), &[&bin]).is_err());
    fs::remove_dir(bin.path().join("ac")).unwrap();
    write(&bin.path().join("ac"), "echo 1", 0o644);
    assert!(look(&compiler(), &[&bin]).is_err());
}

#[test]
fn the_first_folder_that_has_it_is_taken_and_relative_ones_are_left_out() {
    let (first, second) = (bin(&[("ac", "echo first")]), bin(&[("ac", "echo second")]));
    assert_eq!(look(&compiler(), &[&first, &second]).unwrap().version, "first");
    assert_eq!(look(&compiler(), &[&second, &first]).unwrap().version, "second");
    // The same folder, relative to any working folder.
    let up = "../".repeat(50) + first.path().strip_prefix("/").unwrap().to_str().unwrap();
    assert!(Path::new(&up).join("ac").is_file());
    assert_eq!(Search::of(vec![PathBuf::from(up)]).find("ac"), None);
}

#[test]
fn the_first_alternative_that_is_there_is_taken() {
    let two = manifest(
        "[[toolchain]]\nversion = ['zig', 'version']\nrun = ['zig', 'run']\n\
         [[toolchain]]\nversion = ['py', '-m', 'zig']\nrun = ['py', '-m', 'zig', 'run']\n",
    );
    let python = bin(&[("py", "echo 0.16")]);
    assert_eq!(look(&two, &[&python]).unwrap().run[1..], ["-m", "zig", "run"]);
    let both = bin(&[("py", "echo 0.16"), ("zig", "echo 0.17")]);
    assert_eq!(look(&two, &[&both]).unwrap().version, "0.17");
    let broken = bin(&[("py", "echo; echo 'No module named zig' >&2; exit 1")]);
    assert_eq!(
        look(&two, &[&broken]).unwrap_err(),
        "zig: not found in PATH nor in ~/.local/bin; \
         py -m zig: ended with exit code 1: No module named zig"
    );
}

#[test]
fn a_toolchain_that_says_nothing_or_crashes_is_not_there() {
    let silent = bin(&[("ac", "true")]);
    assert_eq!(look(&compiler(), &[&silent]).unwrap_err(), "ac --version: printed nothing");
    let crashing = bin(&[("ac", "kill -SEGV $$")]);
    let because = look(&compiler(), &[&crashing]).unwrap_err();
    assert_eq!(because, "ac --version: was ended by SIGSEGV");
    let no_program = bin(&[]);
    fs::write(no_program.path().join("ac"), [0x7f, b'E', b'L', b'F']).unwrap();
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(no_program.path().join("ac"), mode).unwrap();
    assert!(look(&compiler(), &[&no_program]).unwrap_err().starts_with("cannot start "));
}

#[test]
fn a_toolchain_that_hangs_did_not_answer() {
    let bin = bin(&[("ac", "exec sleep 1000")]);
    let search = Search::of(vec![bin.path().to_owned()]);
    let limit = Duration::from_millis(100);
    let found = find_within(&compiler(), None, &search, limit, &Stop::new()).unwrap();
    assert_eq!(found.unwrap_err(), "ac --version: did not answer within 0.1 s");
}

#[test]
fn a_raised_stop_ends_the_question() {
    let bin = bin(&[("ac", "exec sleep 1000")]);
    let search = Search::of(vec![bin.path().to_owned()]);
    let stop = Stop::new();
    let started = Instant::now();
    let found = std::thread::scope(|scope| {
        let looking = scope.spawn(|| find_within(&compiler(), None, &search, LONG, &stop));
        stop.request();
        looking.join().unwrap()
    });
    assert!(matches!(found, Err(Error::Interrupted)));
    assert!(started.elapsed() < LONG);
}

#[test]
fn wrote_stands_for_the_program_itself() {
    let own = manifest(
        "[[toolchain]]\nversion = ['{wrote}', '--version']\nrun = ['{wrote}', \
         'language-program']\n",
    );
    let bin = bin(&[("wrote", "echo wrote 0.1.0")]);
    let path = bin.path().join("wrote");
    let tools = look_as(&own, &[], Some(&path)).unwrap();
    assert_eq!(tools.version, "wrote 0.1.0");
    assert_eq!(tools.run, [path.to_str().unwrap(), "language-program"]);
    assert!(is_wrote(&own) && !is_wrote(&compiler()));
    assert_eq!(look(&own, &[]).unwrap_err(), "wrote itself was not found");
}
