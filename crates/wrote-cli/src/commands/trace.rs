//! `wrote trace`: what of a program's writes would survive.

use super::shown;
use crate::args::TraceArgs;
use crate::output::{self, ResultFiles};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use wrote_machine::host::host;
use wrote_report::{Content, write_trace};
use wrote_result::Error;
use wrote_result::document::Program;
use wrote_trace::TraceRequest;

/// The exit codes of shells where there is no such program, and where it can't be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

pub(super) fn run(arguments: &TraceArgs) -> Result<(), Error> {
    if arguments.schema {
        let schema = wrote_result::trace::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let files = ResultFiles::of(&arguments.to)?.beside_output();
    let under = arguments.under.iter().map(|folder| whole(folder)).collect::<Result<_, _>>()?;
    let request = TraceRequest {
        command: arguments.command.clone(),
        ack: arguments.ack,
        under,
        wrote: Program {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: crate::commit(),
            debug_build: cfg!(debug_assertions),
        },
        host: host(),
    };
    let program = arguments.command.first().map(Path::new).unwrap_or(Path::new(""));
    let trace = wrote_trace::trace(request).map_err(|error| not_run(program, &error))?;
    let content = || Content::Trace(Box::new(trace.clone()));
    files.deliver("trace.json", content, |screen, out| {
        write_trace(&trace, arguments.format, screen, out)
    })?;
    let is_found = arguments.fail_on.is_some_and(|least| trace.worst() >= Some(least));
    match trace.end.exit_code() {
        0 if is_found => Err(Error::Ended(1)),
        0 => Ok(()),
        code => Err(Error::Ended(code)),
    }
}

fn whole(folder: &Path) -> Result<PathBuf, Error> {
    let whole = folder.canonicalize();
    whole.map_err(|error| Error::Usage(format!("--under {}: {error}", shown(folder))))
}

fn not_run(program: &Path, error: &io::Error) -> Error {
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    crate::stderr::complain(&format!("{}: {error}", shown(program)));
    Error::Ended(code)
}
