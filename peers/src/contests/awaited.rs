//! Files that tasks and many `Writer`s share: `DirectFile` awaited, and `Writer`s on one disk.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::job::{self, Runner};
use super::outcome::Unit;
use super::site::Site;
use super::ways::WAYS_GIB;
use lab::tools::failure::Failure;

const FILE: &str = "random-data";
const FILE_BYTES: u64 = 4 << 30;
const READ_BYTES: u64 = 256 << 10;
const READS: u64 = 16_000;
const FILES: u64 = 8;

/// Compares awaited reads of 32 tasks with the runtime's blocking calls, and with the same reads by
/// `wrote run`; the same where io_uring is refused; and the load of tokio-rs/tokio#8367, ranges of
/// a file that the page cache holds.
pub fn reads(site: &Site) -> Result<Vec<Contest>, Failure> {
    let make = format!("(test -e {FILE} || trial make --bytes {FILE_BYTES} {FILE})");
    // What the page cache holds is no read of the device.
    let prepare = format!("{make} && trial drop-caches");
    let by = |by: &str, name: &str| {
        let line = format!("trial awaited-reads --by {by} --reads {READS} {FILE}");
        Contender { prepare: prepare.clone(), ..Contender::timed(name, line) }
    };
    let job = job::random_pieces("awaited-read", FILE, FILE_BYTES, READS * READ_BYTES);
    let run = Runner::Wrote.contender("`wrote run`, 256k x 32", "", job, &prepare, site)?;
    let peers = [Condition::AtLeast(1.2), Condition::AtLeast(0.95)];
    let awaited = Contest::new(
        "random reads of 256 KiB by 32 tasks of tokio, direct",
        Unit::Stream,
        vec![
            by("direct-file", "`DirectFile::read_at`"),
            by("spawn-blocking", "`spawn_blocking`, `O_DIRECT`"),
            run,
        ],
        Requirement::of_each(Comparison::Rate, &peers),
    );
    let threads = Contest::new(
        "the same where io_uring is refused",
        Unit::Stream,
        vec![
            by("direct-file-threads", "`DirectFile::read_at`, threads"),
            by("spawn-blocking", "`spawn_blocking`, `O_DIRECT`"),
        ],
        Vec::new(),
    );
    let warm = format!("{make} && cat {FILE} > /dev/null");
    let cached = Contest::new(
        "the same, in the page cache (tokio-rs/tokio#8367)",
        Unit::Stream,
        vec![
            Contender { prepare: warm.clone(), ..by("direct-file", "`DirectFile::read_at`") },
            Contender { prepare: warm, ..by("spawn-blocking-cached", "`spawn_blocking`, `pread`") },
        ],
        Requirement::of_best(Condition::Level),
    );
    Ok(vec![awaited, threads, cached])
}

/// Compares `Writer`s that share a disk with `Writer`s that have a ring each.
pub fn many_files(site: &Site) -> Contest {
    let size = site.size(WAYS_GIB);
    let by = |by: &str, name: &str| {
        let bytes = size.bytes / FILES;
        let line = format!("trial many-files --by {by} --files {FILES} --bytes {bytes} files");
        Contender::timed(name, line)
    };
    Contest::new(
        format!("{} in {FILES} files, in pieces of 64 KiB in turn, durable", size.text),
        Unit::Stream,
        vec![by("shared", "`Writer`s on one `Disk`"), by("own", "`Writer`s, a ring each")],
        Requirement::of_best(Condition::Level),
    )
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn reads_are_held_against_both_peers_and_files_against_a_ring_each() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 1000);
        let table = many_files(&site).measure(&site).expect("scripts").table;
        assert!(table.contains("| `Writer`s, a ring each |"), "{table}");
        let made = fake::calls(&site);
        assert!(made[0].starts_with("trial many-files --by shared --files 8 --bytes"), "{made:?}");
    }
}
