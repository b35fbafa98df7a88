//! fio's `t/io_uring`, the leanest reader that is known: built from Debian's source of fio, whose
//! package lacks it, and its figures.

use super::contest::Contender;
use super::outcome::Outcome;
use super::site::Site;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::repository::target;
use lab::tools::run::{HANG, Show, run, twice};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's name beside the build.
const PROGRAM: &str = "t-io_uring";
/// The description of Debian's packages, from which that of their sources is made.
const SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";
const READ_BYTES: u64 = 4096;
/// The program prints a line for each second but the last.
const RUNTIME_S: u32 = 4;

/// The folder of the program.
pub fn folder() -> PathBuf {
    target().join("t-io_uring")
}

/// Builds the program, unless it is there. Where Debian's sources are out of reach it is skipped.
pub fn build() -> Result<(), Failure> {
    let program = folder().join(PROGRAM);
    if program.is_file() {
        return Ok(());
    }
    packages::install(&["cc"])?;
    std::fs::create_dir_all(folder()).tried(folder().display())?;
    let unfinished = tempfile::tempdir_in(target()).tried(target().display())?;
    let place = std::path::absolute(unfinished.path()).tried(target().display())?;
    download(&place).map_err(|failure| match failure {
        Failure::Failed(because) => Failure::Skipped(format!("the source of fio: {because}")),
        other => other,
    })?;
    let built = "tar --strip-components 1 -xf fio_*.orig.tar.[gx]z && ./configure --disable-native \
                 >/dev/null && make t/io_uring >/dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", built]).current_dir(&place);
    run(&mut command, HANG, Show::Errors)?.success("the build of t/io_uring")?;
    // It appears as a whole.
    std::fs::rename(place.join("t/io_uring"), &program).tried(program.display())
}

/// Downloads the source of fio into `place`, by lists of apt's that are private to it.
fn download(place: &Path) -> Result<(), Failure> {
    let packages = std::fs::read_to_string(SOURCES).tried(SOURCES)?;
    let parts = place.join("parts");
    std::fs::create_dir_all(place.join("lists/partial")).tried(place.display())?;
    std::fs::create_dir(&parts).tried(place.display())?;
    std::fs::write(parts.join("fio.sources"), sources(&packages)).tried(place.display())?;
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        // Otherwise apt as root downloads as another user, who cannot write here.
        command.args(["-q", "-o", "APT::Sandbox::User=root"]);
        command.args(["-o", "Dir::Etc::sourcelist=/dev/null", "-o"]);
        command.arg(format!("Dir::Etc::sourceparts={}", parts.display()));
        command.arg("-o").arg(format!("Dir::State::lists={}", place.join("lists").display()));
        command.args(words).current_dir(place);
        run(&mut command, HANG, Show::Live)?.success("apt-get")
    };
    twice(|| apt(&["update"]))?;
    twice(|| apt(&["source", "--download-only", "fio"])).map(drop)
}

/// Turns apt's description of packages into that of their sources.
fn sources(packages: &str) -> String {
    packages.replace("Types: deb\n", "Types: deb-src\n")
}

/// Makes a contender that reads `device` with 128 in flight, 32 together, after the words `under`.
pub fn contender(under: &str, device: &str) -> Contender {
    let line = format!("{under}{PROGRAM} -d128 -s32 -c32 -B1 -F1 -p0 -r{RUNTIME_S} {device}");
    let run = |site: &Site, line: &str| {
        let (finished, counted) = site.measure(line)?;
        let rates = rates(&finished.stdout);
        if rates.is_empty() {
            return Err(Failure::Failed(format!("{PROGRAM} read nothing")));
        }
        // The CPU time is of the whole run, so its reads are too.
        let per_s = rates.iter().sum::<f64>() / rates.len() as f64;
        let operations = (per_s * counted.elapsed_s) as u64;
        Ok(Outcome { bytes: operations * READ_BYTES, operations, ..counted })
    };
    Contender::new("fio's `t/io_uring`", line, run)
}

/// Reads "IOPS=397.12K, BW=…" of each second.
fn rates(stdout: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let figure = line.strip_prefix("IOPS=")?.split(',').next()?;
        let digits = figure.trim_end_matches(['K', 'M']);
        let factor = match &figure[digits.len()..] {
            "K" => 1e3,
            "M" => 1e6,
            _ => 1.0,
        };
        Some(digits.parse::<f64>().ok()? * factor)
    };
    stdout.lines().filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn each_second_has_its_rate() {
        let stdout = "polled=0, fixedbufs=1/0\nEngine=io_uring, sq_ring=128, cq_ring=128\n\
                      IOPS=397.12K, BW=1.55GiB/s, IOS/call=32/31\n\
                      IOPS=1.25M, BW=4.88GiB/s, IOS/call=32/31\nIOPS=99999, BW=390MiB/s\n\
                      Exiting on timeout\nMaximum IOPS=1.25M\n";
        assert_eq!(rates(stdout), [397_120.0, 1_250_000.0, 99_999.0]);
        assert!(rates("Maximum IOPS=0\n").is_empty());
    }

    #[test]
    fn the_sources_are_those_of_the_packages() {
        let packages = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n";
        let expected = "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n";
        assert_eq!(sources(packages), expected);
    }

    #[test]
    fn a_program_that_prints_no_rate_has_failed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let contender = contender("true ", "/dev/zram0");
        let failed = contender.run(&site).expect_err("nothing was read").to_string();
        assert_eq!(failed, "t-io_uring read nothing");
    }
}
