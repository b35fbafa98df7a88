//! Tests of the source lines that findings name.

use super::{installed, traced};
use fixtures::{folder, or_skip};
use std::fs;
use std::process::Command;

/// Compiles a program that saves `a`, traces it, and returns its findings with the lines of their
/// calls.
fn lines_of(source: &str, text: &str, compile: &str) -> Vec<String> {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    fs::write(place.path().join(source), text).unwrap();
    let compiled = Command::new("sh").args(["-c", compile]).current_dir(&place).status().unwrap();
    assert!(compiled.success(), "{compile}");
    let (trace, finished) = traced(place.path(), "./save", &["--under", "."]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let line = |call: &serde_json::Value| match call["place"].as_str() {
        Some(place) => format!("{} {place}", call["call"].as_str().unwrap()),
        None => format!("{} nowhere", call["call"].as_str().unwrap()),
    };
    let calls = trace
        .findings
        .iter()
        .flat_map(|finding| &finding.evidence["places"][0]["calls"].as_array().unwrap()[..]);
    calls.map(line).collect()
}

#[test]
fn a_finding_names_the_line_of_a_program_with_symbols() {
    or_skip!(installed("gcc"));
    let program = "#include <stdio.h>\n\
        static int save(const char *text) {\n\
        \x20 FILE *file = fopen(\"t\", \"w\");\n\
        \x20 if (!file || fputs(text, file) < 0) return 1;\n\
        \x20 if (fclose(file)) return 1;\n\
        \x20 return rename(\"t\", \"a\") != 0;\n\
        }\n\
        int main(void) {\n\
        \x20 return save(\"new\") ? 1 : 0;\n\
        }\n";
    let expected = ["write save.c:5", "rename save.c:6"];
    for options in ["-g -O0", "-g -O2 -fomit-frame-pointer", "-g -static"] {
        let lines = lines_of("save.c", program, &format!("gcc {options} -o save save.c"));
        assert_eq!(lines, expected, "{options}");
    }
    let stripped = lines_of("save.c", program, "gcc -s -o save save.c");
    assert_eq!(stripped, ["write nowhere", "rename nowhere"]);
}

#[test]
fn a_finding_names_the_programs_line_and_not_that_of_its_library() {
    or_skip!(installed("rustc"));
    let program = "fn main() {\n\
        \x20   std::fs::write(\"a\", \"new\").unwrap();\n\
        }\n";
    let lines = lines_of("save.rs", program, "rustc -g -o save save.rs");
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert_eq!(lines, ["truncation save.rs:2", "write save.rs:2", "last write save.rs:2"]);
    // Only the standard library contains line numbers.
    let lines = lines_of("save.rs", program, "rustc -C debuginfo=0 -o save save.rs");
    assert!(lines.iter().all(|line| line.ends_with(" nowhere")), "{lines:?}");
}

#[test]
fn a_finding_names_no_line_of_the_interpreter_that_runs_a_script() {
    or_skip!(installed("gcc"));
    let program = "#include <stdio.h>\n\
        int save(void);\n\
        #ifdef MODULE\n\
        int save(void) { return rename(\"t\", \"a\"); }\n\
        #else\n\
        int main(void) {\n\
        \x20 FILE *file = fopen(\"t\", \"w\");\n\
        \x20 return !file || fputs(\"new\", file) < 0 || fclose(file) || save();\n\
        }\n\
        #endif\n";
    let compile = "gcc -g -DMODULE -shared -fPIC -o libmodule.so save.c && \
        gcc -g -o python-3 save.c -L. -lmodule '-Wl,-rpath,$ORIGIN' && ln -s python-3 save";
    assert_eq!(lines_of("save.c", program, compile), ["write nowhere", "rename nowhere"]);
}

/// A script that saves `a` in a thread, through a call in Python's library. The lines in the
/// library are known, too.
const SCRIPT: &str = "\
import json, os, threading

def save():
    with open('t', 'w') as file:
        json.dump([1] * 5000, file)
    os.rename('t', 'a')

thread = threading.Thread(target=save)
thread.start()
thread.join()
";

#[test]
fn a_finding_names_the_line_of_a_script_in_python() {
    let version = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))";
    let is_known = Command::new("python3").args(["-c", version]).status();
    or_skip!(match is_known.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("python3 is not CPython 3.11 to 3.13"),
    });
    let compile = "mkdir 'a b'; mv save.py 'a b'; echo \"exec python3 -SE 'a b/save.py'\" > save; \
        chmod +x save";
    let lines = lines_of("save.py", SCRIPT, compile);
    assert_eq!(lines, ["write a b/save.py:4", "rename a b/save.py:6"]);
}

#[test]
fn a_finding_names_no_line_of_another_interpreter() {
    let scripts = [
        (
            "node",
            "save.js",
            "fs = require('fs'); fs.writeFileSync('t', 'x'); fs.renameSync('t', 'a')",
        ),
        ("perl", "save.pl", "open(F, '>t'); print F 'x'; close F; rename 't', 'a'"),
        ("ruby", "save.rb", "File.write('t', 'x'); File.rename('t', 'a')"),
        ("bash", "save.sh", "echo x > t; mv t a"),
        ("java", "Save.java", JAVA),
    ];
    for (interpreter, source, text) in scripts {
        match installed(interpreter) {
            Ok(()) => {
                let compile = format!("echo exec {interpreter} {source} > save; chmod +x save");
                let lines = lines_of(source, text, &compile);
                assert_eq!(lines, ["write nowhere", "rename nowhere"], "{interpreter}");
            }
            Err(because) => fixtures::skip_here!(&because),
        }
    }
}

const JAVA: &str = "import java.nio.file.*; class Save { public static void main(String[] a) \
    throws Exception { Files.writeString(Path.of(\"t\"), \"x\"); \
    Files.move(Path.of(\"t\"), Path.of(\"a\"), StandardCopyOption.ATOMIC_MOVE); } }";
