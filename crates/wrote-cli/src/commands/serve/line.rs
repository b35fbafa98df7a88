//! Shows a running server on standard error: a live line on a terminal.

use crate::terminal::{self, BAR};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wrote_result::units;
use wrote_serve::Handle;

/// How often the line is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// The server's figures, drawn each second until it is dropped.
pub(super) struct LivingLine {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LivingLine {
    pub(super) fn start(handle: Handle) -> LivingLine {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let draw = move || draw(&handle, &flag);
        // The server also works without the line.
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
            // A panic was reported by its hook.
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
            states.push(format!("{name} takes no messages: {trouble}"));
        }
        bar.set_message(format!("{rate} messages/s, {}", states.join(", ")));
        bar.tick();
        thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
