//! `cargo xtask growth`: how cost grows with the size of records, with producers, segments, files,
//! depth and jobs. It draws a chart of each into `docs/pictures`.

mod axes;
mod draw;

use crate::contests::outcome::{MIB, Outcome};
use crate::contests::site::{Site, build};
use crate::contests::{page, three_digits, wrote};
use crate::sections::{HEADING, Sections};
use axes::{GrowthAxis, Line};
use clap::builder::{PossibleValue, PossibleValuesParser};
use lab::tools::disks::DiskKind;
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::root;
use lab::tools::run::check_interrupted;
use std::path::PathBuf;

/// Measure how cost grows: throughput, P99 and memory against one size at a time.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write in; a subfolder is created and removed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Runs per point; the median counts.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure only against these.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = axis_parser())]
    only: Vec<String>,
    /// Draw the charts, and put them and the tables into peers/results/growth.md.
    #[arg(long)]
    write: bool,
}

/// The names of the sizes, each with its line of help.
fn axis_parser() -> PossibleValuesParser {
    let value = |axis: &'static GrowthAxis| PossibleValue::new(&*axis.name).help(&*axis.help);
    PossibleValuesParser::new(axes::all().iter().map(value))
}

/// The figures of one point of a line: medians of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size that grows.
    pub at: u64,
    /// The rate, in the axis' unit.
    pub rate: f64,
    /// The 99th percentile of the latency in milliseconds, where single operations are timed.
    pub p99_ms: Option<f64>,
    /// Peak resident memory, in MiB.
    pub memory_mib: Option<f64>,
}

/// Measures each size in turn, and prints its table.
pub fn growth(arguments: &Arguments) -> Result<(), Failure> {
    let document = root().join("peers/results/growth.md");
    let names = axes::all().iter().map(|axis| axis.name.clone()).collect();
    let sections = Sections { mark: "growth", names };
    if arguments.write {
        sections.check(&document)?;
    }
    let path = build(&[])?;
    let place = tempfile::Builder::new().prefix(".wrote-growth-").tempdir_in(&arguments.path);
    let place = place.tried(arguments.path.display())?;
    let folder = std::path::absolute(place.path()).tried(place.path().display())?;
    let (rounds, has_poll_queues) = (arguments.runs, false);
    let disk = DiskKind::Own;
    let site = Site { folder, path, rounds, size: None, disk, has_poll_queues, zram: None };
    for axis in axes::all() {
        if !arguments.only.is_empty() && !arguments.only.contains(&axis.name) {
            continue;
        }
        let lines = measured(axis, &site)?;
        let section = section(axis, &lines, &page::circumstances(&site)?[0], &site);
        println!("{section}\n");
        if arguments.write {
            draw::draw(&root().join(axis.picture()), axis, &lines)
                .map_err(|error| Failure::Failed(format!("{}: {error}", axis.picture())))?;
            sections.write(&document, &section)?;
        }
    }
    Ok(())
}

/// Measures every point of an axis, all once before any is repeated.
fn measured(axis: &GrowthAxis, site: &Site) -> Result<Vec<Vec<Point>>, Failure> {
    let mut runs: Vec<Vec<Vec<Point>>> =
        axis.lines.iter().map(|line| vec![Vec::new(); line.at.len()]).collect();
    for round in 0..site.rounds {
        for (line, of_line) in axis.lines.iter().zip(&mut runs) {
            for (number, of_point) in of_line.iter_mut().enumerate() {
                check_interrupted()?;
                let point = run_once(axis, line, number, site)?;
                let at = point.at;
                eprintln!("{} {at}, run {}: {:.1}", line.name, round + 1, point.rate);
                of_point.push(point);
            }
        }
    }
    Ok(runs.iter().map(|line| line.iter().map(|runs| median_point(runs)).collect()).collect())
}

fn run_once(axis: &GrowthAxis, line: &Line, number: usize, site: &Site) -> Result<Point, Failure> {
    let [prepare, command] = line.commands(number);
    if !prepare.is_empty() {
        site.run(&prepare)?;
    }
    let stdout = site.run(&command)?.stdout;
    let outcome = match line.is_job() {
        false => Outcome::of_line(&stdout, &command)?,
        true => wrote::only_row(&stdout, &command)?,
    };
    Ok(Point {
        at: line.at[number],
        rate: axis.unit.rate(&outcome),
        p99_ms: outcome.latency_ns.map(|of| of.p99 as f64 / 1e6),
        memory_mib: outcome.memory_bytes.map(|bytes| bytes as f64 / MIB),
    })
}

fn median_point(runs: &[Point]) -> Point {
    let of = |figure: fn(&Point) -> Option<f64>| {
        runs.iter().map(figure).collect::<Option<Vec<f64>>>().map(median)
    };
    Point {
        at: runs[0].at,
        rate: of(|run| Some(run.rate)).unwrap_or(f64::NAN),
        p99_ms: of(|run| run.p99_ms),
        memory_mib: of(|run| run.memory_mib),
    }
}

/// Returns the median, or the lower of the two middle ones.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[(figures.len() - 1) / 2]
}

/// Writes the section of an axis in Markdown.
fn section(axis: &GrowthAxis, lines: &[Vec<Point>], place: &str, site: &Site) -> String {
    let (word, unit, question) = (&axis.name, axis.unit.heads()[0], &axis.question);
    let rows = axis.lines.iter().zip(lines).flat_map(|(line, points)| {
        points.iter().map(|point| {
            let p99 = point.p99_ms.map(figure).unwrap_or_default();
            let memory = point.memory_mib.map(figure).unwrap_or_default();
            let (at, rate) = (point.at, figure(point.rate));
            format!("| {} | {at} | {rate} | {p99} | {memory} |", line.name)
        })
    });
    let rows: Vec<String> = rows.collect();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let commands: Vec<String> = axis.lines.iter().map(|line| line.commands(0)[1].clone()).collect();
    format!(
        "{HEADING}{word}`\n\n{question} {}\n\n![{question}](../../{})\n\n<details><summary>{date}, \
         <code>cargo xtask growth --only {word} --runs {}</code>: {place}</summary>\n\n\
         | work | {} | {unit} | P99 ms | memory MiB |\n|---|---|---|---|---|\n{}\n\n\
         ```sh\n{}\n```\n\n</details>",
        axis.work,
        axis.picture(),
        site.rounds,
        axis.at,
        rows.join("\n"),
        commands.join("\n"),
    )
}

/// Writes a figure with three significant digits, and three after the point below 1.
fn figure(value: f64) -> String {
    if value < 1.0 { format!("{value:.3}") } else { three_digits(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::site::fake;

    #[test]
    fn every_axis_is_measured_and_has_a_table_and_a_chart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 4096);
        for axis in &axes::all()[..3] {
            let lines = measured(axis, &site).expect("scripts");
            let section = section(axis, &lines, "here", &site);
            let points: usize = axis.lines.iter().map(|line| line.at.len()).sum();
            assert_eq!(section.matches("\n| ").count(), 1 + points, "{section}");
            let chart = folder.path().join("chart.svg");
            draw::draw(&chart, axis, &lines).expect("a chart");
            let drawn = std::fs::read_to_string(&chart).expect("a chart");
            assert!(axis.lines.iter().all(|line| drawn.contains(&line.name)), "{drawn}");
        }
    }

    #[test]
    fn the_median_of_runs_counts_figure_by_figure() {
        let point = |rate, p99| Point { at: 7, rate, p99_ms: p99, memory_mib: Some(rate) };
        let runs = [point(3.0, Some(1.0)), point(1.0, Some(9.0)), point(2.0, Some(5.0))];
        assert_eq!(median_point(&runs), Point { memory_mib: Some(2.0), ..point(2.0, Some(5.0)) });
        assert_eq!(median_point(&[point(3.0, None), point(1.0, None)]), point(1.0, None));
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([0.1234, 1.234, 12.34, 1234.5].map(figure), ["0.123", "1.23", "12.3", "1234"]);
    }
}
