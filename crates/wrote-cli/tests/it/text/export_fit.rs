//! Verdicts of `wrote fit` in an artificial result, compared with the texts in `golden/`.

use crate::support::assert_golden;
use crate::text::screen::{PLAIN, exported};
use fixtures::samples;
use wrote_report::{Format, Screen};
use wrote_result::document::{Beside, Document, Fit, FitRule, FitVerdict, Interval, Limit, Source};

fn interval(median: f64, ci95_low: f64, ci95_high: f64) -> Interval {
    Interval { median, ci95_low, ci95_high }
}

fn rule(name: &str, of: &str, here: Interval, beside: Interval, times: f64) -> FitRule {
    let ratio = interval(times, times * 0.8, times * 1.3);
    let neighbour = "copy".into();
    FitRule {
        name: name.into(),
        of: of.into(),
        here,
        beside: vec![Beside { neighbour, here: beside, ratio, verdict: None }],
        ..FitRule::default()
    }
}

/// Returns a result of etcd under a background copy, with a rule for each verdict, and with a
/// figure.
pub(super) fn etcd() -> Document {
    let mut document = samples::document();
    document.source = Some(Source::Fit);
    document.command =
        ["wrote", "fit", "etcd", "/mnt/data", "--beside", "copy"].map(String::from).into();
    (document.answers, document.advice) = (None, Vec::new());
    let row = document.scenarios[0].rows[0].name.clone();
    let (here, beside) = (interval(1.93e6, 1.82e6, 2.1e6), interval(41e6, 33e6, 52e6));
    let judged = |rule: FitRule, says: &str, verdict, of_beside| {
        let beside = rule.beside.into_iter().map(|of| Beside { verdict: of_beside, ..of });
        FitRule {
            row: row.clone(),
            says: Some(says.into()),
            source: Some(format!("https://example.org/{}", says.replace(' ', "-"))),
            beside: beside.collect(),
            verdict: Some(verdict),
            ..rule
        }
    };
    let (fits, fails) = (FitVerdict::Fits, Some(FitVerdict::DoesNotFit));
    let flush = |name| rule(name, "flush_p99_ns", here, beside, 21.2);
    let heavy = flush("WAL fdatasync P99 < 2 ms");
    let load = Some("heavy load".into());
    let heavy = FitRule { most: Some(2e6), decided_after_s: Some(600.0), load, ..heavy };
    let backend = interval(31e6, 28e6, 35e6);
    let backend = rule("backend commit P99 < 25 ms", "latency_p99_ns", backend, beside, 1.3);
    let appends = interval(512.0, 490.0, 530.0);
    let rules = vec![
        judged(flush("WAL fdatasync P99 < 10 ms"), "etcd FAQ", fits, fails),
        judged(heavy, "OpenShift 4.17", FitVerdict::Undecided, fails),
        judged(backend, "etcd FAQ", FitVerdict::DoesNotFit, fails),
        rule("WAL append, per second", "iops", appends, interval(24.0, 19.0, 30.0), 0.05),
    ];
    let (program, version) = ("etcd".into(), "3.4.23".into());
    let verdict = FitVerdict::of_all(rules.iter().flat_map(FitRule::verdicts));
    document.fit = Some(vec![Fit { program, version, verdict, rules }]);
    document
}

#[test]
fn the_verdicts_are_the_golden_ones_and_stand_last_on_a_screen() {
    let last = |width| {
        let text = exported(&etcd(), Format::Table, Screen { width, ..PLAIN });
        text[text.find("\netcd 3.4.23 on").expect("it has the section")..].to_owned()
    };
    assert_golden("fit-80.txt", &last(80));
}

#[test]
fn of_all_programs_there_is_one_table_with_the_answer_first_and_a_limit_is_said() {
    let mut document = etcd();
    let fits = document.fit.as_mut().unwrap();
    fits[0].rules.iter_mut().for_each(|rule| rule.beside.clear());
    let named = |program: &str, rules: &[FitRule]| {
        let verdict = FitVerdict::of_all(rules.iter().flat_map(FitRule::verdicts));
        let (program, version) = (program.into(), "7".into());
        Fit { program, version, verdict, rules: rules.to_vec() }
    };
    let rules = fits[0].rules.clone();
    fits.extend([named("redis", &rules[..1]), named("kafka", &rules[3..])]);
    let from = "/sys/fs/cgroup/a/io.max".to_owned();
    document.target.limits = vec![Limit { of: "write_iops".into(), most: 3000.0, from }];
    let text = exported(&document, Format::Table, Screen { width: 80, ..PLAIN });
    assert_golden("fit-all-80.txt", &text[text.find("\n3 programs on").unwrap()..]);
}

#[test]
fn markdown_and_the_page_have_the_verdicts_first_with_the_addresses_of_the_sources() {
    let text = exported(&etcd(), Format::Markdown, PLAIN);
    assert!(text.starts_with("## wrote fit etcd "), "{text}");
    let section = text.find("### etcd 3.4.23 on").expect("it has the section");
    let end = text[section + 4..].find("\n## ").or(text[section + 4..].find("\n### "));
    let end = end.map_or(text.len(), |end| section + 4 + end);
    assert_golden("fit.md", &text[section..end]);
}
