//! The chart of a growing size: rate, P99 and memory, one above the other over one axis.

use super::Point;
use super::axes::GrowthAxis;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (760, 560);
const COLOURS: [RGBColor; 2] = [BLUE, RED];

/// A named line with its points.
type Curve<'a> = (&'a str, Vec<(f64, f64)>);

/// Draws a chart as SVG.
pub fn draw(path: &Path, axis: &GrowthAxis, lines: &[Vec<Point>]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let curves = |figure: fn(&Point) -> Option<f64>| -> Vec<Curve> {
        let places = |points: &[Point]| {
            points.iter().filter_map(|point| Some((point.at as f64, figure(point)?))).collect()
        };
        let all = axis.lines.iter().zip(lines).map(|(line, points)| (&*line.name, places(points)));
        all.collect()
    };
    let rate = axis.unit.heads()[0].to_owned();
    let panels = [
        (rate, curves(|point| Some(point.rate))),
        ("P99 ms".to_owned(), curves(|point| point.p99_ms)),
        ("memory MiB".to_owned(), curves(|point| point.memory_mib)),
    ];
    let has_places = |(_, curves): &(String, Vec<Curve>)| curves.iter().any(|of| !of.1.is_empty());
    let panels: Vec<_> = panels.into_iter().filter(has_places).collect();
    let areas = area.split_evenly((panels.len(), 1));
    for (number, ((words, curves), area)) in panels.iter().zip(&areas).enumerate() {
        let at = if number + 1 == panels.len() { &axis.at } else { "" };
        panel(area, words, at, curves, number == 0)?;
    }
    area.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend, Shift>,
    words: &str,
    at: &str,
    curves: &[Curve],
    has_legend: bool,
) -> Result<(), Box<dyn Error>> {
    let all = || curves.iter().flat_map(|(_, places)| places);
    let ends = |values: Vec<f64>| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min).max(1e-6);
        (least, values.into_iter().fold(least, f64::max))
    };
    let (from, to) = ends(all().map(|place| place.0).collect());
    let (least, most) = ends(all().map(|place| place.1).collect());
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(24)
        .x_label_area_size(if at.is_empty() { 24 } else { 40 })
        .y_label_area_size(72)
        .build_cartesian_2d(
            (from..to * 1.01).log_scale().base(2.0),
            (least / 1.5..most * 1.5).log_scale(),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(12)
        .y_labels(5)
        .x_label_formatter(&|at| short(*at))
        .y_label_formatter(&|figure| short(*figure))
        .x_desc(at)
        .y_desc(words)
        .draw()?;
    for ((name, places), colour) in curves.iter().zip(COLOURS) {
        let line = LineSeries::new(places.iter().copied(), colour.stroke_width(2)).point_size(3);
        chart
            .draw_series(line)?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    if has_legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .draw()?;
    }
    Ok(())
}

/// Writes a number in short form: `64`, `4 Ki`, `0.25`.
fn short(number: f64) -> String {
    let units = [(30, "Gi"), (20, "Mi"), (10, "Ki")];
    let whole = units.iter().find(|(power, _)| {
        let unit = f64::from(1_u32 << power);
        number >= unit && number % unit == 0.0
    });
    match whole {
        Some((power, word)) => format!("{} {word}", number / f64::from(1_u32 << power)),
        None => format!("{}", (number * 1e4).round() / 1e4),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        assert_eq!([64.0, 4096.0, 0.25, 1000.0].map(short), ["64", "4 Ki", "0.25", "1000"]);
    }
}
