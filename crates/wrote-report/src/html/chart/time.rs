//! A row over time: its figure in each result with its interval, and the changes.

use super::axis::Axis;
use super::canvas::Canvas;
use super::plot::{Picture, field};
use plotters::style::text_anchor::{HPos, VPos};

/// The figure of one result.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since some moment.
    pub at_s: f64,
    /// The moment in words, short: `03-21 09:30`.
    pub word: String,
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The class of its change from the result before: `faster`, `slower` or `undecided`.
    pub class: &'static str,
    /// The text that a pointer shows.
    pub title: String,
}

/// Draws a line through the figures of a row, oldest first. A change has a mark.
pub fn over_time(label: &str, moments: &[Moment], word: fn(f64) -> String, axis: &str) -> Picture {
    let (first, last) =
        (moments.first().map_or(0.0, |at| at.at_s), moments.last().map_or(1.0, |at| at.at_s));
    let span = (last - first).max(1.0);
    let ticks = moments.iter().map(|moment| (moment.at_s, moment.word.clone())).collect();
    let title = "start of the measurement, UTC".into();
    let x = Axis { min: first - span * 0.08, max: last + span * 0.08, ticks, title };
    let most = moments.iter().map(|moment| moment.value).fold(0.0, f64::max);
    let high = |moment: &Moment| moment.interval.map_or(moment.value, |(_, high)| high);
    let top = moments.iter().map(high).fold(most, f64::max).min(2.0 * most) * 1.12;
    let y = Axis::from_zero(top, 4, word, axis);
    Picture::of(label, |layout| {
        let canvas = Canvas::new(layout.width(), 230);
        let area = canvas.area();
        let mut plot = field(&canvas, &area, &x, &y);
        plot.mark("line", label);
        plot.line(moments.iter().map(|moment| (moment.at_s, moment.value)).collect(), 2);
        for moment in moments {
            let at = (moment.at_s, moment.value);
            if let Some((low, high)) = moment.interval {
                plot.mark("whisker", moment.title.clone());
                plot.line(vec![(at.0, low.max(0.0)), (at.0, high.min(top))], 2);
            }
            plot.mark(&format!("dot {}", moment.class), moment.title.clone());
            plot.dot(at, 5);
            let mark = match moment.class {
                "faster" => "▲",
                "slower" => "▼",
                _ => continue,
            };
            plot.class(&format!("change {}", moment.class));
            plot.text((at.0, top), (0, 2), mark, HPos::Center, VPos::Top);
        }
        canvas
    })
}
