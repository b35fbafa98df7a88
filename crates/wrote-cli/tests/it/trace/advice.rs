//! Tests of the code in findings and in the advice of `wrote bench`, in each language. A program
//! that calls this code has no finding, and loses nothing in any crash state.

use super::crash::crash;
use super::{installed, wrote};
use fixtures::{finish, folder};
use itertools::Itertools;
use std::fs;
use std::path::Path;
use std::process::Command;
use wrote_result::recipes;
use wrote_result::trace::{Trace, Verdict};

/// A language, with a program that does everything the code is for, by calling functions that the
/// program lacks.
struct Language {
    id: &'static str,
    needs: &'static str,
    /// The name of the file, the prefixes of lines that belong to its head, and the text around the
    /// rest of the code.
    file: &'static str,
    head: &'static [&'static str],
    around: [&'static str; 2],
    /// Wrong versions of the functions, and calls of all functions.
    wrong: &'static str,
    calls: &'static str,
    /// A shell command that builds the program without tracing it.
    compile: &'static str,
    run: &'static str,
}

const LANGUAGES: [Language; 8] = [
    Language {
        id: "python",
        needs: "python3",
        file: "program.py",
        head: &["import "],
        around: ["", ""],
        wrong: include_str!("advice/wrong.py"),
        calls: include_str!("advice/calls.py"),
        compile: "true",
        run: "python3 -SE ../program.py",
    },
    Language {
        id: "js",
        needs: "node",
        file: "program.mjs",
        head: &["import "],
        around: ["", ""],
        wrong: include_str!("advice/wrong.mjs"),
        calls: include_str!("advice/calls.mjs"),
        compile: "true",
        run: "node ../program.mjs",
    },
    Language {
        id: "go",
        needs: "go",
        file: "program.go",
        head: &["import "],
        around: ["package main\n", ""],
        wrong: include_str!("advice/wrong.go"),
        calls: include_str!("advice/calls.go"),
        compile: "GOFLAGS=-mod=mod GO111MODULE=off go build -o program program.go",
        run: "../program",
    },
    Language {
        id: "java",
        needs: "javac",
        file: "Program.java",
        head: &["import "],
        around: ["", "}\n"],
        wrong: include_str!("advice/Wrong.java"),
        calls: include_str!("advice/Calls.java"),
        compile: "javac Program.java",
        run: "java -Xshare:auto -XX:-UsePerfData -cp .. Program",
    },
    Language {
        id: "c",
        needs: "gcc",
        file: "program.c",
        head: &["#define ", "#include "],
        around: ["", ""],
        wrong: include_str!("advice/wrong.c"),
        calls: include_str!("advice/calls.c"),
        compile: "gcc -Wall -Werror -o program program.c",
        run: "../program",
    },
    Language {
        id: "c",
        needs: "g++",
        file: "program.cc",
        head: &["#define ", "#include "],
        around: ["", ""],
        wrong: include_str!("advice/wrong.c"),
        calls: include_str!("advice/calls.c"),
        compile: "g++ -Wall -Werror -o program program.cc",
        run: "../program",
    },
    Language {
        id: "rust",
        needs: "rustc",
        file: "program.rs",
        head: &["use "],
        around: ["", ""],
        wrong: include_str!("advice/wrong.rs.txt"),
        calls: include_str!("advice/calls.rs.txt"),
        compile: "rustc -D warnings -o program program.rs",
        run: "../program",
    },
    Language {
        id: "sh",
        needs: "bash",
        file: "program.sh",
        head: &[],
        around: ["", ""],
        wrong: include_str!("advice/wrong.sh"),
        calls: include_str!("advice/calls.sh"),
        compile: "true",
        run: "bash ../program.sh",
    },
];

/// A check of a state. At the end, everything is there; before that, `a` has the old or the new
/// content.
const CHECK: &str = "sh -ec 'cd DIR; if test $WROTE_ANSWERS = 0; then grep -qx \"old\\|new\" a; \
    else grep -qx new a; grep -qx new f; test ! -e d; test $(grep -c record log) = 3; MORE fi'";
/// The check of the results of the code in the advice of `wrote bench`.
const MORE: &str = "grep -qx stream n/s; grep -aq block b;";
const OF_BENCH: [&str; 2] = ["Writing a long file", "Overwriting in place"];

/// Builds a program from these functions and the language's calls, and traces it in a new folder.
/// Returns the document, and whether the check passes in all crash states.
fn tried(language: &Language, functions: &str) -> (Trace, bool) {
    let place = folder();
    let data = place.path().join("data");
    // The new file is in a separate folder, so that flushing that folder does not make the other
    // files durable.
    fs::create_dir_all(data.join("n")).unwrap();
    for file in ["a", "d"] {
        fs::write(data.join(file), "old\n").unwrap();
    }
    fs::write(data.join("b"), [0; 8192]).unwrap();
    let of_bench = OF_BENCH.map(|title| recipes::code(title, language.id)).join("\n");
    let text = format!("{functions}\n{of_bench}\n{}", language.calls);
    let is_head = |line: &&str| language.head.iter().any(|begin| line.starts_with(begin));
    let (head, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(is_head);
    let is_define = |line: &&str| line.starts_with("#define");
    let head = head.into_iter().unique().sorted_by_key(|line| !is_define(line)).join("\n");
    let [before, after] = language.around;
    let class = if language.id == "java" { "public class Program {\n" } else { "" };
    let text = format!("{before}{head}\n{class}{}\n{after}", rest.join("\n"));
    fs::write(place.path().join(language.file), &text).unwrap();
    let made = Command::new("sh").args(["-c", language.compile]).current_dir(&place).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{text}\n{made:?}");
    let document = traced(place.path(), &data, language.run);
    let check = CHECK.replace("MORE", if of_bench.trim().is_empty() { "" } else { MORE });
    let finished = crash(&place.path().join("record"), &["--check", &check]);
    (document, finished.code() == Some(0))
}

fn traced(place: &Path, data: &Path, run: &str) -> Trace {
    let [record, document] = ["record", "document"].map(|file| place.join(file));
    let mut command =
        wrote(&["trace", "--on-disk", "--under", ".", "--format", "json", "--record"]);
    command.arg(record).arg("-o").arg(&document).args(["sh", "-c", run]).current_dir(data);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&fs::read_to_string(document).unwrap()).unwrap()
}

/// Tests a language. The findings on its wrong program contain every piece of code, and with this
/// code the program is right.
fn judge(language: &Language) {
    let name = language.file;
    let (wrong, is_kept) = tried(language, language.wrong);
    assert!(!is_kept, "{name}: {wrong:?}");
    let purposes: Vec<_> = wrong.advice.iter().map(|of| of.purpose.as_str()).collect();
    let all = ["replacing a file", "flushing a file", "flushing a folder", "appending records"];
    assert_eq!(purposes, all, "{name}: {wrong:?}");
    assert!(wrong.advice.iter().all(|of| of.language == language.id), "{name}: {wrong:?}");
    let code = wrong.advice.iter().map(|of| of.code.as_str()).join("\n");
    let (right, is_kept) = tried(language, &code);
    assert!(right.findings.is_empty(), "{name}: {:?}", right.findings);
    assert_eq!((right.verdict, is_kept), (Verdict::Survives, true), "{name}: {right:?}");
}

#[test]
fn the_code_of_the_findings_in_each_language_is_right() {
    for language in &LANGUAGES {
        match installed(language.needs) {
            Ok(()) => judge(language),
            Err(because) => fixtures::skip_here!(&because),
        }
    }
}
