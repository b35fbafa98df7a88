//! The verdict on a file that was changed unseen is `unknown`, with the reason.

use super::{SAFE, file, ids, installed, python};
use crate::support::wrote;
use fixtures::{finish, folder, or_skip};
use std::fs;
use wrote_result::trace::Verdict;

/// A file `b` of two flushed pages, and ways to map it.
const MAPPED: &str = "\
import ctypes, mmap, os
b = os.open('b', os.O_RDWR | os.O_CREAT)
os.write(b, bytes(8192))
os.fsync(b)
os.fsync(os.open('.', 0))
READ, WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
def mapped(prot=WRITE, flags=mmap.MAP_SHARED):
    return mmap.mmap(b, 8192, prot=prot, flags=flags)
def protected(store):
    call = ctypes.CDLL(None)
    call.mmap.restype = ctypes.c_void_p
    at = call.mmap(None, ctypes.c_size_t(8192), READ, mmap.MAP_SHARED, b, ctypes.c_long(0))
    def protect(prot):
        assert call.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), prot) == 0
    protect(WRITE)
    ctypes.memmove(at, b'new', 3)
    protect(READ)
def child(work):
    if os.fork() == 0:
        work()
        os._exit(0)
";

#[test]
fn a_file_is_judged_only_where_a_flush_follows_its_last_writable_shared_mapping() {
    use Verdict::{Lost, Survives, Unknown};
    or_skip!(installed("python3"));
    for (program, verdict) in [
        ("m = mapped(); m[0:3] = b'new'", Unknown),
        ("m = mapped(); m[0:3] = b'new'; m.flush()", Unknown),
        ("m = mapped(); os.fsync(b); m[0:3] = b'new'; m.close()", Unknown),
        ("m = mapped(); m[0:3] = b'new'; m.close(); os.fsync(b)", Survives),
        ("m = mapped(); m[0:3] = b'new'; m.close(); os.sync()", Survives),
        ("m = mapped(); m[0:3] = b'new'; m.flush(0, 4096); m.close()", Unknown),
        ("os.pwrite(b, bytes(8192), 0); m = mapped(); m.flush(0, 4096)", Lost),
        ("os.pwrite(b, bytes(4096), 0); m = mapped(); m.flush(0, 4096)", Unknown),
        ("m = mapped(flags=mmap.MAP_PRIVATE); m[0:3] = b'new'", Survives),
        ("m = mapped(READ); m[0:3]", Survives),
        ("protected(b'new')", Unknown),
        ("protected(b'new'); os.fsync(b)", Survives),
        (
            "m = mapped(); child(lambda: m.write(b'new')); os.wait(); m.close(); os.fsync(b)",
            Survives,
        ),
        (
            "m = mapped(); r, w = os.pipe(); child(lambda: (os.read(r, 1), m.write(b'new'))); \
             m.close(); os.fsync(b); os.write(w, b'x'); os.wait()",
            Unknown,
        ),
    ] {
        let trace = python(&format!("{MAPPED}{program}\n"), &[]);
        let row = file(&trace, "b");
        assert_eq!((row.verdict, trace.verdict), (verdict, verdict), "{program}: {trace:?}");
        assert_eq!(row.survives == SAFE, verdict == Survives, "{program}: {trace:?}");
        let is_unknown = verdict == Unknown;
        assert_eq!(row.unjudged.is_some(), is_unknown, "{program}: {trace:?}");
        assert_eq!(trace.unjudged.len(), usize::from(is_unknown), "{program}: {trace:?}");
        assert_eq!(ids(&trace).is_empty(), verdict != Lost, "{program}: {trace:?}");
    }
}

#[test]
fn what_cannot_be_judged_stands_in_the_table_the_last_line_and_the_page_and_fails_a_check() {
    or_skip!(installed("python3"));
    let place = folder();
    let program = format!("{MAPPED}mapped()[0:3] = b'new'\n");
    fs::write(place.path().join("program.py"), program).unwrap();
    let run = |more: &[&str]| {
        let mut command = wrote(&["trace", "--html", "page.html", "--force"]);
        command.args(more).args(["--", "python3", "-SE", "program.py"]);
        finish(command.current_dir(place.path()))
    };
    let finished = run(&[]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let said = finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let verdict = "Cannot be judged: b (stores through a shared mapping, which no later flush \
        covers, are not seen); 0 warnings.";
    assert!(said.ends_with(verdict), "{said}");
    assert!(said.contains(" made, mapped unknown "), "{said}");
    let page = fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains(verdict) && page.contains(">unknown<"), "{page}");
    assert_eq!(run(&["--fail-on", "warning"]).code(), Some(1));
}
