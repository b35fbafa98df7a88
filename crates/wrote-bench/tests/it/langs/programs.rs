//! Tests of the programs in `langs/`, each built as its manifest says and run directly, to provoke
//! failures that do not occur in a good run of `wrote langs`.

use fixtures::{folder, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// For every installed language except `wrote`, the program, or the message of its compiler.
static BUILT: LazyLock<Vec<Result<Program, String>>> = LazyLock::new(|| {
    let languages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../langs");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(languages).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir() && !folder.ends_with("wrote"));
    folders.sort();
    assert!(folders.len() > 4, "{folders:?}");
    folders.iter().filter_map(|folder| Program::build(folder)).collect()
});

fn programs() -> impl Iterator<Item = &'static Program> {
    BUILT.iter().flatten()
}

struct Program {
    id: String,
    run: Vec<String>,
}

impl Program {
    /// Builds the program in `source`; `None` if the language is not installed.
    fn build(source: &Path) -> Option<Result<Program, String>> {
        let id = source.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(source.join("manifest.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let toolchains = manifest["toolchain"].as_array().unwrap();
        let Some(toolchain) = toolchains.iter().find(|toolchain| is_there(toolchain)) else {
            skip(&format!("the program of {id}"), "no toolchain of its manifest is there");
            return None;
        };
        let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join("language-programs").join(&id);
        fs::create_dir_all(&build).unwrap();
        let words = |key: &str| {
            let filled = |word: String| {
                let word = word.replace("{source}", source.to_str().unwrap());
                word.replace("{build}", build.to_str().unwrap())
            };
            words(toolchain, key).into_iter().map(filled).collect::<Vec<_>>()
        };
        let how = words("build");
        if !how.is_empty() {
            // A compiler may treat the contents of its working folder as source (scalac treats
            // `/sys` as a package).
            let built = command(&how).current_dir(&build).output().unwrap();
            if !built.status.success() {
                return Some(Err(format!("{id}: {built:?}")));
            }
        }
        Some(Ok(Program { id, run: words("run") }))
    }

    fn call(&self, task: &str, path: &Path, more: &[&str]) -> Output {
        command(&self.run).arg(task).arg(path).args(more).output().unwrap()
    }

    /// Returns the report of a successful call.
    fn answer(&self, task: &str, path: &Path, more: &[&str]) -> Value {
        let output = self.call(task, path, more);
        let about = format!("{} {task} {more:?}: {output:?}", self.id);
        assert!(output.status.success(), "{about}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{about}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{about}: {error}"))
    }

    /// Asserts that a call fails with an exit code and a message, and without a report.
    fn fails(&self, task: &str, path: &Path, more: &[&str]) {
        let output = self.call(task, path, more);
        let about = format!("{} {task} {} {more:?}: {output:?}", self.id, path.display());
        assert!(output.status.code().is_some_and(|code| code != 0), "{about}");
        assert!(!output.stderr.trim_ascii().is_empty(), "{about}");
        assert!(output.stdout.is_empty(), "{about}");
    }
}

fn words(toolchain: &toml::Value, key: &str) -> Vec<String> {
    let words = toolchain.get(key).and_then(|words| words.as_array()).cloned().unwrap_or_default();
    words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn is_there(toolchain: &toml::Value) -> bool {
    let output = command(&words(toolchain, "version")).output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns a command whose program is searched for as in `wrote langs`.
fn command(words: &[String]) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(home) = std::env::home_dir() {
        path.push(":");
        path.push(home.join(".local/bin"));
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("PATH", path).current_dir("/").stdin(Stdio::null());
    command
}

#[test]
fn every_program_can_be_built() {
    let failed: Vec<&String> = BUILT.iter().filter_map(|built| built.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_file_is_read_to_its_end_whatever_length_was_told() {
    let folder = folder();
    for program in programs() {
        let path = folder.path().join(format!("{} é", program.id));
        // If a program used a signed type, byte 255 would look like the end of the file.
        for content in [&[255; 100_000][..], &[0, 255, 10, 13, 26], &[]] {
            fs::write(&path, content).unwrap();
            let answer = program.answer("bytes-read", &path, &["7", "2"]);
            let sum = content.iter().copied().map(u64::from).sum::<u64>();
            assert_eq!(answer["bytes"], content.len() as u64, "{}: {answer}", program.id);
            assert_eq!(answer["sum"], sum, "{}: {answer}", program.id);
            assert_eq!(answer["elapsed_ns"].as_array().map(Vec::len), Some(2), "{answer}");
        }
    }
}

#[test]
fn a_file_is_written_anew_and_appended_to_as_often_as_asked() {
    let folder = folder();
    for program in programs() {
        let path = folder.path().join(&program.id);
        fs::write(&path, [b'x'; 1000]).unwrap();
        let answer = program.answer("bytes-write", &path, &["300", "3"]);
        assert_eq!(answer["elapsed_ns"].as_array().map(Vec::len), Some(3), "{answer}");
        let content: Vec<u8> = (0..300).map(|number| number as u8).collect();
        assert_eq!(fs::read(&path).unwrap(), content, "{}", program.id);

        let saved = program.answer("save", &path, &["27", "2"]);
        assert_eq!(saved["elapsed_ns"].as_array().map(Vec::len), Some(2), "{saved}");
        program.answer("lines", &path, &["4", "3"]);
        program.answer("lines", &path, &["1", "2"]);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "abcdefghijklmnopqrstuvwxyzaabc\nabc\nabc\n\n\n", "{}", program.id);
    }
}

#[test]
fn a_full_disk_ends_a_program_with_an_error() {
    for program in programs() {
        // Writes to this device fail as on a full disk (`full(4)`).
        let full = Path::new("/dev/full");
        for task in ["save", "save-sync", "lines"] {
            // Fewer bytes than any buffer holds, so only the last flush writes them. Later calls
            // write more bytes.
            program.fails(task, full, &["100", "1"]);
        }
        program.fails("bytes-write", full, &["100", "1"]);
        program.fails("bytes-write", full, &["300000", "1"]);
        program.fails("lines", full, &["100", "3000"]);
    }
}

#[test]
fn a_place_that_is_no_file_ends_a_program_with_an_error() {
    let folder = folder();
    let missing = folder.path().join("missing/file");
    for program in programs() {
        for task in ["bytes-write", "bytes-read", "save", "save-sync", "lines"] {
            program.fails(task, &missing, &["10", "1"]);
            program.fails(task, folder.path(), &["10", "1"]);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn arguments_that_make_no_sense_end_a_program_with_an_error() {
    let folder = folder();
    let path = folder.path().join("file");
    for program in programs() {
        program.fails("fly", &path, &["10", "1"]);
        program.fails("save", &path, &["10"]);
        program.fails("save", &path, &["many", "1"]);
        program.fails("save", &path, &["10", "often"]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
