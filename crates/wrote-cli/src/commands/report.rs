//! `wrote report`: results as one page for a browser.

use super::shown;
use crate::args::ReportArgs;
use crate::input;
use crate::output::{self, ResultFile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::IsTerminal;
use std::path::Path;
use wrote_jobs::import;
use wrote_report::{Content, Named, write_html};
use wrote_result::{Error, Stop, compare, doctor, langs, trace};

/// A hundred times the size of our largest result.
pub(super) const RESULT: input::Kind = input::Kind { name: "result", bytes_max: 256 << 20 };

pub(super) fn run(arguments: &ReportArgs, stop: &Stop) -> Result<(), Error> {
    if arguments.results.iter().filter(|path| input::is_stdin(path)).count() > 1 {
        return Err(Error::Usage("- -: standard input is one result, not two".into()));
    }
    if arguments.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::Usage(
            "a page is for a browser: -o report.html writes it to a file".into(),
        ));
    }
    let path = arguments.output.as_deref();
    let file = ResultFile::of("--output", path, arguments.force)?;
    let read = |path| read(path, stop);
    let results = arguments.results.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    stop.check()?;
    output::deliver(file, |_, out| write_html(&results, out))
}

/// The key that distinguishes documents.
#[derive(Deserialize)]
struct Schema {
    schema: Option<String>,
}

fn read(path: &Path, stop: &Stop) -> Result<Named, Error> {
    let name = match input::is_stdin(path) {
        true => "standard input".to_owned(),
        false => shown(path),
    };
    let bytes = input::read(path, &name, RESULT, stop)?;
    let text = String::from_utf8_lossy(&bytes);
    let content = content(&name, text.trim_start_matches('\u{feff}'))?;
    Ok(Named { name, content })
}

fn content(name: &str, text: &str) -> Result<Content, Error> {
    let schema = serde_json::from_str(text).ok().and_then(|document: Schema| document.schema);
    match schema.as_deref() {
        Some(compare::SCHEMA) => Ok(Content::Comparison(whole(name, compare::SCHEMA, text)?)),
        Some(langs::SCHEMA) => Ok(Content::Langs(whole(name, langs::SCHEMA, text)?)),
        Some(doctor::SCHEMA) => {
            Ok(Content::Examination { of: whole(name, doctor::SCHEMA, text)?, all: true })
        }
        Some(trace::SCHEMA) => Ok(Content::Trace(whole(name, trace::SCHEMA, text)?)),
        _ => Ok(Content::Result(Box::new(import::read(name, text)?))),
    }
}

fn whole<T: DeserializeOwned>(name: &str, schema: &str, text: &str) -> Result<Box<T>, Error> {
    let document = serde_json::from_str(text).map(Box::new);
    document.map_err(|error| Error::Usage(format!("{name}: is not a whole {schema}: {error}")))
}
