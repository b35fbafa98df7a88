//! `wrote compare`: compares two results.

use super::report::RESULT;
use crate::args::CompareArgs;
use crate::input;
use crate::output::{self, ResultFiles};
use std::path::Path;
use wrote_jobs::import;
use wrote_report::Content;
use wrote_result::compare;
use wrote_result::compare::{Allowed, compare_allowing};
use wrote_result::document::Document;
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &CompareArgs, stop: &Stop) -> Result<(), Error> {
    if arguments.schema {
        let schema = compare::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let (Some(old), Some(new)) = (&arguments.old, &arguments.new) else {
        return Err(Error::Usage("two results are compared: OLD and NEW".into()));
    };
    if input::is_stdin(old) && input::is_stdin(new) {
        return Err(Error::Usage("- -: standard input is one result, not two".into()));
    }
    let files = ResultFiles::of(&arguments.to)?;
    let (before, after) = (read(old, stop)?, read(new, stop)?);
    let allowed = Allowed::Only(arguments.allow.clone());
    let mut comparison = compare_allowing(&before, &after, &allowed)?;
    comparison.old.name = old.display().to_string();
    comparison.new.name = new.display().to_string();
    let judged = match arguments.fail_if_slower {
        Some(share) => compare::fail_if_slower(&comparison, share),
        None => Ok(()),
    };
    let content = Content::Comparison(Box::new(comparison));
    files.deliver("comparison.json", content, arguments.format).and(judged)
}

fn read(path: &Path, stop: &Stop) -> Result<Document, Error> {
    let name = match input::is_stdin(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let bytes = input::read(path, &name, RESULT, stop)?;
    import::read(&name, &String::from_utf8_lossy(&bytes))
}
