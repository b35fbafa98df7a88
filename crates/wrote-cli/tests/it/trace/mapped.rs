//! Tests that stores to shared mappings are treated as writes, page by page, and that `msync`
//! flushes its pages.

use super::{SAFE, crash, file, ids, installed, python};
use crate::support::wrote;
use fixtures::{finish, folder, or_skip};
use std::collections::BTreeSet;
use std::fs;
use wrote_result::trace::Verdict;

/// A file `b` of two flushed pages, and functions that map it.
pub(super) const MAPPED: &str = "\
import ctypes, mmap, os, threading
b = os.open('b', os.O_RDWR | os.O_CREAT)
os.write(b, bytes(8192))
os.fsync(b)
os.fsync(os.open('.', 0))
READ, WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
call = ctypes.CDLL(None)
call.mmap.restype = ctypes.c_void_p
def mapped(prot=WRITE, flags=mmap.MAP_SHARED):
    return mmap.mmap(b, 8192, prot=prot, flags=flags)
def protected():
    at = call.mmap(None, ctypes.c_size_t(8192), READ, mmap.MAP_SHARED, b, ctypes.c_long(0))
    def protect(prot):
        assert call.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), prot) == 0
    protect(WRITE)
    ctypes.memmove(at, b'new', 3)
    protect(READ)
def address(m):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)))
def msync(m, flags):
    assert call.msync(address(m), ctypes.c_size_t(8192), flags) == 0
def covered(m):
    # MAP_PRIVATE, MAP_ANONYMOUS and MAP_FIXED.
    assert call.mmap(address(m), ctypes.c_size_t(8192), WRITE, 0x32, -1, ctypes.c_long(0))
def punched():
    assert call.fallocate(b, 3, ctypes.c_long(0), ctypes.c_long(4096)) == 0
def child(work):
    if os.fork() == 0:
        work()
        os._exit(0)
def filtered():
    # A filter of the program's own that allows all calls.
    class Program(ctypes.Structure):
        _fields_ = [('count', ctypes.c_ushort), ('code', ctypes.c_void_p)]
    code = ctypes.c_uint64(0x7fff000000000006)
    program = Program(1, ctypes.addressof(code))
    assert call.prctl(22, ctypes.c_ulong(2), ctypes.byref(program)) == 0
";

#[test]
fn a_store_is_durable_once_a_flush_of_its_page_follows_however_it_is_found() {
    use Verdict::{Lost, Survives};
    or_skip!(installed("python3"));
    for (program, verdict) in [
        ("m = mapped()", Survives),
        ("m = mapped(); m[0:3] = b'new'", Lost),
        ("m = mapped(); m[0:3] = b'new'; m.flush()", Survives),
        ("m = mapped(); m[0:3] = b'new'; msync(m, 1)", Lost),
        ("m = mapped(); m[0:3] = b'new'; msync(m, 4)", Survives),
        ("m = mapped(); m[0:3] = b'new'; m.flush(0, 4096); m.close()", Survives),
        ("m = mapped(); m[0:3] = b'new'; m.flush(4096, 4096)", Lost),
        ("m = mapped(); m.flush(); m[5000:5003] = b'new'; os.fsync(b)", Survives),
        ("m = mapped(); os.fsync(b); m[0:3] = b'new'; m.close()", Lost),
        ("m = mapped(); m[0:3] = b'new'; m.close(); os.fsync(b)", Survives),
        ("m = mapped(); m[0:3] = b'new'; m.close(); os.sync()", Survives),
        ("m = mapped(); os.close(b); m[0:3] = b'new'", Lost),
        ("m = mapped(); os.close(b); m[0:3] = b'new'; m.flush()", Survives),
        ("m = mapped(); m[0:3] = b'new'; covered(m)", Lost),
        ("m = mapped(); m[0:3] = b'new'; covered(m); os.fsync(b)", Survives),
        ("m = mapped(); m[0:3] = b'new'; os.execv('/bin/true', ['true'])", Lost),
        ("os.pwrite(b, bytes(8192), 0); m = mapped(); m.flush(0, 4096)", Lost),
        ("os.pwrite(b, bytes(4096), 0); m = mapped(); m.flush(0, 4096)", Survives),
        ("m = mapped(); m[4096:4099] = b'new'; os.ftruncate(b, 4096)", Lost),
        ("m = mapped(); m[4096:4099] = b'new'; os.ftruncate(b, 4096); os.fsync(b)", Survives),
        ("m = mapped(); m[0:3] = b'new'; punched(); os.fsync(b); m[0:3] = b'two'", Lost),
        ("m = mapped(); m.resize(4 << 20); m[3 << 20] = 1; m.flush()", Survives),
        ("m = mapped(); m.resize(4 << 20); m[3 << 20] = 1; m.flush(0, 4096)", Lost),
        ("m = mapped(flags=mmap.MAP_PRIVATE); m[0:3] = b'new'", Survives),
        ("m = mapped(READ); m[0:3]", Survives),
        ("protected()", Lost),
        ("protected(); os.fsync(b)", Survives),
        (
            "m = mapped(); t = threading.Thread(target=lambda: m.write(b'new')); t.start(); t.join()",
            Lost,
        ),
        ("m = mapped(); child(lambda: m.write(b'new')); os.wait()", Lost),
        ("m = mapped(); child(lambda: (m.write(b'new'), m.flush())); os.wait()", Survives),
        ("m = mapped(); child(lambda: m.write(b'new')); os.wait(); os.fsync(b)", Survives),
        (
            "m = mapped(); child(lambda: (m.write(b'new'), os.kill(os.getpid(), 9))); os.wait()",
            Lost,
        ),
        (
            "m = mapped(); r, w = os.pipe(); child(lambda: (os.read(r, 1), m.write(b'new'))); \
             m.close(); os.fsync(b); os.write(w, b'x'); os.wait()",
            Lost,
        ),
    ] {
        for before in ["", "filtered(); "] {
            let trace = python(&format!("{MAPPED}{before}{program}\n"), &[]);
            let row = file(&trace, "b");
            assert_eq!((row.verdict, trace.verdict), (verdict, verdict), "{program}: {trace:?}");
            assert_eq!(row.survives == SAFE, verdict == Survives, "{program}: {trace:?}");
            assert_eq!(ids(&trace).is_empty(), verdict != Lost, "{program}: {trace:?}");
        }
    }
}

#[test]
fn a_state_has_what_was_stored_before_a_range_was_inserted() {
    or_skip!(installed("python3"));
    let place = folder();
    // FALLOC_FL_INSERT_RANGE, which ext4 and XFS support.
    let program = format!(
        "{MAPPED}m = mapped(); m[0:3] = b'new'\n\
         if call.fallocate(b, 0x20, ctypes.c_long(0), ctypes.c_long(4096)) == 0: os.fsync(b)\n"
    );
    fs::write(place.path().join("program.py"), program).unwrap();
    let check = "sh -c 'test $WROTE_ANSWERS = 0 || test $(wc -c < DIR/b) = 8192 || \
                 test $(tail -c +4097 DIR/b | head -c 3) = new'";
    let mut command = wrote(&["trace", "--check", check, "python3", "-SE", "program.py"]);
    let finished = finish(command.current_dir(place.path()));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

#[test]
fn mappings_beyond_the_bound_cannot_be_judged_until_they_are_removed_and_flushed() {
    use Verdict::{Survives, Unknown};
    or_skip!(installed("python3"));
    let program = |bytes: &str, work: &str| {
        format!(
            "{MAPPED}os.ftruncate(b, {bytes}); os.fsync(b)\nm = mmap.mmap(b, {bytes})\n{work}\n"
        )
    };
    for (before, bytes) in [("", "(16 << 30) + 4096"), ("filtered(); ", "(64 << 20) + 4096")] {
        for (work, verdict) in [("m.flush(0, 4096)", Unknown), ("m.close(); os.fsync(b)", Survives)]
        {
            let trace =
                python(&program(bytes, work).replace("os.ftr", &format!("{before}os.ftr")), &[]);
            let row = file(&trace, "b");
            assert_eq!((row.verdict, trace.verdict), (verdict, verdict), "{work}: {trace:?}");
            let is_named =
                |why: &String| why.contains("more than 16 GiB of shared mappings, or 64");
            assert_eq!(
                row.unjudged.as_ref().is_some_and(is_named),
                verdict == Unknown,
                "{trace:?}"
            );
        }
    }
}

#[test]
fn any_subset_of_the_pages_stored_to_since_their_flush_may_be_on_the_disk() {
    or_skip!(installed("python3"));
    let place = folder();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("b"), [b'O'; 3 * 4096]).unwrap();
    let program = "import mmap, os\n\
        m = mmap.mmap(os.open('b', os.O_RDWR), 0)\n\
        for page in range(3): m[page * 4096] = ord('n')\n\
        m.flush(4096, 4096)\n";
    fs::write(place.path().join("program.py"), program).unwrap();
    let seen = place.path().join("seen");
    let check = format!(
        "test $WROTE_ANSWERS = 0 && exit\n\
         seen=$(for at in 1 4097 8193; do tail -c +$at \"$1/b\" | head -c 1; done)\n\
         echo $seen >> '{0}' # one write, as checks run at once\n",
        seen.display()
    );
    fs::write(place.path().join("check.sh"), check).unwrap();
    let record = place.path().join("record");
    let mut command = wrote(&["trace", "--force", "--record"]);
    command.arg(&record).args(["--", "python3", "-SE", "../program.py"]).current_dir(&data);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let check = format!("sh '{}' DIR", place.path().join("check.sh").display());
    let finished = crash::crash(&record, &["--check", &check]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let seen = fs::read_to_string(seen).unwrap();
    let seen: BTreeSet<&str> = seen.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(seen, BTreeSet::from(["OnO", "Onn", "nnO", "nnn"]));
}
