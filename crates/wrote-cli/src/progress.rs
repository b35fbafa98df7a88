//! The progress of a run: one line at the start, a bar on a terminal or else a line every ten
//! seconds, and notes.

mod copy;
mod jobs;

pub use copy::CopyReporter;
pub use jobs::JobReporter;

use crate::terminal::{self, say};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::io::{Write as _, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wrote_bench::{Announcement, Observer, Progress};
use wrote_jobs::peers::Peers;
use wrote_report::{Screen, per_second, plain};
use wrote_result::document::{Answer, Row};
use wrote_result::units;

/// The interval between updates of the time left. It is long because drawing takes time on a CPU
/// that is being measured.
const TICK: Duration = Duration::from_secs(1);
/// The interval between lines that report progress if there is no bar, as in the log of a CI job.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// The number of steps in which the bar moves during a long run.
const STEPS: u32 = 1000;

/// The current work: its name, and its expected end.
#[derive(Debug, Default)]
struct Work {
    name: String,
    end: Option<Instant>,
}

impl Work {
    /// Returns the time left, as a countdown: `45 s left`. Empty if it is unknown.
    fn left(&self) -> String {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        left.map(|left| clock(left) + " left").unwrap_or_default()
    }
}

/// The current work, shared with the thread that shows the progress.
#[derive(Clone, Debug, Default)]
struct Current(Arc<Mutex<Work>>);

impl Current {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the current work at intervals until `self` and its clones are dropped, unless the
    /// user wants quiet.
    fn say_now_and_then(&self) {
        let work = Arc::downgrade(&self.0);
        let interval = if terminal::is_verbose() { TICK } else { LINE_INTERVAL };
        let tell = move || loop {
            thread::sleep(interval);
            let Some(work) = work.upgrade().map(Current) else { return };
            let work = work.lock();
            if !work.name.is_empty() {
                say(&format!("{}  {}", work.name, work.left()));
            }
        };
        // If the thread cannot be started, the work is done without these lines.
        let _ = thread::Builder::new().name("progress".into()).spawn(tell);
    }
}

/// The progress of a benchmark on standard error.
///
/// The announcement and the notes are always printed, unless the user wants quiet. The bar is shown
/// only on a terminal that can draw one; otherwise, lines are printed instead.
#[derive(Debug)]
pub struct Reporter {
    /// A bar on standard error, with lines above it; `None` if standard error is not a capable
    /// terminal.
    bar: Option<ProgressBar>,
    current: Current,
}

impl Default for Reporter {
    fn default() -> Reporter {
        let current = Current::default();
        let bar =
            terminal::draws().then(|| ProgressBar::new(1).with_style(style("", current.clone())));
        if bar.is_none() {
            current.say_now_and_then();
        }
        Reporter { bar, current }
    }
}

impl Reporter {
    /// Returns the reporter of a rank. Only rank 0 shows the progress, on behalf of all ranks.
    pub fn of_rank(peers: Peers) -> Box<dyn Observer> {
        if peers.is_first() { Box::new(Reporter::default()) } else { Box::new(()) }
    }

    /// Shows the progress, and the time left if it is known.
    pub(crate) fn show(&self, position: u64, length: u64, left: Option<Duration>, message: &str) {
        let end = left.and_then(|left| Instant::now().checked_add(left));
        *self.current.lock() = Work { name: message.to_owned(), end };
        if let Some(bar) = &self.bar {
            bar.set_length(length);
            bar.set_position(position);
            bar.set_message(plain(message));
            bar.enable_steady_tick(TICK);
        }
    }

    /// Prints a line, above the bar if there is one.
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
            // On a terminal, the result follows after an empty line.
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
            bar.set_style(style("{prefix}\n", self.current.clone()));
            bar.set_prefix(wrote_report::so_far(answers, rows, screen));
        }
    }

    fn note(&mut self, text: &str) {
        self.say(&format!("wrote: note: {text}"));
    }
}

fn announced(announcement: &Announcement) -> String {
    let most = if announcement.is_limited { "at most" } else { "about" };
    let written = match announcement.written_bytes_max {
        u64::MAX => "as much as the disk takes".into(),
        most => format!("at most {}", units::bytes(most)),
    };
    format!(
        "Measuring for {most} {}: up to {}, writes {written}, uses up to {} of space in {}",
        clock(announcement.estimated),
        units::counted(announcement.runs.into(), "run"),
        units::bytes(announcement.space_bytes_max),
        announcement.folder.display(),
    )
}

/// Returns the number of the current run, and its row; `finishing` after the last run.
fn measuring(progress: &Progress) -> String {
    if progress.runs_done >= progress.runs {
        return "finishing".into();
    }
    let run = format!("run {} of {}  {}", progress.runs_done + 1, progress.runs, progress.row);
    match progress.speed {
        Some([bytes_per_s, per_s]) => {
            format!("{run}; previous run: {}, {}", units::rate(bytes_per_s), per_second(per_s))
        }
        None => run,
    }
}

/// Returns the style of a bar below the text `above`. The time left counts down between reports.
fn style(above: &str, current: Current) -> ProgressStyle {
    let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        // Writing to a string never fails.
        let _ = write!(out, "{}", current.lock().left());
    };
    template(&format!("{above}{{bar:24}} {{left:>10}}  {{wide_msg}}")).with_key("left", left)
}

/// Returns the style of a bar, drawn with characters that the screen supports.
fn template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars(if terminal::is_utf8() { "█▉▊▋▌▍▎▏ " } else { "#-" })
}

/// Returns a waiting time as text: `45 s`, `2 min 05 s`.
fn clock(time: Duration) -> String {
    // The time is rounded up, so that "0 s" appears only when no time is left.
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
            "Measuring for at most 45 s: up to 42 runs, writes at most 4.00 GB, uses up to 1.10 GB \
             of space in /data/.wrote-x1y2"
        );
        assert!(
            line(u64::MAX).starts_with("Measuring for about 45 s: up to 42 runs, writes as much")
        );
    }

    #[test]
    fn runs_are_counted_from_one() {
        let progress = Progress {
            row: "stream/cached".into(),
            runs_done: 4,
            runs: 42,
            fraction: 0.0,
            left: Duration::ZERO,
            speed: None,
        };
        assert_eq!(measuring(&progress), "run 5 of 42  stream/cached");
        let progress = Progress { speed: Some([1.2e9, 293e3]), ..progress };
        let line = "run 5 of 42  stream/cached; previous run: 1.20 GB/s, 293 k/s";
        assert_eq!(measuring(&progress), line);
    }

    #[test]
    fn a_time_left_is_never_rounded_down_to_nothing() {
        assert_eq!(clock(Duration::from_millis(1)), "1 s");
        assert_eq!(clock(Duration::from_secs(45)), "45 s");
        assert_eq!(clock(Duration::from_secs(125)), "2 min 05 s");
    }
}
