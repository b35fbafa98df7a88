//! Runs dd and reads what it says.

use super::cpu::children_cpu_s;
use super::file::PeerFile;
use super::measured::Measured;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run as run_command};
use std::io::Read;
use std::process::Command;
use std::time::Duration;
use tempfile::NamedTempFile;

const LIMIT: Duration = Duration::from_secs(5 * 60);
/// dd reads this much random data from memory; a longer file is written in several pieces.
const SOURCE_BYTES: u64 = 256 << 20;

/// Random data in memory, for dd to read: it makes none itself.
#[derive(Debug)]
pub struct Source {
    file: NamedTempFile,
    size_bytes: u64,
}

impl Source {
    /// Makes it, in `/dev/shm`.
    pub fn new() -> Result<Source, Failure> {
        let file = NamedTempFile::new_in("/dev/shm").tried("/dev/shm")?;
        Source::fill(file, SOURCE_BYTES)
    }

    fn fill(mut file: NamedTempFile, size_bytes: u64) -> Result<Source, Failure> {
        let random = std::fs::File::open("/dev/urandom").tried("/dev/urandom")?;
        std::io::copy(&mut random.take(size_bytes), &mut file).tried("random data in memory")?;
        Ok(Source { file, size_bytes })
    }

    /// Writes `file` once with dd, in pieces as long as the source; with `fdatasync` the last
    /// piece is flushed, and with it the file.
    pub fn run(
        &self,
        operands: &[&str],
        fdatasync: bool,
        file: &PeerFile,
    ) -> Result<Measured, Failure> {
        let mut sum = Measured { bytes: 0, elapsed_s: 0.0, cpu_s: 0.0 };
        let cpu_before_s = children_cpu_s()?;
        while sum.bytes < file.size_bytes() {
            let piece_bytes = self.size_bytes.min(file.size_bytes() - sum.bytes);
            let is_last = sum.bytes + piece_bytes == file.size_bytes();
            let mut command = Command::new("dd");
            command.env("LC_ALL", "C").args(operands);
            command.arg(format!("if={}", self.file.path().display()));
            command.arg(format!("of={}", file.path().display()));
            command.args(["oflag=seek_bytes", "iflag=count_bytes"]);
            command.arg(format!("seek={}", sum.bytes)).arg(format!("count={piece_bytes}"));
            command.arg(conversion(fdatasync && is_last));
            let finished = run_command(&mut command, LIMIT, Show::Quiet)?.success("dd")?;
            let (bytes, elapsed_s) = parse(&finished.stderr)?;
            if bytes != piece_bytes {
                return Err(Failure::Failed(format!("dd wrote {bytes} bytes, not {piece_bytes}")));
            }
            sum.bytes += bytes;
            sum.elapsed_s += elapsed_s;
        }
        sum.cpu_s = children_cpu_s()? - cpu_before_s;
        Ok(sum)
    }
}

fn conversion(fdatasync: bool) -> &'static str {
    if fdatasync { "conv=notrunc,fdatasync" } else { "conv=notrunc" }
}

/// The commands as one would type them.
pub fn describe(operands: &[&str], fdatasync: bool, file: &PeerFile) -> String {
    let pieces = file.size_bytes().div_ceil(SOURCE_BYTES);
    let when = if fdatasync { ", the last with conv=notrunc,fdatasync" } else { "" };
    format!(
        "dd if=/dev/shm/RANDOM of=FILE {} conv=notrunc oflag=seek_bytes seek=… iflag=count_bytes count={SOURCE_BYTES} # {pieces} times{when}",
        operands.join(" ")
    )
}

/// Bytes and seconds of "268435456 bytes (268 MB, 256 MiB) copied, 0.123 s, 2.2 GB/s".
fn parse(stderr: &str) -> Result<(u64, f64), Failure> {
    let read = || {
        let line = stderr.lines().find(|line| line.contains(" copied, "))?;
        let bytes = line.split(' ').next()?.parse().ok()?;
        let elapsed_s = line.split(" copied, ").nth(1)?.split(' ').next()?.parse().ok()?;
        Some((bytes, elapsed_s))
    };
    read().ok_or_else(|| Failure::Failed(format!("dd: cannot be read: {}", stderr.trim())))
}

#[cfg(test)]
mod tests {
    use super::super::file::Blocks;
    use super::*;

    #[test]
    fn a_file_longer_than_the_source_is_written_in_pieces() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = NamedTempFile::new_in(folder.path()).expect("a temporary file");
        let source = Source::fill(source, 65_536).expect("random data");
        let file = PeerFile::new(folder.path().join("peer"), Blocks::New, 163_840);
        let measured = source.run(&["bs=16K"], true, &file).expect("dd");
        assert_eq!(measured.bytes, 163_840);
        let piece = std::fs::read(source.file.path()).expect("there");
        let written = std::fs::read(file.path()).expect("there");
        assert_eq!(written, [&piece[..], &piece, &piece[..32_768]].concat());
    }

    #[test]
    fn bytes_and_seconds_are_read() {
        let said = "32+0 records in\n32+0 records out\n\
                    268435456 bytes (268 MB, 256 MiB) copied, 0.123456 s, 2.2 GB/s\n";
        assert_eq!(parse(said).expect("a result"), (268_435_456, 0.123_456));
        assert_eq!(parse("512 bytes copied, 1e-05 s, 51 MB/s").expect("a result"), (512, 1e-5));
    }

    #[test]
    fn something_else_is_an_error_that_shows_it() {
        let message = parse("dd: error writing\n").expect_err("no figures").to_string();
        assert_eq!(message, "dd: cannot be read: dd: error writing");
    }
}
