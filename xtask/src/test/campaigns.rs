//! The campaigns: the steps that `cargo xtask test` leaves to `--all`, those that protect data
//! first.

use super::languages::{self, Missing};
use super::{STRICT, step, stores, tests};
use crate::failure::Failure;
use crate::fuzz::{self, Subject};
use crate::lab::confine::Share;
use crate::lab::{
    commands, confine, damage, faulty_disk, kill, log_writes, logs, nvme, power_cut, soak,
};
use crate::packages::{DEVICE_MAPPER, LABS, MPI, NVME, TESTS, provide};
use crate::programs::cargo_tests;
use crate::report::{Outcome, Report};
use crate::repository::{cargo, target};
use crate::{book, dist, miri, model, semver, toolchains};
use std::time::Duration;

/// A long run. Most draw their own chances, so that rounds add up.
#[derive(Clone, Copy)]
pub struct Campaign {
    /// Its name for `cargo xtask campaign`.
    pub name: &'static str,
    /// Its rounds, in a few words.
    pub what: &'static str,
    /// One round of some minutes; with `true` it installs what it needs.
    pub round: fn(&mut Report, bool) -> Result<(), Failure>,
}

/// Every campaign, in order.
pub const CAMPAIGNS: [Campaign; 26] = [
    Campaign {
        name: "seeds",
        what: "lab sim: 100,000 seeds",
        round: |report, _| logs::sim(report, logs::Sim::of(100_000)),
    },
    Campaign {
        name: "hidden-faults",
        what: "lab sim --hidden-faults: 500 seeds",
        round: |report, _| {
            logs::sim(report, logs::Sim { hidden_faults: true, ..logs::Sim::of(500) })
        },
    },
    Campaign {
        name: "damage",
        what: "lab damage: 3,000 logs",
        round: |report, _| damage::lab(report, damage::Arguments { logs: 3_000, from_seed: None }),
    },
    Campaign {
        name: "power-cut",
        what: "lab power-cut: 200 moments on each file system",
        round: |report, _| {
            power_cut::lab(report, power_cut::Arguments { seed: None, moments: 200 })
        },
    },
    Campaign {
        name: "kills",
        what: "lab kill: 200 times",
        round: |report, _| kill::lab(report, kill::Arguments { times: 200, seed: None }),
    },
    Campaign {
        name: "fuzz",
        what: "fuzzer of the log and of the server's parsers",
        round: |report, _| fuzzer(report),
    },
    Campaign {
        name: "commands",
        what: "lab commands: 5,000 calls",
        round: |report, _| {
            commands::lab(report, commands::Arguments { calls: 5_000, from_seed: None })
        },
    },
    Campaign {
        name: "address-sanitizer",
        what: "tests with AddressSanitizer",
        round: |report, install| {
            let needed = [LABS, TESTS].concat();
            report.step("Debian packages of the tests", || provide(&needed, install))?;
            report.step("tests with AddressSanitizer", sanitized)
        },
    },
    Campaign { name: "miri", what: "Miri", round: |report, _| miri::steps(report) },
    Campaign {
        name: "threads",
        what: "every order of threads",
        round: |report, _| model::step(report, model::PREEMPTIONS),
    },
    Campaign {
        name: "soak",
        what: "lab soak: 2 minutes",
        round: |report, _| soak::lab(report, soak::Arguments { time: Duration::from_secs(120) }),
    },
    Campaign {
        name: "statistics",
        // Those that are marked `#[ignore = "campaign"]`.
        what: "tests of statistics",
        round: |report, _| tests(report, "tests of statistics", &["--ignored"]),
    },
    Campaign {
        name: "confine",
        what: "lab confine: rest of the tests",
        round: |report, _| confine::lab(report, Share::Rest),
    },
    Campaign {
        name: "features",
        what: "other features of the library",
        round: |report, _| features(report),
    },
    Campaign { name: "s3", what: "logs in an S3 server", round: stores::s3 },
    Campaign { name: "ranks", what: "a whole benchmark of four ranks", round: ranks },
    Campaign {
        name: "nvme",
        what: "lab nvme",
        round: |report, install| {
            report.step("Debian packages of the guest", || provide(NVME, install))?;
            nvme::lab(report, install)
        },
    },
    Campaign {
        name: "log-writes",
        what: "lab log-writes: 200 moments on each file system",
        round: |report, install| {
            report.step("Debian packages of the guest", || provide(DEVICE_MAPPER, install))?;
            log_writes::lab(report, &log_writes::Arguments::of_round(), install)
        },
    },
    Campaign {
        name: "faulty-disk",
        what: "lab faulty-disk",
        round: |report, install| {
            report.step("Debian packages of the guest", || provide(DEVICE_MAPPER, install))?;
            faulty_disk::lab(report, install)
        },
    },
    Campaign {
        name: "rivals",
        what: "clippy and tests of rivals",
        round: |report, _| rivals(report),
    },
    Campaign {
        name: "raft",
        what: "clippy and tests of raft-log",
        round: |report, _| raft(report),
    },
    Campaign {
        name: "crates",
        what: "packages of the crates",
        round: |report, _| dist::check_crates(report),
    },
    Campaign {
        name: "semver",
        what: "API of the library against the last release",
        round: semver::check,
    },
    Campaign {
        name: "dist",
        what: "program, archive and Debian package in clean roots",
        round: dist::check,
    },
    Campaign { name: "book", what: "book of the documents", round: book::check },
    Campaign { name: "languages", what: "every language", round: every_language },
];

/// Runs the tests under `mpirun` that take a minute or more.
fn ranks(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("a whole benchmark under mpirun", || {
        provide(MPI, install)?;
        let words = ["test", "-p", "wrote-cli", "--features", "mpi", "--test", "mpi"];
        cargo_tests(cargo(&words).args(["--", "--ignored", "--nocapture"]))
    })
}

/// The manifest of the crates that the log is measured against, a workspace of their own.
pub const RIVALS: &str = "xtask/rivals/Cargo.toml";
/// The manifest of the example that needs openraft, a workspace of its own.
pub const RAFT: &str = "examples/raft-log/Cargo.toml";
/// How long the fuzzer runs on the log.
const FUZZ_SECONDS: u32 = 120;
/// How long it runs on each of the server's parsers, which meet any bytes from the network. All of
/// them together must leave time for the campaigns behind them.
const PARSER_SECONDS: u32 = 180;
/// The modules of the library's tests `it` that also run with AddressSanitizer.
const SANITIZED: [&str; 7] = [
    "engine::",
    "engine_faults::",
    "file_drops::",
    "file_faults::",
    "file_waiting::",
    "writer::",
    "writer_faults::",
];

/// Runs the tests in which buffers change hands, with every access to memory checked.
///
/// The stable compiler brings the sanitizer, but takes `-Zsanitizer=address` only with
/// `RUSTC_BOOTSTRAP=1`, which allows unstable flags. With a target named, cargo builds macros and
/// build scripts without the flag; the compiler could not load them with it. Its own target folder
/// keeps the other builds.
fn sanitized() -> Result<Outcome, Failure> {
    if std::env::consts::ARCH != "x86_64" {
        let architecture = std::env::consts::ARCH;
        return Err(Failure::Skipped(format!(
            "AddressSanitizer on {architecture} was never tried"
        )));
    }
    let mut command = cargo(&["test", "--package", "wrote", "--no-fail-fast"]);
    command
        .args(["--target", "x86_64-unknown-linux-gnu", "--test", "it", "--"])
        .args(SANITIZED)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", target().join("asan"));
    cargo_tests(&mut command)
}

/// The library's default features but io-uring.
const WITHOUT_IO_URING: &str = "copy,log,sim";

/// Checks the builds of the library that other crates may ask for.
fn features(report: &mut Report) -> Result<(), Failure> {
    let words = ["clippy", "-p", "wrote", "--all-targets", "--features=rustix/use-libc"];
    step(report, "clippy with rustix by libc", &[&words[..], &STRICT].concat())?;
    for features in ["", "copy", "log", "sim", "io-uring", WITHOUT_IO_URING] {
        let only = format!("--features={features}");
        let words = ["clippy", "-p", "wrote", "--all-targets", "--no-default-features", &only];
        let name = format!("clippy of the library with the features: {features}");
        step(report, &name, &[&words[..], &STRICT].concat())?;
    }
    report.step("tests without io_uring", || {
        let only = format!("--features={WITHOUT_IO_URING}");
        let words = ["test", "-p", "wrote", "--no-default-features", &only, "--no-fail-fast"];
        cargo_tests(cargo(&words).env("CARGO_TARGET_DIR", target().join("without-io_uring")))
    })
}

fn fuzzer(report: &mut Report) -> Result<(), Failure> {
    clippy(report, "clippy of the fuzzer", fuzz::MANIFEST)?;
    for (subject, seconds) in [
        (Subject::Log, FUZZ_SECONDS),
        (Subject::Frames, PARSER_SECONDS),
        (Subject::Relp, PARSER_SECONDS),
        (Subject::Resp, PARSER_SECONDS),
    ] {
        report.step(&subject.step(), || fuzz::run_for(subject, seconds))?;
    }
    Ok(())
}

fn rivals(report: &mut Report) -> Result<(), Failure> {
    clippy(report, "clippy of rivals", RIVALS)?;
    report.step("tests of rivals", || {
        cargo_tests(&mut cargo(&["test", "--no-fail-fast", "--manifest-path", RIVALS]))
    })
}

fn raft(report: &mut Report) -> Result<(), Failure> {
    clippy(report, "clippy of raft-log", RAFT)?;
    report.step("tests of raft-log", || {
        cargo_tests(&mut cargo(&["test", "--no-fail-fast", "--manifest-path", RAFT]))
    })
}

fn clippy(report: &mut Report, name: &str, manifest: &str) -> Result<(), Failure> {
    let words = ["clippy", "--all-targets", "--manifest-path", manifest];
    step(report, name, &[&words[..], &STRICT].concat())
}

fn every_language(report: &mut Report, install: bool) -> Result<(), Failure> {
    toolchains::step(report, install)?;
    let missing = if install { Missing::Failed } else { Missing::Skipped };
    report.step("every language", || languages::check(missing))
}
