//! The report of a traced program for build servers: GitHub's annotations, SARIF, and JUnit's XML.

use crate::text::plain;
use crate::trace::{CHECK_FAILED, path, tested, verdict};
use itertools::Itertools;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use wrote_result::document::{Finding, Severity};
use wrote_result::quoted;
use wrote_result::trace::{CrashState, Trace};

/// Returns the failed crash state as a finding, followed by the findings.
fn messages(trace: &Trace) -> Vec<Finding> {
    let failed = trace.crash.iter().filter_map(|test| test.failed.as_ref());
    let failed = failed.map(|state| {
        let places = json!([{ "calls": [{ "place": state.place }] }]);
        Finding::new(CHECK_FAILED, Severity::Critical, failure(state)).with("places", places)
    });
    failed.chain(trace.findings.iter().cloned()).collect()
}

/// Returns the file and the line of a message, if they are known.
fn place(trace: &Trace, message: &Finding) -> Option<(String, u64)> {
    let places = message.evidence.get("places")?.as_array()?;
    let mut calls = places.iter().filter_map(|place| place["calls"].as_array()).flatten();
    let (file, line) = calls.find_map(|call| call["place"].as_str()?.rsplit_once(':'))?;
    Some((path(trace, file).to_owned(), line.parse().ok()?))
}

/// Returns the program's script: the first argument that is a file; otherwise the program.
fn script(trace: &Trace) -> &str {
    let is_file = |word: &&String| Path::new(&trace.folder).join(word).is_file();
    let words = || trace.command.iter();
    let found = words().skip(1).find(is_file).or_else(|| words().next());
    found.map_or("", |word| path(trace, word))
}

/// Describes a failed crash state in sentences.
fn failure(state: &CrashState) -> String {
    let problem = state.problem.as_deref().unwrap_or_default();
    let told = state.losses.iter().cloned().chain([format!("the check {problem}")]).join("; ");
    let CrashState { number, moment, fix, reproduce, .. } = state;
    format!("Crash state {number}, power lost {moment}: {told}. Fix: {fix}. Reproduce: {reproduce}")
}

/// Returns the words for a severity: GitHub's word, and SARIF's.
fn levels(severity: Severity) -> [&'static str; 2] {
    match severity {
        Severity::Critical => ["error"; 2],
        Severity::Warning => ["warning"; 2],
        Severity::Info => ["notice", "note"],
    }
}

/// Writes workflow commands. GitHub shows their messages next to the lines of a change.
pub fn write_github(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let data = |text: &str| plain(text).replace('%', "%25");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    for message in messages(trace) {
        let [command, _] = levels(message.severity);
        let place = place(trace, &message);
        let place = place.map(|(file, line)| format!("file={},line={line},", property(&file)));
        let (place, id) = (place.unwrap_or_default(), message.id);
        writeln!(out, "::{command} {place}title=wrote {id}::{}", data(&message.text))?;
    }
    let tested = trace.crash.as_ref().map_or(String::new(), |test| " ".to_owned() + &tested(test));
    writeln!(out, "{}{}", plain(&verdict(trace)), plain(&tested))
}

/// Writes the messages as SARIF 2.1.0, a format that code scanning reads.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_sarif(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let messages = messages(trace);
    let rules: Vec<Value> =
        messages.iter().map(|of| &of.id).unique().map(|id| json!({ "id": id })).collect();
    let result = |of: &Finding| {
        let [_, level] = levels(of.severity);
        // GitHub accepts no result without a location.
        let (file, line) = place(trace, of).unwrap_or_else(|| (script(trace).to_owned(), 1));
        let (artifact, region) = (json!({ "uri": uri(&file) }), json!({ "startLine": line }));
        let place =
            json!({ "physicalLocation": { "artifactLocation": artifact, "region": region } });
        let message = json!({ "text": of.text });
        json!({ "ruleId": of.id, "level": level, "message": message, "locations": [place] })
    };
    let results: Vec<Value> = messages.iter().map(result).collect();
    let driver = json!({ "name": "wrote", "version": trace.wrote.version, "rules": rules });
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    });
    serde_json::to_writer_pretty(&mut *out, &sarif)?;
    writeln!(out)
}

/// Returns a path as a URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let escaped = |byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(escaped).collect()
}

/// Writes the outcome of a crash test with `check` as one test case of JUnit. `untested` is the
/// reason if there was no test.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_junit(
    trace: &Trace,
    check: &str,
    untested: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let test = trace.crash.as_ref();
    let (outcome, time) =
        (xml(&test.map_or(untested.into(), tested)), test.map_or(0.0, |of| of.elapsed_s));
    let (failures, errors, told) = match test.map(|of| (&of.failed, of.unchecked_states)) {
        Some((None, 0)) => (0, 0, format!("<system-out>{outcome}</system-out>")),
        Some((Some(state), _)) => {
            let place = state.place.as_ref().map_or(String::new(), |at| format!("{at}: "));
            let text = xml(&(place + &failure(state)));
            let head = format!("<failure type=\"{CHECK_FAILED}\" message=\"{outcome}\">");
            (1, 0, format!("{head}{text}</failure>"))
        }
        _ => (0, 1, format!("<error type=\"not-checked\" message=\"{outcome}\"/>")),
    };
    let (program, check) = (xml(&quoted(&trace.command)), xml(check));
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite name=\"wrote trace\" \
         tests=\"1\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" time=\"{time:.3}\">\n\
         <testcase classname=\"{program}\" name=\"{check}\" time=\"{time:.3}\">{told}\
         </testcase></testsuite></testsuites>"
    )
}

/// Returns text escaped for an attribute or an element of XML.
fn xml(text: &str) -> String {
    let text = plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
