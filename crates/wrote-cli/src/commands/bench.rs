//! `wrote bench`: measures, and writes the result.

use crate::args::BenchArgs;
use crate::output::{self, ResultFiles};
use crate::progress::Reporter;
use crate::terminal;
use std::io::{self, Write};
use wrote::Survives;
use wrote_bench::versus::versus;
use wrote_bench::{Bench, Listed, listed};
use wrote_jobs::peers::Peers;
use wrote_report::{Content, Screen, write_json};
use wrote_result::document::Document;
use wrote_result::recipes::RUST;
use wrote_result::{Error, Stop, schema};

pub(super) fn run(
    arguments: &BenchArgs,
    peers: Peers,
    stop: &Stop,
    command: Vec<String>,
) -> Result<(), Error> {
    if let Some(more) = arguments.more.first() {
        let (path, more) = (arguments.path.display(), more.display());
        return Err(Error::Usage(format!("bench takes one path; got '{path}' and '{more}'")));
    }
    if arguments.list {
        let listed = listed(&arguments.only)?;
        return output::to_stdout(|out| write_list(&listed, terminal::list_screen(), out));
    }
    if arguments.schema {
        return output::to_stdout(|out| write_json(&schema::<Document>(), out));
    }
    arguments.ranks.check(peers)?;
    if let Some(words) = &arguments.vs {
        return run_versus(arguments, words, peers, stop, command);
    }
    // The files are checked before the measurement, so that a minute's work does not end with
    // "exists already".
    let files = ResultFiles::of_first(&arguments.to, peers)?;
    let request = arguments.request(command, peers);
    // The reporter is dropped here, which removes the bar from the screen before the result is
    // printed.
    let mut document =
        Bench::new(&request).ranks(peers).run(stop, &mut *Reporter::of_rank(peers))?;
    if arguments.lang != RUST {
        document.advice.iter_mut().for_each(|advice| advice.speak(arguments.lang));
    }
    let Some(files) = files else { return stop.check() };
    files.deliver("bench.json", Content::Result(Box::new(document)), arguments.format)?;
    // The part measured before the interruption has been shown.
    stop.check()
}

/// Measures the command line's request in turn with its variant that `words` describe, and compares
/// the two.
fn run_versus(
    arguments: &BenchArgs,
    words: &str,
    peers: Peers,
    stop: &Stop,
    command: Vec<String>,
) -> Result<(), Error> {
    let other = arguments.with(words).map_err(Error::Usage)?;
    let files = ResultFiles::of_first(&arguments.to, peers)?;
    let requests = [arguments.request(command.clone(), peers), other.request(command, peers)];
    let mut comparison = {
        // The reporter is dropped at the end of this block, which removes the bar from the screen.
        let mut reporter = Reporter::of_rank(peers);
        versus(&requests[0], &requests[1], peers, stop, &mut *reporter)?
    };
    stop.check()?;
    let Some(files) = files else { return Ok(()) };
    comparison.old.name = "as given".into();
    comparison.new.name = words.into();
    let content = Content::Comparison(Box::new(comparison));
    files.deliver("comparison.json", content, arguments.format)
}

/// Lists every row that can be selected by name, grouped by scenario.
fn write_list(listed: &[Listed], screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for (index, rows) in listed.chunk_by(|one, next| one.scenario == next.scenario).enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        writeln!(out, "{gap}Scenario {}", rows[0].scenario)?;
        let row = |of: &Listed| [of.row, of.survives.map_or("-", Survives::as_str), of.way];
        let rows: Vec<[&str; 3]> = rows.iter().map(row).collect();
        wrote_report::write_list(["NAME", "SURVIVES", "WAY"], &rows, screen, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: [Listed; 3] = [
        Listed {
            scenario: "ladder",
            row: "stream/cached",
            way: "cached",
            survives: Some(Survives::ProcessCrash),
        },
        Listed {
            scenario: "ladder",
            row: "small/dsync",
            way: "O_DSYNC each write",
            survives: Some(Survives::PowerLoss),
        },
        Listed {
            scenario: "ways",
            row: "ways/file/copy",
            way: "wrote::copy",
            survives: Some(Survives::PowerLoss),
        },
    ];

    #[test]
    fn the_list_has_a_line_for_each_row() {
        let screen = Screen { width: 80, colour: false, unicode: false };
        let mut text = Vec::new();
        write_list(&LISTED, screen, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "Scenario ladder\n\
             NAME           SURVIVES       WAY\n\
             stream/cached  process-crash  cached\n\
             small/dsync    power-loss     O_DSYNC each write\n\n\
             Scenario ways\n\
             NAME            SURVIVES    WAY\n\
             ways/file/copy  power-loss  wrote::copy\n"
        );
    }
}
