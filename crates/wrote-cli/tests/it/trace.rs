//! `wrote trace`: the verdicts on common programs, which must not behave differently.

mod kinds;
mod left;

use crate::support::{printed, run_through, without_rights, wrote};
use fixtures::{Finished, finish, folder, or_skip};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wrote_result::document::{Document, Survives};
use wrote_result::trace::{File, How, Trace};

/// Traces a script in a folder; the document is in a file beside it.
fn traced(place: &Path, script: &str, more: &[&str]) -> (Trace, Finished) {
    let file = place.join("trace.json");
    let mut command = wrote(&["trace", "--format", "json", "--force", "-o"]);
    command.arg(&file).args(more).args(["--", "sh", "-c", script]).current_dir(place);
    let finished = finish(&mut command);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    (serde_json::from_str(&text).unwrap(), finished)
}

/// The document of a script in a folder with a file `a`.
fn trace(script: &str) -> Trace {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    traced(place.path(), script, &[]).0
}

fn file<'a>(trace: &'a Trace, name: &str) -> &'a File {
    let has = |file: &&File| Path::new(&file.path).file_name() == Some(name.as_ref());
    trace.files.iter().find(has).unwrap_or_else(|| panic!("no {name}: {trace:?}"))
}

fn ids(trace: &Trace) -> Vec<&str> {
    trace.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn a_file_that_is_replaced_without_a_flush_is_a_warning() {
    let bad = trace("printf new > t; mv t a");
    let row = file(&bad, "a");
    assert_eq!((row.how, row.survives), (How::Replaced, Survives::ProcessCrash), "{bad:?}");
    assert_eq!((row.writes, row.bytes, row.unflushed_bytes), (1, 3, 3), "{bad:?}");
    assert_eq!(ids(&bad), ["rename-before-flush"]);
    let flushed = trace("printf new > t; sync t; mv t a");
    assert_eq!(ids(&flushed), ["folder-not-flushed"], "{flushed:?}");
    let good = trace("printf new > t; sync t; mv t a; sync .");
    assert_eq!(file(&good, "a").survives, Survives::PowerLoss, "{good:?}");
    assert_eq!(ids(&good), [""; 0], "{good:?}");
}

#[test]
fn a_file_that_is_written_anew_loses_its_only_copy() {
    let rewritten = trace("printf new > a");
    assert_eq!(file(&rewritten, "a").how, How::Rewritten, "{rewritten:?}");
    assert_eq!(ids(&rewritten), ["only-copy-overwritten", "never-flushed"], "{rewritten:?}");
    let appended = trace("printf new >> a; sync a");
    assert_eq!(file(&appended, "a").how, How::Appended, "{appended:?}");
    assert_eq!(ids(&appended), [""; 0], "{appended:?}");
}

#[test]
fn a_file_that_is_emptied_by_its_path_or_by_zeros_loses_its_only_copy_too() {
    or_skip!(installed("python3").and(installed("fallocate")));
    let by_path = trace("python3 -SEc 'import os; os.truncate(\"a\", 0)'; printf new >> a; sync a");
    assert_eq!(ids(&by_path), ["only-copy-overwritten"], "{by_path:?}");
    let cut = trace("python3 -SEc 'import os; os.truncate(\"a\", 1)'; printf new >> a; sync a");
    assert_eq!(ids(&cut), [""; 0], "{cut:?}");
    let pages = |script: &str| {
        let place = folder();
        fs::write(place.path().join("a"), vec![7; 8192]).unwrap();
        traced(place.path(), script, &[]).0
    };
    // It flushes the file.
    let zeroed = pages("fallocate --zero-range -l 8192 a");
    or_skip!(match zeroed.end.code {
        Some(0) => Ok(()),
        _ => Err("this file system can't zero ranges"),
    });
    assert_eq!(ids(&zeroed), [""; 0], "{zeroed:?}");
    for mode in ["--punch-hole", "--zero-range"] {
        let write = "dd if=a of=a bs=4096 count=1 conv=notrunc,fsync status=none";
        let whole = pages(&format!("fallocate {mode} -l 8192 a; {write}"));
        assert_eq!(ids(&whole), ["only-copy-overwritten"], "{mode}: {whole:?}");
        let half = pages(&format!("fallocate {mode} -l 4096 a; {write}"));
        assert_eq!(ids(&half), [""; 0], "{mode}: {half:?}");
    }
    let shifted = pages(
        "fallocate --collapse-range -l 4096 a && dd if=/dev/zero of=a bs=4096 \
        seek=1 count=1 conv=notrunc,fsync status=none",
    );
    assert_eq!(ids(&shifted), [""; 0], "{shifted:?}");
}

#[test]
fn direct_and_small_writes_are_told_as_what_they_are() {
    let direct = trace("dd if=/dev/zero of=b bs=4096 count=4 oflag=direct status=none");
    assert_eq!(ids(&direct), ["direct-taken-for-durable"], "{direct:?}");
    let small = trace("dd if=/dev/zero of=b bs=1 count=1000 status=none conv=fsync; sync .");
    assert_eq!(ids(&small), ["unbuffered"], "{small:?}");
    assert_eq!(file(&small, "b").write_p50_bytes, 1);
    let flushed = trace("dd if=/dev/zero of=b bs=16 count=100 oflag=dsync status=none; sync .");
    assert_eq!(ids(&flushed), ["flush-each-small"], "{flushed:?}");
    assert_eq!(file(&flushed, "b").flushes, 100);
}

#[test]
fn what_an_answer_came_before_is_told_with_how_much_later_it_was_durable() {
    let place = folder();
    let script = "printf new > b; echo saved; sync b; sync .";
    let (early, finished) = traced(place.path(), script, &["--ack", "stdout"]);
    assert_eq!(finished.stdout, "saved\n");
    assert_eq!(ids(&early), ["acknowledged-early"], "{early:?}");
    let text = &early.findings[0].text;
    assert!(text.starts_with("b (durable ") && text.contains(" later): not durable"), "{text}");
    let (end, _) = traced(place.path(), script, &[]);
    assert_eq!(ids(&end), ["only-copy-overwritten"], "{end:?}");
}

#[test]
fn a_pipe_between_children_of_a_program_is_not_its_standard_output() {
    let inner = "printf new > b; echo saved | cat >/dev/null; sync b; sync .";
    let place = folder();
    for sign in ["stdout", "/saved/"] {
        let (trace, _) = traced(place.path(), inner, &["--ack", sign]);
        assert_eq!(trace.timeline.answers, [], "{sign}: {trace:?}");
        assert!(!ids(&trace).contains(&"acknowledged-early"), "{sign}: {trace:?}");
    }
}

#[test]
fn an_answer_is_told_by_its_text_too() {
    let place = folder();
    let script = "printf new > b; echo start; sync b; sync .; echo saved >&2";
    let ids_of = |sign: &str| {
        let (trace, _) = traced(place.path(), script, &["--ack", sign]);
        let _ = fs::remove_file(place.path().join("b"));
        ids(&trace).join(",")
    };
    assert_eq!(ids_of("/^sta?rt$/"), "acknowledged-early");
    assert_eq!(ids_of("/saved/"), "");
    for wrong in ["stdot", "/(/"] {
        let finished = finish(&mut wrote(&["trace", "--ack", wrong, "true"]));
        assert_eq!(
            (finished.code(), finished.stderr.lines().count()),
            (Some(2), 1),
            "{finished:?}"
        );
    }
}

/// Whether a program to trace is installed.
fn installed(program: &str) -> Result<(), String> {
    // Go has another word for it; any answer is one.
    let found = Command::new(program).arg("--version").output();
    found.map(drop).map_err(|_| format!("{program} is not installed"))
}

/// The document of a program in Python.
fn python(program: &str, more: &[&str]) -> Trace {
    let place = folder();
    fs::write(place.path().join("program.py"), program).unwrap();
    let (trace, finished) = traced(place.path(), "python3 -SE program.py", more);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    trace
}

#[test]
fn descriptors_that_write_over_each_other_are_told_and_those_that_share_a_position_are_not() {
    or_skip!(installed("python3"));
    let program = |second: &str| {
        format!(
            "import os\n\
             first = os.open('log', os.O_WRONLY | os.O_CREAT)\n\
             second = {second}\n\
             for line in range(2):\n\
             \x20   os.write(first, b'from the first')\n\
             \x20   os.write(second, b'second')\n\
             os.fsync(first)\n\
             os.fsync(os.open('.', 0))\n"
        )
    };
    let second = "os.open('log', os.O_WRONLY)";
    let races = python(&program(second), &[]);
    assert_eq!(ids(&races), ["append-races"], "{races:?}");
    let appends = second.replace("O_WRONLY", "O_WRONLY | os.O_APPEND");
    assert_eq!(ids(&python(&program(&appends), &[])), [""; 0]);
    assert_eq!(ids(&python(&program("os.dup(first)"), &[])), [""; 0]);
}

/// Compiles a program that saves `a`, traces it, and returns its findings with their calls' lines.
fn lines_of(source: &str, text: &str, compile: &str) -> Vec<String> {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    fs::write(place.path().join(source), text).unwrap();
    let compiled = Command::new("sh").args(["-c", compile]).current_dir(&place).status().unwrap();
    assert!(compiled.success(), "{compile}");
    let (trace, finished) = traced(place.path(), "./save", &[]);
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
    // The standard library alone has lines.
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
    assert_eq!(lines_of("save.c", program, compile), ["write nowhere", "rename save.c:4"]);
}

#[test]
fn what_is_read_back_before_a_flush_is_told_where_reads_are_watched() {
    or_skip!(installed("python3"));
    let program = "import os\n\
        file = os.open('a', os.O_RDWR | os.O_CREAT)\n\
        os.write(file, b'new')\n\
        assert os.pread(file, 3, 0) == b'new'\n\
        os.fsync(file)\n\
        os.fsync(os.open('.', 0))\n";
    let seen = python(program, &["--reads"]);
    assert_eq!(ids(&seen), ["reads-what-it-wrote"], "{seen:?}");
    assert_eq!(ids(&python(program, &[])), [""; 0]);
}

#[test]
fn the_program_keeps_its_streams_and_its_exit_code() {
    let run = |script: &str, more: &[&str]| {
        finish(wrote(&["trace"]).args(more).args(["sh", "-c", script]))
    };
    let plain = run("echo out; echo err >&2; exit 7", &[]);
    assert_eq!((plain.code(), plain.stdout.as_str()), (Some(7), "out\n"), "{plain:?}");
    assert!(plain.stderr.starts_with("err\n"), "{plain:?}");
    assert!(plain.stderr.ends_with("It wrote no file.\n"), "{plain:?}");
    assert_eq!(run("kill -9 $$", &[]).signal(), Some(9));
    // A real-time signal, which has no name but which the shell accepts.
    assert_eq!(run("trap 'exit 5' 40; kill -40 $$", &[]).code(), Some(5));
    // Stopped as a whole, and continued.
    let stopped = run("(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo on", &[]);
    assert_eq!((stopped.code(), stopped.stdout.as_str()), (Some(0), "on\n"), "{stopped:?}");
    // Restores the default action of SIGPIPE, which Rust ignores.
    let piped = run("yes | head -1; exit ${PIPESTATUS:-0}", &[]);
    assert_eq!((piped.code(), piped.stdout.as_str()), (Some(0), "y\n"), "{piped:?}");
}

#[test]
fn a_finding_is_an_exit_code_where_that_is_asked() {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    let run = |script: &str, least: &str| {
        let mut command = wrote(&["trace", "--fail-on", least, "sh", "-c", script]);
        finish(command.current_dir(place.path())).code()
    };
    assert_eq!(run("printf new > a", "warning"), Some(1));
    assert_eq!(run("printf new >> a; sync a", "warning"), Some(0));
    assert_eq!(run("printf new > b; sync b", "warning"), Some(0));
    assert_eq!(run("printf new > c; sync c", "info"), Some(1));
    assert_eq!(run("printf new > a; exit 4", "warning"), Some(4));
}

#[test]
fn a_program_that_is_not_there_is_one_line() {
    let place = folder();
    let refused = |command: &mut Command| {
        let finished = finish(command);
        (finished.code(), finished.stderr)
    };
    let (code, line) = refused(&mut wrote(&["trace", "no-such-program"]));
    assert_eq!(code, Some(127));
    assert_eq!(line, "wrote: no-such-program: No such file or directory (os error 2)\n");
    let script = place.path().join("script");
    fs::write(&script, "exit 0").unwrap();
    let (code, line) = refused(wrote(&["trace"]).arg(&script));
    assert_eq!(code, Some(126));
    assert!(line.ends_with(": Permission denied (os error 13)\n"), "{line}");
    let (code, line) = refused(&mut wrote(&["trace"]));
    assert_eq!(code, Some(2));
    assert!(line.contains("<COMMAND>"), "{line}");
    let (code, line) = refused(&mut wrote(&["trace", "--under", "/no/such", "true"]));
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
}

#[test]
fn children_threads_and_what_outlives_the_program_are_seen() {
    let late = trace("(sleep 0.1; printf late > late) & printf now > now");
    assert_eq!(file(&late, "late").bytes, 4, "{late:?}");
    assert_eq!(file(&late, "now").bytes, 3, "{late:?}");
}

#[test]
fn more_files_are_open_than_this_process_may_have_open() {
    let place = folder();
    let script = "mkfifo p; exec 9<>p; for i in $(seq 30); do \
        (exec 3>a$i 4>b$i 5>c$i 6>d$i 7>e$i 8>f$i; for n in 3 4 5 6 7 8; do \
        printf x >&$n; printf y >&$n; done; : >ready$i; read l <&9) & done; \
        until [ $(ls | grep -c ready) = 30 ]; do sleep 0.05; done; \
        for i in $(seq 30); do echo >&9; done; wait";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 170; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_wrote"), "trace"]);
    command.args(["--format", "json", "-o", "t.json", "sh", "-c", script]);
    let finished = finish(command.current_dir(place.path()));
    let text = fs::read_to_string(place.path().join("t.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let trace: Trace = serde_json::from_str(&text).unwrap();
    let whole = trace.files.iter().filter(|file| (file.writes, file.bytes) == (2, 2)).count();
    assert_eq!(whole, 180, "{finished:?}");
}

#[test]
fn files_of_the_kernel_and_streams_are_not_judged() {
    // Java writes the first.
    let trace = trace("echo 0x33 > /proc/self/coredump_filter; echo out; echo err >&2");
    assert_eq!((trace.files.len(), trace.findings.len()), (0, 0), "{trace:?}");
}

#[test]
fn only_the_folders_that_are_asked_about_are_judged() {
    let place = folder();
    fs::create_dir(place.path().join("in")).unwrap();
    let under = place.path().join("in");
    let more = ["--under", under.to_str().unwrap()];
    let (trace, _) = traced(place.path(), "printf x > out; printf x > in/file", &more);
    assert_eq!(trace.files.len(), 1, "{trace:?}");
    assert!(trace.findings[0].text.starts_with("in/file (1 B): "), "{trace:?}");
}

#[test]
fn our_own_copy_survives() {
    // It uses its fallback if io_uring is refused (W6).
    let place = folder();
    fs::write(place.path().join("a"), vec![7; 3 << 20]).unwrap();
    let script = format!("{} copy --quiet a b", env!("CARGO_BIN_EXE_wrote"));
    let (trace, finished) = traced(place.path(), &script, &[]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!(file(&trace, "b").survives, Survives::PowerLoss, "{trace:?}");
    assert_eq!(file(&trace, "b").survives_posix, Survives::PowerLoss, "{trace:?}");
    assert_eq!(ids(&trace), [""; 0], "{trace:?}");
    assert!(trace.unseen.iter().any(|unseen| unseen.starts_with("io_uring was refused")));
}

#[test]
fn io_uring_runs_unseen_where_that_is_asked() {
    let place = folder();
    fs::write(place.path().join("a"), vec![7; 3 << 20]).unwrap();
    let script = format!("{} copy --quiet a b", env!("CARGO_BIN_EXE_wrote"));
    let (trace, finished) = traced(place.path(), &script, &["--io-uring", "allow"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(!trace.unseen.iter().any(|unseen| unseen.contains("refused")), "{trace:?}");
    assert!(trace.unseen.iter().any(|unseen| unseen == "writes by io_uring are not seen"));
}

#[test]
fn a_link_that_is_switched_by_a_rename_needs_its_folder_flushed() {
    let switched = trace("ln -s b l; sync .; ln -s a t; mv -T t l");
    assert_eq!(ids(&switched), ["folder-not-flushed"], "{switched:?}");
    assert_eq!(file(&switched, "l").survives, Survives::ProcessCrash, "{switched:?}");
    let flushed = trace("ln -s b l; sync .; ln -s a t; mv -T t l; sync .");
    assert_eq!(ids(&flushed), [""; 0], "{flushed:?}");
    // A power cut leaves either link, not a file.
    let place = folder();
    let record = recorded(place.path(), "ln -s b l; sync .; ln -s a t; mv -T t l");
    let check = "sh -c 'test ! -e $0/l -a ! -L $0/l || readlink $0/l'";
    let finished = crash(&record, &["--check", check]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

/// A shell that appends to a file for each line of its input.
fn appender(place: &Path) -> Child {
    let script = "while read line; do printf $line >> b; done";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place).stdin(Stdio::piped());
    command.spawn().unwrap()
}

/// Starts an appender and joins it; returns both once it is watched.
fn joined(place: &Path, document: &Path) -> Result<(Child, Child), String> {
    let mut process = appender(place);
    let mut command = wrote(&["trace", "--format", "json", "-p"]);
    command.arg(process.id().to_string()).arg("-o").arg(document).stderr(Stdio::piped());
    let mut tracer = command.spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    // The number there belongs to the watching thread.
    let is_watched = || !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n");
    while !is_watched() {
        if tracer.try_wait().unwrap().is_some() {
            drop(process.stdin.take());
            process.wait().unwrap();
            let error = std::io::read_to_string(tracer.stderr.take().unwrap()).unwrap();
            assert!(error.contains("the kernel does not permit it"), "{error}");
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok((process, tracer))
}

fn document(path: &Path) -> Trace {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Waits until a file has these bytes.
fn await_file(path: &Path, bytes: &str) {
    while fs::read_to_string(path).unwrap_or_default() != bytes {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_runs_is_joined_and_watched_to_its_end() {
    let place = folder();
    let path = place.path().join("trace.json");
    let (mut process, mut tracer) = or_skip!(joined(place.path(), &path));
    process.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert!(process.wait().unwrap().success());
    assert_eq!(tracer.wait().unwrap().code(), Some(0));
    let trace = document(&path);
    assert_eq!((trace.end.code, trace.command[0].as_str()), (Some(0), "sh"), "{trace:?}");
    let row = file(&trace, "b");
    assert_eq!((row.how, row.writes, row.bytes), (How::Made, 2, 6), "{trace:?}");
    assert!(!row.is_mapped, "{trace:?}");
}

#[test]
fn a_program_that_is_left_runs_on_alone() {
    let place = folder();
    let path = place.path().join("trace.json");
    let (mut process, mut tracer) = or_skip!(joined(place.path(), &path));
    let mut input = process.stdin.take().unwrap();
    let file_b = place.path().join("b");
    input.write_all(b"one\n").unwrap();
    await_file(&file_b, "one");
    // SIGINT is ignored in a test that a shell has started in the background.
    let tracer_id = tracer.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &tracer_id]).status().unwrap().success());
    assert_eq!(tracer.wait().unwrap().code(), Some(143));
    input.write_all(b"two\n").unwrap();
    await_file(&file_b, "onetwo");
    drop(input);
    assert!(process.wait().unwrap().success());
    let trace = document(&path);
    assert_eq!((trace.end.code, trace.end.signal), (None, None), "{trace:?}");
    assert_eq!(file(&trace, "b").bytes, 3, "{trace:?}");
}

#[test]
fn a_process_that_is_not_there_or_another_users_is_one_line() {
    let one_line = |finished: &Finished, says: &str| {
        assert_eq!(
            (finished.code(), finished.stderr.lines().count()),
            (Some(1), 1),
            "{finished:?}"
        );
        assert!(finished.stderr.contains(says), "{finished:?}");
    };
    one_line(&finish(&mut wrote(&["trace", "-p", "2147483647"])), "no such process");
    let through = or_skip!(without_rights());
    let finished = finish(&mut run_through(&through, wrote(&["trace", "-p", "1"])));
    one_line(&finished, "--pid 1: the kernel does not permit it");
}

#[test]
fn the_jobs_of_a_program_are_run_as_they_were_and_as_they_should_be() {
    let place = folder();
    let jobs = place.path().join("jobs.fio");
    let script = "dd if=/dev/zero of=b bs=16 count=128 oflag=dsync status=none";
    let (trace, _) = traced(place.path(), script, &["--job", jobs.to_str().unwrap()]);
    assert!(file(&trace, "b").flush_s > 0.0, "{trace:?}");
    let mut command = wrote(&["run", "--format", "json"]);
    let result: Document = printed(&finish(command.arg(&jobs).current_dir(place.path())));
    let rows = result.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let rows: Vec<_> = rows.map(|row| (row.name.as_str(), row.survives)).collect();
    let safe = Some(Survives::PowerLoss);
    assert_eq!(rows, [("1-as-traced", safe), ("1-advised", safe)]);
    let nothing = finish(wrote(&["trace", "--job"]).arg(place.path().join("none")).arg("true"));
    assert_eq!(nothing.code(), Some(1), "{nothing:?}");
}

#[test]
fn the_writes_are_replayed_beside_the_advised_way_and_leave_nothing() {
    let place = folder();
    let script = "dd if=/dev/zero of=b bs=16 count=128 oflag=dsync status=none";
    let (trace, finished) = traced(place.path(), script, &["--replay"]);
    let [replay] = trace.replays.as_slice() else { panic!("{trace:?}") };
    assert_eq!((replay.writes, replay.bytes, replay.runs), (128, 2048, 5), "{replay:?}");
    assert_eq!(replay.advised_writes_per_flush, Some(64), "{replay:?}");
    assert!(replay.as_traced_s.median > 0.0 && replay.advised_s.median > 0.0, "{replay:?}");
    let announced = finished.stderr.lines().next().unwrap();
    assert!(announced.contains("/b: writes at most 22.5 kB into "), "{finished:?}");
    assert_eq!(fixtures::names(place.path()), ["b", "trace.json"]);
    let row = file(&trace, "b");
    assert!(row.span_s >= row.flush_s && row.flush_s > 0.0, "{row:?}");
    let finished = finish(wrote(&["trace", "--replay", "sh", "-c", script]).current_dir(&place));
    assert!(finished.stderr.contains("b: 128 writes took "), "{finished:?}");
    assert!(finished.stderr.contains(" with one flush for each 64 writes ("), "{finished:?}");
}

#[test]
fn sync_file_range_makes_nothing_durable() {
    or_skip!(installed("python3"));
    let program = "import ctypes; f = open('b', 'w'); f.write('new'); f.flush(); \
        call = ctypes.CDLL(None, use_errno=True).sync_file_range; \
        call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]; \
        assert call(f.fileno(), 0, 0, 7) == 0";
    let trace = python(program, &[]);
    let row = file(&trace, "b");
    assert_eq!((row.flushes, row.survives), (0, Survives::ProcessCrash), "{trace:?}");
    assert_eq!(ids(&trace), ["never-flushed"], "{trace:?}");
}

#[test]
fn a_second_run_that_is_not_watched_has_its_time_beside_the_first() {
    let place = folder();
    let (trace, finished) = traced(place.path(), "printf x >> b; echo out", &["--time"]);
    assert!(trace.watching.alone_s.is_some_and(|alone_s| alone_s > 0.0), "{trace:?}");
    assert_eq!(finished.stdout, "out\n");
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"xx");
    assert!(trace.watching.stopped_s > 0.0 && trace.watching.stopped_s < trace.elapsed_s);
    assert_eq!(traced(place.path(), "exit 3", &["--time"]).0.watching.alone_s, None);
}

#[test]
fn an_ordinary_user_traces_too() {
    let through = or_skip!(without_rights());
    let finished = finish(&mut run_through(&through, wrote(&["trace", "sh", "-c", "exit 3"])));
    assert_eq!(finished.code(), Some(3), "{finished:?}");
}

#[test]
fn a_page_and_markdown_say_the_same() {
    let place = folder();
    let page = place.path().join("page.html");
    let mut command = wrote(&["trace", "--format", "markdown", "--html"]);
    command.arg(&page).args(["sh", "-c", "printf x > b"]).current_dir(place.path());
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let first = finished.stderr.lines().nth(2);
    let verdict = "At its end, what it wrote does not survive a power cut; 1 warning.";
    assert_eq!(first, Some(format!("- {verdict}").as_str()), "{finished:?}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains(verdict) && page.contains("never-flushed"), "{page}");
    let marks =
        ["<title>b: 1 creation, from ", "<title>b: 1 write (1 B), from ", "<title>end, at "];
    assert!(marks.iter().all(|mark| page.contains(mark)), "{page}");
    let schema: serde_json::Value = printed(&finish(&mut wrote(&["trace", "--schema"])));
    assert_eq!(schema["title"], "Trace");
}

/// Records a script in a folder with a file `a`; the record is beside the folder.
fn recorded(place: &Path, script: &str) -> PathBuf {
    let folder = place.join("data");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), "old").unwrap();
    let record = place.join("record");
    let mut command = wrote(&["trace", "--force", "--record"]);
    command.arg(&record).args(["--", "sh", "-c", script]).current_dir(&folder);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    record
}

fn crash(record: &Path, more: &[&str]) -> Finished {
    finish(wrote(&["trace", "crash"]).arg(record).args(more))
}

/// A check: `a` has the old or the new content, and the new one once the program has ended.
const OLD_OR_NEW: &str = "sh -c 'case $(cat $0/a) in new) ;; old) test $WROTE_ANSWERS = 0 ;; \
    *) echo torn >&2; exit 1 ;; esac'";

#[test]
fn a_power_cut_is_made_that_shows_a_missing_flush() {
    let place = folder();
    let bad = recorded(place.path(), "printf new > t; mv t a");
    let finished = crash(&bad, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stdout.contains("\n  a is empty\n  the check ended with exit code 1: torn\n"));
    assert!(finished.stderr.starts_with("wrote: the check fails in "), "{finished:?}");
    // Its number makes it again.
    let line = finished.stdout.lines().next().unwrap();
    let number = line.strip_prefix("state ").and_then(|line| line.split_once(',')).unwrap().0;
    let keep = place.path().join("kept");
    let kept = crash(&bad, &["--state", number, "--keep", keep.to_str().unwrap()]);
    assert_eq!(kept.code(), Some(0), "{kept:?}");
    assert_eq!(kept.stdout.lines().next(), Some(line));
    assert_eq!(fs::read(keep.join("a")).unwrap(), b"", "{kept:?}");
    let again = crash(&bad, &["--state", number, "--keep", keep.to_str().unwrap()]);
    assert_eq!((again.code(), again.stderr.lines().count()), (Some(2), 1), "{again:?}");
}

#[test]
fn a_replacement_done_right_passes_in_every_state_and_one_without_the_folder_at_its_end_fails() {
    let place = folder();
    let good = recorded(place.path(), "printf new > t; sync t; mv t a; sync .");
    let finished = crash(&good, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.starts_with("The check passes in all of "), "{finished:?}");
    let late = recorded(place.path(), "printf new > t; sync t; mv t a");
    let finished = crash(&late, &["--check", OLD_OR_NEW]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stdout.contains("after its end: names as flushed"), "{finished:?}");
}

#[test]
fn a_check_that_hangs_or_is_not_there_is_told_and_leaves_nothing() {
    let place = folder();
    let record = recorded(place.path(), "printf new > t; mv t a");
    let temporary = place.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |check: &str, more: &[&str]| {
        let mut command = wrote(&["trace", "crash"]);
        command.arg(&record).args(["--check", check]).args(more).env("TMPDIR", &temporary);
        finish(&mut command)
    };
    let hangs = run("sh -c 'sleep 1000'", &["--timeout", "0.2s", "--moments", "1"]);
    assert_eq!(hangs.code(), Some(1), "{hangs:?}");
    assert!(hangs.stdout.contains("the check did not end within 200 ms"), "{hangs:?}");
    let missing = run("/no/such/check", &[]);
    assert_eq!((missing.code(), missing.stderr.lines().count()), (Some(1), 1), "{missing:?}");
    let unclosed = run("'", &[]);
    assert_eq!((unclosed.code(), unclosed.stderr.lines().count()), (Some(2), 1), "{unclosed:?}");
    let far = run("true", &["--state", "100000"]);
    assert_eq!((far.code(), far.stderr.lines().count()), (Some(2), 1), "{far:?}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_record_past_its_bound_a_cut_one_and_a_foreign_file_are_one_line() {
    let place = folder();
    let record = place.path().join("record");
    let mut command = wrote(&["trace", "--record-max", "10kB", "--record"]);
    command.arg(&record).args(["sh", "-c", "head -c 20000 /dev/zero > b; exit 3"]);
    let finished = finish(command.current_dir(place.path()));
    // The program runs to its end, with its exit code.
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    let last = finished.stderr.lines().last().unwrap();
    assert!(last.contains("are more than 10.0 kB; record less"), "{finished:?}");
    assert!(!record.exists());
    let one_line = |file: &Path, says: &str| {
        let finished = crash(file, &["--check", "true"]);
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(finished.stderr.contains(says), "{finished:?}");
    };
    let whole = fs::read(recorded(place.path(), "printf new > t; mv t a")).unwrap();
    fs::write(&record, &whole[..whole.len() - 1]).unwrap();
    one_line(&record, "record: the record is cut");
    fs::write(&record, "{}").unwrap();
    one_line(&record, "record: not a record");
    one_line(Path::new("/no/such/record"), "/no/such/record: No such file");
}

#[test]
fn a_program_named_as_the_subcommand_is_run_behind_dashes() {
    let finished = finish(&mut wrote(&["trace", "--", "crash", "--check"]));
    assert_eq!(finished.code(), Some(127), "{finished:?}");
    assert!(finished.stderr.starts_with("wrote: crash: No such file"), "{finished:?}");
}

/// The end of a SQLite commit, by its journal and its pragma `synchronous`.
fn committed(pragmas: &str) -> Trace {
    let place = folder();
    let database = place.path().join("db");
    let made = Command::new("sqlite3").arg(&database).arg("create table t(x)").status();
    assert!(made.unwrap().success());
    let script = format!("sqlite3 db '{pragmas} insert into t values(1);'");
    traced(place.path(), &script, &[]).0
}

#[test]
fn sqlite_keeps_what_its_documents_promise() {
    or_skip!(installed("sqlite3"));
    // <https://sqlite.org/pragma.html#pragma_synchronous>: FULL is durable but for the removal of
    // the journal, which EXTRA flushes; OFF passes data to the kernel without a flush.
    let full = committed("pragma synchronous=full;");
    assert_eq!(file(&full, "db").survives, Survives::PowerLoss, "{full:?}");
    assert_eq!(ids(&full), ["unlink-not-flushed"], "{full:?}");
    let extra = committed("pragma synchronous=extra;");
    assert_eq!(ids(&extra), [""; 0], "{extra:?}");
    // A journal that is cut is flushed after that by FULL and EXTRA.
    let cut = committed("pragma journal_mode=truncate; pragma synchronous=full;");
    assert_eq!(ids(&cut), [""; 0], "{cut:?}");
    let cut = committed("pragma journal_mode=truncate; pragma synchronous=normal;");
    assert_eq!(file(&cut, "db").survives, Survives::PowerLoss, "{cut:?}");
    assert_eq!(ids(&cut), ["cut-not-flushed"], "{cut:?}");
    let off = committed("pragma synchronous=off;");
    assert_eq!(file(&off, "db").survives, Survives::ProcessCrash, "{off:?}");
    assert_eq!(ids(&off), ["never-flushed"], "{off:?}");
}

/// The end of a Redis server that was killed after acknowledging one command.
fn acknowledged_by_redis(appendfsync: &str) -> Trace {
    let place = folder();
    let script = format!(
        "redis-server --dir . --port 0 --unixsocket s --save '' --appendonly yes \
         --appendfsync {appendfsync} >/dev/null & \
         until redis-cli -s s set a 1 2>/dev/null | grep -q OK; do sleep 0.05; done; kill -9 $!"
    );
    traced(place.path(), &script, &[]).0
}

#[test]
fn redis_keeps_what_its_documents_promise() {
    or_skip!(installed("redis-server").and(installed("redis-cli")));
    // <https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/>: `always` is
    // durable at each answer, `no` leaves it to the kernel. `everysec` depends on the moment.
    let log = |trace: &Trace| {
        let is_log = |file: &&File| file.path.ends_with("incr.aof") || file.path.ends_with("y.aof");
        let log = trace.files.iter().find(is_log);
        log.unwrap_or_else(|| panic!("no log: {trace:?}")).survives
    };
    let always = acknowledged_by_redis("always");
    assert_eq!(log(&always), Survives::PowerLoss, "{always:?}");
    assert!(!ids(&always).contains(&"never-flushed"), "{always:?}");
    let no = acknowledged_by_redis("no");
    assert_eq!(log(&no), Survives::ProcessCrash, "{no:?}");
    assert!(ids(&no).contains(&"never-flushed"), "{no:?}");
}

/// A program that saves a file in the place of an old one.
struct Save {
    needs: &'static [&'static str],
    /// Makes the program and its files, untraced.
    prepare: &'static str,
    script: &'static str,
    /// The end of the file's path.
    file: &'static str,
    survives: Survives,
    findings: &'static [&'static str],
}

const SAFE: Survives = Survives::PowerLoss;
const CACHED: Survives = Survives::ProcessCrash;
const REWRITTEN: &[&str] = &["only-copy-overwritten", "never-flushed"];
const NOTHING_FLUSHED: &[&str] = &["rename-before-flush"];
const NO_FOLDER: &[&str] = &["folder-not-flushed"];

/// Debian's programs.
const INSTALLED: [Save; 7] = [
    Save {
        needs: &["sed"],
        prepare: "",
        script: "sed -i s/old/new/ a",
        file: "/a",
        survives: CACHED,
        findings: NOTHING_FLUSHED,
    },
    // `:help backupcopy`: it overwrites the file beside a copy, which it does not flush.
    Save {
        needs: &["vim"],
        prepare: "",
        script: "vim -u NONE -es -c s/old/new/ -c wq a",
        file: "/a",
        survives: SAFE,
        findings: &["only-copy-overwritten"],
    },
    Save {
        needs: &["rsync"],
        prepare: "printf newer > s",
        script: "rsync s a",
        file: "/a",
        survives: CACHED,
        findings: NOTHING_FLUSHED,
    },
    Save {
        needs: &["rsync"],
        prepare: "printf newer > s",
        script: "rsync --fsync s a",
        file: "/a",
        survives: CACHED,
        findings: NO_FOLDER,
    },
    // <https://nodejs.org/api/fs.html>: it neither flushes nor replaces.
    Save {
        needs: &["node"],
        prepare: "",
        script: "node -e 'require(\"fs\").writeFile(\"a\", \"new\", () => {})'",
        file: "/a",
        survives: CACHED,
        findings: REWRITTEN,
    },
    Save {
        needs: &["python3"],
        prepare: "",
        script: "python3 -SEc 'import json; json.dump([1], open(\"a\", \"w\"))'",
        file: "/a",
        survives: CACHED,
        findings: REWRITTEN,
    },
    // It flushes the files of a package, but their folders never.
    Save {
        needs: &["dpkg", "dpkg-deb"],
        prepare: "d=var/lib/dpkg; mkdir -p r/$d/updates r/$d/info r/etc p/DEBIAN p/etc; \
            : > r/$d/status; : > r/$d/available; echo old > r/etc/x; echo new > p/etc/x; \
            printf 'Package: x\nVersion: 1\nArchitecture: all\nDescription: x\n\
            Maintainer: a <a@b.c>\n' > p/DEBIAN/control; \
            dpkg-deb -b p x.deb",
        script: "dpkg --no-force-unsafe-io --root=$PWD/r --force-not-root --force-bad-path \
            --log=/dev/null -i x.deb >/dev/null",
        file: "/r/etc/x",
        survives: CACHED,
        findings: NO_FOLDER,
    },
];

/// Traces programs and compares the verdicts on them. A program that can't run here is skipped.
fn judge(saves: &[Save]) {
    for save in saves {
        let place = folder();
        let is_there = save.needs.iter().try_for_each(|program| installed(program));
        match is_there.and_then(|()| prepare(save, place.path())) {
            Ok(()) => compare(save, place.path()),
            Err(because) => fixtures::skip_here!(&because),
        }
    }
}

fn prepare(save: &Save, place: &Path) -> Result<(), String> {
    fs::write(place.join("a"), "old\n").unwrap();
    let prepared = Command::new("sh").args(["-ec", save.prepare]).current_dir(place).output();
    let prepared = prepared.unwrap();
    let error = String::from_utf8_lossy(&prepared.stderr);
    let because = || format!("{}: {}", save.script, error.lines().last().unwrap_or_default());
    prepared.status.success().then_some(()).ok_or_else(because)
}

fn compare(save: &Save, place: &Path) {
    let (trace, finished) = traced(place, save.script, &[]);
    assert_eq!(finished.code(), Some(0), "{}: {finished:?}", save.script);
    let row = trace.files.iter().find(|row| row.path.ends_with(save.file));
    let row = row.unwrap_or_else(|| panic!("{}: {trace:?}", save.script));
    assert_eq!(row.survives, save.survives, "{}: {trace:?}", save.script);
    assert_eq!(ids(&trace), save.findings, "{}: {trace:?}", save.script);
}

#[test]
fn programs_that_save_a_file_are_judged_as_their_sources_have_it() {
    judge(&INSTALLED);
}

const JAVA: &str = "
cat > Save.java <<'END'
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import static java.nio.file.StandardOpenOption.*;

class Save {
    public static void main(String[] steps) throws Exception {
        Path temporary = Path.of(\"t\");
        try (FileChannel file = FileChannel.open(temporary, CREATE, WRITE)) {
            file.write(ByteBuffer.wrap(\"new\".getBytes()));
            if (steps.length > 0) file.force(true);
        }
        Files.move(temporary, Path.of(\"a\"), StandardCopyOption.ATOMIC_MOVE);
        if (steps.length < 2) return;
        try (FileChannel folder = FileChannel.open(Path.of(\".\"), READ)) { folder.force(true); }
    }
}
END
javac Save.java";

const KOTLIN: &str = "
cat > Save.kt <<'END'
import java.io.File

fun main(steps: Array<String>) {
    if (steps.isEmpty()) return File(\"a\").writeText(\"new\")
    File(\"t\").outputStream().use { it.write(\"new\".toByteArray()); it.fd.sync() }
    check(File(\"t\").renameTo(File(\"a\")))
}
END
kotlinc Save.kt -include-runtime -d save.jar";

const GO: &str = "
cat > main.go <<'END'
package main

import (
	\"os\"

	\"github.com/google/renameio/v2\"
)

func main() {
	save := os.WriteFile
	if len(os.Args) > 1 {
		save = func(name string, data []byte, mode os.FileMode) error {
			return renameio.WriteFile(name, data, mode)
		}
	}
	if err := save(\"a\", []byte(\"new\"), 0o644); err != nil {
		panic(err)
	}
}
END
go mod init example/save
go get github.com/google/renameio/v2@v2.0.2
go build -o save .";

const NPM: &str = "npm install --silent --no-audit --no-fund write-file-atomic@7";

/// Programs of languages, made here: by their own libraries, and by packages from their registries.
const MADE: [Save; 9] = [
    Save {
        needs: &["java", "javac"],
        prepare: JAVA,
        script: "java Save",
        file: "/a",
        survives: CACHED,
        findings: NOTHING_FLUSHED,
    },
    Save {
        needs: &["java", "javac"],
        prepare: JAVA,
        script: "java Save file",
        file: "/a",
        survives: CACHED,
        findings: NO_FOLDER,
    },
    Save {
        needs: &["java", "javac"],
        prepare: JAVA,
        script: "java Save file folder",
        file: "/a",
        survives: SAFE,
        findings: &[],
    },
    Save {
        needs: &["java", "kotlinc"],
        prepare: KOTLIN,
        script: "java -jar save.jar",
        file: "/a",
        survives: CACHED,
        findings: REWRITTEN,
    },
    Save {
        needs: &["java", "kotlinc"],
        prepare: KOTLIN,
        script: "java -jar save.jar file",
        file: "/a",
        survives: CACHED,
        findings: NO_FOLDER,
    },
    Save {
        needs: &["go"],
        prepare: GO,
        script: "./save",
        file: "/a",
        survives: CACHED,
        findings: REWRITTEN,
    },
    // <https://pkg.go.dev/github.com/google/renameio/v2>: it flushes the file, and no folder.
    Save {
        needs: &["go"],
        prepare: GO,
        script: "./save renameio",
        file: "/a",
        survives: CACHED,
        findings: NO_FOLDER,
    },
    // <https://github.com/npm/write-file-atomic>: `fsync` is its default. Issue 64 is the folder.
    Save {
        needs: &["node", "npm"],
        prepare: NPM,
        script: "node -e 'require(\"write-file-atomic\").sync(\"a\", \"new\")'",
        file: "/a",
        survives: CACHED,
        findings: NO_FOLDER,
    },
    Save {
        needs: &["node", "npm"],
        prepare: NPM,
        script: "node -e 'require(\"write-file-atomic\").sync(\"a\", \"new\", {fsync: false})'",
        file: "/a",
        survives: CACHED,
        findings: NOTHING_FLUSHED,
    },
];

#[test]
#[ignore = "nightly"]
fn programs_of_other_languages_are_judged_as_their_documents_have_it() {
    judge(&MADE);
}

/// Returns an address of this machine that was free a moment ago.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Puts a key into etcd by its JSON gateway. Returns the answer.
fn put(clients: SocketAddr) -> std::io::Result<String> {
    let body = r#"{"key": "YQ==", "value": "MQ=="}"#;
    let mut stream = TcpStream::connect(clients)?;
    write!(
        stream,
        "POST /v3/kv/put HTTP/1.1\r\nHost: {clients}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The trace of an etcd server that has acknowledged a key. Its answers are known by their text,
/// since its sockets have other messages too.
fn acknowledged_by_etcd(more: &str) -> Trace {
    let place = folder();
    let (clients, peers) = (free_address(), free_address());
    // The shell becomes etcd, so that its number is known.
    let script = format!(
        "echo $$ > pid; exec etcd --data-dir d --listen-client-urls http://{clients} {more} \
         --advertise-client-urls http://{clients} --listen-peer-urls http://{peers} \
         --initial-advertise-peer-urls http://{peers} --log-level error \
         --initial-cluster default=http://{peers} >/dev/null 2>&1"
    );
    let document_at = place.path().join("trace.json");
    let mut tracer = wrote(&["trace", "--format", "json", "--ack", "/\"revision\"/", "-o"]);
    tracer.arg(&document_at).args(["--", "sh", "-c", &script]).current_dir(place.path());
    let mut tracer = tracer.stderr(Stdio::null()).spawn().unwrap();
    while !put(clients).is_ok_and(|answer| answer.contains("\"revision\"")) {
        assert!(tracer.try_wait().unwrap().is_none(), "etcd has ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let process = fs::read_to_string(place.path().join("pid")).unwrap();
    assert!(Command::new("kill").arg(process.trim()).status().unwrap().success());
    tracer.wait().unwrap();
    document(&document_at)
}

#[test]
fn etcd_has_flushed_its_log_when_it_answers_unless_it_may_not_flush() {
    or_skip!(installed("etcd"));
    // <https://etcd.io/docs/v3.5/learning/persistent-storage-files/>: the log has each entry before
    // it is applied.
    let early = |trace: &Trace| {
        let finding = trace.findings.iter().find(|finding| finding.id == "acknowledged-early");
        finding.map(|finding| finding.evidence["places"].to_string()).unwrap_or_default()
    };
    let durable = acknowledged_by_etcd("");
    assert!(!durable.timeline.answers.is_empty(), "{durable:?}");
    let is_log = |file: &&File| file.path.ends_with(".wal") && file.writes > 0;
    let log = durable.files.iter().find(is_log).unwrap_or_else(|| panic!("no log: {durable:?}"));
    assert!(log.flushes > 0, "{durable:?}");
    assert!(!early(&durable).contains(".wal"), "{durable:?}");
    // <https://etcd.io/docs/v3.5/op-guide/configuration/>: "Disables fsync, unsafe".
    let unsafe_one = acknowledged_by_etcd("--unsafe-no-fsync");
    assert!(early(&unsafe_one).contains(".wal"), "{unsafe_one:?}");
}

/// Makes a database of PostgreSQL in `place`, whose server refuses to run as root. Returns the
/// beginning of commands that run as its user.
fn database(place: &Path) -> Result<&'static str, String> {
    ["initdb", "postgres", "psql"].into_iter().try_for_each(installed)?;
    let is_root = rustix::process::getuid().is_root();
    let user = if is_root { "runuser -u postgres --" } else { "" };
    let script = format!(
        "{} {user} initdb --no-sync -D d >/dev/null",
        if is_root { "chown postgres . &&" } else { "" }
    );
    let made = Command::new("sh").args(["-c", &script]).current_dir(place).output();
    let is_made = made.is_ok_and(|made| made.status.success());
    is_made.then_some(user).ok_or_else(|| "initdb can't make a database here".into())
}

#[test]
fn postgres_has_a_commit_in_its_log_when_it_answers_unless_it_may_be_lost() {
    let committed = |synchronous_commit: &str| {
        let place = folder();
        let user = database(place.path())?;
        // <https://www.postgresql.org/docs/15/wal-async-commit.html>
        let (trace, _) = traced(
            place.path(),
            &format!(
                "{user} postgres -D d -c listen_addresses= -c unix_socket_directories=$PWD \
                 -c wal_writer_delay=10s >/dev/null 2>&1 & \
                 until {user} psql -h $PWD -qAtc 'create table t (i int)' postgres 2>/dev/null; \
                 do sleep 0.1; done; \
                 {user} psql -h $PWD -qAtc 'set synchronous_commit = {synchronous_commit}; \
                 insert into t values (1)' postgres; kill -9 $(head -1 d/postmaster.pid)"
            ),
            &["--under", "d/pg_wal"],
        );
        Ok::<_, String>(trace)
    };
    let durable = or_skip!(committed("on"));
    let [log] = &durable.files[..] else { panic!("{durable:?}") };
    assert_eq!((log.survives, log.flushes), (Survives::PowerLoss, log.writes), "{durable:?}");
    let later = or_skip!(committed("off"));
    assert!(later.files.iter().map(|log| log.flushes).sum::<u64>() < log.flushes, "{later:?}");
}

#[test]
fn node_flushes_a_file_where_it_is_told_to() {
    or_skip!(installed("node"));
    // <https://nodejs.org/api/fs.html>: `flush` is new in 20.10 and 21.0.
    let save = |options: &str| {
        let save = format!("require(\"fs\").writeFileSync(\"b\", \"new\", {options})");
        trace(&format!("node -e '{save}'"))
    };
    let plain = save("{}");
    assert_eq!(file(&plain, "b").survives, Survives::ProcessCrash, "{plain:?}");
    assert!(ids(&plain).contains(&"never-flushed"), "{plain:?}");
    let flushed = save("{flush: true}");
    if file(&flushed, "b").flushes > 0 {
        assert_eq!(file(&flushed, "b").survives, Survives::PowerLoss, "{flushed:?}");
    }
}

#[test]
fn pickle_and_logging_of_python_leave_their_bytes_to_the_kernel() {
    or_skip!(installed("python3"));
    let pickled = python("import pickle; pickle.dump(1, open('b', 'wb'))", &[]);
    let logged = "import logging; logging.basicConfig(filename='b'); logging.error('new')";
    for trace in [pickled, python(logged, &[])] {
        assert_eq!(file(&trace, "b").survives, Survives::ProcessCrash, "{trace:?}");
        assert!(ids(&trace).contains(&"never-flushed"), "{trace:?}");
    }
}

#[test]
fn git_flushes_the_objects_that_core_fsync_names_and_no_folder() {
    or_skip!(installed("git"));
    // `core.fsync` of git-config(1): which components are hardened; folders are not among them.
    let commit = |components: &str| {
        let place = folder();
        let git = "git -c user.name=a -c user.email=a@b -c gc.auto=0 -c core.fsync";
        let script = format!("git init -q .; {git}={components} commit -q --allow-empty -m new");
        traced(place.path(), &script, &[]).0
    };
    let objects = |trace: &Trace| {
        let of_objects = trace.files.iter().filter(|file| file.path.contains("/objects/"));
        of_objects.map(|file| file.flushes).collect::<Vec<_>>()
    };
    let none = commit("none");
    assert!(objects(&none).iter().all(|flushes| *flushes == 0), "{none:?}");
    assert_eq!(file(&none, "index").flushes, 0, "{none:?}");
    let all = commit("all");
    assert!(!objects(&all).is_empty() && objects(&all).iter().all(|flushes| *flushes > 0));
    assert_eq!(file(&all, "index").survives, Survives::ProcessCrash, "{all:?}");
    assert!(ids(&all).contains(&"folder-not-flushed"), "{all:?}");
}
