//! The section of `wrote fit`: the rules of each program, the figures of this disk, and the
//! verdicts.

mod margins;

pub use margins::margins;

use crate::figures::{disturbed, has_spread, per_second, ranged};
use crate::paint::Tone;
use crate::table::{Column, Keep, On, Table, Text};
use crate::tree::{Block, Note, Role, Section, Style};
use itertools::Itertools;
use wrote_result::document::{
    Beside, Document, Fit, FitRule, FitVerdict, Flush, Interval, Row, Survives,
};
use wrote_result::{stats, units, yardstick};

/// The names of volumes whose I/O the provider limits. `nvme id-ctrl` prints the first one,
/// according to Amazon's "EBS volumes and NVMe"
/// (docs.aws.amazon.com/AWSEC2/latest/UserGuide/nvme-ebs-volumes.html). The second is part of the
/// link `scsi-0Google_PersistentDisk_DEVICE_NAME`, according to Google's "Symbolic links for disks
/// attached to a VM" (cloud.google.com/compute/docs/disks/disk-symlinks).
const CLOUD_VOLUMES: [&str; 2] = ["Amazon Elastic Block Store", "PersistentDisk"];

/// Returns the classes of disks that flush as often as this disk, in words, judged by the row with
/// the fastest flushes. `None` without a durable flush or without comparable classes.
fn classes(fit: &Fit, document: &Document) -> Option<String> {
    let rows = fit.rules.iter().filter_map(|rule| document.row(&rule.row));
    let rows = rows.filter(|row| row.survives == Some(Survives::PowerLoss));
    let flushes = rows.filter_map(|row| Some((row.flush_latency_ns?.p50, &row.name)));
    let (flush_ns, row) = flushes.min()?;
    let rate = 1e9 / flush_ns.max(1) as f64;
    let device = document.target.device.as_ref().filter(|_| document.target.limits.is_empty());
    let of = yardstick::standing(yardstick::Figure::Durable, rate, &document.host, device)?;
    let [flush, rate] = [units::nanoseconds(flush_ns), per_second(rate)];
    Some(format!(
        "; a single flush takes {flush} here (the median of {row}), which is {rate} one after \
         another: {}",
        of.text
    ))
}

/// Returns the name of the program that a result judges, such as `etcd`, or the number of programs.
pub fn programs(document: &Document) -> String {
    match document.fit.as_deref() {
        Some([one]) => one.program.clone(),
        fits => format!("{} programs", fits.map_or(0, <[Fit]>::len)),
    }
}

/// Returns what was judged, and the verdict, in words; `None` if no program was judged.
fn answer(document: &Document) -> Option<(String, String)> {
    let target = &document.target;
    let device = target.device.as_ref().map(|of| format!(", {}", of.name)).unwrap_or_default();
    let place = format!("{} ({}{device})", target.path, target.filesystem);
    Some(match &document.fit.as_ref()?[..] {
        [fit] => {
            let known = classes(fit, document).filter(|_| fit.verdict.is_none());
            let verdict = conditions(fit) + &known.unwrap_or_default();
            (format!("{} {} on {place}", fit.program, fit.version), verdict)
        }
        fits => (format!("{} programs on {place}", fits.len()), suited(fits)),
    })
}

/// Returns the verdict as a sentence; `None` if no program was judged.
pub fn headline(document: &Document) -> Option<String> {
    let (title, verdict) = answer(document)?;
    let is_judged = document.fit.iter().flatten().any(|fit| fit.verdict.is_some());
    // A verdict already states whether other programs used the disk.
    let busy =
        if is_judged { "" } else { disturbed(document, &document.rows().collect::<Vec<_>>()) };
    Some(format!("{title}: {verdict}.{busy}"))
}

/// Returns the section with the verdicts; `None` if no program was judged.
pub fn section(document: &Document) -> Option<Section<'_>> {
    let fits = document.fit.as_ref()?;
    let (title, verdict) = answer(document)?;
    let mut blocks = vec![Block::Heading(title, verdict)];
    if fits.len() == 1 {
        blocks.push(Block::Table(table(fits)));
    } else {
        let all = Table { on: On::Pages, ..table(fits) };
        blocks.extend([Block::Table(overview(fits)), Block::Table(all)]);
    }
    let notes = burst(document).into_iter().map(Note::from);
    let notes = notes.chain(undecided(fits, document).into_iter().map(Note::from));
    let notes = notes.chain(fits.iter().flat_map(|fit| notes_of(fit, document)));
    let notes = notes.unique_by(|note| note.text.clone());
    blocks.push(Block::notes(Style::Apart, notes));
    Some(Section::new(Role::Answer, "The verdict", "", blocks))
}

/// Returns the verdict with the conditions under which it holds, and the rules that are broken:
/// `fits normal load, does not fit heavy load (500 appends per second: 326 /s here)`.
fn conditions(fit: &Fit) -> String {
    let judged = || fit.rules.iter().filter(|rule| rule.verdict.is_some());
    let neighbours = neighbours(std::slice::from_ref(fit));
    let loads: Vec<Option<&str>> = judged().map(|rule| rule.load.as_deref()).unique().collect();
    let usual = match (loads.len(), neighbours.len()) {
        (0, _) => return "no rule is published".into(),
        (1, 0) => "",
        (1, _) => "alone",
        _ => "normal load",
    };
    let mut all: Vec<(FitVerdict, String)> = Vec::new();
    let mut add = |name: &str, rules: Vec<(&FitRule, FitVerdict, &Interval)>| {
        // Of several equally bad rules, the first one decides.
        let worst = rules.into_iter().rev().max_by_key(|of| of.1);
        let Some((rule, verdict, here)) = worst else { return };
        // The interval shows why a rule is undecided.
        let here = match verdict {
            _ if !is_measured(here) => "not measured".into(),
            FitVerdict::DoesNotFit => format!("{} here", in_short(&rule.of, here)),
            _ => format!("{} here", with_ends(&rule.of, here)),
        };
        let why = format!("({}: {here})", rule.name);
        let why = if verdict == FitVerdict::Fits { String::new() } else { why };
        all.push((verdict, format!("{name} {why}").trim().into()));
    };
    for load in loads {
        let rules = judged().filter(|rule| rule.load.as_deref() == load);
        let rules = rules.filter_map(|rule| Some((rule, rule.verdict?, &rule.here)));
        add(load.unwrap_or(usual), rules.collect());
    }
    for neighbour in neighbours {
        let of = |rule| beside(rule, neighbour).and_then(|of| Some((rule, of.verdict?, &of.here)));
        add(&format!("beside {neighbour}"), judged().filter_map(of).collect());
    }
    let names = |verdict: FitVerdict, words: &str| {
        let mut of = all.iter().filter(|(of, _)| *of == verdict).map(|(_, name)| name).peekable();
        of.peek()?;
        Some(format!("{words} {}", of.join(", ")).trim().to_owned())
    };
    let fits = names(FitVerdict::Fits, "fits");
    let not = names(FitVerdict::DoesNotFit, "does not fit");
    let busy = names(FitVerdict::Busy, "").map(|of| {
        let link = if of.starts_with('(') { "" } else { "for " };
        format!("not judged {link}{of}: {}", FitVerdict::BUSY)
    });
    let parts = [
        Some(fits.into_iter().chain(not).join(", ")).filter(|told| !told.is_empty()),
        names(FitVerdict::Undecided, "undecided"),
        busy,
    ];
    parts.into_iter().flatten().join("; ")
}

/// Lists the programs by their verdicts:
/// `does not suit etcd; suits redis; 3 have no published rule`.
fn suited(fits: &[Fit]) -> String {
    let names = |verdict, words: &str| {
        let of = fits.iter().filter(|fit| fit.verdict == Some(verdict));
        let names = of.map(|fit| &fit.program).join(", ");
        (!names.is_empty()).then(|| format!("{words} {names}"))
    };
    let without = fits.iter().filter(|fit| fit.verdict.is_none()).count();
    let without = (without > 0).then(|| format!("{without} have no published rule"));
    let parts = [
        names(FitVerdict::Fits, "fits:"),
        names(FitVerdict::DoesNotFit, "does not fit:"),
        names(FitVerdict::Undecided, "undecided:"),
        names(FitVerdict::Busy, "not judged, as the disk or the CPUs were busy:"),
        without,
    ];
    parts.into_iter().flatten().join("; ")
}

/// A rule of a program, with its verdict.
struct Line<'a> {
    program: &'a str,
    rule: &'a FitRule,
    verdict: Option<FitVerdict>,
}

fn program(lines: &[Line]) -> Column {
    Column::words("PROGRAM", Keep::Always, lines, |of| of.program).titled("Program")
}

fn rule(heading: &str, title: &str, lines: &[Line]) -> Column {
    let rule = Column::words(heading, Keep::Always, lines, |of| named(of.rule));
    rule.titled(title).flexible(13, 13)
}

/// Returns the name of a rule, with its load.
fn named(rule: &FitRule) -> String {
    std::iter::once(&rule.name).chain(&rule.load).join(", ")
}

fn here(lines: &[Line]) -> Column {
    let here = |of: &Line| with_ends(&of.rule.of, &of.rule.here);
    Column::figures("HERE (95 %)", Keep::Always, lines, here).titled("Here (95 %)")
}

/// Returns the column of verdicts. A line without a rule has the words `without`.
fn verdict(without: &'static str, lines: &[Line]) -> Column {
    let verdict = |of: &Line| {
        let words = of.verdict.map_or(without, FitVerdict::words);
        Text { tone: tone(of.verdict), ..words.into() }
    };
    Column::words("VERDICT", Keep::Always, lines, verdict).titled("Verdict")
}

/// Returns a table with a line for each program: the rule that decides, or the program's first
/// figure.
fn overview(fits: &[Fit]) -> Table {
    let lines = fits.iter().filter_map(|fit| {
        let rule = fit.rules.iter().find(|rule| rule.verdicts().max() == fit.verdict)?;
        Some(Line { program: &fit.program, rule, verdict: fit.verdict })
    });
    let lines: Vec<Line> = lines.collect();
    let rules = rule("RULE OR FIGURE", "Rule or figure", &lines);
    let columns = vec![program(&lines), rules, here(&lines), verdict("no rule", &lines)];
    Table::of("programs", columns)
}

/// Returns the note that the figures may come from a burst, if the device has a limit on writes or
/// is a cloud volume, and no burst was used up.
fn burst(document: &Document) -> Option<String> {
    if document.rows().any(|row| row.sustained.is_some()) {
        return None;
    }
    let of_writes = document.target.limits.iter().filter(|limit| limit.of.starts_with("write"));
    let limits = of_writes.map(|limit| match limit.of.as_str() {
        "write_bytes_per_s" => units::rate(limit.most),
        _ => format!("{:.0} writes per second", limit.most),
    });
    let limits = limits.unique().join(" and ");
    let device = document.target.device.as_ref()?;
    let model = device.model.as_deref().unwrap_or_default();
    let because = if !limits.is_empty() {
        format!("a control group limits {} to {limits}", device.name)
    } else {
        let cloud = CLOUD_VOLUMES.iter().find(|name| model.contains(**name))?;
        format!("{} is a cloud volume ({cloud}), which may have burst credits", device.name)
    };
    Some(format!("These figures may be a burst: {because}. --sustained uses it up first."))
}

/// Returns the table of all rules. If there are several programs, it names the program of each
/// rule.
fn table(fits: &[Fit]) -> Table {
    let mut lines: Vec<Line> = Vec::new();
    for Fit { program, rules, .. } in fits {
        lines.extend(rules.iter().map(|rule| Line { program, rule, verdict: rule.verdict }));
    }
    let mut columns = Vec::new();
    columns.extend((fits.len() > 1).then(|| program(&lines)));
    let says = |of: &Line| of.rule.says.clone().unwrap_or_default();
    columns.push(rule("RULE", "Rule", &lines));
    columns.push(Column::words("SAYS", Keep::If(1), &lines, says).titled("Says"));
    columns.push(here(&lines));
    columns.push(verdict("", &lines));
    for neighbour in neighbours(fits) {
        let heading = format!("BESIDE {}", neighbour.to_uppercase());
        let beside = |of: &Line| {
            let Some(beside) = beside(of.rule, neighbour) else { return "-".into() };
            let words = beside.verdict.map(|of| format!(", {}", of.words())).unwrap_or_default();
            let told = [with_ends, in_short].map(|told| told(&of.rule.of, &beside.here));
            let [whole, short] = told.map(|figure| figure + &words);
            Text { short: Some(short), tone: tone(beside.verdict), ..whole.into() }
        };
        let beside = Column::figures(heading, Keep::Last, &lines, beside);
        columns.push(beside.titled(format!("Beside {neighbour}")));
    }
    let label = if let [fit] = fits { &fit.program } else { "all rules" };
    Table::of(label, columns)
}

/// Returns the names of the background loads, in the order of the measurement.
fn neighbours(fits: &[Fit]) -> Vec<&str> {
    let all = fits.iter().flat_map(|fit| &fit.rules).flat_map(|rule| &rule.beside);
    all.map(|beside| beside.neighbour.as_str()).unique().collect()
}

fn beside<'a>(rule: &'a FitRule, neighbour: &str) -> Option<&'a Beside> {
    rule.beside.iter().find(|of| of.neighbour == neighbour)
}

fn tone(verdict: Option<FitVerdict>) -> Tone {
    match verdict {
        Some(FitVerdict::Fits) => Tone::Green,
        Some(FitVerdict::Undecided | FitVerdict::Busy) => Tone::Yellow,
        Some(FitVerdict::DoesNotFit) => Tone::Red,
        None => Tone::Plain,
    }
}

/// Returns whether there was time for a run.
fn is_measured(interval: &Interval) -> bool {
    interval.ci95_high > 0.0
}

/// Returns a figure with its unit.
fn shown(of: &str, value: f64) -> String {
    match of {
        "iops" => per_second(value),
        "bytes_per_s" => units::rate(value),
        _ => units::nanoseconds(value.max(0.0).round() as u64),
    }
}

/// Returns a median with the ends of its interval, in one unit: `1.93 (1.82-2.10) ms`.
fn with_ends(of: &str, interval: &Interval) -> String {
    if !is_measured(interval) {
        return "-".into();
    }
    if !has_spread(interval) {
        // A single operation is too few for a P99.
        return shown(of, interval.median.max(interval.ci95_low));
    }
    let kind: &[&str] = match of {
        "iops" => &units::COUNTS,
        "bytes_per_s" => &units::RATES,
        _ => &units::TIMES,
    };
    let ([median, low, high], unit) = ranged(interval, kind);
    match interval.median {
        // There are too few operations for a P99.
        0.0 => format!("{low}-{high} {unit}"),
        _ if stats::relative_width(interval) > 9.99 => shown(of, interval.median) + " (too wide)",
        _ => format!("{median} ({low}-{high}) {unit}"),
    }
}

/// Returns only the median, if there is one.
fn in_short(of: &str, here: &Interval) -> String {
    if here.median > 0.0 { shown(of, here.median) } else { with_ends(of, here) }
}

/// Returns the verdicts and the ratios under background loads, and the sources.
fn notes_of(fit: &Fit, document: &Document) -> Vec<Note> {
    let beside = fit.rules.iter().flat_map(|rule| {
        let worth = rule.verdict.is_some() || rule.of == "latency_p99_ns";
        let is_told = move |of: &&Beside| {
            let is_remedy = REMEDIES.contains(&&*of.neighbour);
            worth
                && (of.ratio.median > 0.0 || of.verdict.is_some())
                && !(is_remedy && beside(rule, COPY).is_some())
        };
        rule.beside.iter().filter(is_told).map(|beside| ratio(rule, beside))
    });
    let sources = fit.rules.iter().filter_map(|rule| {
        let (says, source) = (rule.says.as_ref()?, rule.source.as_ref()?);
        let read = rule.date.as_ref().map(|date| format!("read {date}"));
        let about = rule.kind.clone().into_iter().chain(read).join(", ");
        let about = if about.is_empty() { about } else { format!(" ({about})") };
        Some(format!("{says}{about}: {source}"))
    });
    let sources = sources.unique().map(|text| Note { on: On::Pages, ..text.into() });
    let remedies = fit.rules.iter().filter_map(remedies);
    let is_judged = fit.rules.iter().any(|rule| rule.verdict.is_some());
    let lost = fit.rules.iter().filter(|_| is_judged).find_map(|rule| lost(rule, document));
    let told = lost.into_iter().chain(beside).chain(remedies);
    told.map(Note::from).chain(sources).collect()
}

/// Explains that no rule for flushed writes fits, if durable transactions of the rule's row do not
/// survive a power loss on this disk.
fn lost(rule: &FitRule, document: &Document) -> Option<String> {
    let row = document.row(&rule.row)?;
    let is_flushed = row.settings.asked.sync != Flush::None;
    let survives = row.survives.filter(|survives| *survives < Survives::PowerLoss)?;
    is_flushed.then(|| {
        format!(
            "Flushed writes here survive no more than {survives}, so no rule for them fits, \
             however fast they are"
        )
    })
}

/// The background load for which there are remedies, and the loads with the remedies.
const COPY: &str = "copy";
const REMEDIES: [&str; 3] = ["copy-idle", "copy-paced", "dontcache"];
/// The minimum slowdown of an operation by the copy that makes remedies worth a measurement.
const WORTH_A_REMEDY: f64 = 2.0;

/// Names the remedies that helped against the copy, because their intervals are entirely below the
/// interval of the copy, and those with no detectable difference. If none was tried although the
/// copy slowed down operations, names the option that tries them; otherwise `None`.
fn remedies(rule: &FitRule) -> Option<String> {
    let is_latency = rule.of == "latency_p99_ns" || rule.most.is_some();
    let measured = |name| beside(rule, name).filter(|of| is_latency && of.ratio.median > 0.0);
    let copy = measured(COPY)?;
    let (helped, others): (Vec<&Beside>, Vec<&Beside>) = REMEDIES
        .into_iter()
        .filter_map(measured)
        .partition(|remedy| remedy.ratio.ci95_high < copy.ratio.ci95_low);
    let list = |remedies: &[&Beside]| {
        let told = |of: &&Beside| {
            let verdict = of.verdict.map(|verdict| format!(", {}", verdict.words()));
            let times = units::significant(of.ratio.median);
            format!("{} ({times} times that alone{})", of.neighbour, verdict.unwrap_or_default())
        };
        remedies.iter().map(told).join(", ")
    };
    let found = match (&helped[..], &others[..]) {
        ([], []) => {
            let tries = format!("To try remedies: --beside {COPY},{}", REMEDIES.join(","));
            return (copy.ratio.ci95_low > WORTH_A_REMEDY).then_some(tries);
        }
        ([], others) => format!("no difference found with {}", list(others)),
        (helped, []) => format!("{} helped", list(helped)),
        (helped, others) => {
            format!("{} helped; no difference found with {}", list(helped), list(others))
        }
    };
    Some(format!("Remedies for a copy, {}: {found}", rule.name))
}

/// Lists the undecided rules by the reason, each with the next step that would decide them.
fn undecided(fits: &[Fit], document: &Document) -> Vec<String> {
    let rules = || fits.iter().flat_map(|fit| &fit.rules);
    let elapsed_s = |row: &Row| -> f64 { row.runs.iter().map(|run| run.elapsed_s).sum() };
    // The time includes the work between the runs.
    let needs_s = |rule: &FitRule| {
        let of_rule_s = document.row(&rule.row).map(elapsed_s).filter(|s| *s > 0.0)?;
        Some(document.elapsed_s * rule.decided_after_s? / of_rule_s)
    };
    let neighbours = neighbours(fits);
    let without = |rule: &FitRule| {
        let is_here = |name: &&&str| beside(rule, name).is_some_and(|of| is_measured(&of.here));
        let missing = neighbours.iter().filter(|name| !is_here(name));
        let missing = missing.map(|name| format!("{} beside {name}", named(rule)));
        let alone = (!is_measured(&rule.here)).then(|| named(rule));
        alone.into_iter().chain(missing).collect::<Vec<_>>()
    };
    let unmeasured = rules().flat_map(without).unique().join("; ");
    let is_open =
        |rule: &&FitRule| rule.verdict == Some(FitVerdict::Undecided) && is_measured(&rule.here);
    let runs = |rule: &FitRule| document.row(&rule.row).map_or(0, |row| row.runs.len());
    let minutes = rules().filter(is_open).filter_map(needs_s).fold(0.0, f64::max) / 60.0;
    let names = |has_runs: bool, has_time: bool| {
        let is_of = |rule: &&FitRule| {
            let is_long = runs(rule) >= FitRule::RUNS_MIN;
            is_long == has_runs && (!is_long || needs_s(rule).is_some() == has_time)
        };
        rules().filter(is_open).filter(is_of).map(named).unique().join("; ")
    };
    let told = [
        (
            "Undecided, as the interval includes the limit",
            names(true, true),
            format!("--time {}min should decide", minutes.ceil()),
        ),
        (
            "Undecided, and too close to the limit for any length of time",
            names(true, false),
            "expect to miss the limit now and then".into(),
        ),
        (
            "Undecided, as fewer than three runs prove nothing",
            names(false, false),
            "leave out --runs, or give more --time".into(),
        ),
        (
            "Not measured (-); the findings give the reasons",
            unmeasured,
            "if time was the reason, give more --time, or fewer patterns and --beside".into(),
        ),
    ];
    let told = told.into_iter().filter(|(_, names, _)| !names.is_empty());
    told.map(|(why, names, then)| format!("{why}: {names}. Next: {then}")).collect()
}

fn ratio(rule: &FitRule, beside: &Beside) -> String {
    let verdict = beside.verdict.map(|verdict| format!("{}, ", verdict.words()));
    let told = match beside.ratio.median > 0.0 {
        true => format!("{} alone", times(&beside.ratio)),
        // There are too few operations for a P99.
        false => with_ends(&rule.of, &beside.here),
    };
    format!("{} beside {}: {}{told}", named(rule), beside.neighbour, verdict.unwrap_or_default())
}

/// Returns a ratio with its interval: `18.8 (9.70-29.1) times that`; for a rate that falls,
/// `480 (400-520) times lower than`.
fn times(ratio: &Interval) -> String {
    let (of, words) = match ratio.ci95_low > 0.0 && ratio.ci95_high < 1.0 {
        true => {
            let [median, ci95_low, ci95_high] =
                [ratio.median, ratio.ci95_high, ratio.ci95_low].map(|part| 1.0 / part);
            (Interval { median, ci95_low, ci95_high }, "times lower than")
        }
        false => (*ratio, "times that"),
    };
    let [median, low, high] = [of.median, of.ci95_low, of.ci95_high].map(units::significant);
    match has_spread(&of) {
        true => format!("{median} ({low}-{high}) {words}"),
        false => format!("{median} {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(load: Option<&str>, here: f64, verdict: FitVerdict) -> FitRule {
        let here = Interval { median: here, ci95_low: here, ci95_high: here };
        let (of, verdict, load) = ("iops".into(), Some(verdict), load.map(Into::into));
        FitRule { name: "500 per second".into(), of, verdict, here, load, ..FitRule::default() }
    }

    fn first_line(rules: Vec<FitRule>) -> String {
        let verdict = FitVerdict::of_all(rules.iter().flat_map(FitRule::verdicts));
        conditions(&Fit { program: "etcd".into(), version: "3".into(), verdict, rules })
    }

    #[test]
    fn the_first_line_has_the_verdict_of_each_load_with_what_breaks_it() {
        use FitVerdict::{Busy, DoesNotFit, Fits, Undecided};
        let both = |normal, heavy| {
            first_line(vec![judged(None, 326.0, normal), judged(Some("heavy load"), 326.0, heavy)])
        };
        let why = "heavy load (500 per second: 326 /s here)";
        assert_eq!(both(Fits, DoesNotFit), format!("fits normal load, does not fit {why}"));
        assert_eq!(both(Fits, Undecided), format!("fits normal load; undecided {why}"));
        assert_eq!(both(Fits, Fits), "fits normal load, heavy load");
        let busy = first_line(vec![judged(None, 326.0, Busy)]);
        let said = |of: &str| format!("not judged {of}: {}", FitVerdict::BUSY);
        assert_eq!(busy, said("(500 per second: 326 /s here)"));
        assert_eq!(both(Fits, Busy), format!("fits normal load; {}", said(&format!("for {why}"))));
        assert_eq!(first_line(vec![FitRule::default()]), "no rule is published");
    }

    #[test]
    fn a_rule_that_breaks_beside_a_neighbour_is_in_the_first_line_though_it_fits_alone() {
        let mut rule = judged(None, 900.0, FitVerdict::Fits);
        let here = Interval { median: 0.56, ci95_low: 0.5, ci95_high: 0.6 };
        let verdict = Some(FitVerdict::DoesNotFit);
        rule.beside = vec![Beside { neighbour: "copy".into(), here, verdict, ..Beside::default() }];
        assert_eq!(
            first_line(vec![rule]),
            "fits alone, does not fit beside copy (500 per second: 0.56 /s here)"
        );
    }

    #[test]
    fn one_line_names_all_undecided_rules_and_the_time_that_decides_all() {
        let mut rules = vec![judged(None, 1.0, FitVerdict::Undecided); 2];
        (rules[1].name, rules[1].load) = ("backend".into(), Some("heavy load".into()));
        let row = wrote_result::sample::row("etcd/wal", "power-loss", &[1e9; 3]);
        for (rule, decided_after_s) in rules.iter_mut().zip([60.0, 600.0]) {
            rule.row.clone_from(&row.name);
            let times = row.runs.iter().map(|run| run.elapsed_s).sum::<f64>();
            rule.decided_after_s = Some(decided_after_s * times);
        }
        let mut document = Document { elapsed_s: 1.0, ..Document::default() };
        document.scenarios.push(wrote_result::document::Scenario {
            name: "fit".into(),
            question: String::new(),
            rows: vec![row],
            knee: None,
        });
        let fit = Fit { program: "etcd".into(), version: "3".into(), verdict: None, rules };
        let lines = undecided(std::slice::from_ref(&fit), &document);
        let decided = "Undecided, as the interval includes the limit: 500 per second; backend, \
            heavy load. Next: --time 10min should decide";
        assert_eq!(lines, [decided]);
        let unmeasured = FitRule { name: "late".into(), ..FitRule::default() };
        let mut close = fit.rules[0].clone();
        (close.name, close.decided_after_s) = ("close".into(), None);
        let lines = undecided(&[Fit { rules: vec![unmeasured, close], ..fit.clone() }], &document);
        assert!(lines[0].starts_with("Undecided, and too close to the limit"), "{lines:?}");
        assert!(lines[1].starts_with("Not measured (-); the findings give the reasons: late."));
        let none = Fit { rules: Vec::new(), ..fit };
        assert!(undecided(&[none], &document).is_empty());
    }

    #[test]
    fn a_remedy_helped_where_its_interval_is_below_the_copys() {
        let beside = |neighbour: &str, median: f64| Beside {
            neighbour: neighbour.into(),
            ratio: Interval { median, ci95_low: median * 0.8, ci95_high: median * 1.2 },
            ..Beside::default()
        };
        let rule = |beside: &[Beside]| FitRule {
            name: "P99 < 10 ms".into(),
            most: Some(1e7),
            beside: beside.to_vec(),
            ..FitRule::default()
        };
        let copy = beside("copy", 8.0);
        assert_eq!(
            remedies(&rule(std::slice::from_ref(&copy))).unwrap(),
            "To try remedies: --beside copy,copy-idle,copy-paced,dontcache"
        );
        assert_eq!(remedies(&rule(&[beside("copy", 2.0)])), None);
        let tried = [copy, beside("copy-idle", 7.0), beside("dontcache", 2.0)];
        assert_eq!(
            remedies(&rule(&tried)).unwrap(),
            "Remedies for a copy, P99 < 10 ms: dontcache (2.00 times that alone) helped; no \
             difference found with copy-idle (7.00 times that alone)"
        );
        assert_eq!(remedies(&rule(&tried[1..])), None, "without the copy there is no comparison");
    }

    #[test]
    fn a_ratio_of_rates_is_the_number_of_times_that_they_are_lower() {
        let of = |median, ci95_low, ci95_high| times(&Interval { median, ci95_low, ci95_high });
        assert_eq!(of(18.8, 9.7, 29.1), "18.8 (9.70-29.1) times that");
        assert_eq!(of(1230.0, 1230.0, 1230.0), "1230 times that");
        assert_eq!(of(0.002, 0.001, 0.004), "500 (250-1000) times lower than");
        assert_eq!(of(0.9, 0.7, 1.2), "0.90 (0.70-1.20) times that");
    }

    #[test]
    fn a_figure_and_its_ends_have_one_unit() {
        let interval = |low, high| Interval { median: 1.93e6, ci95_low: low, ci95_high: high };
        let told = |low, high| with_ends("flush_p99_ns", &interval(low, high));
        assert_eq!(told(1.82e6, 2.1e6), "1.93 (1.82-2.10) ms");
        assert_eq!(told(900e3, 2.1e6), "1.93 (0.90-2.10) ms");
        assert_eq!(told(1.93e6, 1.93e6), "1.93 ms");
        assert_eq!(with_ends("iops", &Interval::default()), "-");
        let few = Interval { median: 0.0, ci95_low: 9e6, ci95_high: 30e6 };
        assert_eq!(with_ends("flush_p99_ns", &few), "9.00-30.0 ms");
    }
}
