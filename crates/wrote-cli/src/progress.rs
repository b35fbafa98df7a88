//! Progress of a run: one line before, a bar on a terminal, and notes.

mod copy;
mod jobs;

pub use copy::CopyReporter;
pub use jobs::JobReporter;

use crate::terminal::{self, say};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::io::{IsTerminal, Write as _, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wrote_bench::{Announcement, Observer, Progress};
use wrote_jobs::peers::Peers;
use wrote_report::{Screen, plain};
use wrote_result::document::{Answer, Row};
use wrote_result::units;

/// How often the time left is redrawn: seldom, because the CPU that draws it is being measured.
const TICK: Duration = Duration::from_secs(1);
/// A long run moves the bar in this number of steps.
const STEPS: u32 = 1000;

/// Shows the progress of a benchmark on standard error.
///
/// The announcement and the notes are always printed; the bar is shown only on a terminal that can
/// draw one.
#[derive(Debug)]
pub struct Reporter {
    /// A bar on standard error, if that is a capable terminal, and lines above it.
    bar: Option<ProgressBar>,
    /// The expected end of the current work.
    end: Arc<Mutex<Option<Instant>>>,
}

impl Default for Reporter {
    /// A reporter that draws on standard error if that is a terminal and `TERM` is not `dumb`.
    fn default() -> Reporter {
        let end = Arc::new(Mutex::new(None));
        let draws = stderr().is_terminal() && !terminal::is_dumb();
        let bar = draws.then(|| ProgressBar::new(1).with_style(style("", end.clone())));
        Reporter { bar, end }
    }
}

impl Reporter {
    /// The reporter of a rank: rank 0 shows the progress of all.
    pub fn of_rank(peers: Peers) -> Box<dyn Observer> {
        if peers.is_first() { Box::new(Reporter::default()) } else { Box::new(()) }
    }

    /// Shows the progress, and the time left if known.
    fn show(&self, position: u64, length: u64, left: Option<Duration>, message: &str) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) =
            left.and_then(|left| Instant::now().checked_add(left));
        if let Some(bar) = &self.bar {
            bar.set_length(length);
            bar.set_position(position);
            bar.set_message(plain(message));
            bar.enable_steady_tick(TICK);
        }
    }

    /// Prints one line, above the bar if there is one.
    fn say(&self, line: &str) {
        let write = || say(line);
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            // On a terminal the result follows, after an empty line.
            let _ = writeln!(stderr());
        }
    }
}

impl Observer for Reporter {
    fn announce(&mut self, announcement: &Announcement) {
        self.say(&announced(announcement));
    }

    fn progress(&mut self, progress: &Progress) {
        let within = (progress.fraction * f64::from(STEPS)) as u64;
        let done = u64::from(progress.runs_done) * u64::from(STEPS) + within;
        let whole = u64::from(progress.runs) * u64::from(STEPS);
        self.show(done, whole, Some(progress.left), &measuring(progress));
    }

    fn answers(&mut self, answers: &[Answer], rows: &[Row]) {
        if let Some(bar) = self.bar.as_ref().filter(|_| !answers.is_empty()) {
            let screen = Screen { colour: false, ..terminal::stdout_screen() };
            bar.set_style(style("{prefix}\n", self.end.clone()));
            bar.set_prefix(wrote_report::so_far(answers, rows, screen));
        }
    }

    fn note(&mut self, text: &str) {
        self.say(&format!("wrote: note: {text}"));
    }
}

fn announced(announcement: &Announcement) -> String {
    let most = if announcement.is_limited { "at most " } else { "" };
    format!(
        "writes {} into {}, up to {} at a time, {}, {most}about {}",
        amount(announcement),
        announcement.folder.display(),
        units::bytes(announcement.space_bytes_max),
        units::counted(announcement.runs.into(), "run"),
        clock(announcement.estimated),
    )
}

/// Returns the most bytes written.
fn amount(announcement: &Announcement) -> String {
    match announcement.written_bytes_max {
        u64::MAX => "as fast as it can".into(),
        most => format!("at most {}", units::bytes(most)),
    }
}

/// The number of the current run and its row; nothing after the last.
fn measuring(progress: &Progress) -> String {
    if progress.runs_done >= progress.runs {
        return "finishing".into();
    }
    format!("run {} of {}  {}", progress.runs_done + 1, progress.runs, progress.row)
}

/// The bar below the text `above`, with the time left counted down between two reports.
fn style(above: &str, end: Arc<Mutex<Option<Instant>>>) -> ProgressStyle {
    let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let end = *end.lock().unwrap_or_else(PoisonError::into_inner);
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        // Writing into a line in memory does not fail.
        let _ = write!(out, "{}", left.map(|left| clock(left) + " left").unwrap_or_default());
    };
    template(&format!("{above}{{bar:24}} {{left:>10}}  {{wide_msg}}")).with_key("left", left)
}

/// The style of a bar, in characters that the screen has.
fn template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars(if terminal::is_utf8() { "█▉▊▋▌▍▎▏ " } else { "#-" })
}

/// A time to wait, in words: `45 s`, `2 min 05 s`.
fn clock(time: Duration) -> String {
    // Rounded up: "0 s" appears only when nothing is left.
    match time.as_millis().div_ceil(1000) {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => units::seconds(time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_is_one_line_with_what_where_and_how_long() {
        let line = |written_bytes_max| {
            announced(&Announcement {
                folder: "/data/.wrote-x1y2".into(),
                space_bytes_max: 1_100_000_000,
                written_bytes_max,
                runs: 42,
                estimated: Duration::from_secs(45),
                is_limited: written_bytes_max < u64::MAX,
            })
        };
        assert_eq!(
            line(4_000_000_000),
            "writes at most 4.00 GB into /data/.wrote-x1y2, up to 1.10 GB at a time, 42 runs, at most \
             about 45 s"
        );
        let unbounded = line(u64::MAX);
        assert!(unbounded.starts_with("writes as fast as it can into /data/.wrote-x1y2, "));
    }

    #[test]
    fn runs_are_counted_from_one() {
        let progress = Progress {
            row: "stream/cached".into(),
            runs_done: 4,
            runs: 42,
            fraction: 0.0,
            left: Duration::ZERO,
        };
        assert_eq!(measuring(&progress), "run 5 of 42  stream/cached");
    }

    #[test]
    fn a_time_left_is_never_rounded_down_to_nothing() {
        assert_eq!(clock(Duration::from_millis(1)), "1 s");
        assert_eq!(clock(Duration::from_secs(45)), "45 s");
        assert_eq!(clock(Duration::from_secs(125)), "2 min 05 s");
    }
}
