//! Tests of `wrote trace`: its verdicts on common programs, and that tracing does not change their
//! behaviour.

mod advice;
mod below;
mod crash;
mod found;
mod kinds;
mod left;
mod mapped;
mod places;
mod programs;
mod queues;
mod refused;
mod suites;
mod unknown;

use crate::support::{printed, run_through, without_rights, wrote};
use fixtures::{Finished, finish, folder, or_skip};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wrote_result::document::{Document, Survives};
use wrote_result::quoted;
use wrote_result::trace::{File, How, Trace, Verdict};

/// Traces a script in a folder, which is judged like a folder on a disk. The document is written to
/// a file next to it.
fn traced(place: &Path, script: &str, more: &[&str]) -> (Trace, Finished) {
    traced_there(place, script, &[&["--on-disk"], more].concat())
}

/// Traces a script in a folder, and judges it by the file system of that folder.
fn traced_there(place: &Path, script: &str, more: &[&str]) -> (Trace, Finished) {
    let file = place.join("trace.json");
    let mut command = wrote(&["trace", "--format", "json", "--force", "-o"]);
    command.arg(&file).args(more).args(["--", "sh", "-c", script]).current_dir(place);
    let finished = finish(&mut command);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    (serde_json::from_str(&text).unwrap(), finished)
}

/// Returns the document of a script in a folder that contains a file `a`.
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

/// Returns the command that runs this program, for a shell.
fn own() -> String {
    quoted(&[env!("CARGO_BIN_EXE_wrote")])
}

const SAFE: Survives = Survives::PowerLoss;
const CACHED: Survives = Survives::ProcessCrash;

#[test]
fn each_way_to_save_a_file_has_its_row_and_its_findings() {
    use How::{Appended, Changed, Made, Replaced, Rewritten};
    let link = "ln -s b l; sync .; ln -s a t; mv -T t l";
    let flushed_link = format!("{link}; sync .");
    let ways: [(&str, &str, How, Survives, &[&str]); 13] = [
        ("printf new > t; mv t a", "a", Replaced, CACHED, &["rename-before-flush"]),
        ("printf new > t; sync t; mv t a", "a", Replaced, CACHED, &["folder-not-flushed"]),
        ("printf new > t; sync t; mv t a; sync .", "a", Replaced, SAFE, &[]),
        ("printf new > a", "a", Rewritten, CACHED, &["only-copy-overwritten", "never-flushed"]),
        ("printf new >> a; sync a", "a", Appended, SAFE, &[]),
        ("truncate -s 1M a", "a", Appended, CACHED, &["size-not-flushed"]),
        ("truncate -s 1 a", "a", Changed, CACHED, &["cut-not-flushed"]),
        (link, "l", Replaced, CACHED, &["folder-not-flushed"]),
        (&flushed_link, "l", Replaced, SAFE, &[]),
        ("z of=b bs=4096 oflag=direct", "b", Made, CACHED, &["direct-taken-for-durable"]),
        ("z of=b bs=1 count=1000 conv=fsync; sync .", "b", Made, SAFE, &["unbuffered"]),
        ("z of=b bs=16 count=100 oflag=dsync; sync .", "b", Made, SAFE, &["flush-each-small"]),
        ("z of=a bs=2 oflag=dsync", "a", Rewritten, SAFE, &["only-copy-overwritten"]),
    ];
    for (script, name, how, survives, findings) in ways {
        let trace = trace(&format!("z() {{ dd if=/dev/zero status=none count=1 $*; }}; {script}"));
        let row = file(&trace, name);
        assert_eq!((row.how, row.survives), (how, survives), "{script}: {trace:?}");
        assert_eq!(ids(&trace), findings, "{script}: {trace:?}");
    }
}

#[test]
fn a_row_has_the_counts_of_its_file() {
    let trace = trace("printf new > t; mv t a; dd if=/dev/zero of=b bs=1 count=9 oflag=dsync");
    let row = file(&trace, "a");
    assert_eq!((row.writes, row.bytes, row.unflushed_bytes, row.flushes), (1, 3, 3, 0), "{row:?}");
    let row = file(&trace, "b");
    assert_eq!((row.writes, row.bytes, row.unflushed_bytes, row.flushes), (9, 9, 0, 9), "{row:?}");
    assert_eq!(row.write_p50_bytes, 1);
}

/// Scripts that name a file; each with a name, and whether that name survives a power loss.
const NAMES: [(&str, &str, bool); 7] = [
    ("printf new > b; sync b; ln b c", "b", true),
    ("printf new > b; sync b; ln b c", "c", false),
    ("printf new > b; sync b; ln b c; rm b; sync .", "c", true),
    ("ln a c; rm a", "c", false),
    ("mkdir d d/e; printf new > d/e/b; sync d/e/b", "d/e/b", true),
    ("mkdir d; printf new > d/b; sync d/b d .; mv d e", "e/b", false),
    ("mkdir d; printf new > d/b; sync d/b d .; mv d e; sync .", "e/b", true),
];

#[test]
fn names_of_a_file_survive_each_for_itself() {
    for (script, name, is_durable) in NAMES {
        let trace = trace(script);
        let row = trace.files.iter().find(|row| row.path.ends_with(&format!("/{name}")));
        let row = row.unwrap_or_else(|| panic!("{script}: no {name}: {trace:?}"));
        assert_eq!(row.survives == SAFE, is_durable, "{script}: {trace:?}");
        let has_warning = ids(&trace).contains(&"folder-not-flushed");
        assert!(is_durable || has_warning, "{script}: {trace:?}");
    }
}

#[test]
fn a_file_that_is_emptied_by_its_path_or_by_zeros_loses_its_only_copy_too() {
    or_skip!(installed("python3").and(installed("fallocate")));
    let pages = |script: &str| {
        let place = folder();
        fs::write(place.path().join("a"), vec![7; 8192]).unwrap();
        traced(place.path(), script, &[]).0
    };
    // This call flushes the file.
    or_skip!(match pages("fallocate --zero-range -l 8192 a").end.code {
        Some(0) => Ok(()),
        _ => Err("this file system can't zero ranges"),
    });
    let lost: &[&str] = &["only-copy-overwritten"];
    let write = "dd if=/dev/zero of=a bs=4096 count=1 conv=notrunc,fsync status=none";
    for (script, findings) in [
        ("python3 -SEc 'import os; os.truncate(\"a\", 0)'", lost),
        ("python3 -SEc 'import os; os.truncate(\"a\", 1)'", &[]),
        ("fallocate --punch-hole -l 8192 a", lost),
        ("fallocate --zero-range -l 8192 a", lost),
        ("fallocate --punch-hole -l 4096 a", &[]),
        ("fallocate --zero-range -l 4096 a", &[]),
        ("fallocate --collapse-range -l 4096 a", &[]),
    ] {
        let trace = pages(&format!("{script} && {write}"));
        assert_eq!((trace.end.code, ids(&trace)), (Some(0), findings.to_vec()), "{script}");
    }
}

#[test]
fn an_answer_before_the_flush_is_told_with_how_much_later_the_file_was_durable() {
    let place = folder();
    let script = "printf new > b; echo start; sync b; sync .; echo saved >&2";
    let early = |script: &str, sign: &str| {
        let (trace, finished) = traced(place.path(), script, &["--ack", sign]);
        fs::remove_file(place.path().join("b")).unwrap();
        let found = trace.findings.iter().find(|finding| finding.id == "acknowledged-early");
        (found.map(|found| found.text.clone()), finished.stdout)
    };
    let (text, stdout) = early(script, "stdout");
    let text = text.unwrap();
    assert!(
        text.starts_with("b (durable only ") && text.contains(" after the answer): not"),
        "{text}"
    );
    assert_eq!(stdout, "start\n");
    assert!(early(script, "/^sta?rt$/").0.is_some());
    assert_eq!(early(script, "/saved/").0, None);
    assert_eq!(early(script, "exit").0, None);
    // A pipe between child processes of the program is not its standard output.
    let piped = "printf new > b; echo saved | cat >/dev/null; sync b; sync .";
    assert_eq!((early(piped, "stdout").0, early(piped, "/saved/").0), (None, None));
    for wrong in ["stdot", "/(/"] {
        is_one_line(&finish(&mut wrote(&["trace", "--ack", wrong, "true"])), 2, "--ack");
    }
}

#[test]
fn an_answer_on_a_socket_is_told_with_any_call_that_sends_it() {
    or_skip!(installed("python3"));
    for send in ["write(ours.fileno(), text)", "writev(ours.fileno(), [text])"] {
        answers_on_a_socket(&format!("os.{send}"));
    }
    for send in ["send(text)", "sendmsg([b'', text])"] {
        answers_on_a_socket(&format!("ours.{send}"));
    }
}

fn answers_on_a_socket(send: &str) {
    let program = format!(
        "import os, socket\n\
         ours, theirs = socket.socketpair()\n\
         for text in [b'start', b'saved']:\n\
         \x20   {send}\n\
         \x20   file = os.open('b', os.O_WRONLY | os.O_CREAT)\n\
         \x20   os.write(file, b'new')\n\
         \x20   os.fsync(file)\n"
    );
    for (sign, answers) in [("socket", 2), ("/sav/", 1), ("stdout", 0)] {
        let trace = python(&program, &["--ack", sign]);
        let count: u64 = trace.timeline.answers.iter().map(|calls| calls.count).sum();
        assert_eq!(count, answers, "{send}, {sign}: {trace:?}");
        assert!(!ids(&trace).contains(&"acknowledged-early"), "{send}, {sign}: {trace:?}");
    }
}

/// Asserts that a command has exited with this code and a single line.
fn is_one_line(finished: &Finished, code: i32, says: &str) {
    let found = (finished.code(), finished.stderr.lines().count());
    assert_eq!(found, (Some(code), 1), "{finished:?}");
    assert!(finished.stderr.contains(says), "{finished:?}");
}

/// Returns an error if a program to trace is not installed.
fn installed(program: &str) -> Result<(), String> {
    // Go spells this option differently, but any answer will do.
    let found = Command::new(program).arg("--version").output();
    found.map(drop).map_err(|_| format!("{program} is not installed"))
}

/// Returns the document of a program in Python.
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

#[test]
fn the_program_keeps_its_streams_and_its_exit_code() {
    let run = |script: &str, more: &[&str]| {
        finish(wrote(&["trace"]).args(more).args(["sh", "-c", script]))
    };
    let plain = run("echo out; echo err >&2; exit 7", &[]);
    assert_eq!((plain.code(), plain.stdout.as_str()), (Some(7), "out\n"), "{plain:?}");
    assert!(plain.stderr.starts_with("err\n"), "{plain:?}");
    assert!(plain.stderr.ends_with("It wrote no file.\n"), "{plain:?}");
    let place = folder();
    let removed = format!("cd '{}'; echo > a; rm a; exit 7", place.path().display());
    let removed = run(&removed, &[]);
    assert!(removed.stderr.contains("1 file written and removed"), "{removed:?}");
    assert!(removed.stderr.ends_with("No file that it wrote is left; 0 warnings.\n"));
    // A real-time signal, which has no name but which the shell accepts.
    assert_eq!(run("trap 'exit 5' 40; kill -40 $$", &[]).code(), Some(5));
    // The program is stopped as a whole, and then continued.
    let stopped = run("(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo on", &[]);
    assert_eq!((stopped.code(), stopped.stdout.as_str()), (Some(0), "on\n"), "{stopped:?}");
    // The default action of SIGPIPE must be restored, because Rust ignores the signal.
    let piped = run("yes | head -1; exit ${PIPESTATUS:-0}", &[]);
    assert_eq!((piped.code(), piped.stdout.as_str()), (Some(0), "y\n"), "{piped:?}");
}

#[test]
fn a_finding_is_an_exit_code_where_that_is_asked() {
    let place = folder();
    fs::write(place.path().join("a"), "old").unwrap();
    let run = |script: &str, least: &str| {
        let mut command = wrote(&["trace", "--on-disk", "--fail-on", least, "sh", "-c", script]);
        finish(command.current_dir(place.path())).code()
    };
    assert_eq!(run("printf new > a", "warning"), Some(1));
    assert_eq!(run("printf new >> a; sync a", "warning"), Some(0));
    assert_eq!(run("printf new > b; sync b", "warning"), Some(0));
    assert_eq!(run("printf new > c; sync c", "info"), Some(1));
    assert_eq!(run("printf new > a; exit 4", "warning"), Some(4));
}

#[test]
fn a_program_that_is_not_there_is_one_line_also_where_it_is_named_as_the_subcommand() {
    let place = folder();
    let missing = finish(&mut wrote(&["trace", "no-such-program"]));
    is_one_line(&missing, 127, "wrote: no-such-program: No such file or directory (os error 2)\n");
    let script = place.path().join("script");
    fs::write(&script, "exit 0").unwrap();
    let forbidden = finish(wrote(&["trace"]).arg(&script));
    is_one_line(&forbidden, 126, ": Permission denied (os error 13)\n");
    let nothing = finish(&mut wrote(&["trace"]));
    assert_eq!(nothing.code(), Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("<COMMAND>"), "{nothing:?}");
    is_one_line(&finish(&mut wrote(&["trace", "--under", "/no/such", "true"])), 2, "/no/such");
    let dashes = finish(&mut wrote(&["trace", "--", "crash", "--check"]));
    is_one_line(&dashes, 127, "wrote: crash: No such file");
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
fn each_of_many_files_is_listed_or_counted_by_its_verdict() {
    const FILES: u64 = 9000;
    let script = "i=0; while [ $i -lt 9000 ]; do echo x > f$i; i=$((i+1)); done";
    for (more, verdict) in [("", Verdict::Lost), ("; sync -f .; rm f0", Verdict::Survives)] {
        let trace = trace(&format!("{script}{more}"));
        let counted = trace.more_files;
        let count = trace.files.len() as u64 + counted.count() + trace.removed_files;
        assert_eq!((trace.verdict, count), (verdict, FILES), "{counted:?}");
        assert!(trace.files.len() >= 4096 && counted.count() > 0, "{counted:?}");
        assert_eq!(counted.verdict(), verdict, "{counted:?}");
        let is_lost = verdict == Verdict::Lost;
        assert_eq!(ids(&trace).contains(&"never-flushed"), is_lost, "{:?}", trace.findings);
    }
}

#[test]
fn files_of_the_kernel_and_streams_are_not_judged() {
    // Java writes to the first of these files.
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
fn our_own_copy_survives_by_io_uring_and_by_its_fallback() {
    let copied = |more: &[&str]| {
        let place = folder();
        fs::write(place.path().join("a"), vec![7; 3 << 20]).unwrap();
        let (trace, finished) = traced(place.path(), &format!("{} copy --quiet a b", own()), more);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        trace
    };
    // If io_uring is refused, the program falls back to system calls (W6).
    for (more, is_refused) in [(&[][..], false), (&["--io-uring", "refuse"], true)] {
        let trace = copied(more);
        let row = file(&trace, "b");
        assert_eq!((row.survives, row.survives_posix), (SAFE, SAFE), "{trace:?}");
        assert_eq!(row.bytes, 3 << 20, "{trace:?}");
        assert_eq!(ids(&trace), [""; 0], "{trace:?}");
        let refused =
            trace.unseen.iter().filter(|unseen| unseen.starts_with("io_uring was refused"));
        assert_eq!(refused.count(), usize::from(is_refused), "{trace:?}");
        assert_eq!((trace.verdict, trace.unjudged.len()), (Verdict::Survives, 0), "{trace:?}");
    }
}

/// Returns a shell that appends to a file whenever it reads a line.
fn appender(place: &Path) -> Child {
    let script = "while read line; do printf $line >> b; done";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place).stdin(Stdio::piped());
    command.spawn().unwrap()
}

/// Attaches to a process that exits at the end of its input. Returns the process and its tracer
/// once the process is being traced.
fn joined(mut process: Child, document: &Path) -> Result<(Child, Child), String> {
    let mut command = wrote(&["trace", "--on-disk", "--format", "json", "-p"]);
    command.arg(process.id().to_string()).arg("-o").arg(document).stderr(Stdio::piped());
    let mut tracer = command.spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    // This line contains the number of the tracing thread.
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

/// Waits until a file contains these bytes.
fn await_file(path: &Path, bytes: &str) {
    while fs::read_to_string(path).unwrap_or_default() != bytes {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_runs_is_joined_and_watched_to_its_end() {
    let place = folder();
    let path = place.path().join("trace.json");
    let (mut process, mut tracer) = or_skip!(joined(appender(place.path()), &path));
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
    let (mut process, mut tracer) = or_skip!(joined(appender(place.path()), &path));
    let mut input = process.stdin.take().unwrap();
    let file_b = place.path().join("b");
    input.write_all(b"one\n").unwrap();
    await_file(&file_b, "one");
    // SIGINT is ignored in tests that a shell has started in the background.
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
    is_one_line(&finish(&mut wrote(&["trace", "-p", "2147483647"])), 2, "no such process");
    let through = or_skip!(without_rights());
    // A program of an ordinary user can be traced.
    let finished = finish(&mut run_through(&through, wrote(&["trace", "sh", "-c", "exit 3"])));
    assert_eq!(finished.code(), Some(3), "{finished:?}");
    let finished = finish(&mut run_through(&through, wrote(&["trace", "-p", "1"])));
    is_one_line(&finished, 125, "--pid 1: the kernel does not permit it");
}

#[test]
fn the_jobs_of_a_program_are_run_as_they_were_and_as_they_should_be() {
    let place = folder();
    let jobs = place.path().join("jobs.fio");
    let script = "dd if=/dev/zero of=b bs=16 count=128 oflag=dsync status=none";
    let (trace, _) = traced(place.path(), script, &["--job", jobs.to_str().unwrap()]);
    let row = file(&trace, "b");
    assert!(row.span_s >= row.flush_s && row.flush_s > 0.0, "{row:?}");
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
fn the_time_for_which_a_program_was_stopped_is_told() {
    let place = folder();
    let (trace, finished) = traced(place.path(), "printf x >> b; echo out", &[]);
    assert_eq!(finished.stdout, "out\n");
    assert!(trace.watching.stopped_s > 0.0 && trace.watching.stopped_s < trace.elapsed_s);
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
    let verdict =
        "After it ends, what it wrote does not survive a power loss (not flushed); 1 warning.";
    assert_eq!(first, Some(format!("- {verdict}").as_str()), "{finished:?}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains(verdict) && page.contains("never-flushed"), "{page}");
    let marks =
        ["<title>b: 1 creation, from ", "<title>b: 1 write (1 B), from ", "<title>end, at "];
    assert!(marks.iter().all(|mark| page.contains(mark)), "{page}");
    let schema: serde_json::Value = printed(&finish(&mut wrote(&["trace", "--schema"])));
    assert_eq!(schema["title"], "Trace");
}
