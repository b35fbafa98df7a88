//! `cargo xtask nightly`: the campaigns, which `cargo xtask test` leaves out. Each campaign runs
//! once, or repeatedly with different random seeds. The campaigns that protect data come first.

use crate::check::{STRICT, step};
use crate::fuzz::{self, Subject};
use crate::languages::{self, Missing};
use crate::test::tests;
use crate::{PEERS, bindings, book, dist, miri, release, toolchains};
use clap::ValueEnum;
use lab::runs::confine::{self, Share};
use lab::runs::seeds::{self, SimArguments};
use lab::runs::{Moments, devices, duration, kill, log_writes, power_cut, trace};
use lab::tools::clients;
use lab::tools::failure::Failure;
use lab::tools::packages::{DEVICE_MAPPER, LABS, MPI, NVME, TESTS, provide};
use lab::tools::programs::cargo_tests;
use lab::tools::report::{Outcome, Report};
use lab::tools::repository::{cargo, target};
use lab::tools::run::end_at;
use std::time::{Duration, Instant};

/// The time for which a campaign may continue after the limit of `--within`.
const OVERTIME: Duration = Duration::from_secs(10 * 60);

/// Run the campaigns: what `cargo xtask test` leaves out because it takes long.
///
/// Most draw their own seeds and print them, so that rounds add up. The last line gives the numbers
/// of passed, failed and skipped tests and steps.
#[derive(clap::Args)]
pub struct Arguments {
    /// The campaigns [default: all, those first that protect data]
    #[arg(value_name = "NAME", value_parser = CAMPAIGNS.map(|one| one.name))]
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
    let install = !arguments.no_install;
    for campaign in CAMPAIGNS.iter().filter(|campaign| is_named(campaign.name)) {
        if arguments.within.is_some_and(|within| begin.elapsed() > within) {
            report.leave(campaign.what, "no time was left");
        } else if !arguments.short {
            repeat(&mut report, campaign, arguments)?;
        } else if let Some(count) = campaign.short {
            (campaign.round)(&mut report, Call { count, install, is_short: true })?;
        }
    }
    report.finish()
}

/// Reports every campaign as left out.
pub fn list(report: &mut Report) {
    for Campaign { name, what, .. } in CAMPAIGNS {
        report.leave(what, &format!("cargo xtask nightly {name}"));
    }
}

fn repeat(report: &mut Report, campaign: &Campaign, arguments: &Arguments) -> Result<(), Failure> {
    let begun = Instant::now();
    let failed = report.failed();
    let call = Call { count: campaign.count, install: !arguments.no_install, is_short: false };
    let mut rounds = 0;
    loop {
        (campaign.round)(report, call)?;
        rounds += 1;
        let is_over = arguments.each.is_none_or(|each| begun.elapsed() >= each);
        if is_over || report.failed() > failed {
            let minutes = begun.elapsed().as_secs_f64() / 60.0;
            eprintln!("\n{}: {rounds} rounds in {minutes:.0} min", campaign.name);
            return Ok(());
        }
    }
}

/// A long run. Most campaigns draw random seeds, so that repeated rounds add up.
#[derive(Clone, Copy)]
struct Campaign {
    /// The campaign's name for `cargo xtask nightly`.
    name: &'static str,
    /// A short description of its rounds.
    what: &'static str,
    /// The number of seeds, moments or calls in a round that takes a few minutes; 0 if the campaign
    /// counts none of these.
    count: u32,
    /// The number in the run for every commit; `None` if that run leaves the campaign out.
    short: Option<u32>,
    round: Round,
}

/// The parameters of a round.
#[derive(Clone, Copy)]
struct Call {
    count: u32,
    /// Whether the round may install what it needs.
    install: bool,
    is_short: bool,
}

/// A function that adds the steps of a round to a report.
type Round = fn(&mut Report, Call) -> Result<(), Failure>;

/// Returns a campaign with the given counts, one for a round and one for the run for every commit.
const fn each(
    name: &'static str,
    what: &'static str,
    counts: (u32, u32),
    round: Round,
) -> Campaign {
    Campaign { name, what, count: counts.0, short: Some(counts.1), round }
}

/// Returns a campaign that the run for every commit leaves out.
const fn long(name: &'static str, what: &'static str, round: Round) -> Campaign {
    Campaign { name, what, count: 0, short: None, round }
}

/// All campaigns, in order.
const CAMPAIGNS: [Campaign; 30] = [
    each("seeds", "lab sim: 100,000 seeds", (100_000, 5_000), |report, call| {
        seeds::sim(report, SimArguments::of(call.count, false))
    }),
    each("hidden-faults", "lab sim --hidden-faults: 500 seeds", (500, 250), |report, call| {
        seeds::sim(report, SimArguments::of(call.count, true))
    }),
    long("damage", "6,000 damaged logs", |report, _| {
        tests(report, "tests of damaged logs", &["--ignored", "drawn_damage::"])
    }),
    each(
        "power-cut",
        "lab power-cut: 200 moments on each file system",
        (200, 25),
        |report, call| power_cut::lab(report, Moments::of(call.count)),
    ),
    each("trace", "lab trace: 1,000 moments on each file system", (1_000, 20), |report, call| {
        trace::lab(report, Moments::of(call.count))?;
        if call.is_short {
            return Ok(());
        }
        tests(report, "tests of traced programs", &["--ignored", "trace::"])
    }),
    each("kills", "lab kill: 200 times", (200, 20), |report, call| {
        kill::lab(report, Moments::of(call.count))
    }),
    long("fuzz", "fuzzer of the server's parsers", |report, _| fuzzer(report)),
    long("commands", "5,000 drawn command lines", |report, _| {
        tests(report, "tests of drawn command lines", &["--ignored", "drawn_calls::"])
    }),
    each("programs", "lab programs: 5,000 programs", (5_000, 60), |report, call| {
        seeds::programs(report, seeds::Arguments::of(call.count))
    }),
    each("confine", "lab confine: every test of the engine and of what uses it", (0, 0), confined),
    each("release", "the program as `cargo run --release` builds it", (0, 0), |report, _| {
        release::check(report)
    }),
    long("address-sanitizer", "tests with AddressSanitizer", |report, call| {
        provided(report, &[LABS, TESTS].concat(), call)?;
        report.step("tests with AddressSanitizer", sanitized)
    }),
    long("miri", "Miri", |report, _| miri::steps(report)),
    long("threads", "every order of threads", |report, _| miri::model(report)),
    // The tests of these five campaigns, and of six others, are marked `#[ignore = "nightly"]`.
    long("soak", "a log in use for 2 minutes", |report, _| {
        tests(report, "tests of a log in use", &["--ignored", "log_soak::"])
    }),
    long("statistics", "tests of statistics and of findings that judge rates", |report, _| {
        let others = ["clients::", "drawn_", "log_soak::", "pages::", "s3::", "mpi::", "trace::"];
        let others = others.map(|module| ["--skip", module]);
        tests(report, "tests of statistics", &[&["--ignored"], &others.concat()[..]].concat())
    }),
    long("clients", "foreign clients of the server", |report, call| {
        clients::provide(report, call.install)?;
        tests(report, "tests of foreign clients", &["--ignored", "clients::"])
    }),
    long("pages", "every page in Chromium", |report, call| {
        report.step("modules for pages", || clients::pages(call.install))?;
        tests(report, "tests of pages", &["--ignored", "pages::"])
    }),
    long("ranks", "a whole benchmark of four ranks", |report, call| {
        provided(report, MPI, call)?;
        tests(report, "tests of ranks", &["--ignored", "mpi::"])
    }),
    long("features", "other features of the library", |report, _| features(report)),
    long("s3", "logs in an S3 server", |report, call| {
        report.step("S3 server moto", || clients::moto(call.install))?;
        tests(report, "tests on S3", &["--ignored", "s3::"])
    }),
    long("nvme", "lab nvme", |report, call| {
        provided(report, NVME, call)?;
        devices::nvme(report, call.install)
    }),
    long("log-writes", "lab log-writes: 200 moments on each file system", |report, call| {
        provided(report, DEVICE_MAPPER, call)?;
        let moments = Some(200);
        [(None, false), (Some(60), false), (None, true)].into_iter().try_for_each(
            |(programs, pages)| {
                let arguments =
                    log_writes::Arguments { moments, programs, pages, ..Default::default() };
                log_writes::lab(report, &arguments, call.install)
            },
        )
    }),
    long("faulty-disk", "lab faulty-disk", |report, call| {
        provided(report, DEVICE_MAPPER, call)?;
        devices::faulty_disk(report, call.install)
    }),
    long("rivals", "clippy and tests of peers and their rivals", |report, _| rivals(report)),
    long("bindings", "the library for other languages, with sanitizers", |report, call| {
        bindings::check(report, call.install)
    }),
    long("crates", "packages of the crates", |report, _| dist::check_crates(report)),
    long("dist", "program, archive and Debian package in clean roots", |report, call| {
        dist::check(report, call.install)
    }),
    long("book", "book of the documents", |report, call| book::check(report, call.install)),
    each("languages", "every language", (0, 0), every_language),
];

fn provided(report: &mut Report, programs: &[&'static str], call: Call) -> Result<(), Failure> {
    report.step("Debian packages", || provide(programs, call.install))
}

fn confined(report: &mut Report, call: Call) -> Result<(), Failure> {
    confine::lab(report, Share::Engine)?;
    if call.is_short { Ok(()) } else { confine::lab(report, Share::Rest) }
}

/// The time that the fuzzer spends on each of the server's parsers, which receive arbitrary bytes
/// from the network, in seconds. All of them together must leave time for the later campaigns.
const PARSER_SECONDS: u32 = 180;
/// The modules of the library's test program `it` that also run with AddressSanitizer.
const SANITIZED: [&str; 5] = ["engine::", "faults::", "file_drops::", "file_waiting::", "writer::"];

/// Runs the tests that pass buffers between owners, with a check of every memory access.
///
/// The stable compiler includes the sanitizer, but accepts `-Zsanitizer=address` only with
/// `RUSTC_BOOTSTRAP=1`, which allows unstable flags. Because the target is named, cargo builds
/// macros and build scripts without the flag; the compiler could not load them otherwise. A
/// separate target folder keeps the other builds intact.
fn sanitized() -> Result<Outcome, Failure> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Failure::Skipped("AddressSanitizer was tried on x86_64 alone".to_owned()));
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
    for &subject in Subject::value_variants() {
        report.step(&subject.step(), || fuzz::run_for(subject, PARSER_SECONDS))?;
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

fn every_language(report: &mut Report, call: Call) -> Result<(), Failure> {
    if call.is_short {
        return report.step("languages", || languages::check(Missing::Left));
    }
    toolchains::step(report, call.install)?;
    let missing = if call.install { Missing::Failed } else { Missing::Skipped };
    report.step("every language", || languages::check(missing))
}
