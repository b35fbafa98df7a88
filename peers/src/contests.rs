//! `cargo xtask peers`: measures wrote against programs that do the same work, in turn, in one
//! folder.

mod contender;
mod contest;
mod figures;
mod job;
mod outcome;
mod page;
mod rows;
mod served;
pub mod site;
mod wrote;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use contest::ContestResult;
use job::Size;
use lab::tools::disks::{Disk, DiskKind};
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages::{self, PEERS};
use lab::tools::run::clean_up;
use rows::Row;
use site::Site;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Measure wrote against programs that do the same work, in turn, in one folder.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write in; a subfolder is created and removed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// How many rounds each comparison has; in a round every program runs once.
    #[arg(long, value_name = "N", default_value_t = 7,
        value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// How long the files of the streams are, as fio writes it [default: 2g for job files, 4g for
    /// the ways to write]. With less than a gigabyte the start dominates the CPU time.
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Measure only these rows.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = row_parser())]
    only: Vec<&'static Row>,
    /// Measure on these disks, in turn: the one of --path, or slower ones that are made here (as
    /// root).
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', default_value = "own")]
    disk: Vec<DiskKind>,
}

/// Measures row by row, and prints each row's section for `peers/results/contests.md`.
pub fn peers(arguments: &Arguments) -> Result<(), Failure> {
    packages::install(PEERS)?;
    let is_named = |row: &Row| arguments.only.iter().any(|only| only.name == row.name);
    let is_wanted = |row: &&Row| arguments.only.is_empty() || is_named(row);
    let rows: Vec<&Row> = rows::all().iter().filter(is_wanted).collect();
    let programs = site::build(&rows)?;
    for &kind in &arguments.disk {
        let disk = Disk::make(kind)?;
        let place = disk.as_ref().map_or(arguments.path.as_path(), Disk::path);
        let (_folder, site) = folder_and_site(arguments, kind, place, &programs)?;
        let circumstances = page::circumstances(&site)?;
        for &row in &rows {
            // Each row has its own folder, without the files of other rows.
            let (_folder, site) = folder_and_site(arguments, kind, place, &programs)?;
            match measure(row, &site) {
                Err(Failure::Skipped(because)) => println!("{}\n", page::not_run(row, &because)),
                measured => {
                    let measured = measured?;
                    let section = page::section(row, kind, &circumstances, &site, &measured);
                    println!("{section}\n");
                }
            }
        }
    }
    Ok(())
}

/// Creates a new folder, which is removed when the returned handle is dropped, and the site in it.
fn folder_and_site(
    arguments: &Arguments,
    disk: DiskKind,
    place: &Path,
    programs: &OsStr,
) -> Result<(TempDir, Site), Failure> {
    let Arguments { pairs, size, .. } = arguments;
    let folder = tempfile::Builder::new().prefix(".wrote-peers-").tempdir_in(place);
    let folder = folder.tried(place.display())?;
    let site = Site {
        folder: std::path::absolute(folder.path()).tried(place.display())?,
        path: programs.to_owned(),
        rounds: *pairs,
        size: size.clone(),
        disk,
        has_poll_queues: site::has_poll_queues(folder.path()),
    };
    Ok((folder, site))
}

fn measure(row: &Row, site: &Site) -> Result<Vec<ContestResult>, Failure> {
    let measured = row
        .contests(site)
        .and_then(|contests| contests.iter().map(|one| one.measure(site)).collect());
    if !matches!(measured, Err(Failure::Skipped(_))) {
        clean_up(Command::new("sh").args(["-c", &row.cleanup]));
    }
    measured
}

/// Returns a parser of row names, with each row's line of help.
fn row_parser() -> impl TypedValueParser<Value = &'static Row> {
    let value = |row: &'static Row| PossibleValue::new(row.name.as_str()).help(row.help.as_str());
    PossibleValuesParser::new(rows::all().iter().map(value))
        .try_map(|name| rows::all().iter().find(|row| row.name == name).ok_or("no such row"))
}
