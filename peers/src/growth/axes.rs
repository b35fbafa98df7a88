//! The sizes that grow, and the work that is measured at each.

use crate::contests::outcome::Unit;

/// A size that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AxisName {
    /// Bytes of a log's record
    RecordBytes,
    /// Producers of a log
    Producers,
    /// Segments of a log that is opened
    Segments,
    /// Bytes of a file that is written
    FileBytes,
    /// Random reads in flight
    Iodepth,
    /// Jobs that read at once
    Numjobs,
}

impl std::fmt::Display for AxisName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self);
        f.write_str(value.as_ref().map_or("", clap::builder::PossibleValue::get_name))
    }
}

/// A size that grows, and the lines of its chart.
pub struct GrowthAxis {
    /// The question that the chart answers.
    pub question: &'static str,
    /// The work.
    pub work: &'static str,
    /// The size in words.
    pub at: &'static str,
    /// The unit of the rate.
    pub unit: Unit,
    pub lines: Vec<Line>,
}

/// A program that prints figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `trial`.
    Trial,
    /// `wrote run --format json`.
    Wrote,
}

/// One kind of work at several sizes.
pub struct Line {
    pub name: &'static str,
    pub by: By,
    /// The line of a shell before the work; empty where nothing is to be made ready.
    pub prepare: fn(u64) -> String,
    /// The line of a shell that does the work.
    pub command: fn(u64) -> String,
    pub points: Vec<u64>,
}

impl GrowthAxis {
    /// The chart, from the repository's root.
    pub fn picture(&self, name: AxisName) -> String {
        format!("docs/pictures/growth-{name}.svg")
    }
}

/// The bytes that a run without a wait for each record appends, and its records at most.
const STREAM_BYTES: u64 = 512 << 20;
const RECORDS_MAX: u64 = 4_000_000;
const FILE: &str = "growth.data";

/// Returns a size with its lines.
pub fn of(name: AxisName) -> GrowthAxis {
    let ([question, work], at, unit, lines) = match name {
        AxisName::RecordBytes => (
            [
                "How does the cost of a record grow with its size?",
                "4 producers that wait for nothing, and 64 that each wait until their record is \
                 durable.",
            ],
            "bytes of a record",
            Unit::Messages,
            vec![
                log("one sync in the end", powers(16, 4, 65_536), |bytes| {
                    let records = (STREAM_BYTES / bytes).min(RECORDS_MAX);
                    append("log", records, 4, bytes)
                }),
                log("each durable", powers(16, 4, 65_536), |bytes| {
                    append("log-durable", 20_000, 64, bytes)
                }),
            ],
        ),
        AxisName::Producers => (
            ["How does the cost of a record grow with the producers?", "Records of 500 bytes."],
            "producers",
            Unit::Messages,
            vec![
                log("one sync in the end", powers(1, 4, 1024), |producers| {
                    append("log", 1_000_000, producers, 500)
                }),
                log("each durable", powers(1, 4, 1024), |producers| {
                    append("log-durable", (2000 * producers).min(50_000), producers, 500)
                }),
            ],
        ),
        AxisName::Segments => (
            [
                "How long does it take to open a log of many segments?",
                "Records of 1000 bytes, 7 in a segment.",
            ],
            "segments",
            Unit::Time,
            vec![Line {
                prepare: |segments| {
                    let records = 7 * segments;
                    format!(
                        "rm -rf log && trial log-make --records {records} --record-bytes 1000 \
                         --segment-bytes 8192 --buffer-bytes 4096 log"
                    )
                },
                ..log("open", powers(1, 10, 10_000), |_| "trial log-open --times 20 log".into())
            }],
        ),
        AxisName::FileBytes => (
            [
                "How does the cost of a durable file grow with its length?",
                "New files in writes of 512 KiB, with one fsync in the end.",
            ],
            "bytes of the file",
            Unit::Stream,
            vec![
                job("direct", powers(1 << 20, 8, 4 << 30), |bytes| {
                    let keys = "direct=1 iodepth=8 ioengine=io_uring";
                    run(&format!("rw=write bs=512k end_fsync=1 size={bytes} {keys}"))
                }),
                job("cached", powers(1 << 20, 8, 4 << 30), |bytes| {
                    run(&format!("rw=write bs=512k end_fsync=1 size={bytes} ioengine=psync"))
                }),
            ],
        ),
        AxisName::Iodepth => (
            [
                "How does the cost of a random read grow with the reads in flight?",
                "Direct reads of 4 KiB of a file of 1 GiB.",
            ],
            "reads in flight",
            Unit::Reads,
            vec![reads("io_uring", |iodepth| {
                run(&format!("{READS} ioengine=io_uring iodepth={iodepth}"))
            })],
        ),
        AxisName::Numjobs => (
            [
                "How does the cost of a random read grow with the jobs that read at once?",
                "Direct reads of 4 KiB of a file of 1 GiB, one at a time in each job.",
            ],
            "jobs",
            Unit::Reads,
            vec![Line {
                points: powers(1, 2, 64),
                ..reads("psync", |jobs| {
                    run(&format!("{READS} ioengine=psync numjobs={jobs} group_reporting"))
                })
            }],
        ),
    };
    GrowthAxis { question, work, at, unit, lines }
}

const READS: &str = "rw=randread bs=4k direct=1 size=1g time_based runtime=2 thread";

fn powers(from: u64, factor: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |at| Some(at * factor)).take_while(|at| *at <= to).collect()
}

fn log(name: &'static str, points: Vec<u64>, command: fn(u64) -> String) -> Line {
    Line { name, by: By::Trial, prepare: |_| String::new(), command, points }
}

fn job(name: &'static str, points: Vec<u64>, command: fn(u64) -> String) -> Line {
    let prepare = |_| format!("rm -f {FILE}");
    Line { name, by: By::Wrote, prepare, command, points }
}

/// Reads of a file that is made once.
fn reads(name: &'static str, command: fn(u64) -> String) -> Line {
    let prepare = |_| format!("test -e {FILE} || trial make --bytes {} {FILE}", 1 << 30);
    Line { prepare, ..job(name, powers(1, 2, 256), command) }
}

fn append(by: &str, messages: u64, producers: u64, bytes: u64) -> String {
    format!(
        "trial append --by {by} --messages {messages} --producers {producers} \
         --shortest {bytes} --longest {bytes} appended"
    )
}

/// Returns the line that runs a job of these keys on [`FILE`].
fn run(keys: &str) -> String {
    let lines = keys.split(' ').collect::<Vec<_>>().join("\\n");
    format!(
        "printf '[growth]\\nfilename={FILE}\\n{lines}\\n' > growth.fio && \
         wrote run growth.fio --format json"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_a_factor_up_to_the_last() {
        assert_eq!(powers(16, 4, 65_536).len(), 7);
        assert_eq!(powers(1, 10, 10_000), [1, 10, 100, 1000, 10_000]);
    }
}
