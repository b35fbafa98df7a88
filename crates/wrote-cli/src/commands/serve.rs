//! `wrote serve`: runs a server in the foreground, and handles its signals and its service manager.

mod line;

use super::EXIT_SIGNAL_BASE;
use crate::args::ServeArgs;
use crate::output;
use crate::stdio::of_library;
use crate::terminal::{complain, is_verbose, say, say_logged};
use line::LivingLine;
use log::LevelFilter;
use sd_notify::{NotifyState, notify};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{process, thread};
use wrote_jobs::machine::usage;
use wrote_result::{Error, units};
use wrote_serve::{Config, Handle, Server};

/// How long the service manager waits for the next message from a draining server.
const EXTENSION: Duration = Duration::from_secs(10);
/// The interval between such messages.
const EXTENSION_PAUSE: Duration = Duration::from_secs(2);
/// The time limit for closing the logs after the grace period. If a disk hangs for longer, the
/// service manager kills the program.
const CLOSING: Duration = Duration::from_secs(60);

pub(super) fn run(arguments: &ServeArgs) -> Result<(), Error> {
    say_logged(LevelFilter::Warn);
    let config = configured(arguments).map_err(failed)?;
    set_level(&config);
    if arguments.check {
        return check(arguments, &config);
    }
    let (shape, grace) = (shape(&config), config.grace);
    let stores = config.logs.iter().filter_map(|log| Some((log.name.clone(), log.store.clone()?)));
    let stores: Vec<_> = stores.collect();
    if let Err(error) = usage::raise_open_files() {
        log::warn!("the limit of open files stays as it is: {error}");
    }
    let server = Server::start_activated(config).map_err(failed)?;
    for listen in server.listeners() {
        say(&format!("wrote: {}: {listen}", listen.promise()));
    }
    if let Some(address) = server.metrics_address() {
        say(&format!("wrote: serving /metrics, /livez and /readyz: http://{address}"));
    }
    for (name, url) in stores {
        say(&format!("wrote: shipping sealed segments of {name} to {url}"));
    }
    obey_signals(arguments.clone(), server.handle(), grace)?;
    tell_ready(&format!("serves {shape}"));
    let (line, handle) = (LivingLine::start(server.handle()), server.handle());
    let served = server.run();
    drop(line);
    say(&taken(&handle));
    served.map_err(failed)
}

/// Sets the level of logging to the configured one, but with `--verbose` at least to `Info`.
fn set_level(config: &Config) {
    let least = if is_verbose() { LevelFilter::Info } else { LevelFilter::Off };
    log::set_max_level(config.log_level.max(least));
}

/// Returns the configuration from the arguments, or from the file that they name.
fn configured(arguments: &ServeArgs) -> Result<Config, wrote_serve::Error> {
    if let Some(path) = &arguments.config {
        return Config::from_file(path);
    }
    let listeners = arguments.listen.clone();
    let mut config = match (&arguments.file, &arguments.folder) {
        (Some(file), _) => Config::of_file(file, listeners),
        (None, folder) => Config::of_log(folder.as_deref().unwrap_or(Path::new("")), listeners),
    };
    arguments.settings.apply(&mut config).map_err(wrote_serve::Error::Config)?;
    Ok(config)
}

fn check(arguments: &ServeArgs, config: &Config) -> Result<(), Error> {
    for warning in config.check().map_err(failed)? {
        complain(&warning);
    }
    let place = arguments.config.as_ref().or(arguments.file.as_ref());
    let place = place.or(arguments.folder.as_ref());
    let place = place.map_or(String::new(), |path| super::shown(path));
    output::to_stdout(|out| writeln!(out, "{place}: {}: valid", shape(config)))
}

/// Returns the numbers of logs and listeners as text.
fn shape(config: &Config) -> String {
    let listeners = config.logs.iter().map(|log| log.listeners.len() as u64).sum();
    let logs = units::counted(config.logs.len() as u64, "log");
    format!("{logs}, {}", units::counted(listeners, "listener"))
}

/// Returns the last line that the server prints, about how much was received, acknowledged and
/// refused.
fn taken(handle: &Handle) -> String {
    let figures = handle.figures();
    let mut line = format!("wrote: received {}", units::counted(figures.messages, "message"));
    if figures.acks > 0 {
        line += &format!(", acknowledged {}", figures.acks);
    }
    for (reason, count) in handle.refused() {
        line += &format!(", refused {count} ({reason})");
    }
    line
}

fn failed(error: wrote_serve::Error) -> Error {
    match error {
        wrote_serve::Error::Config(text) => {
            // The last line becomes the error of the program.
            let (lines, last) = text.rsplit_once('\n').unwrap_or(("", &text));
            lines.lines().for_each(complain);
            Error::Usage(last.to_owned())
        }
        wrote_serve::Error::Log(error) => of_library(&error),
        other => Error::Failed(other.to_string()),
    }
}

/// Makes SIGTERM and SIGINT drain the server, and makes SIGHUP reload its files. A second SIGTERM
/// or SIGINT ends the program immediately.
fn obey_signals(arguments: ServeArgs, handle: Handle, grace: Duration) -> Result<(), Error> {
    let cannot = |error| Error::Failed(format!("cannot listen for signals: {error}"));
    let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.map_err(cannot)?;
    let listen = move || {
        let mut is_first = true;
        for signal in signals.forever() {
            if signal == SIGHUP {
                reload(&arguments, &handle);
                continue;
            }
            if !std::mem::take(&mut is_first) {
                process::exit(EXIT_SIGNAL_BASE + signal);
            }
            tell_stopping(grace);
            handle.stop();
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).map(drop).map_err(cannot)
}

/// Reloads the configuration and its files. If there is an error in them, reports it on one line
/// and changes nothing.
fn reload(arguments: &ServeArgs, handle: &Handle) {
    tell_reloading();
    let config = configured(arguments).inspect_err(|_| handle.reload_failed());
    let reloaded = config.and_then(|config| {
        let warnings = handle.reload(&config)?;
        set_level(&config);
        Ok(warnings)
    });
    let line = match reloaded {
        Ok(warnings) => {
            warnings.iter().for_each(|warning| log::warn!("{warning}"));
            "configuration reloaded".to_owned()
        }
        Err(error) => {
            let error = error.to_string().replace('\n', "; ");
            format!("reload failed, the previous configuration stays: {error}")
        }
    };
    log::warn!("{line}");
    tell_ready(&line);
}

/// Tells the service manager that messages are accepted.
fn tell_ready(status: &str) {
    tell_manager(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells the service manager that files are being reloaded. [`tell_ready`] ends this state.
fn tell_reloading() {
    // Since version 253, systemd requires the time as well.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell_manager(&[NotifyState::Reloading, now]),
        Err(_) => tell_manager(&[NotifyState::Reloading]),
    }
}

/// Tells the service manager that the server is draining, and keeps requesting more time until
/// draining and closing must be complete.
fn tell_stopping(grace: Duration) {
    let extension = u32::try_from(EXTENSION.as_micros()).unwrap_or(u32::MAX);
    let extension = move || NotifyState::ExtendTimeoutUsec(extension);
    tell_manager(&[NotifyState::Stopping, NotifyState::Status("drains"), extension()]);
    let began = Instant::now();
    let extend = move || {
        while began.elapsed() < grace + CLOSING {
            thread::sleep(EXTENSION_PAUSE);
            tell_manager(&[extension()]);
        }
    };
    // If the thread cannot be started, the service manager waits for its configured time. The
    // thread runs until the program exits.
    let _ = thread::Builder::new().name("manager".into()).spawn(extend);
}

/// Sends a message to the service manager, as sd_notify(3) describes. Does nothing without a
/// service manager.
fn tell_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        log::warn!("NOTIFY_SOCKET: {error}");
    }
}
