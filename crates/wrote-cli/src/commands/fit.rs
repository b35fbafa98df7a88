//! `wrote fit`: judges whether the disk is good enough for a program.

use crate::args::FitArgs;
use crate::output::{self, ResultFiles};
use crate::progress::Reporter;
use crate::terminal;

use std::io::{self, Write};

use std::path::PathBuf;
use wrote_bench::fit::{self, FitRequest, Program};
use wrote_report::Content;
use wrote_result::document::{Document, FitVerdict};
use wrote_result::{Error, Stop, units};

/// Runs the command. If no measurement was possible, the exit code is 5; each verdict has a
/// different code.
pub(super) fn run(arguments: &FitArgs, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
    done(arguments, stop, command).map_err(|error| match error {
        Error::Failed(text) => Error::Coded(5, text),
        error => error,
    })
}

fn done(arguments: &FitArgs, stop: &Stop, command: Vec<String>) -> Result<(), Error> {
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
        // If no program is given, the first argument is the path.
        path => {
            let request = arguments.request(fit::all(), command);
            FitRequest { path: path.as_ref().map_or(request.path, PathBuf::from), ..request }
        }
    };
    // The files are checked before the measurement, so that the work does not end with "exists
    // already".
    let files = ResultFiles::of(&arguments.to)?;
    let document = measure(&request, stop)?;
    let judged = judged(&document, &document.target.path);
    files.deliver("fit.json", Content::Result(Box::new(document)), arguments.format)?;
    // The runs before the interruption have been shown.
    stop.check()?;
    judged
}

/// Returns the result of the measurement, after removing the bar from the screen.
fn measure(request: &FitRequest, stop: &Stop) -> Result<Document, Error> {
    fit::fit(request, stop, &mut Reporter::default())
}

/// Returns the verdict as an exit code and a line of text.
fn judged(document: &Document, path: &str) -> Result<(), Error> {
    let fits = || document.fit.iter().flatten();
    let verdict = FitVerdict::of_all(fits().filter_map(|fit| fit.verdict));
    let of_verdict = fits().filter(|fit| fit.verdict == verdict);
    let names = of_verdict.map(|fit| fit.program.as_str()).collect::<Vec<_>>().join(", ");
    let rules = fits().flat_map(|fit| &fit.rules);
    let rules = rules.filter(|rule| rule.verdicts().any(|of| Some(of) == verdict));
    let rules = units::some_of(&rules.map(|rule| &*rule.name).collect::<Vec<_>>(), 1);
    let (code, text) = match verdict {
        Some(FitVerdict::Fits) => return Ok(()),
        Some(FitVerdict::DoesNotFit) => (1, format!("DOES NOT FIT ({rules})")),
        Some(FitVerdict::Undecided) => (3, format!("UNDECIDED ({rules})")),
        Some(FitVerdict::Busy) => (3, format!("NOT JUDGED ({rules}): {}", FitVerdict::BUSY)),
        None => (4, "no rule is published".into()),
    };
    Err(Error::Coded(code, format!("{names} on {path}: {text}")))
}

fn write_list(programs: &[Program], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<[&str; 3]> =
        programs.iter().map(|of| [&*of.name, &*of.version, &*of.about]).collect();
    wrote_report::write_list(["PROGRAM", "VERSION", "ABOUT"], &rows, terminal::list_screen(), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::{Fit, FitRule};

    fn fit(program: &str, verdict: Option<FitVerdict>) -> Fit {
        let rules = vec![FitRule { name: "P99".into(), verdict, ..FitRule::default() }];
        Fit { program: program.into(), version: "3.4".into(), verdict, rules }
    }

    fn code(fits: &[Fit]) -> (u8, String) {
        let document = Document { fit: Some(fits.to_vec()), ..Document::default() };
        match judged(&document, "/data") {
            Ok(()) => (0, String::new()),
            Err(Error::Coded(code, text)) => (code, text),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_verdict_is_the_exit_code() {
        let of = |verdict| code(&[fit("etcd", verdict)]);
        assert_eq!(of(Some(FitVerdict::Fits)).0, 0);
        assert_eq!(
            of(Some(FitVerdict::DoesNotFit)),
            (1, "etcd on /data: DOES NOT FIT (P99)".into())
        );
        assert_eq!(of(Some(FitVerdict::Undecided)).0, 3);
        let busy = of(Some(FitVerdict::Busy));
        let said = "etcd on /data: NOT JUDGED (P99): other programs used the disk or the CPUs";
        assert!(busy.0 == 3 && busy.1.starts_with(said), "{busy:?}");
        assert_eq!(of(None), (4, "etcd on /data: no rule is published".into()));
    }

    #[test]
    fn the_worst_of_several_programs_is_the_exit_code_and_is_named() {
        let redis = fit("redis", Some(FitVerdict::Fits));
        let etcd = fit("etcd", Some(FitVerdict::DoesNotFit));
        let both = code(&[redis.clone(), etcd, fit("kafka", None)]);
        assert_eq!(both, (1, "etcd on /data: DOES NOT FIT (P99)".into()));
        assert_eq!(code(&[redis, fit("kafka", None)]).0, 0, "no rule was broken");
    }
}
