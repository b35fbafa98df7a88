//! The picture of a disk that stalls: a closed and an open loop, measured and drawn.

use crate::contests::site::release_wrote;
use lab::Strange;
use lab::tools::failure::{Failure, Tried};
use lab::tools::programs::debug;
use lab::tools::repository::{make_parent, root};
use lab::tools::run::{Show, run};
use plotters::prelude::*;
use serde_json::Value;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2 * 60);
/// The picture, from the repository's root.
const PICTURE: &str = "docs/pictures/stall.svg";
const SIZE: (u32, u32) = (760, 420);
/// Writes per second of the open loop.
const RATE_IOPS: u32 = 1000;
/// The runtime of both loops; the disk stalls once within it.
const RUNTIME_S: u32 = 10;
const STALL: [&str; 5] = ["--forget", "--stall-after", "8000000", "--stall", "1s"];
/// The points of a curve, in percent.
const PERCENTILES: [f64; 18] = [
    10.0, 25.0, 50.0, 75.0, 80.0, 85.0, 88.0, 90.0, 92.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.9,
    99.95, 99.99, 99.999,
];

/// A percentile and the latency there, in milliseconds.
type Point = (f64, f64);

/// The latencies of one loop, and the number of its writes.
type Loop = (Vec<Point>, u64);

/// Measures a disk that stalls for a second, by a closed and by an open loop, and draws the
/// latencies of both.
pub fn stall() -> Result<(), Failure> {
    let (daemon, wrote) = (debug("lab")?, release_wrote()?);
    let (closed, closed_writes) = latencies(&daemon, &wrote, None)?;
    let (open, open_writes) = latencies(&daemon, &wrote, Some(RATE_IOPS))?;
    let path = root().join(PICTURE);
    make_parent(&path)?;
    draw(&path, &closed, &open).map_err(|error| Failure::Failed(format!("{PICTURE}: {error}")))?;
    eprintln!("{PICTURE}: {closed_writes} writes, {open_writes} writes");
    for percent in [50.0, 99.0, 99.9] {
        let at = |curve: &[Point]| {
            curve.iter().find(|point| point.0 == percent).map_or(f64::NAN, |point| point.1)
        };
        eprintln!("P{percent}: {:.3} ms, {:.3} ms", at(&closed), at(&open));
    }
    Ok(())
}

/// Measures the latencies of writes to a disk that stalls once.
fn latencies(daemon: &Path, wrote: &Path, rate: Option<u32>) -> Result<Loop, Failure> {
    let point = tempfile::tempdir().tried("a temporary folder")?;
    let jobs = tempfile::tempdir().tried("a temporary folder")?;
    let mount = Strange::mount(daemon, point, &STALL).map_err(Failure::Failed)?;
    let job = jobs.path().join("stall.fio");
    std::fs::write(&job, self::job(rate)).tried(job.display())?;
    let mut command = Command::new(wrote);
    command.arg("run").arg(&job).arg("--directory").arg(mount.path());
    command.args(["--format", "fio-json"]);
    let finished = run(&mut command, LIMIT, Show::Quiet)?.success("wrote run")?;
    let document: Value =
        serde_json::from_str(&finished.stdout).tried("the result of wrote run")?;
    let written = &document["jobs"][0]["write"];
    let points = PERCENTILES.iter().filter_map(|percent| {
        let ns = written["lat_ns"]["percentile"][format!("{percent:.6}")].as_f64()?;
        Some((*percent, ns / 1e6))
    });
    Ok((points.collect(), written["total_ios"].as_u64().unwrap_or(0)))
}

fn job(rate: Option<u32>) -> String {
    let list: Vec<String> = PERCENTILES.iter().map(f64::to_string).collect();
    let rate = rate.map(|rate| format!("rate_iops={rate}\n")).unwrap_or_default();
    format!(
        "[stall]\nfilename=stall.data\nrw=write\nbs=4k\nsize=64m\nioengine=psync\ntime_based\n\
         runtime={RUNTIME_S}\nfallocate=none\npercentile_list={}\n{rate}",
        list.join(":")
    )
}

/// Returns the place of a percentile on the axis, by the share of slower operations. 10 %, 1 % and
/// 0.1 % are equally far from each other.
fn place(percent: f64) -> f64 {
    -((100.0 - percent) / 100.0).log10()
}

fn draw(path: &Path, closed: &[Point], open: &[Point]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let all = closed.iter().chain(open).map(|point| point.1);
    let least = all.clone().fold(f64::INFINITY, f64::min).max(1e-4) / 2.0;
    let most = all.fold(0.0, f64::max) * 2.0;
    let mut chart = ChartBuilder::on(&area)
        .caption("4 KiB writes to a disk that stands still once, for 1 s", ("sans-serif", 18))
        .margin(12)
        .margin_right(40)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..5.0, (least..most).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(6)
        .x_label_formatter(&|place: &f64| match *place {
            place if place < 0.5 => "0".into(),
            place => format!("P{}", 100.0 - 100.0 * 10_f64.powf(-place)),
        })
        .y_label_formatter(&|ms: &f64| format!("{ms} ms"))
        .x_desc("percentile")
        .y_desc("latency")
        .draw()?;
    for (curve, colour, name) in
        [(closed, BLUE, "closed loop"), (open, RED, "open loop, 1000 writes a second")]
    {
        let points = curve.iter().map(|(percent, ms)| (place(*percent), *ms));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_is_as_far_from_the_next() {
        for (percent, expected) in [(0.0, 0.0), (90.0, 1.0), (99.0, 2.0), (99.9, 3.0)] {
            assert!((place(percent) - expected).abs() < 1e-9, "{percent}");
        }
    }

    #[test]
    fn only_the_open_loop_has_a_rate() {
        assert!(!job(None).contains("rate_iops"));
        assert!(job(Some(7)).ends_with("rate_iops=7\n"));
    }

    #[test]
    fn both_curves_are_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svg");
        draw(&path, &[(50.0, 0.1), (99.0, 0.2)], &[(50.0, 0.1), (99.0, 900.0)]).unwrap();
        let drawn = std::fs::read_to_string(path).unwrap();
        assert!(drawn.contains("closed loop") && drawn.contains("open loop"), "{drawn}");
    }
}
