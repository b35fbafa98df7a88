//! Collects the warnings that servers in this process log.

use std::sync::{Mutex, Once};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collected;

impl log::Log for Collected {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            WARNINGS.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Starts to collect warnings.
pub fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Collected).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
}

/// Returns the warnings that contain `part`.
pub fn about(part: &str) -> Vec<String> {
    WARNINGS.lock().unwrap().iter().filter(|line| line.contains(part)).cloned().collect()
}
