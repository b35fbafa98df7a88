//! Charts that compare the answers of a result with typical figures: the ranges of classes of
//! disks, and a mark for this disk. The module is separate because the sources are listed apart
//! from the charts.

use crate::chart::{Dot, Frame, per_second, ranges, rate};
use crate::figures;
use crate::tree::{Figure, Role, Section};
use itertools::Itertools;
use wrote_result::document::{Answer, Class, Document, Row, Standing};
use wrote_result::units;

/// Returns the answers for which there are typical figures, with these figures.
pub fn standings(document: &Document) -> impl Iterator<Item = (&Answer, &Standing)> {
    let answers = document.answers.iter().flatten();
    answers.filter_map(|answer| Some((answer, answer.yardstick.as_ref()?)))
}

/// Returns a strip for each answer for which there are typical figures.
pub fn strips(document: &Document) -> Vec<Figure> {
    let strip = |(answer, of): (&Answer, &Standing)| strip(answer, of, document.row(&answer.row)?);
    standings(document).filter_map(strip).collect()
}

fn strip(answer: &Answer, of: &Standing, row: &Row) -> Option<Figure> {
    let is_stream = row.workload == "stream";
    let (value, here) = match answer.bytes_per_s.unwrap_or(row.throughput()) {
        bytes_per_s if is_stream => (bytes_per_s, units::rate(bytes_per_s)),
        _ => (row.iops(), figures::per_second(row.iops())),
    };
    let (scale, word, axis): (_, fn(f64) -> String, _) = match is_stream {
        true => (1e6, rate, "throughput, more is better"),
        false => (1.0, per_second, "durable writes per second, more is better"),
    };
    let scaled: Vec<(f64, f64)> =
        of.classes.iter().map(|class| (class.low * scale, class.high * scale)).collect();
    let class = |(of, (low, high)): (&Class, &(f64, f64))| {
        format!("{}: {} to {}", of.name, word(*low), word(*high))
    };
    let mut names = vec!["this disk".to_owned()];
    names.extend(of.classes.iter().zip(&scaled).map(class));
    let question = format!("{}: {}, {}.", answer.question, here, of.text);
    let title = format!("this disk: {here}");
    let dot = Dot { value, title, figure: here, class: "power-loss".into(), ..Dot::default() };
    let frame = Frame { label: &question, names: &names, word, axis, reference: None };
    let picture = (value > 0.0).then(|| ranges(&frame, &dot, &scaled))?;
    let note = format!(
        "Bars are ranges of published figures, collected in {}. They overlap, so that no figure \
         proves a class.",
        of.collected
    );
    Some(Figure { picture, question, legend: Vec::new(), note })
}

/// Returns the list of the publications, by class; `None` if there is no strip.
pub fn sources<'a>(document: &Document) -> Option<Section<'a>> {
    let classes = standings(document).flat_map(|(_, of)| &of.classes).unique_by(|of| &of.name);
    let mut classes = classes.map(|class| (class.name.clone(), class.sources.clone())).peekable();
    classes.peek()?;
    let facts = Section::facts("Sources of the typical figures", classes);
    Some(Section { role: Role::Page, is_folded: true, ..facts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::sample;

    fn class(name: &str, low: f64, high: f64) -> Class {
        Class { name: name.into(), low, high, sources: vec![format!("https://{name}/")] }
    }

    /// Returns the values of a numeric attribute in all elements that have it.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let begin = format!(" {attribute}=\"");
        let values = svg.split(&*begin).skip(1);
        values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn the_mark_of_the_disk_is_inside_the_strip_and_inside_the_range_that_has_its_figure() {
        for (name, figure, of) in [
            ("small/fdatasync-each", 10_000.0, [(140.0, 1700.0), (7000.0, 40_000.0)]),
            ("stream/cached-fdatasync-at-end", 1.5e9 / 1e6, [(20.0, 175.0), (1050.0, 1700.0)]),
            // This figure is far beyond every range.
            ("small/fdatasync-each", 900_000.0, [(20.0, 120.0), (390.0, 1200.0)]),
        ] {
            let scale = if name.starts_with("small") { 4096.0 } else { 1e6 };
            let mut document =
                sample::document(vec![sample::row(name, "power-loss", &[figure * scale])]);
            let classes = of.map(|(low, high)| class(&format!("{low}"), low, high)).to_vec();
            let text = "consistent with x".into();
            let standing = Standing { text, classes, collected: "2026-11".into() };
            let (row, yardstick) = (name.to_owned(), Some(standing));
            document.answers = Some(vec![Answer { row, yardstick, ..Answer::default() }]);
            let strips = strips(&document);
            assert_eq!(strips.len(), 1);
            for svg in [&strips[0].picture.wide, &strips[0].picture.narrow] {
                let (mark, width) = (numbers(svg, "cx")[0], numbers(svg, "width")[0]);
                assert!(mark > 0.0 && mark < width, "{svg}");
                for ((low, high), bar) in of.iter().zip(svg.split("<rect").skip(1)) {
                    let (left, width) = (numbers(bar, "x")[0], numbers(bar, "width")[0]);
                    let is_inside = (left..=left + width).contains(&mark);
                    assert_eq!(is_inside, (*low..=*high).contains(&figure), "{svg}");
                }
                assert!(svg.contains("aria-label=\": "), "{svg}");
            }
            assert!(sources(&document).is_some_and(|of| of.is_folded));
        }
    }
}
