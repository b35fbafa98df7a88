//! `wrote serve`: a server in the foreground, its signals and its living line.

use super::{of_library, say};
use crate::args::ServeArgs;
use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{IsTerminal, stderr};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use wrote_result::{Error, units};
use wrote_serve::{Config, Handle, Server};

/// The offset of exit codes that shells give to signals.
const EXIT_SIGNAL_BASE: i32 = 128;
/// How often the living line is drawn anew.
const TICK: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: &ServeArgs) -> Result<(), Error> {
    let config = Config::of_log(&arguments.folder, arguments.listen.clone());
    let server = Server::start(config).map_err(failed)?;
    for listen in server.listeners() {
        say(&format!("wrote: {}: {listen}", listen.promise()));
    }
    stop_by_signals(server.handle())?;
    let is_over = Arc::new(AtomicBool::new(false));
    let line = living_line(server.handle(), is_over.clone());
    let served = server.run();
    is_over.store(true, Ordering::Relaxed);
    if let Some(line) = line {
        line.thread().unpark();
        // It ends within a draw.
        let _ = line.join();
    }
    served.map_err(failed)
}

fn failed(error: wrote_serve::Error) -> Error {
    match error {
        wrote_serve::Error::Config(text) => Error::Usage(text),
        wrote_serve::Error::Log(error) => of_library(&error),
        other => Error::Failed(other.to_string()),
    }
}

/// Makes SIGTERM and SIGINT drain the server. A second one ends the program at once.
fn stop_by_signals(handle: Handle) -> Result<(), Error> {
    let cannot = |error| Error::Failed(format!("cannot listen for signals: {error}"));
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(cannot)?;
    let listen = move || {
        let mut is_first = true;
        for signal in signals.forever() {
            if !std::mem::take(&mut is_first) {
                process::exit(EXIT_SIGNAL_BASE + signal);
            }
            handle.stop();
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).map(drop).map_err(cannot)
}

/// Draws the server's figures on a terminal each second, until the server is over.
fn living_line(handle: Handle, is_over: Arc<AtomicBool>) -> Option<thread::JoinHandle<()>> {
    if !stderr().is_terminal() || terminal::is_dumb() {
        return None;
    }
    let draw = move || {
        let style = ProgressStyle::with_template("{spinner} {msg}");
        let bar = ProgressBar::new_spinner().with_style(style.expect("a valid template"));
        let mut before = handle.figures().messages;
        while !is_over.load(Ordering::Relaxed) {
            let figures = handle.figures();
            let rate = figures.messages.saturating_sub(before);
            before = figures.messages;
            let durable: Vec<String> = handle
                .logs()
                .into_iter()
                .map(|(name, _, durable)| format!("{name} durable up to {durable}"))
                .collect();
            let connections = units::counted(figures.connections, "connection");
            bar.set_message(format!("{rate} messages/s, {connections}, {}", durable.join(", ")));
            bar.tick();
            thread::park_timeout(TICK);
        }
        bar.finish_and_clear();
    };
    thread::Builder::new().name("line".into()).spawn(draw).ok()
}
