//! The chart of `wrote fit`: how far each figure is from its limit, alone and under background
//! load.

use super::{beside, in_short, named, neighbours, with_ends};
use crate::chart::{Dot, Frame, Reference, dots, ratio};
use crate::figures::has_spread;
use crate::tree::{Figure, rest};
use wrote_result::document::{Document, Fit, FitRule, FitVerdict};

/// The maximum number of rules in a chart. The table below it contains all rules.
const RULES_MAX: usize = 40;

/// Draws how far the figures are from their limits, alone and under background load; `None` if no
/// figure has a limit.
pub fn margins(document: &Document) -> Option<Figure> {
    let fits = document.fit.as_deref()?;
    let rules = fits.iter().flat_map(|fit| fit.rules.iter().map(move |rule| (fit, rule)));
    // A P99 of too few operations has no median.
    let is_drawn = |rule: &FitRule| rule.verdict.is_some() && rule.here.median > 0.0;
    let rules: Vec<(&Fit, &FitRule)> = rules.filter(|(_, rule)| is_drawn(rule)).collect();
    let shown = &rules[..rules.len().min(RULES_MAX)];
    let name = |(fit, rule): &(&Fit, &FitRule)| format!("{}: {}", fit.program, named(rule));
    let names: Vec<String> = shown.iter().map(name).collect();
    let neighbours = neighbours(fits);
    let mut drawn = Vec::new();
    for (row, (_, rule)) in shown.iter().enumerate() {
        let margin = |here: f64| match rule.most {
            Some(most) => most / here,
            None => here / rule.least.unwrap_or(here),
        };
        let mut lines = vec![(0, &rule.here, rule.verdict)];
        for (line, name) in (1..).zip(&neighbours) {
            lines.extend(beside(rule, name).map(|of| (line, &of.here, of.verdict)));
        }
        for (line, of, verdict) in lines {
            let [one, other] = [of.ci95_low, of.ci95_high].map(margin);
            let verdict = verdict.map_or("", FitVerdict::words);
            drawn.push(Dot {
                row,
                line,
                class: format!("shape-{}", line + 1),
                value: if of.median > 0.0 { margin(of.median) } else { 0.0 },
                interval: has_spread(of).then(|| (one.min(other), one.max(other))),
                figure: in_short(&rule.of, of),
                title: format!("{}: {}: {verdict}", names[row], with_ends(&rule.of, of)),
                ..Dot::default()
            });
        }
    }
    let reference = Reference { value: 1.0, title: "the limit".into(), word: "" };
    let (label, axis) = ("Margins to the limits", "times as good as its limit, more is better");
    let frame = Frame { label, names: &names, word: ratio, axis, reference: Some(&reference) };
    let mut legend = vec![("shape-1".to_owned(), "alone".to_owned())];
    let others = (2..).zip(neighbours);
    legend.extend(others.map(|(line, of)| (format!("shape-{line}"), format!("beside {of}"))));
    (!drawn.is_empty()).then(|| Figure {
        question: "How far is each figure from its limit?".into(),
        picture: dots(&frame, &drawn),
        legend,
        note: format!(
            "The dashed line is the limit; a figure right of it meets the rule. {}",
            rest(shown.len(), rules.len())
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::Interval;

    fn drawn(rules: Vec<FitRule>) -> Option<String> {
        let fit = Fit { program: "a".into(), version: "1".into(), verdict: None, rules };
        let document = Document { fit: Some(vec![fit]), ..Document::default() };
        margins(&document).map(|figure| figure.picture.wide)
    }

    #[test]
    fn a_figure_that_keeps_its_limit_is_right_of_the_line_whether_it_is_a_time_or_a_rate() {
        let rule = |name: &str, most, least: Option<f64>, here: f64| FitRule {
            name: name.into(),
            of: if least.is_some() { "iops" } else { "flush_p99_ns" }.into(),
            most,
            least,
            here: Interval { median: here, ci95_low: here, ci95_high: here },
            verdict: Some(FitVerdict::Fits),
            ..FitRule::default()
        };
        for (of, keeps) in [
            (rule("P99", Some(1e7), None, 1e6), true),
            (rule("P99", Some(1e7), None, 1e8), false),
            (rule("rate", None, Some(500.0), 5000.0), true),
            (rule("rate", None, Some(500.0), 50.0), false),
        ] {
            let svg = drawn(vec![of]).expect("a chart");
            let number = |after: &str| -> i32 {
                let rest = svg.split(after).nth(1).unwrap_or_else(|| panic!("{after}: {svg}"));
                rest.split(['"', ',']).next().unwrap().parse().unwrap()
            };
            let line = number("<title>the limit</title><polyline points=\"");
            assert_eq!(number("<circle cx=\"") > line, keeps, "{svg}");
        }
        assert_eq!(
            drawn(vec![FitRule { verdict: None, ..rule("no limit", None, None, 1.0) }]),
            None
        );
        assert_eq!(drawn(Vec::new()), None);
    }
}
