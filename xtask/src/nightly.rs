//! `cargo xtask nightly`: the campaigns, which `cargo xtask test` leaves out. They run once each,
//! or repeatedly with other random seeds. The first ones protect data.

use crate::check::{STRICT, step};
use crate::fuzz::{self, Subject};
use crate::languages::{self, Missing};
use crate::test::tests;
use crate::{PEERS, bindings, book, dist, miri, mutants, release, times, toolchains};
use clap::builder::PossibleValuesParser;
use lab::runs::confine::{self, Share};
use lab::runs::{
    commands, damage, duration, faulty_disk, kill, log_writes, nvme, power_cut, sim, soak,
    strange_fs, trace,
};
use lab::tools::clients;
use lab::tools::failure::Failure;
use lab::tools::packages::{DEVICE_MAPPER, LABS, MPI, NVME, TESTS, provide};
use lab::tools::programs::cargo_tests;
use lab::tools::report::{Outcome, Report};
use lab::tools::repository::{cargo, target};
use lab::tools::run::end_at;
use std::time::{Duration, Instant};

/// How long a campaign may continue after the time of `--within`.
const OVERTIME: Duration = Duration::from_secs(10 * 60);

/// Run the campaigns: what `cargo xtask test` leaves out because it takes long.
///
/// Most draw their own seeds and print them, so that rounds add up. The last line counts what
/// passed, failed and was skipped.
#[derive(clap::Args)]
pub struct Arguments {
    /// The campaigns [default: all, those first that protect data]
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,
    /// Run the ones that protect data, with small counts, as each commit does
    #[arg(long, conflicts_with_all = ["names", "each"])]
    short: bool,
    /// Start no campaign when this time is over, such as 40m; end one that still runs ten minutes
    /// later, and list the rest
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<Duration>,
    /// Begin rounds of each campaign for this time; a failed round is the last
    #[arg(long, value_name = "TIME", value_parser = duration)]
    each: Option<Duration>,
    /// Install nothing; steps that need a missing program are skipped
    #[arg(long)]
    no_install: bool,
}

/// Runs the campaigns that `arguments` name, in the order of [`CAMPAIGNS`].
pub fn nightly(arguments: &Arguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut report = Report::default();
    if let Some(within) = arguments.within {
        end_at(begin + within + OVERTIME);
    }
    let is_named =
        |name| arguments.names.is_empty() || arguments.names.iter().any(|one| one == name);
    for campaign in CAMPAIGNS.iter().filter(|campaign| is_named(campaign.name)) {
        if arguments.within.is_some_and(|within| begin.elapsed() > within) {
            report.leave(campaign.what, "no time was left");
        } else if !arguments.short {
            repeat(&mut report, campaign, arguments)?;
        } else if let Some(short) = campaign.short {
            short(&mut report, !arguments.no_install)?;
        }
    }
    times::finish(report, if arguments.short { "short" } else { "nightly" })
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CAMPAIGNS.map(|one| one.name))
}

/// Names every campaign as left out.
pub fn list(report: &mut Report) {
    for Campaign { name, what, .. } in CAMPAIGNS {
        report.leave(what, &format!("cargo xtask nightly {name}"));
    }
}

fn repeat(report: &mut Report, campaign: &Campaign, arguments: &Arguments) -> Result<(), Failure> {
    let begun = Instant::now();
    let failed = report.failed();
    let mut rounds = 0;
    loop {
        (campaign.round)(report, !arguments.no_install)?;
        rounds += 1;
        let is_over = arguments.each.is_none_or(|each| begun.elapsed() >= each);
        if is_over || report.failed() > failed {
            let minutes = begun.elapsed().as_secs_f64() / 60.0;
            eprintln!("\n{}: {rounds} rounds in {minutes:.0} min", campaign.name);
            return Ok(());
        }
    }
}

/// A long run. Most draw random seeds, so that rounds add up.
#[derive(Clone, Copy)]
struct Campaign {
    /// Its name for `cargo xtask nightly`.
    name: &'static str,
    /// Its rounds, in a few words.
    what: &'static str,
    /// One round of some minutes.
    round: Round,
    /// The same with a small count, for every commit.
    short: Option<Round>,
}

/// Adds the steps of a round to a report; with `true` it installs what it needs.
type Round = fn(&mut Report, bool) -> Result<(), Failure>;

/// Every campaign, in order.
const CAMPAIGNS: [Campaign; 32] = [
    Campaign {
        short: Some(|report, _| sim::lab(report, sim::Arguments::of(5_000))),
        ..long("seeds", "lab sim: 100,000 seeds", |report, _| {
            sim::lab(report, sim::Arguments::of(100_000))
        })
    },
    Campaign {
        short: Some(|report, _| sim::lab(report, sim::Arguments::hidden(250))),
        ..long("hidden-faults", "lab sim --hidden-faults: 500 seeds", |report, _| {
            sim::lab(report, sim::Arguments::hidden(500))
        })
    },
    Campaign {
        short: Some(|report, _| damage::lab(report, damage::Arguments::of(300))),
        ..long("damage", "lab damage: 3,000 logs", |report, _| {
            damage::lab(report, damage::Arguments::of(3_000))
        })
    },
    Campaign {
        short: Some(|report, _| power_cut::lab(report, power_cut::Arguments::of(25))),
        ..long("power-cut", "lab power-cut: 200 moments on each file system", |report, _| {
            power_cut::lab(report, power_cut::Arguments::of(200))
        })
    },
    Campaign {
        short: Some(|report, _| trace::lab(report, trace::Arguments::of(20))),
        ..long("trace", "lab trace: 1,000 moments on each file system", |report, _| {
            trace::lab(report, trace::Arguments::of(1000))?;
            tests(report, "tests of traced programs", &["--ignored", "trace::"])
        })
    },
    Campaign {
        short: Some(|report, _| kill::lab(report, kill::Arguments::of(20))),
        ..long("kills", "lab kill: 200 times", |report, _| {
            kill::lab(report, kill::Arguments::of(200))
        })
    },
    long("fuzz", "fuzzer of the log and of the server's parsers", |report, _| fuzzer(report)),
    Campaign {
        short: Some(|report, _| commands::lab(report, commands::Arguments::of(500))),
        ..long("commands", "lab commands: 5,000 calls", |report, _| {
            commands::lab(report, commands::Arguments::of(5_000))
        })
    },
    Campaign {
        short: Some(|report, _| confine::lab(report, Share::Engine)),
        ..long(
            "confine",
            "lab confine: every test of the engine and of what uses it",
            |report, _| {
                confine::lab(report, Share::Engine)?;
                confine::lab(report, Share::Rest)
            },
        )
    },
    Campaign {
        short: Some(|report, _| strange_fs::lab(report)),
        ..long("strange-fs", "lab strange-fs", |report, _| strange_fs::lab(report))
    },
    Campaign {
        short: Some(release::check),
        ..long("release", "the program as `cargo run --release` builds it", release::check)
    },
    long("address-sanitizer", "tests with AddressSanitizer", |report, install| {
        let needed = [LABS, TESTS].concat();
        report.step("Debian packages of the tests", || provide(&needed, install))?;
        report.step("tests with AddressSanitizer", sanitized)
    }),
    long("miri", "Miri", |report, _| miri::steps(report)),
    long("threads", "every order of threads", |report, _| {
        miri::model_step(report, miri::PREEMPTIONS)
    }),
    long("mutants", "small mistakes in the code that keeps promises", mutants::check),
    long("soak", "lab soak: 2 minutes", |report, _| {
        soak::lab(report, soak::Arguments { time: Duration::from_secs(120) })
    }),
    // The tests of these four, of `trace` and of `s3` are marked `#[ignore = "nightly"]`.
    long("statistics", "tests of statistics and of findings that judge rates", |report, _| {
        let others =
            ["clients::", "pages::", "s3::", "mpi::", "trace::"].map(|module| ["--skip", module]);
        tests(report, "tests of statistics", &[&["--ignored"], &others.concat()[..]].concat())
    }),
    long("clients", "foreign clients of the server", |report, install| {
        clients::provide(report, install)?;
        tests(report, "tests of foreign clients", &["--ignored", "clients::"])
    }),
    long("pages", "every page in Chromium", |report, install| {
        report.step("modules for pages", || clients::pages(install))?;
        tests(report, "tests of pages", &["--ignored", "pages::"])
    }),
    long("ranks", "a whole benchmark of four ranks", |report, install| {
        report.step("Debian packages of MPI", || provide(MPI, install))?;
        tests(report, "tests of ranks", &["--ignored", "mpi::"])
    }),
    long("features", "other features of the library", |report, _| features(report)),
    long("s3", "logs in an S3 server", |report, install| {
        report.step("S3 server moto", || clients::moto(install))?;
        tests(report, "tests on S3", &["--ignored", "s3::"])
    }),
    long("nvme", "lab nvme", |report, install| {
        report.step("Debian packages of the guest", || provide(NVME, install))?;
        nvme::lab(report, install)
    }),
    long("log-writes", "lab log-writes: 200 moments on each file system", |report, install| {
        report.step("Debian packages of the guest", || provide(DEVICE_MAPPER, install))?;
        log_writes::lab(report, &log_writes::Arguments::of_round(), install)
    }),
    long("faulty-disk", "lab faulty-disk", |report, install| {
        report.step("Debian packages of the guest", || provide(DEVICE_MAPPER, install))?;
        faulty_disk::lab(report, install)
    }),
    long("rivals", "clippy and tests of peers and their rivals", |report, _| rivals(report)),
    long("bindings", "the library for other languages, with sanitizers", bindings::check),
    long("crates", "packages of the crates", |report, _| dist::check_crates(report)),
    long("semver", "API of the library against the last release", release::check_api),
    long("dist", "program, archive and Debian package in clean roots", dist::check),
    long("book", "book of the documents", book::check),
    Campaign {
        short: Some(|report, _| {
            report.step("languages", || languages::check(Missing::Left)).map(drop)
        }),
        ..long("languages", "every language", every_language)
    },
];

const fn long(name: &'static str, what: &'static str, round: Round) -> Campaign {
    Campaign { name, what, round, short: None }
}

/// How long the fuzzer runs on the log.
const FUZZ_SECONDS: u32 = 120;
/// How long it runs on each of the server's parsers, which receive arbitrary bytes from the
/// network. All of them together must leave time for the later campaigns.
const PARSER_SECONDS: u32 = 180;
/// The modules of the library's tests `it` that also run with AddressSanitizer.
const SANITIZED: [&str; 5] = ["engine::", "faults::", "file_drops::", "file_waiting::", "writer::"];

/// Runs the tests that pass buffers between owners, with every memory access checked.
///
/// The stable compiler brings the sanitizer, but takes `-Zsanitizer=address` only with
/// `RUSTC_BOOTSTRAP=1`, which allows unstable flags. If the target is named, cargo builds macros
/// and build scripts without the flag, which would keep the compiler from loading them. Its own
/// target folder keeps the other builds.
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

/// The library's default features except io-uring.
const WITHOUT_IO_URING: &str = "copy,log,sim";

/// Checks builds of the command with fewer features, and builds of the library with features that
/// other crates may enable.
fn features(report: &mut Report) -> Result<(), Failure> {
    for features in ["", "serve"] {
        report.step(&format!("tests of the command with the features: {features}"), || {
            let only = format!("--features={features}");
            let words = ["test", "-p", "wrote-cli", "--test", "it", &only, "--"];
            cargo_tests(cargo(&words).args(["text::usage::", "command::", "inputs::"]))
        })?;
    }
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
    clippy(report, "clippy of the fuzzer", fuzz::MANIFEST, &[])?;
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
    clippy(report, "clippy of peers", PEERS, &["--workspace"])?;
    report.step("tests of peers", || {
        let words = ["test", "--workspace", "--no-fail-fast", "--manifest-path", PEERS];
        cargo_tests(&mut cargo(&words))
    })
}

fn clippy(report: &mut Report, name: &str, manifest: &str, more: &[&str]) -> Result<(), Failure> {
    let words = ["clippy", "--all-targets", "--manifest-path", manifest];
    step(report, name, &[&words[..], more, &STRICT].concat())
}

fn every_language(report: &mut Report, install: bool) -> Result<(), Failure> {
    toolchains::step(report, install)?;
    let missing = if install { Missing::Failed } else { Missing::Skipped };
    report.step("every language", || languages::check(missing))
}
