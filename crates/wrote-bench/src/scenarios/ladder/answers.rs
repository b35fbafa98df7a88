//! The answers of the ladder: the simplest method for each level, and the gain of a faster one.

use crate::choice::{Choice, effort, is_void, ratio, settings};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Answer, Blocks, Faster, Flush, Ioengine, Row, Standing, Survives};
use wrote_result::units::{block_size, bytes};
use wrote_result::yardstick::{self, Figure};

pub(crate) fn answers(evidence: &Evidence) -> Vec<Answer> {
    let rows = |workload: &str, is_of: fn(&Row) -> bool| -> Vec<&Row> {
        evidence.rows.iter().filter(|row| row.workload == workload && is_of(row)).collect()
    };
    let stream = answer(evidence, "Stream, durable", rows("stream", Row::is_durable));
    let long = stream.as_ref().and_then(|stream| long(evidence, stream));
    let records = rows("small", |row| row.is_durable() && settings(row).sync.is_each());
    let size = records.first().map(|row| block_size(settings(row).bs_bytes)).unwrap_or_default();
    // Methods that survive more are not listed under `May be lost`, even if they are as fast.
    let lost = rows("stream", |row| row.survives < Some(Survives::PowerLoss));
    let answers = [
        stream,
        answer(evidence, &format!("Durable {size} record"), records),
        long,
        answer(evidence, "May be lost", lost),
    ];
    answers.into_iter().flatten().collect()
}

/// Returns the answer for writes that continue after a burst is used up, if the run found a burst.
/// Without one, even a run of a minute is too short to find the lasting rate.
fn long(evidence: &Evidence, stream: &Answer) -> Option<Answer> {
    let burst = evidence.burst?;
    Some(Answer {
        question: "Long writes".into(),
        row: stream.row.clone(),
        how: format!("after {} of burst", bytes(burst.bytes)),
        bytes_per_s: Some(burst.bytes_per_s),
        yardstick: standing(evidence, Figure::Stream, burst.bytes_per_s / 1e6),
        ..Answer::default()
    })
}

/// Answers with the simplest of the rows; `None` if there are none. Names a faster row only if
/// their intervals don't overlap.
fn answer(evidence: &Evidence, question: &str, rows: Vec<&Row>) -> Option<Answer> {
    let simplest = rows.iter().copied().min_by_key(|row| effort(row))?;
    let is_faster = |row: &&Row| {
        row.runs.len() > 1
            && !is_void(evidence, row)
            && row.throughput() > simplest.throughput()
            && !row.is_tied_with(simplest)
    };
    let faster = Choice::of(rows.iter().copied().filter(is_faster)).map(|choice| choice.row);
    Some(Answer {
        question: question.into(),
        row: simplest.name.clone(),
        how: how(simplest),
        yardstick: yardstick(evidence, simplest),
        faster: faster.map(|faster| Faster {
            row: faster.name.clone(),
            how: how(faster),
            times: ratio(faster, simplest),
        }),
        ..Answer::default()
    })
}

/// Compares the figure of a durable row with the figures of other disks; `None` if the row is not
/// durable, or its work differs from theirs.
fn yardstick(evidence: &Evidence, row: &Row) -> Option<Standing> {
    let settings = settings(row);
    match row.workload.as_str() {
        _ if !row.is_durable() => None,
        "stream" => standing(evidence, Figure::Stream, row.throughput() / 1e6),
        _ if settings.bs_bytes == 4096 && settings.iodepth == 1 => {
            standing(evidence, Figure::Durable, row.iops())
        }
        _ => None,
    }
}

/// Compares a figure with the figures of other disks; `None` without a block device, and for a disk
/// in memory or limited by a control group, which is not comparable with other disks.
fn standing(evidence: &Evidence, figure: Figure, value: f64) -> Option<Standing> {
    let target = evidence.target;
    let is_comparable = !evidence.in_memory && target.limits.is_empty();
    let device = target.device.as_ref().filter(|_| is_comparable);
    yardstick::standing(figure, value, &evidence.host, device)
}

/// Describes the method briefly, from the effective settings:
/// `O_DIRECT, io_uring x 64, one fdatasync`.
fn how(row: &Row) -> String {
    let settings = settings(row);
    let mut words = vec![if settings.direct { "O_DIRECT" } else { "write()" }.to_owned()];
    match settings.ioengine {
        Ioengine::IoUring => words.push(format!("io_uring x {}", settings.iodepth)),
        Ioengine::Threads => words.push(format!("{} threads", settings.iodepth)),
        _ => {}
    }
    match settings.sync {
        Flush::FdatasyncAtEnd => words.push("one fdatasync".into()),
        Flush::FdatasyncEach => words.push("fdatasync each".into()),
        Flush::ODsyncEach => words.push("O_DSYNC".into()),
        _ => {}
    }
    if settings.blocks == Blocks::Written {
        words.push("over written blocks".into());
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_jobs::findings::Burst;
    use wrote_jobs::sample::evidence;
    use wrote_result::sample::{row, target};

    const DURABLE: &str = "power-loss";

    fn around(median: f64) -> [f64; 3] {
        [median * 0.99, median, median * 1.01]
    }

    fn told(rows: &[Row]) -> Vec<(String, String, Option<String>)> {
        let target = target();
        let answers = answers(&evidence(&target, rows)).into_iter();
        let faster = |of: Faster| format!("{:.1} {}", of.times, of.how);
        answers.map(|of| (of.row, of.how, of.faster.map(faster))).collect()
    }

    #[test]
    fn the_simplest_way_answers_and_a_faster_one_is_named_where_intervals_separate() {
        let rows = |uring: [f64; 3]| {
            [
                row("stream/cached", "process-crash", &around(5e9)),
                row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &uring),
                row("stream/cached-fdatasync-at-end", DURABLE, &around(1e9)),
                row("stream/fdatasync-each", DURABLE, &around(1.5e9)),
                row("small/o_dsync-each", DURABLE, &around(5e6)),
                row("small/fdatasync-each", DURABLE, &around(4e6)),
                row("small/cached-fdatasync-at-end", DURABLE, &around(400e6)),
            ]
        };
        let faster = told(&rows(around(2e9)));
        let words = |of: &str| Some(of.to_owned());
        assert_eq!(faster.len(), 3);
        assert_eq!(faster[0].0, "stream/cached-fdatasync-at-end");
        assert_eq!(faster[0].1, "write(), one fdatasync");
        assert_eq!(faster[0].2, words("2.0 O_DIRECT, io_uring x 64, one fdatasync"));
        assert_eq!(faster[1].1, "write(), fdatasync each");
        assert_eq!(faster[1].2, words("1.2 write(), O_DSYNC"));
        assert_eq!(faster[2], ("stream/cached".into(), "write()".into(), None));
        // The fastest method shows no measurable difference from the simplest one.
        let level = told(&rows([0.5e9, 1.6e9, 3e9]));
        assert_eq!(level[0].2, words("1.5 write(), fdatasync each"));
    }

    #[test]
    fn long_writes_are_answered_where_a_burst_was_found() {
        let rows = [row("stream/cached-fdatasync-at-end", DURABLE, &around(150e6))];
        let target = target();
        let burst = Burst { bytes: 25_000_000, bytes_per_s: 125e6, is_left_out: true };
        let of = |burst| answers(&Evidence { burst, ..evidence(&target, &rows) });
        let found = of(Some(burst));
        assert_eq!(found[1].question, "Long writes");
        assert_eq!((found[1].bytes_per_s, &*found[1].how), (Some(125e6), "after 25.0 MB of burst"));
        assert_eq!(of(None).len(), 1);
    }

    #[test]
    fn of_one_run_no_way_is_faster_and_without_rows_there_is_no_answer() {
        let rows = [
            row("stream/cached-fdatasync-at-end", DURABLE, &[1e9]),
            row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &[2e9]),
        ];
        let told = told(&rows);
        assert_eq!((told.len(), told[0].2.as_ref()), (1, None));
        assert!(answers(&evidence(&target(), &[])).is_empty());
    }
}
