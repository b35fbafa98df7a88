//! `wrote trace`: reports which of a program's writes would survive.

mod crash;

use super::{outcome, shown};
use crate::args::{TraceArgs, TraceCrashArgs, TraceVerb};
use crate::commands::Signals;
use crate::output::{self, ResultFile, ResultFiles};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wrote_jobs::machine::host::host;
use wrote_report::{CHECK_FAILED, Content, write_json, write_junit, write_sarif};
use wrote_result::document::{Finding, Program, Severity};
use wrote_result::trace::{End, Trace, Verdict};
use wrote_result::{Error, Stop, schema};
use wrote_trace::{Front, RecordRequest, Refused, TraceRequest, Wanted};

/// Exit codes with the same meanings as in shells (no such program; the program cannot be run), and
/// one for a tracer that failed before the program was started.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
const NOT_TRACED: u8 = 125;

pub(super) fn run(arguments: &TraceArgs, stop: &Stop) -> Result<(), Error> {
    if let Some(TraceVerb::Crash(arguments)) = &arguments.verb {
        return crash::run(arguments, stop);
    }
    if arguments.schema {
        return output::to_stdout(|out| write_json(&schema::<Trace>(), out));
    }
    if !arguments.runs() {
        return judged(arguments, None, stop);
    }
    let code = wrote_trace::attended(stop, |front| {
        let done = judged(arguments, Some(front), stop);
        let (code, complaint) = outcome(done, &Signals::default());
        complaint.iter().for_each(|complaint| crate::terminal::complain(complaint));
        code
    });
    match code.map_err(|error| Error::Failed(format!("cannot start a process: {error}")))? {
        0 => Ok(()),
        code => Err(Error::Ended(code)),
    }
}

/// Traces a program, and reports the verdict. `front` is the process that the user started, if this
/// is not the tracer itself.
fn judged(arguments: &TraceArgs, front: Option<&Front>, stop: &Stop) -> Result<(), Error> {
    let files = ResultFiles::of(&arguments.to)?.beside_output();
    let mut under: Vec<_> =
        arguments.under.iter().map(|folder| whole(folder)).collect::<Result<_, _>>()?;
    if arguments.check.is_some() && under.is_empty() {
        // The record contains only this folder, so nothing else is checked.
        under.push(whole(Path::new("."))?);
    }
    let temporary = match (&arguments.check, &arguments.record) {
        (Some(_), None) => {
            Some(crash::temporary().map_err(|error| Error::Failed(error.to_string()))?)
        }
        _ => None,
    };
    let kept = temporary.as_ref().map(|folder| folder.path().join("record"));
    let path = arguments.record.clone().or(kept);
    let record = path.as_ref().map(|path| record(arguments, path, &under)).transpose()?;
    let of = |option, path: &Option<PathBuf>| {
        ResultFile::of(option, path.as_deref(), arguments.to.force)
    };
    let (job, junit) = (of("--job", &arguments.job)?, of("--junit", &arguments.junit)?);
    let sarif = of("--sarif", &arguments.sarif)?;
    let wanted = Wanted {
        ack: arguments.ack.clone(),
        io_uring: arguments.io_uring,
        data: record.is_some(),
        daemons: arguments.daemons,
        // The check is meant for a disk, whatever the file system on which the test runs.
        on_disk: arguments.on_disk || arguments.check.is_some(),
    };
    let request = TraceRequest {
        record,
        command: arguments.command.clone(),
        process: arguments.process,
        wanted,
        under,
        wrote: Program::this(crate::commit()),
        host: host(),
    };
    let program = arguments.command.first().map(Path::new).unwrap_or(Path::new(""));
    let say = &|line: &str| crate::terminal::say(&format!("wrote: {line}"));
    let traced = wrote_trace::trace(request, front, stop.flag(), say);
    let traced = traced.map_err(|refused| match refused {
        Refused::Program(error) => match arguments.process {
            Some(process) => not_joined(process, &error),
            None => not_run(program, &error),
        },
        Refused::Trace(why) => {
            let what = match arguments.process {
                Some(process) => format!("--pid {process}"),
                None => format!("{} was not run", shown(program)),
            };
            crate::terminal::complain(&format!("{what}: {why}"));
            Error::Ended(NOT_TRACED)
        }
        Refused::Record(problem) => Error::Failed(problem),
    })?;
    let mut trace = traced.trace;
    // Warnings, too, may be missing if something was not seen or is in memory.
    let is_judged = trace.files.is_empty()
        || trace.files.iter().any(|file| file.verdict == Verdict::Survives)
        || !trace.findings.is_empty();
    let unjudged = trace.unjudged.join("; ");
    let is_judged = is_judged && unjudged.is_empty();
    let found = trace.worst();
    let worst = found.max((!is_judged).then_some(Severity::Warning));
    let end = trace.end;
    // Without a complete record, the check cannot decide.
    let recorded = traced.record.map_err(|problem| match arguments.check {
        Some(_) => Error::Coded(crash::UNDECIDED, problem),
        None => Error::Failed(problem),
    });
    let mut tested = Ok(());
    if let (Some(check), Some(path), 0, Ok(())) =
        (&arguments.check, path, end.exit_code(), &recorded)
    {
        let request = TraceCrashArgs::of(path, check.clone(), arguments.within);
        let test = crash::test(&request, stop);
        tested = test.and_then(|test| {
            trace.crash = Some(test.clone());
            crash::verdict(&test, &unjudged)
        });
        if trace.crash.as_ref().is_some_and(|test| test.failed.is_some()) {
            // The command that reproduces a failed state needs the record.
            temporary.map(TempDir::keep);
        }
    }
    let untested = match (&tested, &recorded) {
        (Err(problem), _) | (_, Err(problem)) => problem.to_string(),
        _ => "the program failed, so the check was not run".into(),
    };
    if matches!(tested, Err(Error::Usage(_))) {
        trace.findings.insert(0, Finding::new(CHECK_FAILED, Severity::Critical, untested.clone()));
    }
    let check = arguments.check.as_deref().unwrap_or_default();
    junit.map_or(Ok(()), |file| file.write(|out| write_junit(&trace, check, &untested, out)))?;
    sarif.map_or(Ok(()), |file| file.write(|out| write_sarif(&trace, out)))?;
    files.deliver("trace.json", Content::Trace(Box::new(trace)), arguments.format)?;
    match (job, traced.jobs) {
        (Some(file), Some(jobs)) => file.write(|out| out.write_all(jobs.as_bytes()))?,
        (Some(_), None) => return Err(Error::Failed("--job: the program wrote no file".into())),
        (None, _) => {}
    }
    let is_found = arguments.fail_on.is_some_and(|least| worst >= Some(least));
    // A process from which the tracer was detached has no exit code.
    let is_left = arguments.process.is_some() && end == End::default();
    match if is_left { 0 } else { end.exit_code() } {
        0 => {
            recorded.and(tested)?;
            if !is_found {
                return Ok(());
            }
            // A finding is a reason of its own, and the report's last line has it.
            if found < arguments.fail_on && !unjudged.is_empty() {
                let is_output = unjudged.contains(" (redirected to ");
                let hint = if is_output { "; use a pipe if it is only a log" } else { "" };
                crate::terminal::complain(&format!(
                    "--fail-on: cannot be judged: {unjudged}{hint}"
                ));
            }
            Err(Error::Ended(1))
        }
        code => {
            if let Err(error) = recorded {
                crate::terminal::complain(&error.to_string());
            }
            Err(Error::Ended(code))
        }
    }
}

/// Returns the request to record one folder at this path.
fn record(arguments: &TraceArgs, path: &Path, under: &[PathBuf]) -> Result<RecordRequest, Error> {
    let to = &arguments.to;
    ResultFile::new("--record", path, to.force)?;
    let folder = match under {
        [] => std::env::current_dir().map_err(|error| Error::Failed(error.to_string()))?,
        [folder] => folder.clone(),
        _ => return Err(Error::Usage("--record keeps one folder: give --under once".into())),
    };
    let (path, replaces) = (path.to_owned(), to.force);
    Ok(RecordRequest { path, replaces, folder, max_bytes: arguments.record_max })
}

fn whole(folder: &Path) -> Result<PathBuf, Error> {
    let whole = folder.canonicalize();
    whole.map_err(|error| Error::Usage(format!("--under {}: {error}", shown(folder))))
}

fn not_joined(process: i32, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::Usage(format!("--pid {process}: no such process")),
        _ => Error::Failed(format!("--pid {process}: {error}")),
    }
}

fn not_run(program: &Path, error: &io::Error) -> Error {
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    let is_option = shown(program).starts_with('-');
    let hint = if is_option { "; wrote trace has no such option" } else { "" };
    crate::terminal::complain(&format!("{}: {error}{hint}", shown(program)));
    Error::Ended(code)
}
