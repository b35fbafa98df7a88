//! What is said while languages are compared: what is about to be done and how it is made short, a bar on a
//! terminal, and notes.

use super::{Reporter, counted};
use std::time::Duration;
use wrote_bench::{Announcement, Observer, Progress, units};

/// Who is to wait longer than this is told how to wait less.
const LONG: Duration = Duration::from_secs(5 * 60);

/// Tells a person on standard error what a comparison of languages does.
///
/// The announcement and the notes are always said; the bar is shown only on a terminal that can draw one.
#[derive(Debug, Default)]
pub struct LangsReporter {
    reporter: Reporter,
    was_long: bool,
}

impl LangsReporter {
    /// A reporter that draws on standard error if that is a terminal and `TERM` is not `dumb`.
    pub fn new() -> LangsReporter {
        LangsReporter::default()
    }
}

impl Observer for LangsReporter {
    fn announce(&mut self, announcement: &Announcement) {
        self.reporter.bar.say(&announced(announcement));
        // Once, however many folders are announced.
        if announcement.estimated > LONG && !self.was_long {
            self.was_long = true;
            self.reporter.bar.say(SHORTER);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.reporter.progress(progress);
    }

    fn note(&mut self, text: &str) {
        self.reporter.note(text);
    }
}

const SHORTER: &str = "most of it goes to the languages that are slow byte by byte (Python, Ruby, Node.js); \
    --size 25MB makes it short, --only leaves languages out";

/// What a run is about to do, in one line. How long that takes nobody knows before each language has run
/// once.
fn announced(announcement: &Announcement) -> String {
    format!(
        "writes at most {} into {}, up to {} at a time, {} of programs; by a rule of thumb {}, after the \
         first round it is known",
        units::bytes(announcement.written_bytes_max),
        announcement.folder.display(),
        units::bytes(announcement.space_bytes_max),
        counted(announcement.runs),
        super::clock(announcement.estimated),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_says_what_where_and_that_the_time_is_a_guess() {
        let line = announced(&Announcement {
            folder: "/data/.wrote-x1y2".into(),
            space_bytes_max: 513_000_000,
            written_bytes_max: 44_000_000_000,
            runs: 408,
            estimated: Duration::from_secs(40 * 60),
        });
        assert_eq!(
            line,
            "writes at most 44.0 GB into /data/.wrote-x1y2, up to 513 MB at a time, 408 runs of programs; \
             by a rule of thumb 40 min 00 s, after the first round it is known"
        );
    }
}
