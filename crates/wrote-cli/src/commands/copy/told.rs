//! The report on a copy, on one line.

use crate::commands::promised;
use std::path::Path;
use std::time::Duration;
use wrote::engine::Fallback;
use wrote::{Method, Survives, Written, device};
use wrote_result::units::{self, counted};

/// The minimum size for which a rate is reported. With fewer bytes, the rate would mainly reflect
/// work other than copying.
const RATED_BYTES_MIN: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Done {
    pub files: u64,
    pub bytes: u64,
    pub to_stdout: bool,
    /// The errors about sources that were not copied.
    pub failed: Vec<String>,
    /// The methods that copied bytes.
    methods: Vec<Method>,
    /// The checksum of the last file, if the file was verified.
    checksum: Option<u128>,
    fallbacks: Vec<Fallback>,
}

impl Done {
    pub(super) fn add(&mut self, copied: Written) {
        self.files += 1;
        self.bytes += copied.bytes;
        self.checksum = copied.checksum;
        if !self.methods.contains(&copied.method) {
            self.methods.push(copied.method);
        }
        for fallback in copied.effective.fallbacks {
            if !self.fallbacks.contains(&fallback) {
                self.fallbacks.push(fallback);
            }
        }
    }

    /// Returns text such as `copied 4.29 GB in 1.90 s (2.26 GB/s), survives a power loss`.
    pub(super) fn line(&self, elapsed: Duration, survives: Survives) -> String {
        let elapsed_s = elapsed.as_secs_f64();
        let mut line = format!("copied {}", self.what());
        if self.to_stdout {
            line += " to standard output";
        }
        line += &format!(" in {}", units::seconds(elapsed_s));
        if self.bytes >= RATED_BYTES_MIN && self.methods != [Method::Reflink] {
            line += &format!(" ({})", units::rate(self.bytes as f64 / elapsed_s));
        }
        if !self.to_stdout {
            line += &format!(", {}", promised(survives));
        }
        for way in self.ways() {
            line += &format!("; {way}");
        }
        line
    }

    /// Returns text such as `4.29 GB`, or, for several files, `3 files, 4.29 GB`.
    fn what(&self) -> String {
        let bytes = units::bytes(self.bytes);
        if self.files == 1 { bytes } else { format!("{}, {bytes}", counted(self.files, "file")) }
    }

    fn ways(&self) -> Vec<String> {
        let mut ways: Vec<String> = Vec::new();
        for method in &self.methods {
            ways.push(match method {
                Method::Reflink if self.methods.len() == 1 => {
                    "blocks shared with the source, no data moved".into()
                }
                Method::Reflink => "some blocks shared with the source".into(),
                Method::CopyFileRange => "copied on the file server".into(),
                Method::Direct | Method::Cached => continue,
                other => format!("{other:?}"),
            });
        }
        match self.checksum {
            Some(checksum) if self.files == 1 => {
                ways.push(format!("verified, XXH3 {checksum:032x}"))
            }
            Some(_) => ways.push("verified".into()),
            None => {}
        }
        // W6. If blocks are not shared, or not allocated in advance, only the duration changes.
        let told = |step: &&Fallback| !EXPECTED.contains(&step.wanted);
        ways.extend(
            self.fallbacks
                .iter()
                .filter(told)
                .map(|step| format!("{} instead of {} ({})", step.got, step.wanted, step.because)),
        );
        ways
    }
}

/// The fallbacks that are not reported, because the copy is the same.
const EXPECTED: [&str; 3] = ["reflink", "copy_file_range", "allocated space"];

/// Returns what the copies survive: a power loss, if they were flushed as requested and the file
/// system passes flushes on.
pub(super) fn survives(to: &Path, is_durable: bool) -> Survives {
    let level = Survives::of_write(is_durable, false);
    device::examine(to).map_or(level, |target| target.survives(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(1900);

    fn of(method: Method) -> Done {
        Done { files: 1, bytes: 4_294_967_296, methods: vec![method], ..Done::default() }
    }

    #[test]
    fn a_file_is_told_with_its_rate_what_it_survives_and_its_way() {
        let line = of(Method::Direct).line(TIME, Survives::PowerLoss);
        assert_eq!(line, "copied 4.29 GB in 1.90 s (2.26 GB/s), survives a power loss");
    }

    #[test]
    fn short_files_have_no_rate() {
        let short = Done { bytes: 5000, ..of(Method::Cached) };
        let line = short.line(TIME, Survives::PowerLoss);
        assert_eq!(line, "copied 5.00 kB in 1.90 s, survives a power loss");
    }

    #[test]
    fn shared_blocks_have_no_rate() {
        let line = of(Method::Reflink).line(TIME, Survives::ProcessCrash);
        assert!(line.ends_with("blocks shared with the source, no data moved"), "{line}");
        assert!(!line.contains("GB/s") && line.contains("process-crash"), "{line}");
    }

    #[test]
    fn a_checksum_is_shown_in_hex_and_of_many_files_not_at_all() {
        let one = Done { checksum: Some(0xabc), ..of(Method::Direct) };
        let line = one.line(TIME, Survives::PowerLoss);
        assert!(line.ends_with(&format!("; verified, XXH3 {}abc", "0".repeat(29))), "{line}");
        let many = Done { files: 2, methods: vec![Method::Direct, Method::Cached], ..one };
        assert!(many.line(TIME, Survives::PowerLoss).ends_with("survives a power loss; verified"));
    }

    #[test]
    fn a_step_down_is_told_but_for_those_that_were_asked_for() {
        // W6
        let step = |wanted, got| Fallback::new(wanted, got, "why");
        let fallbacks = vec![step("reflink", "copy"), step("O_DIRECT", "page cache")];
        let line = Done { fallbacks, ..of(Method::Cached) }.line(TIME, Survives::PowerLoss);
        assert!(line.ends_with("loss; page cache instead of O_DIRECT (why)"));
        assert!(!line.contains("reflink"), "{line}");
    }
}
