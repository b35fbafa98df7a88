//! Findings on appended messages: losses, and their order in the file.

use wrote_jobs::findings::Evidence;
use wrote_result::document::{Finding, Records, Row};
use wrote_result::finding::names;

pub(crate) fn find(evidence: &Evidence) -> [Option<Finding>; 2] {
    [records_lost(evidence), records_out_of_order(evidence)]
}

fn total(rows: &[&Row]) -> Records {
    let runs = rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.records);
    runs.fold(Records::default(), |sum, of| Records {
        sent: sum.sent + of.sent,
        whole: sum.whole + of.whole,
        lost: sum.lost + of.lost,
        torn: sum.torn + of.torn,
        doubled: sum.doubled + of.doubled,
        out_of_order: sum.out_of_order + of.out_of_order,
    })
}

fn records_lost(evidence: &Evidence) -> Option<Finding> {
    let rows = evidence.rows_where(|row| !row.has_all_records())?;
    let Records { sent, lost, torn, doubled, .. } = total(&rows);
    let text = format!(
        "data loss in {}: {lost} of {sent} messages were lost or torn, and {torn} places of the \
         file hold pieces{}; such a speed is worthless: open the file once, and let one thread \
         write",
        names(&rows),
        if doubled == 0 { String::new() } else { format!(", and {doubled} messages twice") },
    );
    Finding::critical("records-lost", text)
        .about(&rows)
        .with("sent", sent)
        .with("lost", lost)
        .with("torn", torn)
        .with("doubled", doubled)
        .into()
}

fn records_out_of_order(evidence: &Evidence) -> Option<Finding> {
    let is_turned = |row: &Row| row.has_all_records() && total(&[row]).out_of_order > 0;
    let rows = evidence.rows_where(is_turned)?;
    let Records { sent, out_of_order, .. } = total(&rows);
    let text = format!(
        "order not kept: {out_of_order} of {sent} messages appear after a message submitted later \
         ({}); where order matters, let one thread write",
        names(&rows),
    );
    Finding::info("records-out-of-order", text)
        .about(&rows)
        .with("sent", sent)
        .with("out_of_order", out_of_order)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{appended, evidence, target};
    use serde_json::json;
    use wrote_result::document::Severity;
    use wrote_result::finding::IDS;

    const WHOLE: Records =
        Records { sent: 1000, whole: 1000, lost: 0, torn: 0, doubled: 0, out_of_order: 0 };

    fn found(rows: &[Row], id: &str) -> Option<Finding> {
        assert!(IDS.contains(&id));
        find(&evidence(&target(), rows)).into_iter().flatten().find(|finding| finding.id == id)
    }

    #[test]
    fn a_way_that_loses_records_is_named_with_how_many() {
        let torn = Records { whole: 400, lost: 600, torn: 70, out_of_order: 9, ..WHOLE };
        let rows = [appended("append/mutex", 1e5, WHOLE), appended("append/ten", 2e5, torn)];
        let finding = found(&rows, "records-lost").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["append/ten"]));
        assert_eq!(finding.evidence["lost"], json!(3 * 600));
        assert!(finding.text.contains("1800 of 3000 messages"), "{}", finding.text);
        assert!(!finding.text.contains("twice") && finding.severity == Severity::Critical);
        // With records lost, their order is not reported.
        assert!(found(&rows, "records-out-of-order").is_none());
        assert!(found(&rows[..1], "records-lost").is_none());
        let twice = Records { doubled: 1, ..WHOLE };
        let text = found(&[appended("append/mutex", 1e5, twice)], "records-lost").unwrap().text;
        assert!(text.contains("3 messages twice"), "{text}");
    }

    #[test]
    fn a_way_that_keeps_no_order_is_named() {
        let turned = Records { out_of_order: 12, ..WHOLE };
        let rows = [appended("append/mutex", 1e5, turned), appended("append/loop", 1e5, WHOLE)];
        let finding = found(&rows, "records-out-of-order").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["append/mutex"]));
        assert!(finding.text.contains("36 of 3000 messages"), "{}", finding.text);
        assert!(found(&rows[1..], "records-out-of-order").is_none());
    }
}
