//! Tests that operations which a program submits to a queue of the kernel are judged like its
//! system calls.

use super::{file, ids, installed, traced};
use fixtures::{finish, folder, or_skip};
use std::fs;
use std::process::{Command, Stdio};
use wrote_result::trace::Verdict::{self, Lost, Survives, Unknown};

const SOURCE: &str = include_str!("queues.c");

/// Compiles a program with these pieces of work, and traces each piece alone.
fn judged(works: &[(&str, &str, Verdict)], begins: &str) -> Result<(), String> {
    installed("cc")?;
    let place = folder();
    let mut cases = String::new();
    for (number, (work, ..)) in works.iter().enumerate() {
        cases += &format!("case {number}: {{ {begins} {work} break; }}\n");
    }
    let source = SOURCE.replace("WORKS", &cases);
    let program = place.path().join("program");
    fs::write(place.path().join("program.c"), source).map_err(|error| error.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-o"]).arg(&program).arg("program.c").current_dir(place.path());
    let built = finish(&mut compiler);
    assert_eq!(built.code(), Some(0), "{built:?}");
    for (number, (work, name, verdict)) in works.iter().enumerate() {
        let folder = folder();
        fs::write(folder.path().join("b"), [b'o'; 8192]).unwrap();
        let run = format!("{} {number}", program.display());
        if number == 0 {
            let mut alone = Command::new("sh");
            alone.args(["-c", &run]).current_dir(folder.path()).stderr(Stdio::null());
            let is_there = alone.status().map_err(|error| error.to_string())?.success();
            is_there.then_some(()).ok_or("this kernel refuses such queues")?;
            fs::write(folder.path().join("b"), [b'o'; 8192]).unwrap();
        }
        let (trace, finished) = traced(folder.path(), &run, &[]);
        assert_eq!(finished.code(), Some(0), "{work}: {finished:?}");
        let row = file(&trace, name);
        assert_eq!((row.verdict, trace.verdict), (*verdict, *verdict), "{work}: {trace:?}");
        let is_known = trace.unjudged.is_empty() && trace.unseen.is_empty();
        assert_eq!(is_known, *verdict != Unknown, "{work}: {trace:?}");
        let failed = ids(&trace).iter().any(|id| id.starts_with("flush-"));
        assert!(!failed, "{work}: {trace:?}");
    }
    Ok(())
}

#[test]
fn an_operation_of_io_uring_is_judged_by_what_had_ended_before_it_began() {
    const WORKS: [(&str, &str, Verdict); 37] = [
        ("put(); go();", "b", Lost),
        ("put(); go(); flush(b); go();", "b", Survives),
        ("put(); go(); flush(b)->fsync_flags = 1; go();", "b", Survives),
        ("put(); go(); fsync(b);", "b", Survives),
        ("pwrite(b, page, 4096, 0); flush(b); go();", "b", Survives),
        ("flush(b); go(); put(); go();", "b", Lost),
        // The flush may be executed first.
        ("put(); flush(b); go();", "b", Lost),
        ("put()->flags = IOSQE_IO_LINK; flush(b); go();", "b", Survives),
        ("put()->flags = IOSQE_IO_HARDLINK; flush(b); go();", "b", Survives),
        ("put(); put()->flags = IOSQE_IO_LINK; flush(b); go();", "b", Lost),
        ("put()->off = 4096; put(); flush(b)->flags = IOSQE_IO_DRAIN; go();", "b", Survives),
        ("put()->flags = IOSQE_IO_LINK; flush(b)->flags = IOSQE_IO_LINK; put(); go();", "b", Lost),
        ("put()->rw_flags = RWF_DSYNC; go();", "b", Survives),
        ("close(b); b = open(\"b\", O_WRONLY | O_DSYNC); put(); go();", "b", Survives),
        ("op(IORING_OP_WRITEV, b, pieces, 2, 4096); go(); flush(b); go();", "b", Survives),
        ("op(IORING_OP_WRITE, b, page, 4096, -1); go(); flush(b); go();", "b", Survives),
        // The completions are read without a system call.
        ("put(); submit(0); reaped(); fsync(b);", "b", Survives),
        ("put(); submit(0); reaped(); flush(b); submit(0); reaped();", "b", Survives),
        (
            "put(); submit(0); reaped(); flush(b); submit(0); reaped(); put(); submit(0); \
             reaped();",
            "b",
            Lost,
        ),
        // Registered buffers and files remain when the descriptor is closed.
        (
            "struct iovec all = {page, 4096}; \
             syscall(427, ring, IORING_REGISTER_BUFFERS, &all, 1); \
          put()->opcode = IORING_OP_WRITE_FIXED; go(); flush(b); go();",
            "b",
            Survives,
        ),
        (
            "int files[2] = {-1, b}; \
             check(!syscall(427, ring, IORING_REGISTER_FILES, files, 2), \"register\"); \
          close(b); b = 1; put()->flags = IOSQE_FIXED_FILE; go(); \
          flush(1)->flags = IOSQE_FIXED_FILE; go();",
            "b",
            Survives,
        ),
        (
            "int files[2] = {dir, -1}; syscall(427, ring, IORING_REGISTER_FILES, files, 2); \
          struct io_uring_files_update to = {.offset = 1, .fds = (uintptr_t)&b}; \
          check(syscall(427, ring, IORING_REGISTER_FILES_UPDATE, &to, 1) == 1, \"update\"); \
          b = 1; put()->flags = IOSQE_FIXED_FILE; go();",
            "b",
            Lost,
        ),
        (
            "int files[2] = {-1, -1}; syscall(427, ring, IORING_REGISTER_FILES, files, 2); \
          op(IORING_OP_FILES_UPDATE, -1, &b, 1, 1); go(); \
          b = 1; put()->flags = IOSQE_FIXED_FILE; go();",
            "b",
            Lost,
        ),
        ("op(IORING_OP_FALLOCATE, b, (void *)4096, 0, 8192); go();", "b", Lost),
        ("op(IORING_OP_FALLOCATE, b, (void *)4096, 0, 8192); go(); flush(b); go();", "b", Survives),
        ("op(IORING_OP_SYNC_FILE_RANGE, b, 0, 0, 0); put(); go();", "b", Lost),
        // Names.
        (
            "op(IORING_OP_OPENAT, AT_FDCWD, \"n\", 0600, 0)->open_flags = O_CREAT | O_WRONLY; \
          b = go(); put(); go(); flush(b); go(); flush(dir); go();",
            "n",
            Survives,
        ),
        (
            "op(IORING_OP_OPENAT, AT_FDCWD, \"b\", 0, 0)->open_flags = O_TRUNC | O_WRONLY; go();",
            "b",
            Lost,
        ),
        (
            "int files[1] = {-1}; syscall(427, ring, IORING_REGISTER_FILES, files, 1); \
          struct io_uring_sqe *made = op(IORING_OP_OPENAT, AT_FDCWD, \"n\", 0600, 0); \
          made->open_flags = O_CREAT | O_WRONLY; made->file_index = 1; \
             made->flags = IOSQE_IO_LINK; \
          b = 0; put()->flags = IOSQE_IO_LINK | IOSQE_FIXED_FILE; \
          flush(0)->flags = IOSQE_IO_LINK | IOSQE_FIXED_FILE; \
          op(IORING_OP_CLOSE, 0, 0, 0, 0)->file_index = 1; go(); fsync(dir);",
            "n",
            Survives,
        ),
        (
            "int files[1] = {-1}; syscall(427, ring, IORING_REGISTER_FILES, files, 1); \
          struct io_uring_sqe *made = op(IORING_OP_OPENAT, AT_FDCWD, \"b\", 0, 0); \
          made->open_flags = O_WRONLY; made->file_index = 1; go(); \
          b = 0; put()->flags = IOSQE_FIXED_FILE; go();",
            "b",
            Lost,
        ),
        ("op(IORING_OP_RENAMEAT, AT_FDCWD, \"b\", AT_FDCWD, (uintptr_t)\"n\"); go();", "n", Lost),
        (
            "op(IORING_OP_RENAMEAT, AT_FDCWD, \"b\", AT_FDCWD, (uintptr_t)\"n\")->flags = \
          IOSQE_IO_LINK; flush(dir); go();",
            "n",
            Survives,
        ),
        (
            "op(IORING_OP_RENAMEAT, AT_FDCWD, \"b\", AT_FDCWD, (uintptr_t)\"n\"); \
             flush(dir); go();",
            "n",
            Lost,
        ),
        (
            "op(IORING_OP_LINKAT, AT_FDCWD, \"b\", AT_FDCWD, (uintptr_t)\"n\"); go(); flush(dir); \
          go(); op(IORING_OP_UNLINKAT, AT_FDCWD, \"b\", 0, 0); go();",
            "n",
            Survives,
        ),
        // Two operations have the same key, so it is not known which of them has completed.
        (
            "pwrite(b, page, 9, 0); put()->user_data = 7; flush(b)->user_data = 7; go(); fsync(b);",
            "b",
            Unknown,
        ),
        (
            "put(); go(); op(IORING_OP_FSYNC, 99, 0, 0, 0); submit(1); reaped(); flush(b); go();",
            "b",
            Survives,
        ),
        (
            "put(); go(); op(IORING_OP_FSYNC, b, 0, 0, 0)->flags = IOSQE_CQE_SKIP_SUCCESS; \
             submit(0); \
          op(IORING_OP_NOP, 0, 0, 0, 0); go(); fsync(b);",
            "b",
            Unknown,
        ),
    ];
    or_skip!(judged(&WORKS, "make(0);"));
    let rings =
        ["IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN", "IORING_SETUP_COOP_TASKRUN"];
    for flags in rings {
        or_skip!(judged(&WORKS[..2], &format!("make({flags});")));
    }
}

#[test]
fn an_operation_of_kernel_aio_is_judged_by_what_had_ended_before_it_began() {
    const WORKS: [(&str, &str, Verdict); 8] = [
        ("submit_controls(1, &put); await(1);", "b", Lost),
        ("submit_controls(1, &put); await(1); submit_controls(1, &save); await(1);", "b", Survives),
        ("submit_controls(1, &put); await(1); submit_controls(1, &data); await(1);", "b", Survives),
        ("submit_controls(1, &put); await(1); fsync(b);", "b", Survives),
        ("struct iocb *all[2] = {put, save}; submit_controls(2, all); await(2);", "b", Lost),
        ("submit_controls(1, &save); await(1); submit_controls(1, &put); await(1);", "b", Lost),
        ("put->aio_rw_flags = RWF_DSYNC; submit_controls(1, &put); await(1);", "b", Survives),
        // The events are read without a system call.
        (
            "submit_controls(1, &put); unsigned *ends = (unsigned *)queue; \
          while (__atomic_load_n(ends + 3, __ATOMIC_ACQUIRE) == 0) {} ends[2] = 1; fsync(b);",
            "b",
            Survives,
        ),
    ];
    let begins = "check(!syscall(SYS_io_setup, 8, &queue), \"io_setup\"); \
        struct iocb *put = control(IOCB_CMD_PWRITE, 0), *save = control(IOCB_CMD_FSYNC, 0), \
        *data = control(IOCB_CMD_FDSYNC, 0);";
    or_skip!(judged(&WORKS, begins));
}

#[test]
fn a_ring_that_a_thread_of_the_kernel_polls_is_refused_and_named() {
    let place = folder();
    fs::write(place.path().join("b"), "old").unwrap();
    or_skip!(installed("cc"));
    let work = "case 1: { struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL}; \
        check(syscall(SYS_io_uring_setup, 8, &params) < 0 && errno == EPERM, \"refused\"); \
        make(0); put(); go(); flush(b); go(); }";
    fs::write(place.path().join("program.c"), SOURCE.replace("WORKS", work)).unwrap();
    let mut compiler = Command::new("cc");
    let built =
        finish(compiler.args(["-w", "-o", "program", "program.c"]).current_dir(place.path()));
    assert_eq!(built.code(), Some(0), "{built:?}");
    let (trace, finished) = traced(place.path(), "./program 1", &[]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(trace.unseen.iter().any(|unseen| unseen.contains("SQPOLL")), "{trace:?}");
    assert_eq!((file(&trace, "b").verdict, trace.unjudged.len()), (Survives, 0), "{trace:?}");
}
