//! `wrote langs`: what each language's own I/O costs.

mod cache;

use crate::args::LangsArgs;
use crate::output::{self, ResultFile};
use crate::progress::LangsReporter;
use crate::terminal;
use cache::Cache;
use std::path::PathBuf;
use wrote_langs as langs;
use wrote_langs::catalogue;
use wrote_report::{write_langs, write_languages};
use wrote_result::langs::{Document, Language, schema};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &LangsArgs, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    if arguments.schema {
        let schema = schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    if arguments.list {
        let languages = languages(arguments, stop)?;
        return output::to_stdout(|out| {
            write_languages(&languages, terminal::stdout_screen(), out)
        });
    }
    check_paths(&arguments.paths)?;
    // Before anything is measured: an hour's work must not end in "exists already".
    let file = ResultFile::of(arguments.to.output.as_deref(), arguments.to.force)?;
    let document = measure(arguments, stop, command)?;
    stop.check()?;
    output::deliver(file, |screen, out| write_langs(&document, arguments.format, screen, out))
}

/// The bar is gone from the screen when this returns, and so is a cache that was made for this run.
fn measure(arguments: &LangsArgs, stop: &Stop, command: Vec<String>) -> Result<Document, Error> {
    let cache = Cache::of_user()?;
    let request = arguments.request(cache.path().to_owned(), command);
    let mut reporter = LangsReporter::new(arguments.paths.len());
    langs::langs(&request, stop, &mut reporter)
}

/// Every language there is, with what was found of it.
fn languages(arguments: &LangsArgs, stop: &Stop) -> Result<Vec<Language>, Error> {
    let wrote = std::env::current_exe().ok();
    catalogue(&arguments.add)?.find(wrote.as_deref(), stop)
}

/// Refuses a folder that is named twice, also by two names: its two columns would be the same
/// disk's, in the same run, and look like two.
fn check_paths(paths: &[PathBuf]) -> Result<(), Error> {
    // What is not there is refused, with the kernel's reason, where it is looked at.
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let places: Vec<PathBuf> = paths.iter().map(real).collect();
    for (number, place) in places.iter().enumerate() {
        if let Some(earlier) = places[..number].iter().position(|other| other == place) {
            let (one, other) = (paths[earlier].display(), paths[number].display());
            return Err(Error::Usage(format!(
                "{one} and {other} are the same folder: name it once"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_named_twice_is_refused_by_whatever_names() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let refused = |paths: &[&PathBuf]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
            check_paths(&paths).err().map(|error| error.to_string())
        };
        assert_eq!(refused(&[&real, &folder.path().to_owned()]), None);
        let told = refused(&[&real, &folder.path().to_owned(), &link]).unwrap();
        assert!(told.contains("real and") && told.ends_with("name it once"), "{told}");
        assert!(refused(&[&real, &real]).is_some());
        // That it is not there is for others to say.
        assert_eq!(refused(&[&real, &folder.path().join("none")]), None);
    }
}
