//! Findings on operations slowed down by the file system itself.

use super::{Create, Kind, NAME, Rename, Unlink};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Finding, Row};
use wrote_result::units;

/// The fewest runs to show a trend: a row of pure noise falls in three consecutive runs once in
/// six.
const RUNS_MIN: usize = 3;
/// A creation usually takes at most as long as two renames; this factor indicates a slowdown.
const SLOWER_MIN: u64 = 5;
const PASSES_OVER: &str = "When ext4 without a journal makes an inode, it passes over every one \
                           that was removed in the last minutes. Wait six minutes without \
                           removals before the next run";
/// A smaller drop of the rate is not reported.
const FALL_MIN: f64 = 1.5;

pub(super) fn find(evidence: &Evidence) -> [Option<Finding>; 3] {
    [slower_each_round(evidence), removed_inodes(evidence), discard_at_removal(evidence)]
}

/// Finds creations that take much longer than renames in the same folder: without a journal, ext4
/// skips inodes removed before the benchmark.
fn removed_inodes(evidence: &Evidence) -> Option<Finding> {
    if evidence.target.has_journal != Some(false) {
        return None;
    }
    let of = |row: &Row, kind| {
        is_of_meta(row, kind).then_some(row.latency_ns?.p50).filter(|p50| *p50 > 0)
    };
    let pair = |create: &&Row| {
        let made_ns = of(create, Create)?;
        let beside = evidence.rows.iter().filter(|row| row.workload == create.workload);
        let renamed_ns = beside.filter_map(|row| of(row, Rename)).next()?;
        (made_ns >= SLOWER_MIN * renamed_ns).then_some((made_ns, renamed_ns))
    };
    let rows = evidence.rows_where(|row| pair(&row).is_some())?;
    let (made_ns, renamed_ns) = rows.iter().filter_map(pair).max()?;
    let text = format!(
        "Creation is slower than the disk: {} a file, and {} for a rename. {PASSES_OVER}",
        units::nanoseconds(made_ns),
        units::nanoseconds(renamed_ns),
    );
    Finding::warning("removed-inodes", text)
        .about(&rows)
        .with("create_p50_ns", made_ns)
        .with("rename_p50_ns", renamed_ns)
        .into()
}

/// Finds removals that wait for the device: without a journal, ext4 discards each file's blocks at
/// once (`ext4_mb_clear_bb` in `fs/ext4/mballoc.c`).
fn discard_at_removal(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.target;
    let discards = target.mount_options.iter().any(|option| option == "discard");
    if !discards || target.has_journal != Some(false) {
        return None;
    }
    let removes = |row: &Row| is_of_meta(row, Unlink);
    let rows = evidence.rows_where(|row| removes(row) && !row.runs.is_empty())?;
    let rates = rows.iter().flat_map(|row| &row.runs).map(|run| run.iops);
    let slowest = rates.reduce(f64::min)?;
    let text = format!(
        "Each removal discards its blocks at once: {slowest:.0}/s in the slowest run. ext4 has no \
         journal here, and is mounted with discard. Mount it with nodiscard, and run fstrim once a \
         week"
    );
    Finding::info("discard-at-removal", text).about(&rows).with("slowest_iops", slowest).into()
}

fn is_of_meta(row: &Row, kind: Kind) -> bool {
    row.name.starts_with(NAME) && row.settings.asked.rw == kind.as_str()
}

/// Finds rows in which each run is slower than the one before, and the last by far.
fn slower_each_round(evidence: &Evidence) -> Option<Finding> {
    let rows = evidence.rows_where(|row| fall(row).is_some())?;
    let most = |a: &&Row, b: &&Row| fall(a).partial_cmp(&fall(b)).expect("finite");
    let worst = *rows.iter().copied().max_by(|a, b| most(a, b)).as_ref()?;
    let (first, last) = (worst.runs.first()?.iops, worst.runs.last()?.iops);
    let creates = rows.iter().any(|row| is_of_meta(row, Create));
    let because = if creates && evidence.target.has_journal == Some(false) {
        PASSES_OVER
    } else {
        "Something filled up or was in use during the run. Run it again with other --meta-files, \
         and look for other users of the disk"
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

/// Returns the first rate of a row divided by its last, if the rate fell in each round.
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
    use wrote_result::document::{Latency, Severity, Target};
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

    #[test]
    fn removals_that_discard_are_found_on_ext4_without_a_journal_that_is_mounted_so() {
        let rows = [
            with_rates("meta/own/create", &[9e3, 9e3]),
            with_rates("meta/own/unlink", &[361.0, 340.0]),
        ];
        let found = |option: &str, has_journal, rows: &[Row]| {
            let mount_options = vec!["rw".into(), option.to_owned()];
            let target = Target { mount_options, has_journal, ..target() };
            discard_at_removal(&evidence(&target, rows))
        };
        let finding = found("discard", Some(false), &rows).unwrap();
        assert!(IDS.contains(&finding.id.as_str()));
        assert!(finding.text.contains("340/s in the slowest run. ext4"));
        assert_eq!(finding.evidence["slowest_iops"], 340.0);
        assert!(found("discard", Some(true), &rows).is_none());
        assert!(found("discard", None, &rows).is_none());
        assert!(found("nodiscard", Some(false), &rows).is_none());
        assert!(found("discard", Some(false), &rows[..1]).is_none());
    }

    #[test]
    fn creations_that_take_many_times_a_rename_are_found_on_ext4_without_a_journal() {
        let timed = |kind: &str, p50| {
            let mut row = with_rates(&format!("meta/own/{kind}"), &[1e3, 1e3, 1e3]);
            row.workload = "meta/own".into();
            row.latency_ns = Some(Latency { p50, ..Latency::default() });
            row
        };
        let found = |has_journal, rows: &[Row]| {
            let target = Target { has_journal, ..target() };
            removed_inodes(&evidence(&target, rows))
        };
        let slow = [timed("create", 508_000), timed("rename", 16_700)];
        let finding = found(Some(false), &slow).unwrap();
        assert!(IDS.contains(&finding.id.as_str()));
        assert_eq!(finding.evidence["rows"], serde_json::json!(["meta/own/create"]));
        assert_eq!(finding.evidence["create_p50_ns"], 508_000);
        assert_eq!(finding.evidence["rename_p50_ns"], 16_700);
        assert!(
            finding.text.contains("508 us a file, and 16.7 us for a rename"),
            "{}",
            finding.text
        );
        for has_journal in [None, Some(true)] {
            assert!(found(has_journal, &slow).is_none());
        }
        let usual = [timed("create", 21_000), timed("rename", 16_700)];
        assert!(found(Some(false), &usual).is_none());
        assert!(found(Some(false), &slow[..1]).is_none());
    }
}
