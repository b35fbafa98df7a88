//! A long write: its throughput against the bytes written, and its changes.

use super::axis::{self, Axis};
use super::canvas::Canvas;
use super::plot::{Picture, field};
use wrote_result::document::{Change, Sample};
use wrote_result::units;

/// Draws the throughput of each sample, and a line at each change.
pub fn course(label: &str, samples: &[Sample], changes: &[(Change, String)]) -> Picture {
    let end = samples.last().map_or(1.0, |sample| sample.end_bytes as f64);
    let most = samples.iter().map(|sample| sample.throughput_bytes_per_s).fold(0.0, f64::max);
    Picture::of(label, |layout| {
        let x = Axis::from_zero(end, layout.ticks(), axis::bytes, "bytes written");
        let y = Axis::from_zero(most * 1.05, 5, axis::rate, "throughput, more is better");
        let canvas = Canvas::new(layout.width(), layout.field_height());
        let area = canvas.area();
        let mut plot = field(&canvas, &area, &x, &y);
        let mut from = 0.0;
        for sample in samples {
            let (to, rate) = (sample.end_bytes as f64, sample.throughput_bytes_per_s);
            let [begin, finish] = [from, to].map(|bytes| units::bytes(bytes as u64));
            let shown = units::rate(rate);
            plot.mark("bin", format!("{shown} from {begin} to {finish} written"));
            plot.rectangle((from, 0.0), (to, rate), 1.0);
            from = to;
        }
        for (change, words) in changes {
            let at = change.at_bytes as f64;
            plot.mark("reference", words.clone());
            plot.line(vec![(at, 0.0), (at, y.max)], 2);
        }
        canvas
    })
}
