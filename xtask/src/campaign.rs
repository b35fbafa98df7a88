//! `cargo xtask campaign`: campaigns, each repeated with other chances until its time is over.

use crate::failure::Failure;
use crate::report::Report;
use crate::test::campaigns::{CAMPAIGNS, Campaign};
use clap::builder::PossibleValuesParser;
use std::time::{Duration, Instant};

/// Run campaigns of `cargo xtask test --all`, each for a time.
///
/// Each round draws its own seeds, prints them, and takes some minutes. A campaign ends at the
/// first round that fails.
#[derive(clap::Args)]
pub struct Arguments {
    /// The campaigns; all of them where none is named.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(CAMPAIGNS.map(|one| one.name)))]
    names: Vec<String>,
    /// Begin rounds of each campaign for this time; one round where none is given
    #[arg(long, value_name = "TIME", value_parser = crate::test::duration)]
    each: Option<Duration>,
    /// Install nothing; steps that need a missing program are skipped
    #[arg(long)]
    no_install: bool,
}

/// Runs the campaigns in turn.
pub fn campaign(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    for campaign in CAMPAIGNS {
        if arguments.names.is_empty() || arguments.names.iter().any(|name| name == campaign.name) {
            repeat(&mut report, campaign, arguments)?;
        }
    }
    report.finish()
}

fn repeat(report: &mut Report, campaign: Campaign, arguments: &Arguments) -> Result<(), Failure> {
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
