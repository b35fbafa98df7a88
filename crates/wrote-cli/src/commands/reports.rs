//! The subcommands that report on results and folders: `report`, `compare`, `doctor` and `clean`.

use super::shown;
use crate::args::{CleanArgs, CompareArgs, DoctorArgs, ReportArgs};
use crate::output::{self, ResultFile, ResultFiles};
use crate::stdio;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use wrote_bench::scratch::{self, Cleaned};
use wrote_jobs::import;
use wrote_report::{Content, Named, write_html, write_json};
use wrote_result::compare::{Allowed, Comparison, compare_allowing};
use wrote_result::doctor::Examination;
use wrote_result::document::Document;
use wrote_result::{Error, Stop, schema, units};

/// The kind of file that contains a result. Its limit is a hundred times the size of our largest
/// result.
pub(super) const RESULT: stdio::Kind = stdio::Kind { name: "result", bytes_max: 256 << 20 };

pub(super) fn report(arguments: &ReportArgs, stop: &Stop) -> Result<(), Error> {
    if arguments.results.iter().filter(|path| stdio::is_stdin(path)).count() > 1 {
        return Err(Error::Usage("- -: standard input is one result, not two".into()));
    }
    if arguments.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::Usage(
            "the page is for a browser: write it to a file with -o report.html".into(),
        ));
    }
    let path = arguments.output.as_deref();
    let file = ResultFile::of("--output", path, arguments.force)?;
    let read = |path| read(path, stop);
    let results = arguments.results.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    stop.check()?;
    output::deliver(file, |_, out| write_html(&results, out))
}

/// The key that distinguishes kinds of documents.
#[derive(Deserialize)]
struct Schema {
    schema: Option<String>,
}

fn read(path: &Path, stop: &Stop) -> Result<Named, Error> {
    let (name, text) = text(path, shown, stop)?;
    let content = content(&name, &text)?;
    Ok(Named { name, content })
}

/// Returns the file's name for messages, and its text without a byte order mark.
fn text(
    path: &Path,
    called: impl FnOnce(&Path) -> String,
    stop: &Stop,
) -> Result<(String, String), Error> {
    let name = match stdio::is_stdin(path) {
        true => "standard input".to_owned(),
        false => called(path),
    };
    let bytes = stdio::read_file(path, &name, RESULT, stop)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}').to_owned();
    Ok((name, text))
}

fn content(name: &str, text: &str) -> Result<Content, Error> {
    let schema = serde_json::from_str(text).ok().and_then(|document: Schema| document.schema);
    match schema.as_deref() {
        Some(wrote_result::compare::SCHEMA) => {
            Ok(Content::Comparison(whole(name, wrote_result::compare::SCHEMA, text)?))
        }
        Some(wrote_result::doctor::SCHEMA) => Ok(Content::Examination {
            of: whole(name, wrote_result::doctor::SCHEMA, text)?,
            all: true,
        }),
        Some(wrote_result::trace::SCHEMA) => {
            Ok(Content::Trace(whole(name, wrote_result::trace::SCHEMA, text)?))
        }
        _ => Ok(Content::Result(Box::new(import::read(name, text)?))),
    }
}

fn whole<T: DeserializeOwned>(name: &str, schema: &str, text: &str) -> Result<Box<T>, Error> {
    let document = serde_json::from_str(text).map(Box::new);
    document.map_err(|error| Error::Usage(format!("{name}: is not a whole {schema}: {error}")))
}

pub(super) fn compare(arguments: &CompareArgs, stop: &Stop) -> Result<(), Error> {
    if arguments.schema {
        return output::to_stdout(|out| write_json(&schema::<Comparison>(), out));
    }
    let (Some(old), Some(new)) = (&arguments.old, &arguments.new) else {
        return Err(Error::Usage("compare needs two results: OLD and NEW".into()));
    };
    if stdio::is_stdin(old) && stdio::is_stdin(new) {
        return Err(Error::Usage("- -: standard input is one result, not two".into()));
    }
    let files = ResultFiles::of(&arguments.to)?;
    let (before, after) = (read_result(old, stop)?, read_result(new, stop)?);
    let allowed = Allowed::Only(arguments.allow.clone());
    let mut comparison = compare_allowing(&before, &after, &allowed)?;
    comparison.old.name = old.display().to_string();
    comparison.new.name = new.display().to_string();
    let judged = match arguments.fail_if_slower {
        Some(share) => wrote_result::compare::fail_if_slower(&comparison, share),
        None => Ok(()),
    };
    let content = Content::Comparison(Box::new(comparison));
    files.deliver("comparison.json", content, arguments.format).and(judged)
}

fn read_result(path: &Path, stop: &Stop) -> Result<Document, Error> {
    let (name, text) = text(path, |path| path.display().to_string(), stop)?;
    import::read(&name, &text)
}

pub(super) fn doctor(arguments: &DoctorArgs) -> Result<(), Error> {
    if arguments.schema {
        return output::to_stdout(|out| write_json(&schema::<Examination>(), out));
    }
    let files = ResultFiles::of(&arguments.to)?;
    let of = Box::new(wrote_jobs::machine::doctor::examine(&arguments.path)?);
    let content = Content::Examination { of, all: arguments.all };
    files.deliver("doctor.json", content, arguments.format)
}

pub(super) fn clean(arguments: &CleanArgs) -> Result<(), Error> {
    let mut cleaned = scratch::clean(&arguments.path, arguments.dry_run)?;
    let refused = std::mem::take(&mut cleaned.refused);
    output::to_stdout(|out| write(&cleaned, arguments.dry_run, refused.is_empty(), out))?;
    // Each error is on a separate line. The last one is also the error of the command.
    let Some((last, others)) = refused.split_last() else {
        return Ok(());
    };
    others.iter().for_each(|line| crate::terminal::complain(line));
    Err(Error::Failed(last.clone()))
}

/// Reports the folders that were removed, and those kept because their runs are still alive.
fn write(cleaned: &Cleaned, dry_run: bool, is_all: bool, out: &mut dyn Write) -> io::Result<()> {
    let removed = if dry_run { "would remove" } else { "removed" };
    for leftover in &cleaned.removed {
        let size = units::bytes(leftover.size_bytes);
        writeln!(out, "{removed} {} ({size})", shown(&leftover.path))?;
    }
    for leftover in &cleaned.alive {
        writeln!(out, "kept {}: its run is still going", shown(&leftover.path))?;
    }
    for leftover in &cleaned.found {
        let (path, size) = (shown(&leftover.path), units::bytes(leftover.size_bytes));
        let remove = wrote_result::quoted(&["rm", &path]);
        writeln!(out, "kept {path} ({size}): a killed `wrote run` made it; {remove} removes it")?;
    }
    let is_none = cleaned.alive.is_empty() && cleaned.found.is_empty();
    if is_all && cleaned.removed.is_empty() && is_none {
        writeln!(out, "nothing to clean")?;
    }
    Ok(())
}
