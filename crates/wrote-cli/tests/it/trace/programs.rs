//! Tests of `wrote trace` on existing programs, whose documentation the verdicts must agree with.

use super::{CACHED, SAFE, file, ids, installed, traced};
use fixtures::{folder, or_skip};
use std::fs;
use std::path::Path;
use std::process::Command;
use wrote_result::document::Survives;
use wrote_result::trace::Trace;

/// Returns the trace of a SQLite commit made with these pragmas.
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
    // <https://sqlite.org/pragma.html#pragma_synchronous>: FULL is durable, except for the removal
    // of the journal, which EXTRA flushes. OFF passes data to the kernel without a flush. If the
    // journal is truncated instead, FULL and EXTRA flush it afterwards.
    let cut = "pragma journal_mode=truncate;";
    let of_pragmas: [(&str, &str, Survives, Ids); 5] = [
        ("", "full", SAFE, &["journal-may-return"]),
        ("", "extra", SAFE, &[]),
        (cut, "full", SAFE, &[]),
        (cut, "normal", SAFE, &["journal-may-return"]),
        ("", "off", CACHED, NEVER),
    ];
    for (journal, synchronous, survives, findings) in of_pragmas {
        let trace = committed(&format!("{journal} pragma synchronous={synchronous};"));
        assert_eq!(file(&trace, "db").survives, survives, "{synchronous}: {trace:?}");
        assert_eq!(ids(&trace), findings, "{synchronous}: {trace:?}");
    }
}

/// A program that saves a file. If the file is `a`, it replaces an existing one.
struct Save {
    needs: &'static [&'static str],
    /// A shell command that builds the program and creates its files, without tracing.
    prepare: &'static str,
    script: &'static str,
    /// The end of the path of the saved file.
    file: &'static str,
    survives: Survives,
    findings: &'static [&'static str],
}

impl Save {
    /// Returns a save after which nothing is durable.
    const fn of(needs: &'static [&'static str], script: &'static str, findings: Ids) -> Save {
        Save { needs, prepare: "", script, file: "/a", survives: CACHED, findings }
    }

    const fn prepared(self, prepare: &'static str) -> Save {
        Save { prepare, ..self }
    }

    const fn to(self, file: &'static str) -> Save {
        Save { file, ..self }
    }

    const fn safe(self) -> Save {
        Save { survives: SAFE, ..self }
    }
}

type Ids = &'static [&'static str];

const REWRITTEN: Ids = &["only-copy-overwritten", "never-flushed"];
const NOTHING_FLUSHED: Ids = &["rename-before-flush"];
const NO_FOLDER: Ids = &["folder-not-flushed"];
const NEVER: Ids = &["never-flushed"];

// `core.fsync` in git-config(1) names the components that are flushed. Folders are not among them.
const GIT: &str = "git init -q .";
const COMMIT: &str = "git -c user.name=a -c user.email=a@b -c gc.auto=0 -c core.fsync=none \
    commit -q --allow-empty -m new";
const PACKAGE: &str = "d=var/lib/dpkg; mkdir -p r/$d/updates r/$d/info r/etc p/DEBIAN p/etc; \
    : > r/$d/status; : > r/$d/available; echo old > r/etc/x; echo new > p/etc/x; \
    printf 'Package: x\nVersion: 1\nArchitecture: all\nDescription: x\n\
    Maintainer: a <a@b.c>\n' > p/DEBIAN/control; dpkg-deb -b p x.deb";

const PICKLE: &str = "python3 -SEc 'import pickle; pickle.dump(1, open(\"b\", \"wb\"))'";
const LOGGING: &str = "python3 -SEc 'import logging; logging.basicConfig(filename=\"b\"); \
    logging.error(\"new\")'";
const WRITE_FILE: &str = "node -e 'require(\"fs\").writeFile(\"a\", \"new\", () => {})'";
const DUMP: &str = "python3 -SEc 'import json; json.dump([1], open(\"a\", \"w\"))'";

/// Programs that Debian packages.
const INSTALLED: [Save; 10] = [
    Save::of(&["sed"], "sed -i s/old/new/ a", NOTHING_FLUSHED),
    // `:help backupcopy`: vim overwrites the file, and keeps a copy that it does not flush.
    Save::of(&["vim"], "vim -u NONE -es -c s/old/new/ -c wq a", &["only-copy-overwritten"]).safe(),
    Save::of(&["rsync"], "rsync s a", NOTHING_FLUSHED).prepared("printf newer > s"),
    Save::of(&["rsync"], "rsync --fsync s a", NO_FOLDER).prepared("printf newer > s"),
    // <https://nodejs.org/api/fs.html>: this call neither flushes the file nor replaces it.
    Save::of(&["node"], WRITE_FILE, REWRITTEN),
    Save::of(&["python3"], DUMP, REWRITTEN),
    Save::of(&["python3"], PICKLE, NEVER).to("/b"),
    Save::of(&["python3"], LOGGING, NEVER).to("/b"),
    Save::of(&["git"], COMMIT, NEVER).prepared(GIT).to("/index"),
    // dpkg flushes the files of a package, but never their folders.
    Save::of(
        &["dpkg", "dpkg-deb"],
        "dpkg --no-force-unsafe-io --root=\"$PWD/r\" --force-not-root --force-bad-path \
            --log=/dev/null -i x.deb >/dev/null",
        NO_FOLDER,
    )
    .prepared(PACKAGE)
    .to("/r/etc/x"),
];

/// Traces these programs and compares the verdicts. Programs that cannot run here are skipped.
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

const ATOMIC: &str = "node -e 'require(\"write-file-atomic\").sync(\"a\", \"new\")'";
const ATOMIC_UNFLUSHED: &str =
    "node -e 'require(\"write-file-atomic\").sync(\"a\", \"new\", {fsync: false})'";

/// Programs in several languages that the test builds. They use the languages' own libraries, and
/// packages from registries.
const MADE: [Save; 7] = [
    Save::of(&["java", "javac"], "java Save", NOTHING_FLUSHED).prepared(JAVA),
    Save::of(&["java", "javac"], "java Save file", NO_FOLDER).prepared(JAVA),
    Save::of(&["java", "javac"], "java Save file folder", &[]).prepared(JAVA).safe(),
    Save::of(&["go"], "./save", REWRITTEN).prepared(GO),
    // <https://pkg.go.dev/github.com/google/renameio/v2>: it flushes the file, but no folder.
    Save::of(&["go"], "./save renameio", NO_FOLDER).prepared(GO),
    // <https://github.com/npm/write-file-atomic>: it flushes by default. Issue 64 is about the
    // folder.
    Save::of(&["node", "npm"], ATOMIC, NO_FOLDER).prepared(NPM),
    Save::of(&["node", "npm"], ATOMIC_UNFLUSHED, NOTHING_FLUSHED).prepared(NPM),
];

#[test]
#[ignore = "nightly"]
fn programs_of_other_languages_are_judged_as_their_documents_have_it() {
    judge(&MADE);
}

/// Creates a PostgreSQL database in `place`. The server refuses to run as root, so this returns a
/// prefix for commands that run as its user.
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
                "{user} postgres -D d -c listen_addresses= -c unix_socket_directories=\"$PWD\" \
                 -c wal_writer_delay=10s >/dev/null 2>&1 & \
                 until {user} psql -h \"$PWD\" -qAtc 'create table t (i int)' postgres 2>/dev/null; \
                 do sleep 0.1; done; \
                 {user} psql -h \"$PWD\" -qAtc 'set synchronous_commit = {synchronous_commit}; \
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
