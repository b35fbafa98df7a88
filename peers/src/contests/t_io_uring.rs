//! fio's `t/io_uring`, the leanest known reader, built from Debian's source of fio because the
//! package lacks it.

use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::repository::target;
use lab::tools::run::{HANG, Show, run, twice};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's name beside the build.
const PROGRAM: &str = "t-io_uring";
/// The description of Debian's packages; the description of their sources is made from it.
const SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";

/// The folder of the program.
pub fn folder() -> PathBuf {
    target().join("t-io_uring")
}

/// Builds the program, unless installed. Skipped if Debian's sources are unreachable.
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

/// Downloads the source of fio into `place`, with private apt lists.
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

/// Turns apt's description of packages into a description of their sources.
fn sources(packages: &str) -> String {
    packages.replace("Types: deb\n", "Types: deb-src\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_are_those_of_the_packages() {
        let packages = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n";
        let expected = "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n";
        assert_eq!(sources(packages), expected);
    }
}
