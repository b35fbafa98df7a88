//! A live line about a running server, shown on standard error if that is a terminal.

use crate::terminal::{self, BAR};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wrote_result::units;
use wrote_serve::Handle;

/// The interval between updates of the line.
const TICK: Duration = Duration::from_secs(1);

/// A line with the server's figures, which is redrawn each second until this value is dropped.
pub(super) struct LivingLine {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LivingLine {
    pub(super) fn start(handle: Handle) -> LivingLine {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let draw = move || draw(&handle, &flag);
        // The server works without the line, too.
        let thread =
            terminal::draws().then(|| thread::Builder::new().name("line".into()).spawn(draw).ok());
        LivingLine { is_over, thread: thread.flatten() }
    }
}

impl Drop for LivingLine {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The panic hook has already reported a panic.
            let _ = thread.join();
        }
    }
}

fn draw(handle: &Handle, is_over: &AtomicBool) {
    let bar = BAR.get_or_init(|| {
        let style = ProgressStyle::with_template("{spinner} {msg}");
        ProgressBar::new_spinner().with_style(style.expect("a valid template"))
    });
    let mut before = handle.figures().messages;
    while !is_over.load(Ordering::Relaxed) {
        let figures = handle.figures();
        let rate = figures.messages.saturating_sub(before);
        before = figures.messages;
        let mut states = vec![units::counted(figures.connections, "connection")];
        for (name, _, durable) in handle.logs() {
            states.push(format!("{name}: {} durable", units::counted(durable, "record")));
        }
        for (name, trouble) in handle.troubles() {
            states.push(format!("{name} accepts no messages: {trouble}"));
        }
        bar.set_message(format!("{rate} messages/s, {}", states.join(", ")));
        bar.tick();
        thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
