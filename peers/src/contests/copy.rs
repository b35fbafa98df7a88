//! `wrote copy` against cp, dd and rsync, and its peak memory: random data, durable.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::fresh::{self, FRESH};
use super::outcome::{Outcome, Unit};
use super::site::Site;
use super::ways::WAYS_GIB;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use std::fs::{self, File};
use std::io::Read;

const COPY: &str = "copy";
const SOURCE: &str = "source";
const SHORTER: &str = "shorter";
const LONGER: &str = "longer";
const WROTE: &str = "wrote copy source copy";
const PEERS: [(&str, &str); 3] = [
    ("`cp`, `sync -d`", "cp source copy && sync -d copy"),
    ("`dd`, direct", "dd if=source of=copy bs=8M iflag=direct oflag=direct conv=fdatasync"),
    ("`rsync`, `sync -d`", "rsync source copy && sync -d copy"),
];

const GIB: u64 = 1 << 30;
const SHORTER_BYTES: u64 = GIB;
const LONGER_BYTES: u64 = 16 * GIB;
/// Bytes that stay free besides the files.
const RESERVE_BYTES: u64 = 4 * GIB;
/// The numbers of files of the copied folders.
const TREE_FILES: [u64; 2] = [2_000, 100_000];
const TREE_FOLDER_FILES: u64 = 100;
const TREE_FILE_BYTES: u64 = 4 << 10;
/// Copies of a folder, made side by side with nothing else: each is a process.
const TREE_WAYS: [(&str, &str); 2] = [
    ("`wrote copy -r`", "wrote copy -r source copy"),
    ("`cp -r`, `sync -f`", "cp -r source copy && sync -f copy"),
];

const MEMORY_ROUNDS_MAX: u32 = 3;
const MEMORY_MIB_MAX: f64 = 64.0;
const DIFFERENCE_MIB_MAX: f64 = 4.0;

/// Compares copies with the source in the page cache, and with none of it there.
pub fn durable(site: &Site) -> Result<Vec<Contest>, Failure> {
    let size = site.size(WAYS_GIB);
    make(site, SOURCE, size.bytes)?;
    let contest = |(words, prepare): (&str, String)| {
        let contender = |(name, line): (&str, &str)| contender(name, line, size.bytes, &prepare);
        let ours = contender(("`wrote copy`", WROTE));
        Contest::new(
            format!("copy of {}, durable, {words}", size.text),
            Unit::Stream,
            std::iter::once(ours).chain(PEERS.map(contender)).collect(),
            Requirement::of_best(Condition::AtLeast(1.0)),
        )
    };
    let caches = [
        ("source in the page cache", fill_cache(SOURCE)),
        ("source not in the page cache", drop_cache(SOURCE)),
    ];
    Ok(caches.map(contest).into())
}

/// Measures the peak memory of `wrote copy` of two files, of which one is many times as long. With
/// little room the longer file is shorter.
pub fn memory(site: &Site) -> Result<Contest, Failure> {
    let statistics = rustix::fs::statvfs(&site.folder).tried(site.folder.display())?;
    let longer = longer_bytes(statistics.f_bavail.saturating_mul(statistics.f_frsize));
    memory_of(site, SHORTER_BYTES, longer.ok_or_else(|| Failure::Skipped("no room".to_owned()))?)
}

/// The longer file's length with `available_bytes`: the file and its copy exist at once.
fn longer_bytes(available_bytes: u64) -> Option<u64> {
    let room = available_bytes.saturating_sub(RESERVE_BYTES) / 2 / GIB * GIB;
    (room > SHORTER_BYTES).then(|| room.min(LONGER_BYTES))
}

fn memory_of(site: &Site, shorter: u64, longer: u64) -> Result<Contest, Failure> {
    make(site, SHORTER, shorter)?;
    make(site, LONGER, longer)?;
    let contender = |source: &str, bytes: u64| {
        let name = format!("`wrote copy` of {} GiB", bytes / GIB);
        contender(&name, &format!("wrote copy {source} {COPY}"), bytes, "")
    };
    let ask = |of, contender, most_mib| {
        let asked = Condition::AllBelow(most_mib);
        Requirement { of, asked, contender: Some(contender) }
    };
    Ok(Contest {
        rounds_max: MEMORY_ROUNDS_MAX,
        ..Contest::new(
            "peak memory, random data, durable".to_owned(),
            Unit::Memory,
            vec![contender(LONGER, longer), contender(SHORTER, shorter)],
            vec![
                ask(Comparison::Own, 0, MEMORY_MIB_MAX),
                ask(Comparison::Own, 1, MEMORY_MIB_MAX),
                ask(Comparison::Difference, 1, DIFFERENCE_MIB_MAX),
            ],
        )
    })
}

/// Compares copies of folders with many small files, each on a new file system. Its journal and its
/// size are those that `mkfs.ext4` chooses.
pub fn trees(site: &Site) -> Result<Vec<Contest>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Skipped("root alone may mount a new file system".to_owned()));
    }
    packages::install(&["mkfs.ext4"])?;
    TREE_FILES.into_iter().map(|files| tree(site, files)).collect()
}

fn tree(site: &Site, files: u64) -> Result<Contest, Failure> {
    let source = format!("tree-{files}");
    make_tree(site, &source, files)?;
    let contender = |(name, command): (&str, &str)| {
        // What was copied is compared outside the clock.
        let command = format!("trial run -- sh -c '{command}' && diff -r source copy");
        let prepare = format!("cp -r {source} disk/source && sync -f disk && ");
        let run = move |site: &Site, line: &str| {
            let outcome = Outcome::of_line(&site.run(line)?.stdout, line)?;
            Ok(Outcome { operations: files, ..outcome })
        };
        let contender = Contender::new(name, fresh::mounted(&prepare, &command), run);
        Contender { prepare: FRESH.to_owned(), ..contender }
    };
    Ok(Contest::new(
        format!("copy of {files} files of 4 KiB in folders of {TREE_FOLDER_FILES}, durable"),
        Unit::Files,
        TREE_WAYS.map(contender).into(),
        Requirement::of_best(Condition::AtLeast(1.0)),
    ))
}

/// Makes a folder with files of random data, in folders of a hundred.
fn make_tree(site: &Site, name: &str, files: u64) -> Result<(), Failure> {
    const DATA: &str = "tree-data";
    make(site, DATA, files * TREE_FILE_BYTES)?;
    let path = site.folder.join(DATA);
    let mut data = File::open(&path).tried(path.display())?;
    let mut content = vec![0; TREE_FILE_BYTES as usize];
    for number in 0..files {
        let folder = site.folder.join(name).join(format!("{:04}", number / TREE_FOLDER_FILES));
        if number % TREE_FOLDER_FILES == 0 {
            fs::create_dir_all(&folder).tried(folder.display())?;
        }
        data.read_exact(&mut content).tried(path.display())?;
        let file = folder.join(format!("{number:06}"));
        fs::write(&file, &content).tried(file.display())?;
    }
    fs::remove_file(&path).tried(path.display())
}

/// Makes a file of random data in the folder.
pub fn make(site: &Site, name: &str, bytes: u64) -> Result<(), Failure> {
    site.run(&format!("trial make --bytes {bytes} {name}")).map(|_| ())
}

/// Returns the line that reads a file into the page cache, as far as there is room.
pub fn fill_cache(file: &str) -> String {
    format!("cat {file} > /dev/null")
}

/// Returns the line that flushes a file and drops it from the page cache.
pub fn drop_cache(file: &str) -> String {
    format!("sync {file} && dd if={file} iflag=nocache count=0 status=none")
}

/// Makes a contender that copies a file of `bytes` by `line`, after the line `prepare`.
fn contender(name: &str, line: &str, bytes: u64, prepare: &str) -> Contender {
    let contender =
        Contender::new(name, line.to_owned(), move |site, line| copy(site, line, bytes));
    Contender { prepare: prepare.to_owned(), ..contender }
}

fn copy(site: &Site, line: &str, bytes: u64) -> Result<Outcome, Failure> {
    let (_, outcome) = site.measure(line)?;
    let copy = site.folder.join(COPY);
    let length = copy.metadata().tried(copy.display())?.len();
    fs::remove_file(&copy).tried(copy.display())?;
    if length == bytes {
        return Ok(Outcome { bytes, ..outcome });
    }
    Err(Failure::Failed(format!("{line}: {length} bytes, not {bytes}")))
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn every_program_copies_the_source_cached_and_not_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let contests = durable(&site).expect("scripts");
        let measured: Vec<_> =
            contests.iter().map(|contest| contest.measure(&site).expect("scripts")).collect();
        let table = &measured[0].table;
        let head = "| copy of 4m, durable, source in the page cache | MB/s |";
        assert!(table.starts_with(head), "{table}");
        assert_eq!(table.lines().count(), 6);
        assert!(table.contains("\n| `cp`, `sync -d` | 4.19 (4.19–4.19) | "), "{table}");
        assert!(table.contains("| **2.00** (2.00–2.00) | "), "{table}");
        assert!(measured[1].table.contains("durable, source not in the page cache"));
        let calls = fake::calls(&site);
        for call in [
            "trial make --bytes 4194304 source",
            "wrote copy source copy",
            "trial run -- sh -c wrote copy source copy",
            "cp source copy",
            "rsync source copy",
            "dd if=source of=copy bs=8M iflag=direct oflag=direct conv=fdatasync",
            "dd if=source iflag=nocache count=0 status=none",
        ] {
            assert!(calls.iter().any(|line| line == call), "{call}: {calls:?}");
        }
        let expected = ["wrote copy source copy", "cp source copy && sync -d copy"];
        assert_eq!(measured[0].commands[..2], expected);
        assert!(!folder.path().join(COPY).exists());
    }

    #[test]
    fn each_copy_of_a_folder_is_compared_on_a_file_system_of_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 1000);
        let contest = tree(&site, 250).expect("room");
        let path = |name: &str| folder.path().join("tree-250").join(name);
        assert_eq!(fs::metadata(path("0002/000249")).expect("the last").len(), 4096);
        assert!(!path("0002/000250").exists() && !path("0003").exists());
        for contender in &contest.contenders {
            let Contender { prepare, command, .. } = contender;
            assert!(prepare.contains("mkfs.ext4"), "{prepare}");
            let words = ["cp -r tree-250 disk/source && sync -f disk", "diff -r source copy"];
            assert!(words.iter().all(|words| command.contains(words)), "{command}");
            assert!(command.starts_with("trap 'umount disk' EXIT && "), "{command}");
        }
    }

    #[test]
    fn a_copy_that_is_too_short_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 1000);
        let failed = copy(&site, WROTE, 1001).expect_err("too short");
        assert_eq!(failed.to_string(), "wrote copy source copy: 1000 bytes, not 1001");
    }

    #[test]
    fn the_longer_file_is_as_long_as_there_is_room_for_it_twice() {
        assert_eq!(longer_bytes(100 * GIB), Some(16 * GIB));
        assert_eq!(longer_bytes(20 * GIB + 5), Some(8 * GIB));
        assert_eq!(longer_bytes(7 * GIB), None);
    }

    #[test]
    fn both_are_copied_in_each_of_at_most_three_rounds_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = Site { rounds: 7, ..fake::site(folder.path(), 1, 1000) };
        let contest = memory_of(&site, 1000, 1000).expect("scripts");
        let table = contest.measure(&site).expect("scripts").table;
        let calls = fake::calls(&site);
        let copies = calls.iter().filter(|call| call.starts_with("wrote copy ")).count();
        assert_eq!(copies, 6);
        let expected = "\n| `wrote copy` of 0 GiB | 2.00 (2.00–2.00) | **0.00** (0.00–0.00) \
                        | MiB all < 64.00, met; difference all < 4.00, met |";
        assert!(table.ends_with(expected), "{table}");
        assert!(!folder.path().join(COPY).exists());
    }

    #[test]
    fn a_file_is_the_same_whether_cached_or_not_and_one_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 1000);
        let path = folder.path().join("file");
        fs::write(&path, "content").expect("room");
        site.run(&drop_cache("file")).expect("there");
        site.run(&fill_cache("file")).expect("there");
        assert_eq!(fs::read(&path).expect("there"), b"content");
        let message = site.run(&fill_cache("missing")).expect_err("not there").to_string();
        assert!(message.contains("missing: No such file"), "{message}");
        assert!(site.run(&drop_cache("missing")).is_err());
    }
}
