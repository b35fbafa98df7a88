//! Tests that a file which was changed unseen has the verdict `unknown`, with the reason.

use super::mapped::MAPPED;
use super::{document, file, installed, joined, python, traced};
use crate::support::wrote;
use fixtures::{finish, folder, or_skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wrote_result::trace::{Trace, Verdict};

#[test]
fn what_cannot_be_judged_stands_in_the_table_the_last_line_and_the_page_and_fails_a_check() {
    or_skip!(installed("python3"));
    let place = folder();
    let big = "os.ftruncate(b, 17 << 30); os.fsync(b); mmap.mmap(b, 17 << 30)[0:3] = b'new'";
    let program = format!("{MAPPED}{big}\n");
    fs::write(place.path().join("program.py"), program).unwrap();
    let run = |more: &[&str]| {
        let mut command = wrote(&["trace", "--html", "page.html", "--force"]);
        command.args(more).args(["--", "python3", "-SE", "program.py"]);
        finish(command.current_dir(place.path()))
    };
    let finished = run(&[]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let said = finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let verdict = "Cannot be judged: b (stores through more than 16 GiB of shared mappings, or 64 \
        MiB where the kernel does not note them, are not seen). 0 warnings.";
    assert!(said.ends_with(verdict), "{said}");
    assert!(said.contains(" made, mapped unknown "), "{said}");
    let page = fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains(verdict) && page.contains(">unknown<"), "{page}");
    assert_eq!(run(&["--fail-on", "warning"]).code(), Some(1));
}

#[test]
fn a_standard_stream_that_is_a_file_is_not_judged_and_is_named() {
    let place = folder();
    for (script, more, unjudged) in [
        ("echo out", &[][..], "standard output (redirected to stream)"),
        ("echo out", &["--ack", "stdout"], "standard output (redirected to stream)"),
        ("true", &[], ""),
        ("echo out", &["--under", "."], "standard output (redirected to stream)"),
        ("echo out", &["--under", "/proc"], ""),
    ] {
        let mut command = wrote(&["trace", "--format", "json", "--force", "-o", "trace.json"]);
        command.args(more).args(["--", "sh", "-c", script]).current_dir(place.path());
        let stream = fs::File::create(place.path().join("stream")).unwrap();
        let status = command.stdout(stream).status().unwrap();
        assert!(status.success(), "{script} {more:?}");
        let trace = document(&place.path().join("trace.json"));
        assert_eq!(trace.unjudged.join(", "), unjudged, "{script} {more:?}: {trace:?}");
        let is_unknown = trace.verdict == Verdict::Unknown;
        assert_eq!(is_unknown, !unjudged.is_empty(), "{script} {more:?}: {trace:?}");
    }
}

/// Attaches to a program once it has created the file `ready`, and then lets it exit.
fn left_to_end(mut command: Command, place: &Path) -> Result<Trace, String> {
    let process = command.current_dir(place).stdin(Stdio::piped()).spawn().unwrap();
    while !place.join("ready").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let path = place.join("joined.json");
    let (mut process, mut tracer) = joined(process, &path)?;
    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
    assert_eq!(tracer.wait().unwrap().code(), Some(0));
    Ok(document(&path))
}

#[test]
fn what_a_program_had_written_before_it_was_joined_is_judged_once_it_is_flushed() {
    use Verdict::{Lost, Survives, Unknown};
    or_skip!(installed("python3"));
    for (work, log, map) in [
        ("pass", Unknown, Unknown),
        ("os.write(log, b'since')", Lost, Unknown),
        ("os.fsync(log)", Survives, Unknown),
        ("m.close(); os.sync()", Survives, Survives),
    ] {
        let place = folder();
        let program = format!(
            "{MAPPED}m = mapped(); m[0:3] = b'new'\n\
             log = os.open('log', os.O_WRONLY | os.O_CREAT)\n\
             os.write(log, b'before')\n\
             read = os.open('log', os.O_RDONLY)\n\
             open('ready', 'w').close()\n\
             os.read(0, 1)\n\
             {work}\n"
        );
        let mut command = Command::new("python3");
        command.args(["-SEc", &program]);
        let trace = or_skip!(left_to_end(command, place.path()));
        let verdict = |name| file(&trace, name).verdict;
        assert_eq!((verdict("log"), verdict("b")), (log, map), "{work}: {trace:?}");
        assert_eq!(trace.verdict == Survives, (log, map) == (Survives, Survives), "{trace:?}");
    }
}

/// Compiles a C program that does this work, and then waits for the end of its input.
fn compiled(place: &Path, work: &str) -> Result<Command, String> {
    installed("cc")?;
    let source = format!(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <string.h>\n#include <sys/mman.h>\n\
         #include <sys/syscall.h>\n#include <unistd.h>\n\
         int main(void) {{ char c; int b = open(\"b\", O_RDWR | O_CREAT, 0644); {work}\n\
         close(open(\"ready\", O_WRONLY | O_CREAT, 0644)); read(0, &c, 1); return 0; }}\n"
    );
    fs::write(place.join("program.c"), source).unwrap();
    let built =
        finish(Command::new("cc").args(["-w", "-o", "program", "program.c"]).current_dir(place));
    assert_eq!(built.code(), Some(0), "{built:?}");
    Ok(Command::new(place.join("program")))
}

const AIO: &str = "long queue = 0; if (syscall(SYS_io_setup, 8, &queue)) return 7;";
const RING: &str = "char params[120] = {0}; if (syscall(425, 8, params) < 0) return 7;";
const AIO_UNSEEN: &str = "writes by io_submit (kernel AIO) are not seen";

#[test]
fn a_queue_of_the_kernel_that_is_older_than_the_trace_leaves_no_file_that_is_called_safe() {
    for (work, unseen) in [(AIO, AIO_UNSEEN), (RING, "writes by io_uring are not seen")] {
        let place = folder();
        let mut program = or_skip!(compiled(place.path(), &format!("fsync(b); {work}")));
        let alone = program.current_dir(place.path()).stdin(Stdio::null()).status().unwrap();
        or_skip!(alone.success().then_some(()).ok_or("this kernel refuses such queues"));
        let (trace, finished) = traced(place.path(), "./program </dev/null", &[]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(trace.unjudged, [""; 0], "{trace:?}");
        assert_eq!(trace.verdict, Verdict::Survives, "{trace:?}");
        fs::remove_file(place.path().join("ready")).unwrap();
        let program = Command::new(place.path().join("program"));
        let trace = or_skip!(left_to_end(program, place.path()));
        assert_eq!(trace.unseen, [unseen], "{trace:?}");
        assert_eq!(trace.unjudged.last().unwrap(), unseen, "{trace:?}");
        assert_eq!(file(&trace, "b").verdict, Verdict::Unknown, "{trace:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_32_bits_in_a_program_of_64_is_noted_and_leaves_no_file_that_is_called_safe() {
    let place = folder();
    let work = "char *low = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0); \
        memcpy(low, \"new\", 3); long done; fsync(b); \
        asm volatile(\"int $0x80\" : \"=a\"(done) : \"a\"(4), \"b\"(b), \"c\"(low), \"d\"(3) \
        : \"memory\"); if (done != 3) return 7;";
    let mut program = or_skip!(compiled(place.path(), work));
    let alone = program.current_dir(place.path()).stdin(Stdio::null()).status();
    or_skip!(match alone.map(|status| status.success()) {
        Ok(true) => Ok(()),
        _ => Err("this kernel runs no calls of 32 bits"),
    });
    let (trace, finished) = traced(place.path(), "./program </dev/null", &[]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"new");
    let note = format!("32-bit calls of {} are not seen", place.path().join("program").display());
    assert_eq!(trace.unjudged, [note], "{trace:?}");
    assert_eq!(trace.verdict, Verdict::Unknown, "{trace:?}");
}

#[test]
fn tables_of_descriptors_and_changes_of_space_that_are_not_followed_are_never_called_safe() {
    or_skip!(installed("python3"));
    let begins = "import ctypes, fcntl, mmap, os, threading\n\
        libc = ctypes.CDLL(None)\n\
        file = os.open('a', os.O_RDWR | os.O_CREAT)\n\
        os.write(file, bytes(8192)); os.fsync(file); os.fsync(os.open('.', 0))\n";
    let thread = "t = threading.Thread(target=lambda: libc.unshare(0x400)); t.start(); t.join()";
    let space = "holes and zeros made by ioctl(2) or MADV_REMOVE are not followed";
    let tables = "descriptors private to a thread, or shared by two processes (CLONE_FILES), are \
                  not followed";
    for (rest, because) in [
        (thread, Some(tables)),
        // No other thread shares the table of descriptors.
        ("libc.unshare(0x400)", None),
        ("mmap.mmap(file, 8192).madvise(9)", Some(space)),
        // This call fails on some file systems.
        ("libc.ioctl(file, 0x40305839, bytes(48))", Some(space)),
    ] {
        let trace = python(&format!("{begins}{rest}\n"), &[]);
        let told = trace.unjudged.first().map(String::as_str);
        assert_eq!(told, because, "{rest}: {trace:?}");
    }
}
