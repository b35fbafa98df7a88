//! Exports of artificial rows with a rate (alone, among other rows, and as a curve), compared with
//! the texts in `golden/`.

use crate::support::assert_golden;
use crate::text::screen::{PLAIN, exported};
use fixtures::samples;
use wrote_report::Format;
use wrote_result::document::{Document, Knee, Latency, Row, View};

/// Returns the sample's small writes, without findings and advice.
fn small() -> Document {
    let mut document = samples::document();
    document.scenarios[0].rows.retain(|row| row.workload == "small");
    document.findings.clear();
    document.advice.clear();
    document
}

/// Limits a row to `iops` operations per second.
fn hold(row: &mut Row, iops: u32, process: &str) {
    for settings in [&mut row.settings.asked, &mut row.settings.effective] {
        settings.rate_iops = Some(iops.into());
        settings.rate_process = Some(process.parse().unwrap());
    }
}

#[test]
fn a_workload_at_one_rate_says_so_over_its_table() {
    let mut document = small();
    document.scenarios[0].rows.iter_mut().for_each(|row| hold(row, 1000, "poisson"));
    assert_golden("rate-80.txt", &exported(&document, Format::Table, PLAIN));
    let markdown = exported(&document, Format::Markdown, PLAIN);
    assert!(markdown.contains("open loop: 1.00 k/s, poisson; latency from when each was due"));
}

#[test]
fn rows_at_a_rate_among_others_are_marked_and_the_mark_is_explained() {
    let mut document = small();
    hold(&mut document.scenarios[0].rows[1], 5000, "linear");
    assert_golden("mixed-80.txt", &exported(&document, Format::Table, PLAIN));
    assert_golden("mixed.md", &exported(&document, Format::Markdown, PLAIN));
}

/// Returns a load curve whose last rate was not reached.
pub(super) fn curve() -> Document {
    let mut document = small();
    let scenario = &mut document.scenarios[0];
    let template = scenario.rows[1].clone();
    let point = |percent: u32, p99_us: u64| {
        let mut row = template.clone();
        row.name = format!("load/rand/write/{:.2}", f64::from(percent) / 100.0);
        row.workload = "load/rand/write".into();
        row.view = Some(View::Curve);
        row.way = format!("{percent} % of 58100/s");
        hold(&mut row, 581 * percent, "poisson");
        for settings in [&mut row.settings.asked, &mut row.settings.effective] {
            settings.rw = "randwrite".into();
            settings.load_share = Some(f64::from(percent) / 100.0);
        }
        let reached = f64::from(581 * percent.min(99));
        row.runs.iter_mut().for_each(|run| (run.iops, run.elapsed_s) = (reached, 1.0));
        row.latency_ns = Some(Latency {
            p50: 60_000 + 1000 * u64::from(percent),
            p99: p99_us * 1000,
            p99_9: p99_us * 1400,
            count: 30_000,
            ..Latency::default()
        });
        row
    };
    let points =
        [(10, 150), (30, 160), (50, 190), (70, 310), (90, 1200), (100, 9000), (110, 210_000)];
    scenario.rows = points.map(|(percent, p99_us)| point(percent, p99_us)).to_vec();
    scenario.name = "load".into();
    scenario.question =
        "What does the latency of rand/write do as the load rises, and where does it \
                         bend?"
            .into();
    let knee = ("load/rand/write/0.70".to_owned(), 40_670.0, 310_000);
    scenario.knee = Some(Knee { row: knee.0, iops: knee.1, p99_ns: knee.2 });
    document
}

#[test]
fn a_curve_is_the_golden_one_with_its_knee_and_what_was_not_reached_marked() {
    assert_golden("load-80.txt", &exported(&curve(), Format::Table, PLAIN));
    assert_golden("load.md", &exported(&curve(), Format::Markdown, PLAIN));
}

#[test]
fn a_curve_that_does_not_bend_says_so() {
    let mut document = curve();
    document.scenarios[0].knee = None;
    for format in [Format::Table, Format::Markdown] {
        let text = exported(&document, format, PLAIN);
        assert!(text.contains("no knee: latency does not bend at these rates"), "{text}");
    }
}
