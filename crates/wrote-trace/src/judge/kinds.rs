//! The kinds of findings: text, severity and remedy, and the recommended code in each language.

use crate::call::Language;
use std::collections::BTreeSet;
use wrote_result::document::{Finding, Severity};
use wrote_result::recipes;
use wrote_result::trace::Advice;

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The stable ID; `docs/trace-findings.md` has a section for each.
    pub id: &'static str,
    /// The severity: `Warning` if this project's crash tests showed a loss of data.
    pub severity: Severity,
    /// The text after the file names.
    pub says: &'static str,
    /// The fix, with `{flush}` for the call that flushes a file.
    pub remedy: &'static str,
}

/// The call that flushes a file, by language; other languages use `fsync`.
const FLUSHES: [(Language, &str); 5] = [
    ("python", "f.flush(); os.fsync(f.fileno())"),
    ("js", "fs.fsyncSync(fd)"),
    ("go", "f.Sync()"),
    ("java", "channel.force(true)"),
    ("rust", "file.sync_all()"),
];

/// Returns a fix in the language of the calls, if they have only one language.
pub fn fix(kind: &Kind, languages: &BTreeSet<Language>) -> String {
    let is_of = |of: &&(Language, &str)| languages.len() == 1 && languages.contains(of.0);
    let flush = FLUSHES.iter().find(is_of).map_or("fsync", |(_, flush)| flush);
    kind.remedy.replace("{flush}", flush)
}

/// Defines a constant for each kind, and the list of all kinds.
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
    "replaced by an unflushed file. A power loss may leave the old content, the new, or none",
    "{flush} on the new file before the rename, and fsync its folder after it"
);
ONLY_COPY_OVERWRITTEN = Warning(
    "only-copy-overwritten",
    "emptied or removed, then written again. A crash before the flush may leave neither version",
    "write a temporary file, {flush}, rename it over the old one, and fsync the folder"
);
UNLINK_BEFORE_NAME = Warning(
    "unlink-before-durable-name",
    "removed before another file got its name. A crash in between leaves neither file",
    "rename the replacement over it, without removing it first"
);
ACKNOWLEDGED_EARLY = Warning(
    "acknowledged-early",
    "not durable when the program reported success",
    "{flush} before you answer; many answers can share one flush"
);
NEVER_FLUSHED = Warning(
    "never-flushed",
    "never flushed. A power loss may leave a whole, partial or empty file",
    "{flush} before the program reports success"
);
DIRECT_ALONE = Warning(
    "direct-taken-for-durable",
    "written with O_DIRECT, but not flushed. Block positions and the device's cache may be lost",
    "fdatasync the file, or open it with O_DSYNC too"
);
FOLDER_NOT_FLUSHED = Warning(
    "folder-not-flushed",
    "renamed or linked, but the folder was not flushed. A power loss may undo the new name",
    "fsync the folder after the rename or the link"
);
FLUSH_ERROR_IGNORED = Warning(
    "flush-error-ignored",
    "written to after a failed flush. The data of that flush is lost, and no later call reports it",
    "write the data again, from your own copy, into a new file"
);
FLUSH_RETRIED = Warning(
    "flush-retried",
    "flushed again after a flush had failed. The second flush succeeds, and proves nothing",
    "write the data again, from your own copy, into a new file"
);
SHORT_WRITE_IGNORED = Warning(
    "short-write-ignored",
    "incomplete, as the kernel took only a part of a write, and the rest was never written",
    "check how much each write took, and write the rest"
);
APPEND_RACES = Warning(
    "append-races",
    "appended to through several descriptors without O_APPEND, which overwrote each other's bytes",
    "open the file with O_APPEND, or write by one descriptor"
);
JOURNAL_MAY_RETURN = Warning(
    "journal-may-return",
    "a rollback journal that was removed or truncated to commit, without a flush. After a power \
     loss it may return, and the next start undoes the commit",
    "fsync the folder after the unlink, or the journal after the truncation; in SQLite use PRAGMA \
     synchronous=EXTRA, or journal_mode=WAL with synchronous=FULL"
);
NAME_NOT_FLUSHED = Info(
    "name-not-flushed",
    "new, and not every folder above it was flushed. POSIX does not promise the name, but ext4, \
     XFS and Btrfs kept it in every crash that was tried",
    "fsync these folders after the file"
);
UNLINK_NOT_FLUSHED = Info(
    "unlink-not-flushed",
    "removed, but the folder was not flushed. A power loss may bring the file back",
    "fsync the folder after the unlink, if a reader of the folder depends on it"
);
CUT_NOT_FLUSHED = Info(
    "cut-not-flushed",
    "truncated, but not flushed. A power loss may bring the old end back",
    "fsync the file after ftruncate, if a reader depends on it"
);
SIZE_NOT_FLUSHED = Info(
    "size-not-flushed",
    "resized without data (ftruncate, fallocate, zeros at its end), but not flushed. A power loss \
     may bring the old size back",
    "fsync the file afterwards, if a reader depends on its size"
);
LOCK_NOT_FLUSHED = Info(
    "lock-not-flushed",
    "empty, or the lock of a process, and not flushed. A power loss may remove the file",
    "fsync the file or its folder, if a reader of the folder depends on it"
);
UNBUFFERED = Info(
    "unbuffered",
    "written in small pieces. Each call costs more than its bytes",
    "collect them in a buffer of 64 KiB or more"
);
FLUSH_EACH_SMALL = Info(
    "flush-each-small",
    "flushed after every few bytes",
    "let records that come together share one flush (group commit)"
);
}

/// Returns the recommended code for findings, in the languages of their calls.
pub fn advice(found: &[(Finding, BTreeSet<Language>)]) -> Vec<Advice> {
    let mut advice = Vec::new();
    for recipe in recipes::all() {
        let is_meant = |of: &Finding| recipe.findings.contains(&format!("`{}`", of.id));
        let meant = found.iter().filter(|(of, _)| is_meant(of));
        let languages: BTreeSet<_> = meant.clone().flat_map(|(_, languages)| languages).collect();
        for language in languages.into_iter().filter(|language| !language.is_empty()) {
            let Some(code) = recipe.code(language) else { continue };
            let of = meant.clone().filter(|(_, languages)| languages.contains(language));
            advice.push(Advice {
                purpose: recipe.title.to_lowercase(),
                action: recipe.action(),
                findings: of.map(|(finding, _)| finding.id.clone()).collect(),
                language: (*language).to_owned(),
                code: code.to_owned(),
            });
        }
    }
    advice
}
