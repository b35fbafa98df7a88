//! Finding: the load generator, not the server, may have been the limit.

use wrote_jobs::findings::Evidence;
use wrote_result::document::{Finding, Row, Run};
use wrote_result::finding::names;

/// The busy fraction from which the generator's thread may be the limit.
const BUSY_SHARE_MAX: f64 = 0.9;

pub(crate) fn client_limited(evidence: &Evidence) -> Option<Finding> {
    let rows = evidence.rows_where(|row| busy_share(row) > BUSY_SHARE_MAX)?;
    let most = rows.iter().map(|row| busy_share(row)).fold(0.0, f64::max);
    let text = format!(
        "the client may be the limit: its one thread had work for {:.0} % of the time ({}); the \
         server may be faster: use longer messages, or several clients",
        100.0 * most,
        names(&rows),
    );
    Finding::warning("client-limited", text).about(&rows).with("busy_share", most).into()
}

/// Returns the fraction of time for which the generator ran or waited for a CPU: the median over
/// the runs.
fn busy_share(row: &Row) -> f64 {
    let share =
        |run: &Run| Some((run.client_cpu_s? + run.cpu_waited_s.unwrap_or(0.0)) / run.elapsed_s);
    row.median_of(|run| share(run).filter(|_| run.elapsed_s > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{appended, evidence, target};
    use wrote_result::document::Records;
    use wrote_result::finding::IDS;

    fn found(share: Option<f64>, waited: f64) -> Option<Finding> {
        let mut row = appended("serve/lines/64", 1e5, Records::default());
        for run in &mut row.runs {
            run.client_cpu_s = share.map(|share| share * run.elapsed_s);
            run.cpu_waited_s = Some(waited * run.elapsed_s);
        }
        client_limited(&evidence(&target(), &[row]))
    }

    #[test]
    fn a_client_without_idle_time_is_named_and_another_is_not() {
        assert!(IDS.contains(&"client-limited"));
        let finding = found(Some(0.97), 0.0).unwrap();
        assert!(finding.text.contains("97 % of the time (serve/lines/64)"), "{}", finding.text);
        // A thread that waits for a CPU sends nothing either.
        assert!(found(Some(0.5), 0.45).is_some());
        assert!(found(Some(0.6), 0.2).is_none() && found(None, 0.95).is_none());
    }
}
