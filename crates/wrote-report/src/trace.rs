//! The report of a traced program: its files, what they survive, and the findings.

use crate::paint::Tone;
use crate::table::{Column, Keep, Table, Text};
use crate::tree::{Block, Card, Code, Note, Remark, Remarks, Role, Section, Style, Weight, remark};
use itertools::Itertools;
use wrote_result::doctor::State;
use wrote_result::document::{Finding, Severity, Survives};
use wrote_result::trace::{Advice, CrashState, CrashTest, End, File, How, Moment};
use wrote_result::trace::{Trace, Verdict};
use wrote_result::{quoted, units};

/// The id of the finding for a check that fails, in a crash state or without a crash.
pub const CHECK_FAILED: &str = "check-failed";

/// The maximum number of files that a screen shows.
pub const FILES_MAX: usize = 20;

/// The maximum number of a crash state's losses that are shown.
const LOSSES_MAX: usize = 5;

/// The maximum length of a reason in the table, in bytes. The last line gives every reason in full.
const REASON_MAX: usize = 24;

/// Returns the title of the Markdown report.
pub fn title(trace: &Trace) -> String {
    format!("wrote trace {}", quoted(&trace.command))
}

/// Returns the sections of the Markdown report, which begin with the answer.
pub fn on_paper(trace: &Trace) -> Vec<Section<'_>> {
    let mut sections = sections(trace, FILES_MAX);
    sections.rotate_right(1);
    sections
}

/// Returns the sections of a traced program, with the answer last. Shows at most `files_max` files:
/// the least safe ones.
pub fn sections(trace: &Trace, files_max: usize) -> Vec<Section<'_>> {
    let shown: Vec<&File> = trace
        .files
        .iter()
        .sorted_by_key(|file| (file.survives, std::cmp::Reverse(file.unflushed_bytes)))
        .take(files_max)
        .collect();
    // The verdict names the unseen actions that prevent a judgement.
    let unseen = trace.unseen.iter().filter(|unseen| !trace.unjudged.contains(unseen));
    let mut notes: Vec<Note> = unseen.map(|unseen| Note::from(unseen.clone())).collect();
    let hidden = trace.files.len() - shown.len();
    if hidden > 0 {
        let files = units::counted(hidden as u64, "more file");
        notes.push(format!("{files} that survive as much or more: --json lists them").into());
    }
    let more = &trace.more_files;
    if !more.is_empty() {
        let files = units::counted(more.count(), "more file");
        let [lost, unknown] = [more.lost, more.unknown];
        notes.push(format!("{files} counted, not listed: {lost} lost, {unknown} unknown").into());
    }
    if trace.removed_files > 0 {
        let files = units::counted(trace.removed_files, "file");
        notes.push(format!("{files} written and removed").into());
    }
    notes.extend(slowest(trace).map(|file| Note::from(time_of(trace, file))));
    let listed = if shown.is_empty() && notes.is_empty() { Role::Page } else { Role::Part };
    let files = vec![Block::Table(table(trace, &shown)), Block::notes(Style::Close, notes)];
    let remarks: Vec<Remark> = trace.findings.iter().map(remark).collect();
    let found = if remarks.is_empty() { Role::Page } else { Role::Findings };
    let remarks = Block::Remarks(Remarks { remarks, is_brief: false });
    let cards: Vec<Card> = trace.advice.iter().map(card).collect();
    let answer = Note { tone: Tone::Strong, ..verdict(trace).into() };
    let mut sections = vec![
        Section::facts("The program", facts(trace)),
        Section::new(listed, "Files", "", files),
        Section::new(found, "Findings", "", vec![remarks]),
    ];
    if !cards.is_empty() {
        let cards = vec![Block::Cards(cards)];
        sections.push(Section::new(Role::Advice, "How to do it right", "", cards));
    }
    if let Some(CrashTest { failed: Some(state), .. }) = &trace.crash {
        sections.push(crash_state(state));
    }
    let tested = trace.crash.iter().map(|test| Note::from(tested(test)));
    let answer = vec![Block::notes(Style::Apart, [answer].into_iter().chain(tested))];
    sections.push(Section::new(Role::Answer, "", "", answer));
    sections
}

/// Describes the outcome of a crash test in a sentence.
pub fn tested(test: &CrashTest) -> String {
    let CrashTest { states, unchecked_states: unchecked, crashes, .. } = *test;
    let all = units::counted(states, "state");
    match (&test.failed, unchecked) {
        (Some(CrashState { number, .. }), _) => {
            format!("The check fails in crash state {number}, the simplest failure in {all} tried.")
        }
        (_, 0) if test.is_limited => format!(
            "The check passes in the first {all}, which stand for {crashes} crashes. To try more: \
             wrote trace crash --moments N."
        ),
        (_, 0) => format!("The check passes in all of {all}, which stand for {crashes} crashes."),
        _ => format!("The check passes in {all}. No time for {unchecked} more: raise --within."),
    }
}

/// Returns the section of a crash state: its moment, its losses, what was kept, and what to do.
pub fn crash_state(state: &CrashState) -> Section<'static> {
    let place = |of: &Moment| of.place.as_ref().map_or(String::new(), |at| format!(" ({at})"));
    let calls = |calls: &[Moment]| calls.iter().map(|of| of.call.clone() + &place(of)).join(", ");
    let more = if state.lost_changes > state.lost.len() as u64 { ", .." } else { "" };
    let facts = [
        ("result", units::some_of(&state.losses, LOSSES_MAX)),
        ("lost", calls(&state.lost) + more),
        ("kept", calls(&state.kept)),
        ("check", state.problem.clone().unwrap_or_default()),
        ("fix", state.problem.as_ref().map_or(String::new(), |_| state.fix.clone())),
    ];
    let facts = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    let remark = Remark {
        weight: Weight::Check(State::Risk),
        id: format!("Crash state {}", state.number),
        chapter: String::new(),
        text: format!("power lost {}", state.moment),
        facts: facts.map(|(label, fact)| (label.to_owned(), fact)).collect(),
        before: Vec::new(),
        commands: state.problem.iter().map(|_| state.reproduce.clone()).collect(),
        after: Vec::new(),
    };
    let remarks = Block::Remarks(Remarks { remarks: vec![remark], is_brief: false });
    Section::new(Role::Part, "Crash test", "", vec![remarks])
}

/// Returns the sections of a crash test.
pub fn crash_test(test: &CrashTest) -> Vec<Section<'static>> {
    let answer = vec![Block::notes(Style::Apart, [tested(test)])];
    let answer = Section::new(Role::Answer, "", "", answer);
    // Without a check, the state that was kept is the only section.
    let answer = (!test.check.is_empty()).then_some(answer);
    test.failed.iter().map(crash_state).chain(answer).collect()
}

fn card(advice: &Advice) -> Card {
    let (language, text) = (advice.language.clone(), advice.code.clone());
    Card {
        purpose: advice.purpose.clone(),
        action: advice.action.clone(),
        because: advice.findings.join(", "),
        codes: vec![Code { title: "Code", label: "code", language, text }],
        ..Card::default()
    }
}

fn facts(trace: &Trace) -> Vec<(&'static str, Vec<String>)> {
    let end = match trace.end {
        End { signal: Some(signal), .. } => format!("killed by signal {signal}"),
        End { code: Some(code), .. } => format!("exit code {code}"),
        End { code: None, .. } => "still running when wrote detached".into(),
    };
    let watching = &trace.watching;
    let calls = units::counted(watching.stopped_calls, "call");
    let tasks = match watching.tasks {
        1 => "1 thread".into(),
        tasks => format!("{tasks} processes and threads"),
    };
    let stopped = units::seconds(watching.stopped_s);
    let watched = vec![tasks, format!("stopped at {calls}, for {stopped} in all")];
    let mut facts = vec![
        ("command", vec![quoted(&trace.command)]),
        ("ended", vec![end, format!("after {}", units::seconds(trace.elapsed_s))]),
        ("watched", watched),
    ];
    let judged = ("judged", vec!["as if the disk had a journal (--on-disk)".into()]);
    facts.extend(trace.on_disk.then_some(judged));
    facts
}

/// Describes in a sentence what a power loss would leave.
pub fn verdict(trace: &Trace) -> String {
    let more = &trace.more_files;
    let count = trace.files.len() as u64 + more.count();
    let safe = trace.files.iter().filter(|file| file.survives == Survives::PowerLoss).count();
    let safe = safe as u64 + more.survives;
    // A check that fails without a crash proves nothing about the program's writes.
    let warns = |of: &&Finding| of.severity >= Severity::Warning && of.id != CHECK_FAILED;
    let warnings = trace.findings.iter().filter(warns).count();
    let warnings = units::counted(warnings as u64, "warning");
    let because = trace.files.iter().filter_map(|file| file.because.as_deref()).unique().join("; ");
    let others = if safe > 0 && trace.unjudged.is_empty() { "the others: " } else { "" };
    let because = if because.is_empty() { because } else { format!(" ({others}{because})") };
    if !trace.unjudged.is_empty() {
        let lost = trace.files.iter().filter(|file| file.verdict == Verdict::Lost).count();
        let first = match lost as u64 + more.lost {
            0 => "Cannot be judged".into(),
            1 if count == 1 => {
                format!(
                    "After it ends, what it wrote does not survive a power loss{because}. Cannot \
                     be judged"
                )
            }
            lost => format!(
                "After it ends, {lost} of {} not survive a power loss{because}. Cannot be judged",
                units::counted(count, "file") + if lost == 1 { " does" } else { " do" },
            ),
        };
        let is_place = trace.unjudged.iter().any(|text| text.contains("has no journal"));
        let next = if is_place { " --on-disk judges as if the disk had a journal." } else { "" };
        return format!("{first}: {}. {warnings}.{next}", trace.unjudged.join("; "));
    }
    let files = match (safe, count) {
        (_, 0) if trace.removed_files > 0 => "No file that it wrote is left".into(),
        (_, 0) => return "It wrote no file.".into(),
        (1, 1) => "After it ends, what it wrote survives a power loss".into(),
        (0, 1) => "After it ends, what it wrote does not survive a power loss".into(),
        (safe, count) if safe == count => {
            format!("After it ends, all {count} files survive a power loss")
        }
        (0, count) => format!("After it ends, none of {count} files survives a power loss"),
        (1, count) => format!("After it ends, 1 of {count} files survives a power loss"),
        (safe, count) => format!("After it ends, {safe} of {count} files survive a power loss"),
    };
    match safe == count && !warnings.starts_with("0 ") {
        true => format!("A crash before it ends may lose data ({warnings}). {files}."),
        false => format!("{files}{because}; {warnings}."),
    }
}

/// Returns the file whose flushes took the most time, among the files with writes and several
/// flushes; `None` if there are none.
fn slowest(trace: &Trace) -> Option<&File> {
    let several = trace.files.iter().filter(|file| file.flushes > 1 && file.writes > 0);
    several.max_by(|one, other| one.flush_s.total_cmp(&other.flush_s))
}

/// Returns how long the writes and the flushes of a file took.
fn time_of(trace: &Trace, file: &File) -> String {
    format!(
        "{}: {} within {}; {} in {} flushes",
        path(trace, &file.path),
        units::counted(file.writes, "write"),
        units::seconds(file.span_s),
        units::seconds(file.flush_s),
        file.flushes
    )
}

/// Returns a path relative to the program's folder.
pub fn path<'a>(trace: &Trace, path: &'a str) -> &'a str {
    let below = path.strip_prefix(&trace.folder).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(path)
}

fn table(trace: &Trace, files: &[&File]) -> Table {
    let words = |heading, keep, cell: &dyn Fn(&File) -> Text| {
        Column::words(heading, keep, files.iter().copied(), cell)
    };
    let figures = |heading, keep, cell: fn(&File) -> String| {
        Column::figures(heading, keep, files.iter().copied(), cell)
    };
    let path = |file: &File| path(trace, &file.path).into();
    let survives = |file: &File| {
        let tone = Tone::of_survives(Some(file.survives));
        let text = match (&file.unjudged, &file.because) {
            (Some(because), _) if because.len() <= REASON_MAX => format!("unknown: {because}"),
            (Some(_), _) => "unknown".into(),
            (_, Some(because)) => format!("{}: {because}", file.survives),
            _ => file.survives.to_string(),
        };
        Text { tone, ..text.into() }
    };
    let is_same = |file: &File| file.unjudged.is_some() || file.survives_posix == file.survives;
    let differs = |file: &File| match is_same(file) {
        true => Text::default(),
        false => file.survives_posix.to_string().into(),
    };
    let columns = vec![
        words("FILE", Keep::Always, &path).titled("File").flexible(16, 24),
        figures("WRITES", Keep::If(2), |file| file.writes.to_string()).titled("Writes"),
        figures("BYTES", Keep::Last, |file| units::bytes(file.bytes)).titled("Bytes"),
        figures("P50 SIZE", Keep::If(3), |of| units::bytes(of.write_p50_bytes)).titled("P50 size"),
        figures("FLUSHES", Keep::Last, |file| file.flushes.to_string()).titled("Flushes"),
        words("HOW", Keep::If(1), &|file| how(file).into()).titled("How"),
        words("SURVIVES", Keep::Always, &survives).titled("Survives"),
        words("BY POSIX", Keep::If(4), &differs).titled("By POSIX alone"),
    ];
    Table::of("Files", columns)
}

fn how(file: &File) -> String {
    let how = match file.how {
        How::Made => "made",
        How::Replaced => "replaced (rename)",
        How::Renamed => "renamed",
        How::Linked => "linked",
        How::Rewritten => "emptied, rewritten",
        How::Appended => "appended",
        How::Changed => "changed in place",
    };
    if file.is_mapped { format!("{how}, mapped") } else { how.into() }
}
