//! `cargo xtask steady`: one benchmark several times in a row, and the spread of its results.

use crate::contests::site::release_wrote;
use crate::contests::{Figures, result_rows};
use crate::zram;
use lab::tools::failure::{Failure, Tried};
use lab::tools::run::{Show, run};
use lab::{Mounted, mkfs};
use serde_json::Value;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The time limit of one benchmark.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Bytes of the device in memory, for the files of the default benchmark and free space.
const ZRAM_BYTES: u64 = 6 << 30;
/// Tenths of the device written once before the first benchmark.
const FILLED_TENTHS: u64 = 9;

/// Run one benchmark several times, and compare its results.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask steady\n  \
    cargo xtask steady --path /mnt/data --times 20 -- --only small --runs 9")]
pub struct Arguments {
    /// How many times to run it.
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(2..))]
    times: u32,
    /// The folder to measure; by default an ext4 on /dev/zram0, made for it.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// More arguments of wrote bench.
    #[arg(last = true)]
    more: Vec<String>,
}

/// Runs the benchmark several times, and prints a table.
pub fn steady(arguments: &Arguments) -> Result<(), Failure> {
    let wrote = release_wrote()?;
    let made;
    let folder = match &arguments.path {
        Some(path) => path.as_path(),
        None => {
            made = in_memory()?;
            made.0.path()
        }
    };
    let mut rows: Vec<Steadiness> = Vec::new();
    for time in 1..=arguments.times {
        eprintln!("steady: {time} of {}", arguments.times);
        let mut command = Command::new(&wrote);
        command.arg("bench").arg(folder).args(["--format", "json"]).args(&arguments.more);
        let finished = run(&mut command, LIMIT, Show::Quiet)?.success("wrote bench")?;
        let document = serde_json::from_str(&finished.stdout).tried("the result of wrote bench")?;
        add(&mut rows, &document);
    }
    println!("{HEAD}");
    rows.iter().for_each(|row| println!("{}", row.line()));
    Ok(())
}

/// Makes an ext4 on the device in memory. Both are removed in this order.
fn in_memory() -> Result<(Mounted, zram::Zram), Failure> {
    let zram = zram::sized(ZRAM_BYTES)?;
    let device = PathBuf::from(zram::DEVICE);
    mkfs("ext4", std::slice::from_ref(&device)).map_err(Failure::Failed)?;
    let mounted = Mounted::on("ext4", &device).map_err(Failure::Failed)?;
    // The device allocates memory when a block is first written. The benchmarks must not measure
    // that.
    let filler = mounted.path().join("filler");
    let mut new = File::options();
    zram::write_random(new.create_new(true), &filler, ZRAM_BYTES / 10 * FILLED_TENTHS)?;
    std::fs::remove_file(&filler).tried(filler.display())?;
    Ok((mounted, zram))
}

/// The figures of all benchmarks for one row.
#[derive(Debug, Default)]
struct Steadiness {
    name: String,
    medians: Vec<f64>,
    /// The 95 % interval of each benchmark.
    intervals: Vec<RangeInclusive<f64>>,
}

fn add(rows: &mut Vec<Steadiness>, document: &Value) {
    for row in result_rows(document) {
        let name = row["name"].as_str().unwrap_or_default();
        let figure = |key: &str| row["throughput_bytes_per_s"][key].as_f64().unwrap_or(f64::NAN);
        let known = rows.iter().position(|known| known.name == name).unwrap_or_else(|| {
            rows.push(Steadiness { name: name.into(), ..Steadiness::default() });
            rows.len() - 1
        });
        rows[known].medians.push(figure("median"));
        rows[known].intervals.push(figure("ci95_low")..=figure("ci95_high"));
    }
}

const HEAD: &str = "| row | median of the medians, MB/s | largest / smallest median | intervals \
                    that hold it | (interval, median) pairs that hold |\n|---|---:|---:|---:|---:|";

impl Steadiness {
    /// Returns the median of the benchmarks' medians.
    fn centre(&self) -> f64 {
        Figures::new(self.medians.iter().copied()).median()
    }

    /// Divides the largest median by the smallest.
    fn spread(&self) -> f64 {
        let [smallest, largest] = Figures::new(self.medians.iter().copied()).range();
        largest / smallest
    }

    fn holding(&self, figure: f64) -> usize {
        self.intervals.iter().filter(|interval| interval.contains(&figure)).count()
    }

    /// Returns the share of pairs of an interval and a median where the interval contains the
    /// median.
    fn pairs_share(&self) -> f64 {
        let held: usize = self.medians.iter().map(|&median| self.holding(median)).sum();
        held as f64 / (self.medians.len() * self.medians.len()) as f64
    }

    fn line(&self) -> String {
        format!(
            "| {} | {:.1} | {:.3} | {} of {} | {:.0} % |",
            self.name,
            self.centre() / 1e6,
            self.spread(),
            self.holding(self.centre()),
            self.medians.len(),
            self.pairs_share() * 100.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(median: f64) -> Value {
        let figures =
            json!({"median": median, "ci95_low": median - 2.0, "ci95_high": median + 2.0});
        json!({"scenarios": [{"rows": [{"name": "a", "throughput_bytes_per_s": figures}]}]})
    }

    #[test]
    fn the_spread_is_the_largest_median_by_the_smallest_and_intervals_are_counted() {
        let mut rows = Vec::new();
        for median in [100.0, 101.0, 110.0] {
            add(&mut rows, &document(median));
        }
        let [row] = &rows[..] else { panic!("one row") };
        assert_eq!((row.centre(), row.spread()), (101.0, 1.1));
        // 100 ± 2 and 101 ± 2 hold 101; 110 ± 2 does not.
        assert_eq!(row.holding(101.0), 2);
        // Each interval holds its own median, and the first two hold each other's.
        assert!((row.pairs_share() - 5.0 / 9.0).abs() < 1e-9);
        assert_eq!(row.line(), "| a | 0.0 | 1.100 | 2 of 3 | 56 % |");
    }
}
