//! The progress of a copy: the bytes, the rate and the time left, in a bar on a terminal, or else
//! in lines.

use super::{Current, Work, clock, template};
use crate::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use wrote_result::{Stop, units};

/// The maximum frequency of updates of the bar.
const DRAWN_PER_S: u8 = 10;

/// The maximum interval between updates, because the rate falls even while no bytes arrive.
const TICK: Duration = Duration::from_millis(500);

/// The progress of a copy on standard error, unless the user wants quiet.
#[derive(Debug)]
pub struct CopyReporter {
    bar: Option<ProgressBar>,
    /// Whether the total number of bytes is known.
    has_length: bool,
    began: Instant,
    current: Current,
}

impl Default for CopyReporter {
    fn default() -> CopyReporter {
        let (began, current) = (Instant::now(), Current::default());
        let bar = terminal::draws().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWN_PER_S);
            let bar = ProgressBar::with_draw_target(None, target).with_style(style(false));
            bar.enable_steady_tick(TICK);
            bar
        });
        if bar.is_none() {
            current.say_now_and_then();
        }
        CopyReporter { bar, has_length: false, began, current }
    }
}

impl CopyReporter {
    /// Shows the progress. Returns [`ControlFlow::Break`] if the user has asked to stop.
    pub fn progress_until(
        &mut self,
        stop: &Stop,
        bytes_done: u64,
        bytes_total: Option<u64>,
    ) -> ControlFlow<()> {
        self.progress(bytes_done, bytes_total);
        if stop.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Shows the progress.
    pub fn progress(&mut self, bytes_done: u64, bytes_total: Option<u64>) {
        let Some(bar) = &self.bar else {
            let elapsed = self.began.elapsed();
            let per_s = bytes_done as f64 / elapsed.as_secs_f64();
            let all = bytes_total.filter(|all| *all >= bytes_done && per_s > 0.0);
            let end = all.map(|all| self.began + Duration::from_secs_f64(all as f64 / per_s));
            *self.current.lock() = Work { name: done(bytes_done, bytes_total, per_s), end };
            return;
        };
        if let Some(length) = bytes_total.filter(|length| bar.length() != Some(*length)) {
            bar.set_length(length);
        }
        if bytes_total.is_some() != self.has_length {
            self.has_length = !self.has_length;
            bar.set_style(style(self.has_length));
        }
        bar.set_position(bytes_done);
    }
}

impl Drop for CopyReporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(has_length: bool) -> ProgressStyle {
    // Writing to a string never fails.
    let done = |state: &ProgressState, out: &mut dyn Write| {
        let _ = write!(out, "{}", done(state.pos(), state.len(), state.per_sec()));
    };
    let left = |state: &ProgressState, out: &mut dyn Write| {
        let _ = write!(out, "{}", left(state.per_sec(), state.eta()));
    };
    let style = template(if has_length { "{bar:24} {done}{left}" } else { "{done}" });
    style.with_key("done", done).with_key("left", left)
}

/// Returns text such as `1.20 GB of 4.29 GB, 2.26 GB/s`, without the total if it is unknown.
fn done(bytes: u64, length: Option<u64>, per_s: f64) -> String {
    let of = length.map_or(String::new(), |length| format!(" of {}", units::bytes(length)));
    format!("{}{of}, {}", units::bytes(bytes), units::rate(per_s))
}

/// Returns text such as `, 2 min 05 s left`; empty while the rate is 0.
fn left(per_s: f64, left: Duration) -> String {
    if per_s > 0.0 { format!(", {} left", clock(left)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_stream_only_what_came_is_known() {
        assert_eq!(done(1_200_000_000, None, 2.26e9), "1.20 GB, 2.26 GB/s");
        assert_eq!(done(5, Some(10), 0.0), "5 B of 10 B, 0 B/s");
    }

    #[test]
    fn the_time_left_is_said_while_something_moves() {
        assert_eq!(left(1e6, Duration::from_secs(125)), ", 2 min 05 s left");
        assert_eq!(left(0.0, Duration::ZERO), "");
    }
}
