//! `wrote fit`: judges whether the disk is good enough for a program.

use crate::args::FitArgs;
use crate::output::{self, ResultFiles};
use crate::progress::Reporter;
use crate::terminal;
use std::io::{self, Write};
use std::path::PathBuf;
use wrote_bench::Observer;
use wrote_bench::fit::{self, FitRequest, Program};
use wrote_report::Content;
use wrote_result::document::{Document, FitVerdict};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &FitArgs, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    if arguments.list {
        return output::to_stdout(|out| write_list(&fit::all(), out));
    }
    let request = match &arguments.program {
        Some(name) if !arguments.all => {
            let program = fit::find(name)?;
            if arguments.show {
                return output::to_stdout(|out| out.write_all(program.text.as_bytes()));
            }
            arguments.request(vec![program], command)
        }
        // Without a program the first argument is the path.
        path => {
            let request = arguments.request(fit::all(), command);
            FitRequest { path: path.as_ref().map_or(request.path, PathBuf::from), ..request }
        }
    };
    // Checked before measuring: the work must not end in "exists already".
    let files = ResultFiles::of(&arguments.to)?;
    let document = measure(&request, arguments.quiet, stop)?;
    let judged = judged(&document, &request.path.display().to_string());
    files.deliver("fit.json", Content::Result(Box::new(document)), arguments.format)?;
    // The runs until then have been shown.
    stop.check()?;
    judged
}

/// The bar is gone from the screen when this returns.
fn measure(request: &FitRequest, is_quiet: bool, stop: &Stop) -> Result<Document, Error> {
    let mut reporter: Box<dyn Observer> = match is_quiet {
        true => Box::new(()),
        false => Box::new(Reporter::default()),
    };
    fit::fit(request, stop, &mut *reporter)
}

/// Returns the verdict as an exit code and its line.
fn judged(document: &Document, path: &str) -> Result<(), Error> {
    let fits = || document.fit.iter().flatten();
    let verdict = FitVerdict::of_all(fits().filter_map(|fit| fit.verdict));
    let of_verdict = fits().filter(|fit| fit.verdict == verdict);
    let names = of_verdict.map(|fit| fit.program.as_str()).collect::<Vec<_>>().join(", ");
    match verdict {
        Some(FitVerdict::DoesNotFit) => Err(Error::Failed(format!("{path} does not suit {names}"))),
        Some(FitVerdict::Undecided) => {
            Err(Error::Harmless(format!("whether {path} suits {names} is undecided")))
        }
        Some(FitVerdict::Fits) | None => Ok(()),
    }
}

fn write_list(programs: &[Program], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<[&str; 3]> =
        programs.iter().map(|of| [&*of.name, &*of.version, &*of.about]).collect();
    wrote_report::write_list(["PROGRAM", "VERSION", "ABOUT"], &rows, terminal::list_screen(), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::Fit;

    #[test]
    fn the_verdict_is_the_exit_code() {
        let of = |verdict| {
            let (program, version) = ("etcd".into(), "3.4".into());
            let fit = Fit { program, version, verdict, rules: Vec::new() };
            let document = Document { fit: Some(vec![fit]), ..Document::default() };
            judged(&document, "/data")
        };
        assert!(of(None).is_ok() && of(Some(FitVerdict::Fits)).is_ok());
        let failed = of(Some(FitVerdict::DoesNotFit));
        assert!(matches!(failed, Err(Error::Failed(text)) if text == "/data does not suit etcd"));
        assert!(matches!(of(Some(FitVerdict::Undecided)), Err(Error::Harmless(_))));
        let (program, version) = ("redis".into(), "7".into());
        let fits = Some(FitVerdict::Fits);
        let other = Fit { program, version, verdict: fits, rules: Vec::new() };
        let etcd =
            Fit { program: "etcd".into(), verdict: Some(FitVerdict::DoesNotFit), ..other.clone() };
        let document = Document { fit: Some(vec![other, etcd]), ..Document::default() };
        assert_eq!(judged(&document, ".").unwrap_err().to_string(), ". does not suit etcd");
    }
}
