//! The rows of `wrote bench` that fio and dd can do too.

use super::contest::Contender;
use super::outcome::Outcome;
use super::rows::Words;
use super::site::Site;
use super::wrote;
use lab::tools::failure::{Failure, Tried};
use std::os::unix::fs::symlink;
use tempfile::NamedTempFile;

/// fio with the options of every job. It creates no file, because the row chooses its state.
const FIO: &str = "fio --name=peer --rw=write --fallocate=none --eta=never --output-format=json";
/// Bytes of random data in memory that dd reads. A longer file is written in several pieces.
const SOURCE_BYTES: u64 = 256 << 20;
/// The name of that data in the folder.
const SOURCE: &str = "random";

/// Makes the contender of a row of `wrote bench`, by `settings` that begin with its name. An
/// uncounted run finds how many bytes its peers write, and the state of their blocks.
pub fn own(name: &str, settings: &str, site: &Site) -> Result<(Contender, Words), Failure> {
    let command = format!("wrote bench . --only {settings} --runs 1 --format json");
    let row = settings.split(' ').next().unwrap_or_default().to_owned();
    let ours = move |site: &Site, line: &str| wrote::run(&site.run(line)?.stdout, &row);
    let (first, blocks) = ours(site, &command)?;
    let learned = [("blocks", blocks), ("bytes", first.bytes.to_string())];
    let learned = learned.map(|(key, word)| (key.to_owned(), word)).into();
    Ok((Contender::new(name, command, move |site, line| Ok(ours(site, line)?.0)), learned))
}

/// Makes the contender of fio or dd from `words`, for the work described by `learned`.
pub fn peer(
    by: &str,
    words: &str,
    flushes: bool,
    learned: &Words,
    site: &Site,
) -> Result<Contender, Failure> {
    let lacks = || Failure::Failed("rows.toml: no row of wrote bench before its peer".to_owned());
    let (blocks, bytes) = learned.get("blocks").zip(learned.get("bytes")).ok_or_else(lacks)?;
    let bytes = bytes.parse().tried("bytes")?;
    let made = if by == "fio" { fio(words, bytes) } else { dd(words, flushes, bytes, site)? };
    let made = Contender { prepare: prepare(blocks, bytes)?, ..made };
    if blocks == "written" {
        made.run(site)?;
    }
    Ok(made)
}

/// Returns the shell line that brings the file `peer` into the state of
/// `settings.effective.blocks`.
fn prepare(blocks: &str, bytes: u64) -> Result<String, Failure> {
    match blocks {
        "new" => Ok("rm -f peer".to_owned()),
        "allocated" => Ok(format!("rm -f peer && fallocate -l {bytes} peer && sync peer")),
        "written" => Ok(String::new()),
        other => Err(Failure::Failed(format!("wrote bench: unknown blocks: {other}"))),
    }
}

/// Makes a contender of fio. Its CPU time is the job's own thread's.
fn fio(arguments: &str, bytes: u64) -> Contender {
    let command = format!("{FIO} {arguments} --size={bytes} --filename=peer");
    Contender::new("fio", command, |site, line| Outcome::of_fio(&site.run(line)?.stdout, "fio"))
}

/// Makes a contender of dd, which reads random data from memory, because it generates none itself.
fn dd(operands: &str, flushes: bool, bytes: u64, site: &Site) -> Result<Contender, Failure> {
    let source = NamedTempFile::new_in("/dev/shm").tried("/dev/shm")?;
    symlink(source.path(), site.folder.join(SOURCE)).tried(SOURCE)?;
    site.run(&format!("head -c {SOURCE_BYTES} /dev/urandom > {SOURCE}"))?;
    let command = dd_command(operands, flushes, bytes, SOURCE_BYTES);
    Ok(Contender::new("dd", command, move |site, line| {
        // The closure keeps the data.
        let _ = &source;
        dd_outcome(site, line, bytes)
    }))
}

/// Chains a dd for each piece of `source_bytes`. If `flushes`, the last one flushes the file.
fn dd_command(operands: &str, flushes: bool, bytes: u64, source_bytes: u64) -> String {
    let piece = |number: u64| {
        let seek = number * source_bytes;
        let count = source_bytes.min(bytes - seek);
        let conversion = if flushes && seek + count == bytes { ",fdatasync" } else { "" };
        format!(
            "dd if={SOURCE} of=peer {operands} conv=notrunc{conversion} oflag=seek_bytes \
             seek={seek} iflag=count_bytes count={count}"
        )
    };
    (0..bytes.div_ceil(source_bytes)).map(piece).collect::<Vec<_>>().join(" &&\n")
}

/// Runs the dds, and adds up their reported times.
fn dd_outcome(site: &Site, line: &str, bytes: u64) -> Result<Outcome, Failure> {
    let (finished, counted) = site.measure(line)?;
    let pieces = dd_pieces(&finished.stderr)?;
    let written: u64 = pieces.iter().map(|piece| piece.0).sum();
    if written != bytes {
        return Err(Failure::Failed(format!("dd wrote {written} bytes, not {bytes}")));
    }
    let elapsed_s = pieces.iter().map(|piece| piece.1).sum();
    Ok(Outcome { bytes, elapsed_s, memory_bytes: None, ..counted })
}

/// Reads bytes and seconds of each "268435456 bytes (268 MB, 256 MiB) copied, 0.123 s, 2.2 GB/s".
fn dd_pieces(stderr: &str) -> Result<Vec<(u64, f64)>, Failure> {
    let piece = |line: &str| {
        let (begin, rest) = line.split_once(" copied, ")?;
        Some((begin.split(' ').next()?.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    };
    let lines = stderr.lines().filter(|line| line.contains(" copied, "));
    let pieces: Option<Vec<_>> = lines.map(piece).collect();
    pieces
        .filter(|pieces| !pieces.is_empty())
        .ok_or_else(|| Failure::Failed(format!("dd: cannot be read: {}", stderr.trim())))
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn a_file_longer_than_the_source_is_written_in_pieces() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        site.run("head -c 65536 /dev/urandom > random").expect("room");
        let line = dd_command("bs=16K", true, 163_840, 65_536);
        assert_eq!(line.matches("fdatasync").count(), 1, "{line}");
        let outcome = dd_outcome(&site, &line, 163_840).expect("dd");
        assert_eq!(outcome.bytes, 163_840);
        let piece = std::fs::read(folder.path().join(SOURCE)).expect("there");
        let written = std::fs::read(folder.path().join("peer")).expect("there");
        assert_eq!(written, [&piece[..], &piece, &piece[..32_768]].concat());
    }

    #[test]
    fn bytes_and_seconds_are_read() {
        let said = "32+0 records in\n32+0 records out\n\
                    268435456 bytes (268 MB, 256 MiB) copied, 0.123456 s, 2.2 GB/s\n";
        assert_eq!(dd_pieces(said).expect("a result"), [(268_435_456, 0.123_456)]);
        let short = dd_pieces("512 bytes copied, 1e-05 s, 51 MB/s").expect("a result");
        assert_eq!(short, [(512, 1e-5)]);
    }

    #[test]
    fn something_else_is_an_error_that_shows_it() {
        let message = dd_pieces("dd: error writing\n").expect_err("no figures").to_string();
        assert_eq!(message, "dd: cannot be read: dd: error writing");
    }

    #[test]
    fn the_file_is_new_allocated_or_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let peer = folder.path().join("peer");
        let bring = |blocks| site.run(&prepare(blocks, 8192).expect("a state")).expect("a shell");
        bring("allocated");
        assert_eq!(std::fs::metadata(&peer).expect("there").len(), 8192);
        std::fs::write(&peer, "written").expect("room");
        bring("written");
        assert_eq!(std::fs::read(&peer).expect("there"), b"written");
        bring("new");
        assert!(!peer.exists());
    }

    #[test]
    fn the_words_of_the_result_are_known() {
        for blocks in ["new", "allocated", "written"] {
            prepare(blocks, 8192).expect("a state");
        }
        assert!(prepare("other", 8192).is_err());
    }
}
