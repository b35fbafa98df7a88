//! The charts of a group of rows, by its view.

use super::grid::Grid;
use super::latencies;
use crate::chart::{
    Axis, Bar, Cell, Dot, Frame, Layout, Line, Lines, Picture, READING, Reference, Spot, bytes,
    dots, heat, lines, nanoseconds, per_second, rate, saved,
};
use crate::figures::{figure, operations_per_s, p50_p99, p99, range, text, throughput};
use crate::group::Group;
use crate::sustained::change;
use crate::tree::{Figure, rest};
use itertools::Itertools;
use wrote_result::document::{
    Cell as Place, Change, CrashLeaves, Direction, Latency, Reached, Row, Sample, Sustained, View,
};
use wrote_result::stats::median;
use wrote_result::units;

/// A figure of the latencies.
type OfLatency = fn(&Latency) -> Option<u64>;

/// The maximum number of rows in a chart. The table below it contains all rows.
const ROWS_MAX: usize = 40;
/// Returns the class of a row, which is the level that its writes survive.
fn class(row: &Row) -> String {
    row.survives.map_or("read".into(), |survives| survives.to_string())
}

/// Returns the name of a row in charts.
pub fn name(group: &Group, row: &Row) -> String {
    format!("{}{}", group.loop_mark(row), group.name(row))
}

/// Returns the charts of a group.
pub fn figures(group: &Group) -> Vec<Figure> {
    if let Some(grid) = grid(group) {
        return vec![grid];
    }
    match group.view() {
        View::Curve => vec![curve(group)],
        View::Saves => vec![saves(group)],
        View::Long => long(group),
        View::Files => vec![ladder(group)],
        View::Metadata => with_latencies(group, Vec::new()),
        View::Messages | View::Operations => with_latencies(group, vec![ladder(group)]),
    }
}

fn with_latencies(group: &Group, mut figures: Vec<Figure>) -> Vec<Figure> {
    figures.extend(latencies::figures(group.workload, &group.rows, |row| name(group, row), class));
    figures
}

/// Returns the rows that a chart shows, and a note on the other rows.
fn shown<'a>(group: &Group<'a>) -> (Vec<&'a Row>, String) {
    let rows: Vec<&Row> = group.rows.iter().copied().take(ROWS_MAX).collect();
    let note = rest(rows.len(), group.rows.len());
    (rows, note)
}

/// Returns the tooltip of a row's mark.
fn title(group: &Group, row: &Row) -> String {
    let rate = match group.is_counted() {
        true => format!("{}, {}", operations_per_s(row), throughput(row)),
        false => throughput(row),
    };
    let p99 = p99(row.latency());
    let facts = [
        format!("{rate} {}", range(row)).trim_end().to_owned(),
        if p99.is_empty() { p99 } else { format!("P99 {p99}") },
        text(row.survives.map(|survives| format!("survives {survives}"))),
    ];
    format!("{}: {}", name(group, row), facts.iter().filter(|fact| !fact.is_empty()).join(", "))
}

/// Returns the legend of the levels that the rows survive.
fn survived(rows: &[&Row]) -> Vec<(String, String)> {
    let words = |row: &&Row| match row.survives {
        None => ("read".to_owned(), "reads".to_owned()),
        Some(survives) => (survives.to_string(), format!("survives {survives}")),
    };
    let order = |row: &&&Row| row.survives.map_or(-1, |survives| survives as i32);
    rows.iter().sorted_by_key(order).map(words).unique().collect()
}

fn ladder(group: &Group) -> Figure {
    let (rows, note) = shown(group);
    let names: Vec<String> = rows.iter().map(|row| name(group, row)).collect();
    let is_read = rows.iter().all(|row| row.direction == Direction::Read);
    let question = match (group.view(), is_read) {
        (View::Files, _) => "How fast is each method, and what does it survive?",
        (_, true) => "How fast is each method?",
        (_, false) => "How fast is each method, and what does an acknowledged write survive?",
    };
    let titles = rows.iter().map(|row| title(group, row)).collect();
    let label = format!("Speed of {}", group.workload);
    let drawn = speeds(&label, &rows, &names, titles, group.is_counted());
    Figure { question: question.into(), note, ..drawn }
}

/// Draws the speed of rows, in operations or in bytes, in the colours of the levels that they
/// survive.
fn speeds(
    label: &str,
    rows: &[&Row],
    names: &[String],
    titles: Vec<String>,
    is_counted: bool,
) -> Figure {
    let dot = |(lane, (row, title)): (usize, (&&Row, String))| {
        let (value, interval, figure) = figure(row, is_counted);
        let class = class(row);
        Dot { row: lane, class, value, interval, figure, title, ..Dot::default() }
    };
    let drawn: Vec<Dot> = rows.iter().zip(titles).enumerate().map(dot).collect();
    let (word, axis) = scale(is_counted);
    let frame = Frame { label, names, word, axis, reference: None };
    Figure { picture: dots(&frame, &drawn), legend: survived(rows), ..Figure::default() }
}

/// Returns the function that formats the numbers on an axis of speeds, and the title of the axis.
pub fn scale(is_counted: bool) -> (fn(f64) -> String, &'static str) {
    match is_counted {
        true => (per_second, "operations per second, more is better"),
        false => (rate, "throughput, more is better"),
    }
}

/// Returns the chart of all writes of a scenario, by the level that they survive; `None` if they
/// all belong to one workload, because its chart shows them.
pub fn overview(groups: &[Group]) -> Option<Figure> {
    let groups = groups.iter().filter(|group| group.view() == View::Operations);
    let lanes = groups.flat_map(|group| group.rows.iter().map(move |row| (group, *row)));
    let mut lanes: Vec<(&Group, &Row)> = lanes.filter(|(_, row)| row.survives.is_some()).collect();
    let workloads = lanes.iter().map(|(_, row)| &row.workload).unique().count();
    if workloads < 2 || lanes.len() > ROWS_MAX {
        return None;
    }
    // The safest rows come first; within each level, the fastest.
    lanes.sort_by(|(_, one), (_, other)| {
        let by_level = other.survives.cmp(&one.survives);
        by_level.then(other.throughput().total_cmp(&one.throughput()))
    });
    let rows: Vec<&Row> = lanes.iter().map(|(_, row)| *row).collect();
    let named = |(group, row): &(&Group, &Row)| match group.is_of_jobs() {
        true => format!("{}: {}", group.workload, name(group, row)),
        false => format!("{}{}", group.loop_mark(row), row.name),
    };
    let names: Vec<String> = lanes.iter().map(named).collect();
    let titles = lanes.iter().map(|(group, row)| title(group, row)).collect();
    let question = "How fast is each method, by the level that its writes survive?".into();
    let is_counted = lanes.iter().all(|(group, _)| group.is_counted());
    let drawn = speeds("Speed by level of safety", &rows, &names, titles, is_counted);
    Some(Figure { question, ..drawn })
}

fn curve(group: &Group) -> Figure {
    let of = group.rows.first().map_or("read".into(), |row| class(row));
    let percentiles: [(&str, OfLatency); 3] =
        [("P50", |of| Some(of.p50)), ("P99", Latency::known_p99), ("P99.9", Latency::known_p99_9)];
    let due = |row: &Row| Reached::of(row).map_or(row.iops(), |rate| rate.asked_per_s);
    let rates: Vec<(&Row, &Latency)> =
        group.rows.iter().filter_map(|row| Some((*row, row.latency()?))).collect();
    let line = |(number, (name, figure)): (usize, (&str, OfLatency))| {
        let class = format!("{of} d{}", number + 1);
        let known = rates.iter().filter_map(|(row, of)| Some((*row, figure(of)?)));
        let known: Vec<(&Row, u64)> = known.collect();
        let at = |(row, ns): &(&Row, u64)| (due(row), (*ns.max(&1) as f64).log10());
        let spot = |rate: &(&Row, u64)| {
            let (way, reached) = (group.name(rate.0), operations_per_s(rate.0));
            let latency = units::nanoseconds(rate.1);
            let title = format!("{way}, {reached} reached: {name} {latency}");
            Spot { at: at(rate), class: class.clone(), title, ..Spot::default() }
        };
        let points = known.iter().map(at).collect();
        let dots = known.iter().map(spot).collect();
        Line { title: name.into(), points, dots, radius: 4, class }
    };
    let mut drawn: Vec<Line> = percentiles.into_iter().enumerate().map(line).collect();
    drawn.retain(|line| !line.points.is_empty());
    let knee = group.knee.and_then(|knee| group.rows.iter().find(|row| row.name == knee.row));
    let knee = knee.and_then(|row| Reached::of(row)).map(|rate| rate.asked_per_s);
    let knee = knee.map(|value| Reference {
        value,
        title: format!("the knee: {}", crate::figures::per_second(value)),
        word: "knee",
    });
    let most = rates.iter().map(|(row, _)| due(row)).fold(0.0, f64::max);
    let latencies = rates.iter().flat_map(|(_, of)| percentiles.map(|(_, figure)| figure(of)));
    let latencies = latencies.flatten();
    let y = Axis::log(latencies.map(|ns| ns as f64), nanoseconds, "latency, less is better");
    let axes = |layout: Layout| {
        let title = "operations due per second";
        (Axis::from_zero(most * 1.04, layout.ticks, per_second, title), y.clone())
    };
    let legend = drawn.iter().map(|line| (line.class.clone(), line.title.clone())).collect();
    let drawn = Lines { references: knee.into_iter().collect(), lines: drawn, ..Lines::default() };
    Figure {
        question: "How does the latency rise with the load, and where does it bend?".into(),
        picture: lines(&format!("Latency and load of {}", group.workload), axes, &drawn),
        legend,
        note: String::new(),
    }
}

fn saves(group: &Group) -> Figure {
    let (rows, note) = shown(group);
    let strip = |(lane, row): (usize, &&Row)| {
        let of = *row.latency()?;
        let (percentiles, max) = (p50_p99(&of), units::nanoseconds(of.max));
        let leaves = text(row.crash_leaves.map(|of: CrashLeaves| format!(", a crash leaves {of}")));
        let title = format!("{}: {percentiles}, max {max}{leaves}", group.name(row));
        Some(saved(lane, of, class(row), title))
    };
    let drawn: Vec<Dot> = rows.iter().enumerate().filter_map(strip).collect();
    let names: Vec<String> = rows.iter().map(|row| group.name(row).into()).collect();
    let label = format!("Time of a save of {}", group.workload);
    let axis = "time of a save, less is better";
    let frame = Frame { label: &label, names: &names, word: nanoseconds, axis, reference: None };
    Figure {
        question: "How long does a save take, with and without sync?".into(),
        picture: dots(&frame, &drawn),
        legend: survived(&rows),
        note: format!("{READING} {note}").trim_end().into(),
    }
}

fn long(group: &Group) -> Vec<Figure> {
    let figure = |row: &&Row| {
        let of = row.sustained.as_ref()?;
        let label = format!("Throughput of {} against the bytes written", row.name);
        Some(Figure {
            question: "How does the speed hold as more is written?".into(),
            picture: course(&label, of),
            legend: Vec::new(),
            note: [
                (of.samples.len() >= MEDIAN_SAMPLES_MIN).then_some("The line is a moving median."),
                (!of.changes.is_empty())
                    .then_some("Dashed lines stand where the throughput changed permanently."),
            ]
            .into_iter()
            .flatten()
            .join(" "),
        })
    };
    group.rows.iter().filter_map(figure).collect()
}

/// The minimum number of samples for a moving median.
const MEDIAN_SAMPLES_MIN: usize = 20;
/// The number of samples on each side of a moving median: the divisor of the number of all samples,
/// and the minimum and the maximum of the result.
const MEDIAN_PART: usize = 40;
const MEDIAN_HALF: (usize, usize) = (2, 15);

/// Returns the median of the throughput around each sample, placed at the middle of the sample.
fn moving_median(samples: &[Sample]) -> Vec<(f64, f64)> {
    if samples.len() < MEDIAN_SAMPLES_MIN {
        return Vec::new();
    }
    let half = (samples.len() / MEDIAN_PART).clamp(MEDIAN_HALF.0, MEDIAN_HALF.1);
    let at = |number: usize| {
        let start = number.checked_sub(1).map_or(0, |before| samples[before].end_bytes);
        let around = &samples[number.saturating_sub(half)..samples.len().min(number + half + 1)];
        let rates: Vec<f64> = around.iter().map(|sample| sample.throughput_bytes_per_s).collect();
        (start.midpoint(samples[number].end_bytes) as f64, median(&rates))
    };
    (0..samples.len()).map(at).collect()
}

/// Draws the throughput of each sample over the bytes written, with a line at each change.
fn course(label: &str, of: &Sustained) -> Picture {
    let starts = [0].into_iter().chain(of.samples.iter().map(|sample| sample.end_bytes));
    let bar = |(from, sample): (u64, &Sample)| {
        let [begin, end] = [from, sample.end_bytes].map(units::bytes);
        let shown = units::rate(sample.throughput_bytes_per_s);
        Bar {
            from: from as f64,
            to: sample.end_bytes as f64,
            value: sample.throughput_bytes_per_s,
            title: format!("{shown} from {begin} to {end} written"),
        }
    };
    let reference = |of: &Change| Reference {
        value: of.at_bytes as f64,
        title: format!("changed {}", change(of)),
        word: "",
    };
    let drawn = Lines {
        bars: starts.zip(&of.samples).map(bar).collect(),
        references: of.changes.iter().map(reference).collect(),
        lines: Some(moving_median(&of.samples))
            .filter(|points| !points.is_empty())
            .map(|points| Line {
                class: "median".into(),
                title: "moving median".into(),
                points,
                dots: Vec::new(),
                radius: 0,
            })
            .into_iter()
            .collect(),
        ..Lines::default()
    };
    let end = drawn.bars.last().map_or(1.0, |bar| bar.to);
    let most = drawn.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let axes = |layout: Layout| {
        let y = Axis::from_zero(most * 1.05, 5, rate, "throughput, more is better");
        (Axis::from_zero(end, layout.ticks, bytes, "bytes written"), y)
    };
    lines(label, axes, &drawn)
}

/// Returns the heat map of a group whose rows are the cells of a grid; `None` for other groups.
fn grid(group: &Group) -> Option<Figure> {
    let grid = Grid::of(group)?;
    let Grid { title: of_sides, sides, heads, cells, best, is_of_pages, .. } = &grid;
    let value = |row: &Row| if *is_of_pages { row.iops() / 1e3 } else { row.throughput() / 1e9 };
    let cell = |(place, row): &(&Place, &Row)| {
        let side = sides.iter().position(|side| *side == place.side)?;
        let head = heads.iter().position(|head| *head == place.head)?;
        Some(Cell {
            side,
            head,
            value: value(row),
            figure: grid.figure(row),
            short: units::significant(value(row)),
            title: title(group, row),
            is_best: grid.best_of(&place.side).is_some_and(|best| std::ptr::eq(*row, best)),
        })
    };
    let cells: Vec<Cell> = cells.iter().filter_map(cell).collect();
    let label = format!("Throughput of each cell of {}", group.workload);
    let (question, best, unit) = match is_of_pages {
        true => ("Which method is fastest?", " of a line that is never torn".to_owned(), "k/s"),
        false => {
            let best = format!(": {}, {}", best.way, throughput(best));
            ("Which size and which method are fastest?", best, "GB/s")
        }
    };
    Some(Figure {
        question: question.into(),
        picture: heat(&label, of_sides, sides, heads, &cells),
        legend: Vec::new(),
        note: format!("The border marks the fastest{best}. Figures without a unit are {unit}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_median_follows_a_lasting_fall_and_no_single_sample() {
        let sample = |number: u64| Sample {
            end_bytes: number * 1000,
            end_s: number as f64,
            throughput_bytes_per_s: match number {
                10 => 1.0,
                of if of <= 20 => 500.0,
                _ => 100.0,
            },
        };
        let samples: Vec<Sample> = (1..=40).map(sample).collect();
        let line = moving_median(&samples);
        assert_eq!((line.len(), line[0], line[9].1), (40, (500.0, 500.0), 500.0));
        assert_eq!((line[19].1, line[25].1), (500.0, 100.0));
        assert!(moving_median(&samples[..19]).is_empty());
    }
}
