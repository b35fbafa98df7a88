//! Finds the clients' programs, and feeds them lines.

use crate::serving::Serving;
use fixtures::Running;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::path::PathBuf;
use std::process::Command;

/// The number of lines given to a client at a time: as datagrams, they fit into any receive buffer.
const SLICE: usize = 250;

/// Returns the path of a client that `cargo xtask test` provides. The error is the reason to skip a
/// test.
pub fn provided(path: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().expect("a program has a path");
    let path = own.ancestors().nth(3).expect("cargo built the program").join(path);
    match path.exists() {
        true => Ok(path),
        false => Err(format!("no {}: cargo xtask test provides it", path.display())),
    }
}

/// Prepares a program that `cargo xtask test` unpacked from a Debian package. The error is the
/// reason to skip a test.
pub fn unpacked(program: &str) -> Result<Command, String> {
    let root = provided("clients")?;
    let path = provided(&format!("clients/{program}"))?;
    let architecture = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let libraries = [&architecture, "usr/lib/syslog-ng"].map(|folder| root.join(folder));
    let mut command = Command::new(path);
    command
        .env("LD_LIBRARY_PATH", std::env::join_paths(libraries).expect("paths without colons"))
        // loggen looks for its plugins in this folder.
        .env("SYSLOGNG_PREFIX", root.join("usr"));
    Ok(command)
}

/// Runs a client that reads lines from its input and waits for answers.
#[track_caller]
pub fn feed_all(command: &mut Command, lines: &[String]) {
    let (input, mut pipe): (PipeReader, PipeWriter) = pipe().expect("a pipe");
    let running = Running::start(command.stdin(input));
    // Otherwise, this process would keep the reading end of the client's pipe open.
    command.stdin(std::process::Stdio::null());
    pipe.write_all((lines.join("\n") + "\n").as_bytes()).expect("the client reads");
    drop(pipe);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

/// Runs a client that reads lines from its input. It gets further lines only after the previous
/// ones have arrived, because a sender of datagrams does not wait for its server.
#[track_caller]
pub fn feed(serving: &Serving, command: &mut Command, lines: &[String]) {
    let (input, mut pipe): (PipeReader, PipeWriter) = pipe().expect("a pipe");
    let running = Running::start(command.stdin(input));
    for (index, slice) in lines.chunks(SLICE).enumerate() {
        pipe.write_all((slice.join("\n") + "\n").as_bytes()).expect("the client reads");
        let arrived = (index * SLICE + slice.len()) as u64;
        serving.wait_until(|figures| figures.messages >= arrived);
    }
    drop(pipe);
    assert_eq!(running.finish().code(), Some(0));
}
