//! Findings on operations that the file system itself slows down.

use super::{Create, Kind, NAME};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Finding, Row};

/// The minimum number of runs that shows a trend. If runs differ only by noise, three consecutive
/// runs are each slower than the previous one in one case out of six.
const RUNS_MIN: usize = 3;
const PASSES_OVER: &str = "When ext4 without a journal creates a file, it skips every inode freed \
                           in the last minutes. Wait six minutes without removals before the next \
                           run";
/// The minimum ratio of the first rate to the last one for a fall that is reported.
const FALL_MIN: f64 = 1.5;

fn is_of_meta(row: &Row, kind: Kind) -> bool {
    row.name.starts_with(NAME) && row.settings.asked.rw == kind.as_str()
}

/// Finds rows in which each run is slower than the previous one, and the last run is far slower
/// than the first.
pub(super) fn slower_each_round(evidence: &Evidence) -> Option<Finding> {
    let rows = evidence.rows_where(|row| fall(row).is_some())?;
    let most = |a: &&Row, b: &&Row| fall(a).partial_cmp(&fall(b)).expect("finite");
    let worst = *rows.iter().copied().max_by(|a, b| most(a, b)).as_ref()?;
    let (first, last) = (worst.runs.first()?.iops, worst.runs.last()?.iops);
    let creates = rows.iter().any(|row| is_of_meta(row, Create));
    let because = if creates && evidence.target.has_journal == Some(false) {
        PASSES_OVER
    } else {
        "Something filled up or was in use during the run. Look for other users of the disk (iotop \
         -o), and measure again with another --meta-files"
    };
    let text = format!(
        "Slower with each round: {first:.0}/s in the first and {last:.0}/s in the last{}. \
         {because}",
        if rows.len() > 1 { " of the worst row" } else { "" },
    );
    Finding::warning("slower-each-round", text)
        .about(&rows)
        .with("first_iops", first)
        .with("last_iops", last)
        .with("has_journal", evidence.target.has_journal)
        .into()
}

/// Returns the first rate of a row divided by its last, if the rate fell in each round and by at
/// least [`FALL_MIN`].
fn fall(row: &Row) -> Option<f64> {
    let (first, last) = (row.runs.first()?.iops, row.runs.last()?.iops);
    let falls = row.runs.windows(2).all(|pair| pair[1].iops < pair[0].iops);
    let is_ours = row.name.starts_with(NAME) && row.runs.len() >= RUNS_MIN;
    (is_ours && falls && first >= FALL_MIN * last).then(|| first / last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{evidence, row, target};
    use wrote_result::document::{Severity, Target};
    use wrote_result::finding::IDS;

    fn with_rates(name: &str, iops: &[f64]) -> Row {
        let mut row = row(name, "process-crash", &vec![1.0; iops.len()]);
        row.settings.asked.rw = name.rsplit('/').next().unwrap().into();
        row.runs.iter_mut().zip(iops).for_each(|(run, iops)| run.iops = *iops);
        row
    }

    fn found(has_journal: Option<bool>, rows: &[Row]) -> Option<Finding> {
        let target = Target { has_journal, ..target() };
        slower_each_round(&evidence(&target, rows))
    }

    #[test]
    fn a_row_that_is_slower_with_each_round_is_found_with_its_first_and_last_rate() {
        let stat = with_rates("meta/own/stat", &[3e5, 2e5, 1.5e5]);
        let create = with_rates("meta/own/create", &[46_000.0, 20_000.0, 2_000.0]);
        let finding = found(Some(true), &[stat, create]).unwrap();
        assert!(IDS.contains(&finding.id.as_str()));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.text.contains("46000/s in the first and 2000/s"), "{}", finding.text);
        assert!(!finding.text.contains("journal"), "{}", finding.text);
        assert_eq!(finding.evidence["first_iops"], 46_000.0);
        assert_eq!(finding.evidence["last_iops"], 2_000.0);
        assert_eq!(
            finding.evidence["rows"],
            serde_json::json!(["meta/own/stat", "meta/own/create"])
        );
    }

    #[test]
    fn removed_inodes_are_named_where_ext4_has_no_journal_and_files_are_created() {
        let [create, stat] = ["create", "stat"]
            .map(|kind| with_rates(&format!("meta/shared/{kind}"), &[4e4, 1e4, 2e3]));
        let text =
            |has_journal, row: &Row| found(has_journal, std::slice::from_ref(row)).unwrap().text;
        assert!(text(Some(false), &create).contains("ext4 without a journal"));
        for (has_journal, row) in [(None, &create), (Some(true), &create), (Some(false), &stat)] {
            assert!(!text(has_journal, row).contains("journal"), "{has_journal:?}");
        }
    }

    #[test]
    fn rates_that_rise_once_or_fall_a_little_or_come_from_two_runs_are_no_fall() {
        for iops in [&[4e4, 1e4, 1.1e4][..], &[4e4, 3.5e4, 3e4], &[4e4, 1e4], &[4e4], &[]] {
            assert!(found(Some(false), &[with_rates("meta/own/create", iops)]).is_none());
        }
        let other = with_rates("rand/write", &[4e4, 1e4, 2e3]);
        assert!(found(Some(false), &[other]).is_none());
    }
}
