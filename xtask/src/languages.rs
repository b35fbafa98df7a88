//! Runs every language with `wrote langs`, and checks that each has its row in every table.

use lab::tools::failure::{Failure, Tried};
use lab::tools::programs::debug;
use lab::tools::report::{Counts, Outcome};
use lab::tools::repository::target;
use lab::tools::run::{HANG, Show, run};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The languages with a row in every table. Other entries have fewer rows: the second one of C++
/// only writes and reads bytes.
const COMPLETE: [&str; 11] =
    ["c", "cpp", "go", "java", "kotlin", "scala", "python", "ruby", "node", "zig", "rust"];
/// The tables of a run without cold reads.
const TABLES: &str = "bytes-write bytes-read save-500 save-1000 save-2000 save-10000 \
    save-sync-500 save-sync-1000 save-sync-2000 save-sync-10000 lines";
/// The options of a small run, which tests correctness, not speed.
const LITTLE: [&str; 8] = ["--size", "1MB", "--runs", "2", "--saves", "20", "--lines", "1000"];
/// The time limit after which a program is considered to hang.
const PROGRAM_LIMIT: &str = "10min";

/// The consequence of a missing language.
#[derive(Clone, Copy)]
pub enum Missing {
    /// The language is left out, because the campaign `languages` installs and runs it.
    Left,
    /// The language is skipped, because nothing may be installed.
    Skipped,
    /// The language has failed, because its toolchain was to be installed but is still missing.
    Failed,
}

/// Runs every language whose toolchain is installed.
pub fn check(missing: Missing) -> Result<Outcome, Failure> {
    let document = measured(|command| command)?;
    Ok(Outcome::Tests(judge(&document, missing)))
}

/// Runs only the languages `ids`, which are separated by blanks, from `folders`. All of them must
/// work in the given environment.
pub fn check_added(
    folders: &[PathBuf],
    ids: &str,
    environment: &[(&str, PathBuf)],
) -> Result<Outcome, Failure> {
    let document = measured(|command| {
        folders.iter().for_each(|folder| _ = command.arg("--add").arg(folder));
        command.args(["--only", &ids.replace(' ', ",")]).envs(environment.iter().cloned())
    })?;
    let mut counts = Counts::default();
    for id in ids.split(' ') {
        count(&mut counts, id, trouble(&document, id));
    }
    Ok(Outcome::Tests(counts))
}

/// Returns the result of a small run with additional arguments.
fn measured(more: impl FnOnce(&mut Command) -> &mut Command) -> Result<Value, Failure> {
    let wrote = debug("wrote")?;
    let folder = tempfile::tempdir_in(target()).tried(target().display())?;
    let mut command = Command::new(wrote);
    command.arg("langs").arg(folder.path()).args(LITTLE).args(["--timeout", PROGRAM_LIMIT]);
    command.args(["--format", "json"]);
    // Built programs are kept for the next run, separate from the user's cache.
    command.env("XDG_CACHE_HOME", target().join("langs"));
    let text = run(more(&mut command), HANG, Show::Errors)?.success("wrote langs")?.stdout;
    serde_json::from_str(&text).tried("the result of wrote langs")
}

/// Counts each language as a test, and returns the counts.
fn judge(document: &Value, missing: Missing) -> Counts {
    let mut counts = Counts::default();
    let languages = document["languages"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |id: &str| languages.iter().find(|language| language["id"] == id);
    for id in COMPLETE.into_iter().filter(|id| of(id).is_none()) {
        count(&mut counts, id, Some("wrote langs does not know it".to_owned()));
    }
    for language in languages {
        let id = text(&language["id"]);
        let state = text(&language["state"]);
        let because = format!("{state}: {}", text(&language["because"]));
        match (state, missing) {
            ("ready", _) => count(&mut counts, id, trouble(document, id)),
            ("missing", Missing::Left) => counts.campaigns.push(format!("language {id}")),
            ("missing", Missing::Skipped) => {
                counts.ignored.push(format!("language {id}: {because}"));
            }
            _ => count(&mut counts, id, Some(because)),
        }
    }
    counts
}

/// Counts a language as passed or, if there is trouble with it, as failed.
fn count(counts: &mut Counts, id: &str, trouble: Option<String>) {
    match trouble {
        None => counts.passed += 1,
        Some(because) => counts.fail(format!("language {id}: {because}")),
    }
}

/// Returns the defect in the rows of a language that ran, if there is one.
fn trouble(document: &Value, id: &str) -> Option<String> {
    let languages = document["languages"].as_array().map_or(&[][..], Vec::as_slice);
    let language = languages.iter().find(|language| language["id"] == id);
    let failures = language.and_then(|language| language["failures"].as_object());
    if let Some((row, because)) = failures.and_then(|failures| failures.iter().next()) {
        return Some(format!("{row}: {}", text(because)));
    }
    let rows = document["scenarios"][0]["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |table: &str| rows.iter().any(|row| row["name"] == format!("langs/{table}/{id}"));
    let expected = if COMPLETE.contains(&id) { TABLES } else { "" };
    match expected.split_whitespace().find(|table| !has(table)) {
        Some(table) => Some(format!("{table}: no row")),
        None => {
            let is_own = |row: &Value| text(&row["name"]).ends_with(&format!("/{id}"));
            (!rows.iter().any(is_own)).then(|| "no row at all".to_owned())
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a result with every row of every language, and a second row of C++.
    fn result() -> Value {
        let language = |id: &&str| json!({ "id": id, "state": "ready" });
        let row = |table: &str, id: &str| json!({ "name": format!("langs/{table}/{id}") });
        let of_table = |table: &'static str| COMPLETE.iter().map(move |id| row(table, id));
        let mut rows: Vec<Value> = TABLES.split_whitespace().flat_map(of_table).collect();
        rows.push(row("bytes-write", "cpp-get-put"));
        let mut languages: Vec<Value> = COMPLETE.iter().map(language).collect();
        languages.push(language(&"cpp-get-put"));
        json!({ "languages": languages, "scenarios": [{ "rows": rows }] })
    }

    fn failures(result: &Value) -> Vec<String> {
        judge(result, Missing::Failed).failures
    }

    #[test]
    fn a_result_with_every_row_has_as_many_passed_as_there_are_languages() {
        assert_eq!(judge(&result(), Missing::Failed), Counts { passed: 12, ..Counts::default() });
    }

    #[test]
    fn a_language_without_a_row_has_failed_by_the_name_of_the_table() {
        let without = |name: &str| {
            let mut wrong = result();
            let rows = wrong["scenarios"][0]["rows"].as_array_mut().expect("a list");
            rows.retain(|row| row["name"] != name);
            wrong
        };
        let wrong = without("langs/save-1000/go");
        assert_eq!(failures(&wrong), ["language go: save-1000: no row"]);
        let wrong = without("langs/bytes-write/cpp-get-put");
        assert_eq!(failures(&wrong), ["language cpp-get-put: no row at all"]);
    }

    #[test]
    fn a_failure_has_failed_with_its_reason() {
        let mut wrong = result();
        wrong["languages"][0]["failures"] = json!({ "langs/lines/c": "a wrong byte" });
        assert_eq!(failures(&wrong), ["language c: langs/lines/c: a wrong byte"]);
    }

    #[test]
    fn a_missing_language_has_failed_unless_nothing_may_be_installed() {
        let mut wrong = result();
        wrong["languages"][7] = json!({ "id": "ruby", "state": "missing", "because": "no ruby" });
        assert_eq!(failures(&wrong), ["language ruby: missing: no ruby"]);
        let counts = judge(&wrong, Missing::Skipped);
        assert_eq!((counts.failed, counts.passed), (0, 11));
        assert_eq!(counts.ignored, ["language ruby: missing: no ruby"]);
        let counts = judge(&wrong, Missing::Left);
        assert_eq!((counts.failed, counts.passed), (0, 11));
        assert_eq!(counts.campaigns, ["language ruby"]);
    }

    #[test]
    fn a_language_that_could_not_be_built_has_failed_everywhere() {
        let mut wrong = result();
        wrong["languages"][10] =
            json!({ "id": "rust", "state": "build-failed", "because": "error[E0308]" });
        for missing in [Missing::Left, Missing::Skipped, Missing::Failed] {
            let failures = judge(&wrong, missing).failures;
            assert_eq!(failures, ["language rust: build-failed: error[E0308]"]);
        }
    }

    #[test]
    fn a_language_that_is_not_told_of_has_failed() {
        let mut wrong = result();
        wrong["languages"].as_array_mut().expect("a list").remove(0);
        assert_eq!(failures(&wrong), ["language c: wrote langs does not know it"]);
        assert_eq!(failures(&json!({})).len(), COMPLETE.len());
    }
}
