//! The registry of scenarios: one line each, in the order of measurement.

pub(crate) mod append;
mod grid;
pub(crate) mod ladder;
pub(crate) mod latency;
pub(crate) mod load;
pub(crate) mod meta;
pub(crate) mod pages;
pub(crate) mod peak;
pub(crate) mod rand;
pub(crate) mod reads;
pub(crate) mod sustained;
pub(crate) mod ways;

pub use append::MessageSizes;

use crate::names;
use crate::scenario::{Listed, Scenario};
use std::collections::BTreeSet;
use wrote_jobs::findings::{self, Evidence};
use wrote_result::Error;
use wrote_result::document::{Answer, Finding};
use wrote_result::finding;

// The modules are declared above, because rustfmt ignores modules that a macro declares.
macro_rules! registry {
    ($($room:ident::$scenario:ident,)*) => {
        $(
            pub use $room::$scenario;
        )*

        /// All scenarios with their settings.
        #[derive(Clone, Debug, Default)]
        #[cfg_attr(feature = "cli", derive(clap::Args))]
        pub struct Scenarios {
            $(
                #[doc = concat!("The scenario `", stringify!($room), "`.")]
                #[cfg_attr(feature = "cli", command(flatten))]
                pub $room: $scenario,
            )*
        }

        impl Scenarios {
            /// Returns every scenario, in the order of measurement.
            pub fn all(&self) -> Vec<&dyn Scenario> {
                vec![$(&self.$room),*]
            }
        }
    };
}

registry! {
    ladder::Ladder,
    reads::Reads,
    ways::Ways,
    append::Append,
    latency::Latency,
    peak::Peak,
    rand::Rand,
    pages::Pages,
    load::Load,
    meta::Meta,
    // This scenario must be the last one, because it leaves the device's cache full.
    sustained::Long,
}

/// Returns all rows that a request may name, in the order of measurement.
pub fn catalogue() -> Vec<Listed> {
    Scenarios::default().all().iter().flat_map(|scenario| scenario.catalogue()).collect()
}

/// Returns the rows that these names select; all rows if there are no names.
///
/// # Errors
///
/// [`Error::Usage`] for an unknown name, with a suggestion of the most similar one.
pub fn listed(only: &[String]) -> Result<Vec<Listed>, Error> {
    let scenarios = Scenarios::default();
    check_names(&scenarios.all(), only)?;
    let is_named = |listed: &Listed| {
        let mut names = only.iter();
        only.is_empty() || names.any(|name| name == listed.scenario || listed.is_called(name))
    };
    Ok(catalogue().into_iter().filter(is_named).collect())
}

/// Refuses an unknown name, and suggests the most similar one.
pub(crate) fn check_names(scenarios: &[&dyn Scenario], only: &[String]) -> Result<(), Error> {
    let is_known = |name: &&String| scenarios.iter().any(|scenario| scenario.knows(name));
    let Some(unknown) = only.iter().find(|name| !is_known(name)) else { return Ok(()) };
    let hint = match nearest(unknown, scenarios) {
        Some(near) => format!("did you mean '{near}'?"),
        None if unknown == load::NAME => "for latency at rising rates, use --load-curve".into(),
        None => "'wrote bench --list' lists what there is".into(),
    };
    Err(Error::Usage(format!("--only {unknown:?}: no such scenario, workload or row; {hint}")))
}

/// Returns the name of the scenario, workload or row that was probably meant by `name`; `None` if
/// no name is similar.
fn nearest(name: &str, scenarios: &[&dyn Scenario]) -> Option<&'static str> {
    let of_row = |listed: Listed| {
        let row = listed.row;
        let workloads = row.match_indices('/').map(move |(end, _)| &row[..end]);
        workloads.chain([listed.scenario, row])
    };
    let listed = scenarios.iter().flat_map(|scenario| scenario.catalogue());
    let known: BTreeSet<&str> = listed.flat_map(of_row).collect();
    names::nearest(name, known.into_iter())
}

/// Returns the findings on a benchmark: the general ones, and the findings of its scenarios.
pub(crate) fn findings(scenarios: &[&dyn Scenario], evidence: &Evidence) -> Vec<Finding> {
    let mut found = findings::find(evidence);
    found.extend(scenarios.iter().flat_map(|scenario| scenario.findings(evidence)));
    finding::sort(&mut found);
    found
}

/// Returns the answers of all scenarios. The answers about the most durable writes come first.
pub(crate) fn answers(scenarios: &[&dyn Scenario], evidence: &Evidence) -> Vec<Answer> {
    let survives = |answer: &Answer| {
        let mut rows = evidence.rows.iter();
        rows.find(|row| row.name == answer.row).and_then(|row| row.survives)
    };
    let mut answers: Vec<Answer> =
        scenarios.iter().flat_map(|scenario| scenario.answers(evidence)).collect();
    answers.sort_by_key(|answer| std::cmp::Reverse(survives(answer)));
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use std::time::Duration;

    fn check(names: &[&str]) -> Result<(), Error> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        check_names(&Scenarios::default().all(), &names)
    }

    fn refused(name: &str) -> String {
        check(&[name]).expect_err("must be refused").to_string()
    }

    #[test]
    fn scenarios_workloads_and_rows_may_be_named() {
        check(&["ladder", "stream", "small", "stream/cached", "small/o_dsync-each"]).unwrap();
        check(&["ways", "ways/file", "ways/file/copy", "append/log-no", "rand/mix"]).unwrap();
    }

    #[test]
    fn a_text_of_any_size_may_be_named() {
        check(&["latency/new-777", "latency/existing-1/wrote-write", "latency/rename"]).unwrap();
        assert!(refused("latency/new-777/wrote-wrote").contains("no such"));
    }

    #[test]
    fn pages_may_be_named_by_their_way_and_by_size_and_clients() {
        check(&["pages", "pages/atomic", "pages/doublewrite-16k-16", "pages/plain-4k-1"]).unwrap();
        assert!(refused("pages/plain-5k-1").contains("no such"));
        assert!(refused("page").ends_with("did you mean 'pages'?"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_near_one() {
        assert!(refused("laddr").ends_with("did you mean 'ladder'?"), "{}", refused("laddr"));
        assert!(refused("stream/cahced").ends_with("did you mean 'stream/cached'?"));
    }

    #[test]
    fn a_name_like_nothing_is_answered_with_the_list() {
        assert!(refused("zzz").contains("--list"), "{}", refused("zzz"));
    }

    #[test]
    fn rising_rates_are_an_option_and_not_a_scenario_that_measures_nothing() {
        assert!(refused("load").ends_with("use --load-curve"));
    }

    #[test]
    fn a_time_for_runs_that_have_no_slices_is_refused_and_not_forgotten() {
        let mut request = Request::new(".".into());
        request.scenarios.ladder.within = Some(Duration::from_secs(30));
        let target = crate::sample::place(1 << 40, 1 << 39);
        let plan = |request: &Request| {
            crate::bench::plan(&request.scenarios.all(), request, &target, None).map(drop)
        };
        plan(&request).unwrap();
        for name in ["append", "meta", "latency", "peak", "sustained"] {
            request.only = vec![name.into()];
            let refused = plan(&request).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("--within: not for {name}, whose runs")),
                "{refused}"
            );
        }
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let listed = catalogue();
        let names: BTreeSet<&str> = listed.iter().map(|listed| listed.row).collect();
        assert_eq!(names.len(), listed.len());
    }
}
