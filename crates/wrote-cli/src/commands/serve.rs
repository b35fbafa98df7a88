//! `wrote serve`: a server in the foreground, and its signals.

mod line;

use super::{of_library, say};
use crate::args::ServeArgs;
use line::LivingLine;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process;
use std::thread;
use wrote_result::{Error, units};
use wrote_serve::{Config, Handle, Server};

/// The offset of exit codes that shells give to signals.
const EXIT_SIGNAL_BASE: i32 = 128;

pub(super) fn run(arguments: &ServeArgs) -> Result<(), Error> {
    line::say_warnings();
    let mut config = Config::of_log(&arguments.folder, arguments.listen.clone());
    config.metrics = arguments.metrics.clone();
    let server = Server::start(config).map_err(failed)?;
    for listen in server.listeners() {
        say(&format!("wrote: {}: {listen}", listen.promise()));
    }
    if let Some(address) = server.metrics_address() {
        say(&format!("wrote: shows /metrics, /livez and /readyz: http://{address}"));
    }
    stop_by_signals(server.handle())?;
    let (line, handle) = (LivingLine::start(server.handle()), server.handle());
    let served = server.run();
    drop(line);
    say(&taken(&handle));
    served.map_err(failed)
}

/// The last line: how much was taken, answered and refused.
fn taken(handle: &Handle) -> String {
    let figures = handle.figures();
    let mut line = format!("wrote: took {}", units::counted(figures.messages, "message"));
    if figures.acks > 0 {
        line += &format!(", answered {}", figures.acks);
    }
    for (reason, count) in handle.refused() {
        line += &format!(", refused {count} ({reason})");
    }
    line
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
