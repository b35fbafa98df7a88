//! The section of `wrote fit`: each program's rules, the figures on this disk, and the verdicts.

use crate::figures::{has_spread, per_second};
use crate::paint::Tone;
use crate::table::{Column, Keep, On, Table};
use crate::tree::{Block, Note, Role, Section, Style};
use itertools::Itertools;
use wrote_result::document::{Beside, Document, Fit, FitRule, FitVerdict, Interval, Row};
use wrote_result::units;

/// The names of the programs that a result judges: `etcd`.
pub fn programs(document: &Document) -> String {
    document.fit.iter().flatten().map(|fit| &fit.program).join(", ")
}

/// Returns the section of the verdicts; `None` where no program was asked about.
pub fn section(document: &Document) -> Option<Section<'_>> {
    let fits = document.fit.as_ref()?;
    let blocks = fits.iter().flat_map(|fit| blocks(fit, document)).collect();
    Some(Section::new(Role::Answer, "The verdict", "", blocks))
}

fn blocks<'a>(fit: &'a Fit, document: &'a Document) -> Vec<Block<'a>> {
    let target = &document.target;
    let device = target.device.as_ref().map(|of| format!(", {}", of.name)).unwrap_or_default();
    let Fit { program, version, .. } = fit;
    let title = format!("{program} {version} on {} ({}{device})", target.path, target.filesystem);
    let verdict = fit.verdict.map_or("no published rule", FitVerdict::words);
    vec![
        Block::Heading(title, verdict.into()),
        Block::Table(table(fit)),
        Block::notes(Style::Apart, notes(fit, document)),
    ]
}

fn table(fit: &Fit) -> Table {
    let rows: Vec<&FitRule> = fit.rules.iter().collect();
    let mut columns = vec![
        Column::words("RULE", Keep::Always, |rule: &FitRule| rule.name.clone())
            .titled("Rule")
            .flexible(13, 13),
        Column::words("SAYS", Keep::If(1), |rule: &FitRule| rule.says.clone().unwrap_or_default())
            .titled("Says"),
        Column::figures("HERE (95 %)", Keep::Always, |rule: &FitRule| {
            with_ends(&rule.of, &rule.here)
        })
        .titled("Here (95 %)"),
    ];
    for neighbour in neighbours(fit) {
        let heading = format!("BESIDE {}", neighbour.to_uppercase());
        columns.push(
            Column::figures(heading, Keep::Last, move |rule: &FitRule| {
                beside(rule, neighbour).map_or(String::new(), |of| with_ends(&rule.of, &of.here))
            })
            .titled(format!("Beside {neighbour}"))
            .short(move |rule| {
                let of = beside(rule, neighbour);
                of.map_or(String::new(), |of| shown(&rule.of, of.here.median))
            }),
        );
    }
    let verdict = |rule: &FitRule| rule.verdict.map_or("", FitVerdict::words).to_owned();
    columns.push(
        Column::words("VERDICT", Keep::Always, verdict)
            .titled("Verdict")
            .toned(|rule| tone(rule.verdict)),
    );
    Table::of(&fit.program, &columns, &rows)
}

/// The neighbours, in the order of the measurement.
fn neighbours(fit: &Fit) -> Vec<&str> {
    let all = fit.rules.iter().flat_map(|rule| &rule.beside);
    all.map(|beside| beside.neighbour.as_str()).unique().collect()
}

fn beside<'a>(rule: &'a FitRule, neighbour: &str) -> Option<&'a Beside> {
    rule.beside.iter().find(|of| of.neighbour == neighbour)
}

fn tone(verdict: Option<FitVerdict>) -> Tone {
    match verdict {
        Some(FitVerdict::Fits) => Tone::Green,
        Some(FitVerdict::Undecided) => Tone::Yellow,
        Some(FitVerdict::DoesNotFit) => Tone::Red,
        None => Tone::Plain,
    }
}

/// A figure in its unit.
fn shown(of: &str, value: f64) -> String {
    match of {
        "iops" => per_second(value),
        "bytes_per_s" => units::rate(value),
        _ => units::nanoseconds(value.max(0.0).round() as u64),
    }
}

/// A median with the ends of its interval: `1.93 (1.82-2.10) ms`.
fn with_ends(of: &str, interval: &Interval) -> String {
    let median = shown(of, interval.median);
    if !has_spread(interval) {
        return median;
    }
    let [low, high] = [interval.ci95_low, interval.ci95_high].map(|end| shown(of, end.max(0.0)));
    let parts = [&median, &low, &high].map(|text| text.rsplit_once(' ').unwrap_or((text, "")));
    match parts {
        [(median, unit), (low, of_low), (high, of_high)] if unit == of_low && unit == of_high => {
            format!("{median} ({low}-{high}) {unit}")
        }
        _ => format!("{median} ({low}-{high})"),
    }
}

/// Returns the time that would decide, the neighbours' ratios, and the sources.
fn notes(fit: &Fit, document: &Document) -> Vec<Note> {
    let undecided = fit.rules.iter().filter_map(|rule| undecided(rule, document));
    let beside = fit.rules.iter().flat_map(|rule| {
        let worth = rule.verdict.is_some() || rule.of == "latency_p99_ns";
        rule.beside.iter().filter(move |_| worth).map(|beside| ratio(rule, beside))
    });
    let no_rule = fit.rules.iter().all(|rule| rule.says.is_none()).then(|| {
        let program = &fit.program;
        format!("No rule for {program}'s disk is published that we know: these are its figures.")
    });
    let sources = fit.rules.iter().filter_map(|rule| {
        let (says, source) = (rule.says.as_ref()?, rule.source.as_ref()?);
        Some(format!("{says}: {source}"))
    });
    let sources = sources.unique().map(|text| Note { on: On::Pages, ..text.into() });
    undecided.chain(beside).chain(no_rule).map(Note::from).chain(sources).collect()
}

fn undecided(rule: &FitRule, document: &Document) -> Option<String> {
    if rule.verdict != Some(FitVerdict::Undecided) {
        return None;
    }
    let rows = || document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let name = &rule.name;
    let elapsed_s = |row: &Row| -> f64 { row.runs.iter().map(|run| run.elapsed_s).sum() };
    let of_rule = rows().find(|row| row.name == rule.row).map(elapsed_s)?;
    let all: f64 = rows().map(elapsed_s).sum();
    Some(match rule.decided_after_s.filter(|_| of_rule > 0.0) {
        Some(after_s) => {
            let minutes = (all * after_s / of_rule / 60.0).ceil();
            format!(
                "{name}: undecided, the interval holds the limit; at this spread --time \
                 {minutes}min would decide it"
            )
        }
        None => format!("{name}: undecided, the figure is too close to the limit to tell"),
    })
}

fn ratio(rule: &FitRule, beside: &Beside) -> String {
    let Interval { median, ci95_low, ci95_high } = beside.ratio;
    let verdict = beside.verdict.map(|verdict| format!("{}, ", verdict.words()));
    let [median, low, high] = [median, ci95_low, ci95_high].map(units::significant);
    format!(
        "{} beside {}: {}{median} ({low}-{high}) times that alone",
        rule.name,
        beside.neighbour,
        verdict.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_unit_once_where_both_ends_have_the_same() {
        let interval = |low, high| Interval { median: 1.93e6, ci95_low: low, ci95_high: high };
        let told = |low, high| with_ends("flush_p99_ns", &interval(low, high));
        assert_eq!(told(1.82e6, 2.1e6), "1.93 (1.82-2.10) ms");
        assert_eq!(told(900e3, 2.1e6), "1.93 ms (900 us-2.10 ms)");
        assert_eq!(told(1.93e6, 1.93e6), "1.93 ms");
    }
}
