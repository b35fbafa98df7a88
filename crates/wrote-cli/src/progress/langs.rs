//! Progress of a comparison of languages: the announcement and how to make the run short, a
//! bar on a terminal, and notes.

use std::time::Duration;
use wrote_bench::Announcement;
use wrote_result::units;

/// For a longer wait a hint explains how to shorten it.
const LONG: Duration = Duration::from_secs(5 * 60);

/// How to make a long run short.
pub(super) fn hint(announcement: &Announcement) -> Option<&'static str> {
    (announcement.estimated > LONG).then_some(
        "most of it goes to the languages that are slow byte by byte (Python, Ruby, Node.js); \
         --size 25MB makes it short, --only leaves languages out",
    )
}

/// The announcement of a run, in one line. The time is unknown before each language
/// has run once.
pub(super) fn announced(announcement: &Announcement, folders: usize) -> String {
    let others = match folders {
        0 | 1 => String::new(),
        2 => " and its like in the other path".into(),
        more => format!(" and its like in the {} other paths", more - 1),
    };
    format!(
        "writes at most {} into {}{others}, up to {} at a time, {}; roughly {}; refined after \
         round 1",
        units::bytes(announcement.written_bytes_max),
        announcement.folder.display(),
        units::bytes(announcement.space_bytes_max),
        units::counted(announcement.runs.into(), "run"),
        super::clock(announcement.estimated),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_says_what_where_and_that_the_time_is_a_guess() {
        let announcement = Announcement {
            folder: "/data/.wrote-x1y2".into(),
            space_bytes_max: 513_000_000,
            written_bytes_max: 44_000_000_000,
            runs: 408,
            estimated: Duration::from_secs(40 * 60),
            estimated_slowed: Duration::ZERO,
        };
        assert_eq!(
            announced(&announcement, 1),
            "writes at most 44.0 GB into /data/.wrote-x1y2, up to 513 MB at a time, 408 runs; \
             roughly 40 min 00 s; refined after round 1"
        );
        let several = announced(&announcement, 3);
        assert!(several.contains("x1y2 and its like in the 2 other paths, up to"), "{several}");
    }
}
