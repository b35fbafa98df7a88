//! The kinds of contenders, and how to read a run's figures.

use super::contest::Contender;
use super::job::{Job, Runner};
use super::outcome::Outcome;
use super::rows::{Words, server};
use super::served::{self, Load};
use super::site::Site;
use super::wrote;
use lab::tools::failure::{Failure, Tried};

const COPY: &str = "copy";

/// Creates a contender from its entry.
pub fn contender(entry: &Words, site: &Site) -> Result<Contender, Failure> {
    let word = |key: &str| entry.get(key).map(String::as_str).unwrap_or_default();
    let (name, line, prepare) = (word("name"), word("run").to_owned(), word("prepare"));
    let operations = word("operations").parse().ok();
    let (under, file) = (word("under"), entry.get("file").map_or("testfile", String::as_str));
    let runner = if name == "fio" { Runner::Fio } else { Runner::Wrote };
    let made = match word("by") {
        "copy" => {
            let source = entry.get("source").map_or("source", String::as_str).to_owned();
            Contender::new(name, line, move |site, line| copy(site, line, &source))
        }
        "result" => {
            Contender::new(name, line, |site, line| wrote::only_row(&site.run(line)?.stdout, line))
        }
        "job" => {
            let job = Job::new(word("job"), &line, file);
            return runner.contender(name, under, job, prepare, site);
        }
        by @ ("served" | "served-line" | "served-redis") => {
            let load = match by {
                "served" => Load::Filed,
                "served-line" => Load::Line,
                _ => Load::Redis(operations.unwrap_or_default()),
            };
            let in_memory = !word("on_tmpfs").is_empty();
            served::contender(name, server(word("server"))?, line, load, in_memory)
        }
        _ => Contender::new(name, line, move |site, line| {
            // `trial`, `putc` and `rivals` print their outcome themselves.
            let outcome = Outcome::of_line(&site.run(line)?.stdout, line)?;
            Ok(Outcome { operations: operations.unwrap_or(outcome.operations), ..outcome })
        }),
    };
    Ok(Contender { prepare: prepare.to_owned(), ..made })
}

/// Copies the file `source` with the shell line `line`, and returns the outcome.
fn copy(site: &Site, line: &str, source: &str) -> Result<Outcome, Failure> {
    let length = |name: &str| {
        let path = site.folder.join(name);
        path.metadata().map(|metadata| metadata.len()).tried(path.display())
    };
    let bytes = length(source)?;
    let (_, outcome) = site.measure(line)?;
    let copied = length(COPY)?;
    std::fs::remove_file(site.folder.join(COPY)).tried(COPY)?;
    if copied == bytes {
        return Ok(Outcome { bytes, ..outcome });
    }
    Err(Failure::Failed(format!("{line}: {copied} bytes, not {bytes}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::site::fake;

    #[test]
    fn a_copy_that_is_too_short_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 1000);
        std::fs::write(folder.path().join("source"), [0; 1001]).expect("room");
        let failed = copy(&site, "wrote copy source copy", "source").expect_err("too short");
        assert_eq!(failed.to_string(), "wrote copy source copy: 1000 bytes, not 1001");
    }
}
