//! `wrote copy` against cp, dd and rsync: a file of random data, durable in the end.

use super::super::cache;
use super::super::ratio::Asked;
use super::super::trial::Outcome;
use super::contest::{Asks, Contender, Contest};
use super::table::Unit;
use super::{Measured, Ways};
use crate::failure::{Failure, Tried};
use std::fs::remove_file;

/// The file that is copied, in the folder.
pub const SOURCE: &str = "source";
/// What it is copied to.
pub const COPY: &str = "copy";

/// What is in the page cache of the source when a copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Warm,
    Dropped,
}

/// The commands: a name, and the words.
const PEERS: [(&str, &[&str]); 3] = [
    ("`cp`, `sync -d`", &["sh", "-c", "cp source copy && sync -d copy"]),
    (
        "`dd`, direct",
        &["dd", "if=source", "of=copy", "bs=8M", "iflag=direct", "oflag=direct", "conv=fdatasync"],
    ),
    ("`rsync`, `sync -d`", &["sh", "-c", "rsync source copy && sync -d copy"]),
];

/// Measures it with the source in the page cache, and with none of it there.
pub fn measure(ways: &Ways) -> Result<Measured, Failure> {
    make(ways, SOURCE, ways.size.bytes)?;
    let mut all = Measured::default();
    for cache in [Cache::Warm, Cache::Dropped] {
        let measured = contest(ways, cache).measure(ways.rounds)?;
        all.lines.extend(measured.lines);
        all.commands = measured.commands;
    }
    let source = ways.folder.join(SOURCE);
    remove_file(&source).tried(source.display())?;
    Ok(all)
}

/// Makes a file of random data in the folder.
pub fn make(ways: &Ways, name: &str, bytes: u64) -> Result<(), Failure> {
    ways.trials.work(&["make", "--bytes", &bytes.to_string(), name], ways.folder).map(|_| ())
}

/// The words that copy `source` with wrote.
pub fn words(wrote: &str, source: &str) -> Vec<String> {
    [wrote, "copy", source, COPY].map(str::to_owned).to_vec()
}

fn contest<'a>(ways: &Ways<'a>, cache: Cache) -> Contest<'a> {
    let wrote = ways.programs.wrote.to_string_lossy();
    let ours = contender(ways, cache, "`wrote copy`", words(&wrote, SOURCE));
    let peer = |(name, words): (&str, &[&str])| {
        contender(ways, cache, name, words.iter().map(|&word| word.to_owned()).collect())
    };
    Contest {
        what: format!("copy of {}, durable, {}", ways.size, cache.words()),
        unit: Unit::Stream,
        ours: Contender { command: words("wrote", SOURCE).join(" "), ..ours },
        peers: PEERS.into_iter().map(peer).collect(),
        asks: Asks::OfBest(Asked::AtLeast(1.0)),
    }
}

fn contender<'a>(ways: &Ways<'a>, cache: Cache, name: &str, words: Vec<String>) -> Contender<'a> {
    let command = describe(&words);
    let ways = *ways;
    let run = move || {
        let source = ways.folder.join(SOURCE);
        match cache {
            Cache::Warm => cache::warm(&source)?,
            Cache::Dropped => cache::drop_file(&source)?,
        }
        copy(&ways, &words, ways.size.bytes)
    };
    Contender { name: name.to_owned(), command, run: Box::new(run) }
}

/// Has a file of `bytes` copied once, and removes the copy.
pub fn copy(ways: &Ways, words: &[String], bytes: u64) -> Result<Outcome, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = ways.trials.command(&words, bytes, ways.folder)?;
    let copy = ways.folder.join(COPY);
    let length = copy.metadata().tried(copy.display())?.len();
    remove_file(&copy).tried(copy.display())?;
    if length == bytes {
        return Ok(outcome);
    }
    Err(Failure::Failed(format!("{}: {length} bytes, not {bytes}", words.join(" "))))
}

/// As one would type it: a shell's script without the shell.
fn describe(words: &[String]) -> String {
    match words {
        [shell, option, script] if shell == "sh" && option == "-c" => script.clone(),
        _ => words.join(" "),
    }
}

impl Cache {
    fn words(self) -> &'static str {
        match self {
            Cache::Warm => "source in the page cache",
            Cache::Dropped => "source not in the page cache",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::programs::Programs;
    use super::super::super::trial::{Trials, fake};
    use super::*;
    use std::path::Path;

    fn ways<'a>(trials: &'a Trials, programs: &'a Programs, folder: &'a Path) -> Measured {
        let size = "512k".parse().expect("a size");
        measure(&Ways { trials, programs, folder, size: &size, rounds: 1 }).expect("scripts")
    }

    #[test]
    fn every_program_copies_the_source_cached_and_not_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = Programs { wrote: "/bin/wrote".into(), fio: "fio".into() };
        let trials = fake::trials(folder.path(), 524_288, 1.0);
        let measured = ways(&trials, &programs, folder.path());
        let rows: Vec<String> = measured.lines.iter().map(super::super::Line::row).collect();
        assert_eq!(rows.len(), 6);
        assert!(rows[0].starts_with(
            "| copy of 512k, durable, source in the page cache | `wrote copy` | `cp`, `sync -d` \
             | **2.00** (2.00–2.00) | 1.0 MB/s |"
        ));
        assert!(rows[4].contains("durable, source not in the page cache"), "{rows:?}");
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
        let dd = "run -- dd if=source of=copy bs=8M iflag=direct oflag=direct conv=fdatasync";
        for call in [
            "make --bytes 524288 source",
            "run -- /bin/wrote copy source copy",
            "run -- sh -c cp source copy && sync -d copy",
            "run -- sh -c rsync source copy && sync -d copy",
            dd,
        ] {
            assert!(calls.lines().any(|line| line == call), "{call}: {calls}");
        }
        assert_eq!(
            measured.commands[..2],
            ["wrote copy source copy", "cp source copy && sync -d copy"]
        );
        assert!(!folder.path().join(SOURCE).exists() && !folder.path().join(COPY).exists());
    }

    #[test]
    fn a_copy_that_is_too_short_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = Programs { wrote: "/bin/wrote".into(), fio: "fio".into() };
        let trials = fake::trials(folder.path(), 1000, 1.0);
        let size = "512k".parse().expect("a size");
        let folder = folder.path();
        let ways = Ways { trials: &trials, programs: &programs, folder, size: &size, rounds: 1 };
        let failed = copy(&ways, &words("wrote", SOURCE), 1001).expect_err("too short");
        assert_eq!(failed.to_string(), "wrote copy source copy: 1000 bytes, not 1001");
    }
}
