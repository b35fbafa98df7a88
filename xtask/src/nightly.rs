//! `cargo xtask nightly`: the campaigns, once each, or repeated with other random seeds.

pub mod campaigns;

use crate::times;
use campaigns::{CAMPAIGNS, Campaign};
use clap::builder::PossibleValuesParser;
use lab::runs::duration;
use lab::tools::failure::Failure;
use lab::tools::report::Report;
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
