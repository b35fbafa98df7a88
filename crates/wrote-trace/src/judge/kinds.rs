//! The kinds of findings: text, severity and remedy, and the code in each language.

use crate::call::Language;
use std::collections::BTreeSet;
use wrote_result::document::{Finding, Severity};
use wrote_result::trace::Advice;

/// The page that has the code: a chapter for each thing to do, with the ids of its findings.
const CODE: &str = include_str!("../../safe-writes.md");

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its stable ID; `docs/trace-findings.md` has a section for each.
    pub id: &'static str,
    /// `Warning` if a crash loses data, as this project's crash tests showed.
    pub severity: Severity,
    /// The text after the file names.
    pub says: &'static str,
    /// The recommended way.
    pub remedy: &'static str,
}

/// Makes a constant of each kind, and the list of all.
macro_rules! kinds {
    ($($name:ident = $severity:ident($id:expr, $says:expr, $remedy:expr);)*) => {
        $(pub const $name: Kind =
            Kind { id: $id, severity: Severity::$severity, says: $says, remedy: $remedy };)*
        /// All kinds in report order.
        pub const KINDS: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
RENAME_BEFORE_FLUSH = Warning(
    "rename-before-flush",
    "replaced by a file that was not flushed; after a power cut the name may have the old content, \
     the new, or none",
    "fsync the new file before the rename, and its folder after it"
);
ONLY_COPY_OVERWRITTEN = Warning(
    "only-copy-overwritten",
    "emptied, or removed, and written again; a crash before its flush leaves neither the old nor the \
     new",
    "write a temporary file, fsync it, rename it over the old one, fsync the folder"
);
UNLINK_BEFORE_NAME = Warning(
    "unlink-before-durable-name",
    "removed before another file got the name; a crash between leaves neither",
    "rename the replacement over it; a rename needs no unlink before"
);
ACKNOWLEDGED_EARLY = Warning(
    "acknowledged-early",
    "not durable when the program answered",
    "flush before you answer; many answers can share one flush"
);
NEVER_FLUSHED = Warning(
    "never-flushed",
    "written and not flushed; a power cut leaves any part of it, or none",
    "fsync or fdatasync the file before you say that it is saved"
);
DIRECT_ALONE = Warning(
    "direct-taken-for-durable",
    "written with O_DIRECT and not flushed; the record of where new blocks are stays in memory, \
     and the device may keep bytes in its cache",
    "fdatasync the file, or open it with O_DSYNC too"
);
FOLDER_NOT_FLUSHED = Warning(
    "folder-not-flushed",
    "renamed or linked, and the folder not flushed; after a power cut the name has the old \
     content, or does not exist",
    "fsync the folder after the rename or the link"
);
FLUSH_ERROR_IGNORED = Warning(
    "flush-error-ignored",
    "written on after a flush of it had failed; what the flush should have saved is lost, and no \
     later call says so",
    "write the data again, from your own copy, into a new file"
);
FLUSH_RETRIED = Warning(
    "flush-retried",
    "flushed again after a flush had failed; the second one succeeds, and proves nothing",
    "write the data again, from your own copy, into a new file"
);
SHORT_WRITE_IGNORED = Warning(
    "short-write-ignored",
    "without the rest of a write of which the kernel took a part",
    "write the rest"
);
APPEND_RACES = Warning(
    "append-races",
    "appended through several descriptors without O_APPEND, each of which wrote over the bytes of \
     another",
    "open the file with O_APPEND, or write by one descriptor"
);
JOURNAL_MAY_RETURN = Warning(
    "journal-may-return",
    "a rollback journal, removed or cut to commit, and that not flushed; after a power cut it may \
     be there again, and the next start undoes the commit",
    "fsync the folder after the unlink, or the journal after the cut; in SQLite PRAGMA \
     synchronous=EXTRA does, or use journal_mode=WAL with synchronous=FULL"
);
NAME_NOT_FLUSHED = Info(
    "name-not-flushed",
    "new, and not every folder above it flushed; POSIX does not promise the name, but on ext4, XFS \
     and Btrfs the file's own flush kept it in every crash that was tried",
    "fsync these folders after the file"
);
UNLINK_NOT_FLUSHED = Info(
    "unlink-not-flushed",
    "removed, and the folder not flushed; after a power cut it may be there again",
    "fsync the folder after the unlink, if what reads the folder minds"
);
CUT_NOT_FLUSHED = Info(
    "cut-not-flushed",
    "cut, and not flushed; after a power cut its old end may be there again",
    "fsync the file after ftruncate, if what reads it minds"
);
SIZE_NOT_FLUSHED = Info(
    "size-not-flushed",
    "resized without data (ftruncate, fallocate, zeros at its end), and not flushed; after a power \
     cut it may have its old size",
    "fsync the file after that, if what reads it minds"
);
LOCK_NOT_FLUSHED = Info(
    "lock-not-flushed",
    "empty, or the lock of a process, and not flushed; after a power cut it may not exist",
    "fsync the file or its folder, if what reads the folder minds"
);
READS_WHAT_IT_WROTE = Info(
    "reads-what-it-wrote",
    "read back before it was flushed; the read is answered from memory, and proves nothing about \
     the disk",
    "fsync it first; what was read then is still not from the disk, unless it was dropped from \
     memory"
);
UNBUFFERED = Info(
    "unbuffered",
    "written in small pieces; each call costs more than its bytes",
    "collect them in a buffer of 64 KiB or more"
);
FLUSH_EACH_SMALL = Info(
    "flush-each-small",
    "flushed for little each time",
    "let records that come together share one flush (group commit)"
);
}

/// Returns the code for findings, in the languages of their calls.
pub fn advice(found: &[(Finding, BTreeSet<Language>)]) -> Vec<Advice> {
    let mut advice = Vec::new();
    for chapter in CODE.split("\n## ").skip(1) {
        let mut parts = chapter.split("\n\n");
        let [title, action, ids] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let meant = found.iter().filter(|(of, _)| ids.contains(&format!("`{}`", of.id)));
        let languages: BTreeSet<_> = meant.clone().flat_map(|(_, languages)| languages).collect();
        for language in languages.into_iter().filter(|language| !language.is_empty()) {
            let Some((_, code)) = chapter.split_once(&format!("```{language}\n")) else { continue };
            let of = meant.clone().filter(|(_, languages)| languages.contains(language));
            advice.push(Advice {
                purpose: title.to_lowercase(),
                action: action.replace('\n', " "),
                findings: of.map(|(finding, _)| finding.id.clone()).collect(),
                language: (*language).to_owned(),
                code: code.split("```").next().unwrap_or_default().to_owned(),
            });
        }
    }
    advice
}
