//! Tests with programs and compilers that are shell scripts.

use super::*;
use crate::langs::catalogue::Entry;
use crate::langs::manifest::{FILE_NAME, Manifest};
use crate::langs::toolchain::Tools;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A time limit that no build of these tests reaches, even on the busiest machine.
const LONG: Duration = Duration::from_secs(100);

const MANIFEST: &str = "name = 'Shell'\nway = 'printf'\ninstall = 'apt install dash'\n\
    [[toolchain]]\nversion = ['sh']\nrun = ['sh']\n\
    [[variant]]\nid = 'shell'\nname = 'S'\nway = 'w'\narguments = ['as', 'given']\n";

/// Returns a program that consists of two files and is built by `script`. The script gets
/// `{source}` as `$1` and `{build}` as `$2`, and its calls are counted in the cache folder.
fn chosen(cache: &TempDir, text: &str, script: &str) -> Candidate {
    let calls = cache.path().join("calls");
    let script = format!("echo >> '{}'; {script}", calls.display());
    let words = ["/bin/sh", "-c", &script, "compiler", "{source}", "{build}"];
    let file = |path: &str, text: &str| (PathBuf::from(path), text.as_bytes().to_vec());
    let manifest = Manifest::parse(MANIFEST, "m").unwrap();
    Candidate {
        variant: manifest.variants[0].clone(),
        entry: Entry {
            id: "shell".into(),
            files: vec![
                file(FILE_NAME, MANIFEST),
                file("lib/a.sh", "#!/bin/sh\n"),
                file("p", text),
            ],
            manifest,
        },
        tools: Tools {
            version: "sh 1".into(),
            build: words.map(str::to_owned).into(),
            run: ["{build}/program", "--of={source}"].map(str::to_owned).into(),
        },
    }
}

/// Returns a program that its compiler merely copies.
fn copied(cache: &TempDir, text: &str) -> Candidate {
    chosen(cache, text, "cp \"$1/p\" \"$2/program\" && chmod +x \"$2/program\"")
}

fn built(chosen: &Candidate, cache: &TempDir) -> BuiltProgram {
    let shelf = open(std::slice::from_ref(chosen), cache.path()).unwrap();
    build(chosen, &shelf, &Stop::new()).unwrap().unwrap()
}

fn calls(cache: &TempDir) -> usize {
    fs::read_to_string(cache.path().join("calls")).unwrap_or_default().len()
}

/// Returns the names in the cache of built programs, sorted.
fn shelf(cache: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(cache.path().join("langs")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_program_is_built_and_runs_from_its_place() {
    let cache = tempfile::tempdir().unwrap();
    let built = built(&copied(&cache, "#!/bin/sh\necho \"$1\"\n"), &cache);
    assert_eq!(shelf(&cache), [built.folder.file_name().unwrap().to_str().unwrap()]);
    assert_eq!(built.arguments, ["as", "given"]);
    assert!(built.run[0].starts_with(built.folder.to_str().unwrap()));
    let output = Command::new(&built.run[0]).args(&built.run[1..]).output().unwrap();
    let source = built.folder.join("source");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("--of={}\n", source.display()));
    assert_eq!(fs::read(source.join("lib/a.sh")).unwrap(), b"#!/bin/sh\n");
    assert!(source.join(FILE_NAME).is_file());
}

#[test]
fn a_build_is_its_owners_alone_and_scripts_may_be_run() {
    let cache = tempfile::tempdir().unwrap();
    let built = built(&copied(&cache, "text"), &cache);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(built.folder.parent().unwrap()), 0o700);
    assert_eq!(mode(&built.folder), 0o700);
    assert_eq!(mode(&built.folder.join("source/lib/a.sh")), 0o700);
    assert_eq!(mode(&built.folder.join("source/p")), 0o600);
}

#[test]
fn the_same_program_is_built_once() {
    let cache = tempfile::tempdir().unwrap();
    let first = built(&copied(&cache, "text"), &cache);
    let mut variant = copied(&cache, "text");
    variant.variant.arguments = vec!["other".into()];
    let second = built(&variant, &cache);
    assert_eq!(calls(&cache), 1);
    assert_eq!(first.folder, second.folder);
    assert_eq!(second.arguments, ["other"]);
}

#[test]
fn another_text_name_command_or_compiler_is_another_program() {
    let cache = tempfile::tempdir().unwrap();
    let first = copied(&cache, "text");
    let mut name = first.clone();
    name.entry.files[2].0 = "q".into();
    let mut version = first.clone();
    version.tools.version = "sh 2".into();
    let mut command = first.clone();
    command.tools.build.push("-O2".into());
    let mut run = first.clone();
    run.tools.run.push("x".into());
    let others = [copied(&cache, "other text"), name, version, command];
    let hashes: std::collections::BTreeSet<u64> = others.iter().chain([&first]).map(hash).collect();
    assert_eq!(hashes.len(), 5);
    // The run command affects the hash only through the manifest.
    assert_eq!(hash(&run), hash(&first));
}

#[test]
fn a_program_that_needs_no_building_is_unpacked_in_the_same_way() {
    let cache = tempfile::tempdir().unwrap();
    let mut script = copied(&cache, "text");
    script.tools.build.clear();
    script.tools.run = vec!["/bin/sh".into(), "{source}/p".into()];
    let built = built(&script, &cache);
    assert_eq!(calls(&cache), 0);
    assert_eq!(fs::read(&built.run[1]).unwrap(), b"text");
}

#[test]
fn a_compilers_complaint_is_one_line_and_nothing_stays() {
    let cache = tempfile::tempdir().unwrap();
    let refused = |script: &str| {
        let chosen = chosen(&cache, "text", script);
        let on = open(&[], cache.path()).unwrap();
        let because = build(&chosen, &on, &Stop::new()).unwrap().unwrap_err();
        assert!(shelf(&cache).is_empty(), "{:?}", shelf(&cache));
        because
    };
    let told = refused(
        "echo compiling; echo 'p: In main:' >&2; echo \"$1/p:3: error: no such x\" >&2; \
         echo 'error: 1 error' >&2; exit 3",
    );
    assert_eq!(told, "sh ended with exit code 3: p:3: error: no such x");
    let told = refused("echo 'Error: bad'; exit 1");
    assert_eq!(told, "sh ended with exit code 1: Error: bad");
    let told = refused("echo first; echo '  no space left '; echo; exit 1");
    assert_eq!(told, "sh ended with exit code 1: no space left");
    assert_eq!(refused("kill -SEGV $$"), "sh was ended by SIGSEGV");
    let mut gone = chosen(&cache, "text", "true");
    gone.tools.build[0] = "/no/such/compiler".into();
    let on = open(&[], cache.path()).unwrap();
    let because = build(&gone, &on, &Stop::new()).unwrap().unwrap_err();
    assert!(because.starts_with("cannot start /no/such/compiler: "), "{because}");
}

#[test]
fn a_compiler_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["/bin/sleep", "1000"].map(str::to_owned);
    let limit = Duration::from_millis(100);
    let ended = compile(&command, folder.path(), limit, &Stop::new()).unwrap();
    assert_eq!(ended.unwrap_err(), "sleep took longer than 0.1 s to build and was ended");
}

#[test]
fn a_raised_stop_ends_the_compiler_and_nothing_stays() {
    let cache = tempfile::tempdir().unwrap();
    let chosen = chosen(&cache, "text", "echo part > \"$2/program\"; exec sleep 1000");
    let (stop, on) = (Stop::new(), open(&[], cache.path()).unwrap());
    let result = std::thread::scope(|scope| {
        let building = scope.spawn(|| build(&chosen, &on, &stop));
        let started = Instant::now();
        while calls(&cache) == 0 {
            assert!(started.elapsed() < LONG);
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.request();
        building.join().unwrap()
    });
    assert!(matches!(result, Err(Error::Interrupted)));
    assert!(shelf(&cache).is_empty());
}

#[test]
fn two_at_once_have_the_same_program() {
    let cache = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = std::thread::scope(|scope| {
        let build = || built(&copied(&cache, "text"), &cache);
        let building: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
        building.into_iter().map(|building| building.join().unwrap().folder).collect()
    });
    assert!(folders.iter().all(|folder| *folder == folders[0]));
    assert!(folders[0].join("build/program").is_file());
    assert_eq!(shelf(&cache).len(), 1);
}

#[test]
fn a_build_that_appears_meanwhile_is_used() {
    let cache = tempfile::tempdir().unwrap();
    let shelf_of = Shelf::open(cache.path(), &[]).unwrap();
    let (one, other) = (shelf_of.draft().unwrap(), shelf_of.draft().unwrap());
    fs::write(one.path().join("who"), "one").unwrap();
    fs::write(other.path().join("who"), "other").unwrap();
    let first = shelf_of.put(one, "shell", 1).unwrap();
    let second = shelf_of.put(other, "shell", 1).unwrap();
    assert_eq!(first, second);
    assert_eq!(fs::read(first.join("who")).unwrap(), b"one");
    assert_eq!(shelf(&cache), ["shell-0000000000000001"]);
}

#[test]
fn older_builds_of_the_same_language_go_and_nothing_else_does() {
    let cache = tempfile::tempdir().unwrap();
    let langs = cache.path().join("langs");
    let victim = cache.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "dear").unwrap();
    let make = |name: &str| {
        fs::create_dir_all(langs.join(name).join("build")).unwrap();
        fs::write(langs.join(name).join("build/program"), "old").unwrap();
    };
    drop(Shelf::open(cache.path(), &[]).unwrap());
    let others = [
        "shell",
        "shell-0123",
        "shell-0123456789abcdeF",
        "shell-0123456789abcdef0",
        "shell-2-0123456789abcdef",
        "fish-0123456789abcdef",
        ".draft-abc",
        ".draft-abcde!",
    ];
    others.iter().for_each(|name| make(name));
    let gone = ["shell-0123456789abcdef", "shell-1111111111111111", ".draft-abCD12"];
    gone.into_iter().for_each(make);
    symlink(&victim, langs.join("shell-2222222222222222")).unwrap();
    symlink(&victim, langs.join("shell-1111111111111111/build/link")).unwrap();
    let built = built(&copied(&cache, "text"), &cache);
    let mut left: Vec<&str> = others.to_vec();
    left.push("shell-2222222222222222");
    left.push(built.folder.file_name().unwrap().to_str().unwrap());
    left.sort_unstable();
    assert_eq!(shelf(&cache), left);
    assert_eq!(fs::read(victim.join("file")).unwrap(), b"dear");
}

#[test]
fn a_program_in_use_stays_until_it_is_no_more() {
    let cache = tempfile::tempdir().unwrap();
    let old = built(&copied(&cache, "old"), &cache).folder;
    let in_use = Shelf::open(cache.path(), &[]).unwrap();
    // This draft is still being filled.
    let draft = in_use.draft().unwrap();
    let new = built(&copied(&cache, "new"), &cache).folder;
    assert!(old.join("build/program").is_file() && draft.path().exists());
    let left = draft.keep();
    drop(in_use);
    // A child that another test has started may hold all our open files until its `execve`.
    let started = Instant::now();
    while old.exists() || left.exists() {
        assert!(started.elapsed() < LONG);
        built(&copied(&cache, "new"), &cache);
    }
    assert!(new.exists());
}

#[test]
fn a_cache_that_is_none_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let told = |cache: &Path| match Shelf::open(cache, &[]) {
        Err(Error::Failed(told)) => told,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    };
    let because = "a part of the path is a file; programs are built in it";
    assert_eq!(told(&file), format!("{}/langs: {because}", file.display()));
    let open = folder.path().join("langs");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(told(folder.path()).contains("others may write in it"), "{}", told(folder.path()));
    // Not even root can create folders in `/proc/self`.
    assert!(told(Path::new("/proc/self")).contains("/proc/self/langs: "));
}
