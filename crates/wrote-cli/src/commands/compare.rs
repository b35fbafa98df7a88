//! `wrote compare`: a result held against an older one.

use crate::args::CompareArgs;
use crate::output::{self, ResultFile};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wrote_jobs::import;
use wrote_report::write_comparison;
use wrote_result::compare;
use wrote_result::compare::{Allowed, compare_allowing};
use wrote_result::document::Document;
use wrote_result::{Error, Stop, units};

/// Standard input's name on the command line.
const STDIN: &str = "-";
/// The longest result that is read: a hundred times what the largest of ours has (W8).
const RESULT_BYTES_MAX: u64 = 256 << 20;

pub(super) fn run(arguments: &CompareArgs, stop: &Stop) -> Result<(), Error> {
    if arguments.schema {
        let schema = compare::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let (Some(old), Some(new)) = (&arguments.old, &arguments.new) else {
        return Err(Error::Usage("two results are compared: OLD and NEW".into()));
    };
    if old == Path::new(STDIN) && new == Path::new(STDIN) {
        return Err(Error::Usage("- -: standard input is one result, not two".into()));
    }
    let file = ResultFile::of(arguments.output.as_deref(), arguments.force)?;
    let (before, after) = (read(old, stop)?, read(new, stop)?);
    let allowed = Allowed::Only(arguments.allow.clone());
    let mut comparison = compare_allowing(&before, &after, &allowed)?;
    comparison.old.name = old.display().to_string();
    comparison.new.name = new.display().to_string();
    output::deliver(file, |screen, out| {
        write_comparison(&comparison, arguments.format, screen, out)
    })?;
    match arguments.fail_if_slower {
        Some(share) => compare::fail_if_slower(&comparison, share),
        None => Ok(()),
    }
}

fn read(path: &Path, stop: &Stop) -> Result<Document, Error> {
    let mut bytes = Vec::new();
    let name = if path == Path::new(STDIN) {
        let input = crate::stdio::Input::new(stop);
        let read = input.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes);
        stop.check()?;
        read.map_err(|error| Error::Failed(format!("standard input: {error}")))?;
        "standard input".to_owned()
    } else {
        let name = path.display().to_string();
        let read = File::open(path)
            .and_then(|file| file.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| Error::Usage(format!("{name}: {error}")))?;
        name
    };
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        let most = units::bytes(RESULT_BYTES_MAX);
        return Err(Error::Usage(format!("{name}: is longer than {most}, which no result is")));
    }
    import::read(&name, &String::from_utf8_lossy(&bytes))
}
