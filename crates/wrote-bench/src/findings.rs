//! What the evidence of a run says beside its numbers. Each finding is explained in
//! `docs/findings.md`; one that cannot be established says nothing.

mod append;
mod copies;
pub(crate) mod imported;
mod jobs;
mod machine;
mod sustained;
#[cfg(test)]
mod tests;

use crate::result::{Direction, Fallback, Finding, Row, Run, Severity, Target};
use crate::stats::relative_width;
use crate::units::{bytes, rate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every finding's stable name, in the order in which they are explained.
pub const IDS: [&str; 32] = [
    "ram-not-disk",
    "no-block-device",
    "counters-off",
    "nearly-full",
    "within-drive-cache",
    "busy-neighbour",
    "same-device",
    "read-from-memory",
    "memory-grows",
    "direct-not-honoured",
    "compressible-data",
    "unwritten-read",
    "same-offsets",
    "flush-outside-clock",
    "cache-cliff",
    "not-steady",
    "rate-not-reached",
    "write-amplification",
    "throttled",
    "cpu-limited",
    "too-hot",
    "link-downgraded",
    "slow-clock",
    "records-lost",
    "records-out-of-order",
    "noisy",
    "fallback",
    "depth-not-reached",
    "generator-limited",
    "debug-build",
    "leftovers",
    "left-out",
];

/// A row of which the device saw less than this part of the file bytes was written to memory.
const REACHED_SHARE_MIN: f64 = 0.9;
/// A file system of which more than this part is used is nearly full.
const USED_SHARE_MAX: f64 = 0.85;
/// What a fast cache may well hold: small drives have some 4 GB, large ones hundreds.
const CACHE_BYTES: u64 = 16_000_000_000;
/// Traffic that is not ours counts from this part of our bytes on, and from this many bytes on.
const FOREIGN_SHARE_MIN: f64 = 0.1;
const FOREIGN_BYTES_MIN: u64 = 64_000_000;
/// A row whose interval reaches farther from its median than this part of it is noisy.
const WIDTH_MAX: f64 = 0.25;
/// A text that names more rows than this is not read.
const NAMES_MAX: usize = 6;
/// A row that is faster than this part of what the generator reaches is limited by it.
const GENERATOR_SHARE_MAX: f64 = 0.5;

/// What is known of a run once it is over.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// What lies under the path; its free space is that before the run.
    pub target: &'a Target,
    /// All rows that were measured.
    pub rows: &'a [Row],
    /// Whether the program was built with debug assertions.
    pub debug_build: bool,
    /// Whether the device's counters count (`queue/iostats` is on).
    pub device_counts: bool,
    /// Whether the file system lives in memory (tmpfs, ramfs).
    pub in_memory: bool,
    /// How fast data is made ready to be written, in bytes per second; 0 where not measured.
    pub generator_bytes_per_s: f64,
    /// File bytes written by all runs together.
    pub written_bytes_total: u64,
    /// The machine's memory, in bytes.
    pub memory_bytes: u64,
    /// Folders that earlier runs left under the path.
    pub leftovers: Vec<String>,
    /// Rows that were called for and could not be measured, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// All findings of a run: warnings first, then in the order of [`IDS`].
pub fn find(evidence: &Evidence) -> Vec<Finding> {
    let single = [
        ram_not_disk(evidence, Direction::Write),
        ram_not_disk(evidence, Direction::Read),
        no_block_device(evidence),
        counters_off(evidence),
        nearly_full(evidence),
        within_drive_cache(evidence),
        busy_neighbour(evidence),
        noisy(evidence),
        depth_not_reached(evidence),
        generator_limited(evidence),
        debug_build(evidence),
        leftovers(evidence),
        left_out(evidence),
    ];
    let mut findings: Vec<Finding> = single.into_iter().flatten().collect();
    findings.extend(copies::find(evidence).into_iter().flatten());
    findings.extend(append::find(evidence).into_iter().flatten());
    findings.extend(jobs::find(evidence));
    findings.extend(machine::find(evidence));
    findings.extend(sustained::find(evidence));
    findings.extend(fallbacks(evidence));
    sort(&mut findings);
    findings
}

/// Warnings first, then in the order of [`IDS`].
pub(crate) fn sort(findings: &mut [Finding]) {
    let place = |finding: &Finding| IDS.iter().position(|id| *id == finding.id);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), place(finding)));
}

/// Whether most of what a row wrote or read never passed the device while the row's clock ran; `None`
/// where the device's counters do not say.
pub(crate) fn stayed_in_memory(evidence: &Evidence, row: &Row) -> Option<bool> {
    let moved = Moved::of(row).filter(|_| counts(evidence))?;
    Some((moved.device_bytes as f64) < REACHED_SHARE_MIN * moved.file_bytes as f64)
}

fn counts(evidence: &Evidence) -> bool {
    evidence.device_counts && evidence.target.device.is_some() && !evidence.in_memory
}

/// What a row's runs wrote or read, and what the device moved meanwhile.
struct Moved {
    file_bytes: u64,
    /// In the row's own direction.
    device_bytes: u64,
    /// In the other, beyond a copy's source.
    contrary_bytes: u64,
    elapsed_s: f64,
}

impl Moved {
    /// Over the runs whose counters were read; `None` where there is no such run.
    fn of(row: &Row) -> Option<Moved> {
        let own = |run: &&Run| match row.direction {
            Direction::Write => run.device_written_bytes.is_some(),
            Direction::Read => run.device_read_bytes.is_some(),
        };
        let counted: Vec<&Run> = row.runs.iter().filter(own).collect();
        let sum = |figure: fn(&Run) -> u64| counted.iter().map(|run| figure(run)).sum::<u64>();
        let written_bytes = sum(|run| run.device_written_bytes.unwrap_or(0));
        let read_bytes = sum(|run| run.device_read_bytes.unwrap_or(0));
        let (device_bytes, contrary_bytes) = match row.direction {
            Direction::Write => (written_bytes, read_bytes),
            Direction::Read => (read_bytes, written_bytes),
        };
        let moved = Moved {
            file_bytes: sum(|run| run.bytes),
            device_bytes,
            contrary_bytes: contrary_bytes.saturating_sub(copies::source_bytes(row)),
            elapsed_s: counted.iter().map(|run| run.elapsed_s).sum(),
        };
        (moved.file_bytes > 0).then_some(moved)
    }

    /// What the device moved beyond the file's bytes.
    fn foreign_bytes(&self) -> u64 {
        self.device_bytes.saturating_sub(self.file_bytes) + self.contrary_bytes
    }
}

fn ram_not_disk(evidence: &Evidence, direction: Direction) -> Option<Finding> {
    let in_memory =
        |row: &&Row| row.direction == direction && stayed_in_memory(evidence, row) == Some(true);
    let rows: Vec<&Row> = evidence.rows.iter().filter(in_memory).collect();
    let moved: Vec<Moved> = rows.iter().filter_map(|row| Moved::of(row)).collect();
    if moved.is_empty() {
        return None;
    }
    let file_bytes: u64 = moved.iter().map(|moved| moved.file_bytes).sum();
    let unseen = |moved: &Moved| moved.file_bytes.saturating_sub(moved.device_bytes);
    let unseen_bytes: u64 = moved.iter().map(unseen).sum();
    let (happened, device_bytes) = match direction {
        Direction::Write => ("never reached the device within the run", "device_written_bytes"),
        Direction::Read => ("were never read from the device", "device_read_bytes"),
    };
    let text = format!(
        "{}: {} of {} {happened}: this is the speed of memory, not of the disk",
        names(&rows),
        bytes(unseen_bytes),
        bytes(file_bytes),
    );
    Some(finding(
        "ram-not-disk",
        Severity::Warning,
        text,
        [
            ("rows", listed(&rows)),
            ("file_bytes", json!(file_bytes)),
            (device_bytes, json!(file_bytes - unseen_bytes)),
            ("memory_bytes", json!(evidence.memory_bytes)),
        ],
    ))
}

fn no_block_device(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.target;
    if target.device.is_some() && !evidence.in_memory {
        return None;
    }
    let because = target.no_device_because.as_deref().unwrap_or("the kernel names none");
    let (severity, text) = if evidence.in_memory {
        let lies = match &target.device {
            Some(device) => {
                format!("{} lies on {}, which is made of memory", target.filesystem, device.name)
            }
            None => format!("{} lives in memory", target.filesystem),
        };
        let text =
            format!("{lies}: no number here is a disk's, and nothing here survives a power loss");
        (Severity::Warning, text)
    } else {
        let text = format!(
            "there is no block device to look at ({because}): whether the bytes reached a disk can't \
             be told"
        );
        (Severity::Info, text)
    };
    let figures = [
        ("filesystem", json!(target.filesystem)),
        ("because", json!(because)),
        ("in_memory", json!(evidence.in_memory)),
    ];
    Some(finding("no-block-device", severity, text, figures))
}

fn counters_off(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref().filter(|_| !evidence.device_counts)?;
    let text = format!(
        "{} keeps no statistics: whether the bytes reached the disk or stayed in memory can't be told",
        device.name
    );
    Some(finding("counters-off", Severity::Info, text, [("device", json!(device.name))]))
}

fn nearly_full(evidence: &Evidence) -> Option<Finding> {
    let Target { capacity_bytes, free_bytes, .. } = *evidence.target;
    if capacity_bytes == 0 {
        return None;
    }
    let used_share = 1.0 - free_bytes as f64 / capacity_bytes as f64;
    if used_share <= USED_SHARE_MAX {
        return None;
    }
    let text = format!(
        "the file system is {:.0} % full ({} free of {}): full disks are slower, and an emptier one \
         would give other numbers",
        used_share * 100.0,
        bytes(free_bytes),
        bytes(capacity_bytes),
    );
    let figures = [
        ("used_share", json!(used_share)),
        ("free_bytes", json!(free_bytes)),
        ("capacity_bytes", json!(capacity_bytes)),
    ];
    Some(finding("nearly-full", Severity::Warning, text, figures))
}

fn within_drive_cache(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref().filter(|device| !device.rotational)?;
    let written_bytes = evidence.written_bytes_total;
    if evidence.in_memory || written_bytes == 0 || written_bytes >= CACHE_BYTES {
        return None;
    }
    let text = format!(
        "burst, not sustained: the whole run wrote {}, and drives with fast caches of 4 to 592 GB are \
         sold; whether this one slows down after more was not measured",
        bytes(written_bytes)
    );
    let figures = [
        ("device", json!(device.name)),
        ("written_bytes_total", json!(written_bytes)),
        ("threshold_bytes", json!(CACHE_BYTES)),
    ];
    Some(finding("within-drive-cache", Severity::Info, text, figures))
}

fn busy_neighbour(evidence: &Evidence) -> Option<Finding> {
    let rows: Vec<&Row> = evidence
        .rows
        .iter()
        .filter(|row| counts(evidence) && moves_its_own_bytes_alone(row))
        .filter(|row| Moved::of(row).is_some_and(|moved| is_shared(&moved)))
        .collect();
    let moved: Vec<Moved> = rows.iter().filter_map(|row| Moved::of(row)).collect();
    if moved.is_empty() {
        return None;
    }
    let file_bytes: u64 = moved.iter().map(|moved| moved.file_bytes).sum();
    let foreign_bytes: u64 = moved.iter().map(Moved::foreign_bytes).sum();
    let elapsed_s: f64 = moved.iter().map(|moved| moved.elapsed_s).sum();
    let foreign_share = foreign_bytes as f64 / file_bytes as f64;
    let foreign_bytes_per_s = foreign_bytes as f64 / elapsed_s.max(f64::MIN_POSITIVE);
    let text = format!(
        "{}: the device moved {:.0} % more than our bytes, {}: someone else uses it, or a layer \
         between writes more than it is given",
        names(&rows),
        foreign_share * 100.0,
        rate(foreign_bytes_per_s),
    );
    let figures = [
        ("rows", listed(&rows)),
        ("file_bytes", json!(file_bytes)),
        ("foreign_bytes", json!(foreign_bytes)),
        ("foreign_share", json!(foreign_share)),
        ("foreign_bytes_per_s", json!(foreign_bytes_per_s)),
    ];
    Some(finding("busy-neighbour", Severity::Warning, text, figures))
}

/// Whether the device moves little more than the file's bytes when nobody else uses it: directly
/// written, and no flush a write, each of which may commit a journal.
fn moves_its_own_bytes_alone(row: &Row) -> bool {
    let settings = &row.settings.effective;
    let seldom = ["none", "fdatasync-at-end", "fsync-at-end"];
    // Records have frames beside their messages, which may be short.
    !row.is_of_messages() && settings.direct && seldom.contains(&settings.sync.as_str())
}

fn is_shared(moved: &Moved) -> bool {
    let foreign_bytes = moved.foreign_bytes();
    foreign_bytes > FOREIGN_BYTES_MIN
        && foreign_bytes as f64 > FOREIGN_SHARE_MIN * moved.file_bytes as f64
}

fn noisy(evidence: &Evidence) -> Option<Finding> {
    // One run has no width, so it is never noisy: nothing is known of it.
    let width = |row: &Row| relative_width(&row.throughput_bytes_per_s);
    let rows: Vec<&Row> = evidence.rows.iter().filter(|row| width(row) > WIDTH_MAX).collect();
    let widest = rows.iter().map(|row| width(row)).filter(|w| w.is_finite()).reduce(f64::max)?;
    let most = match widest * 100.0 {
        // Wider than the number itself many times over: two runs that differ give millions.
        percent if percent > 999.0 => ">999".into(),
        percent => format!("{percent:.0}"),
    };
    let text = format!(
        "the runs differ so much that the 95 % interval is wider than \u{b1}{:.0} % (up to \u{b1}{most} \
         %): {}",
        WIDTH_MAX * 100.0,
        names(&rows),
    );
    let figures = [("rows", listed(&rows)), ("relative_width_max", json!(widest))];
    Some(finding("noisy", Severity::Warning, text, figures))
}

/// One finding for each distinct fallback, with the rows that took it.
fn fallbacks(evidence: &Evidence) -> Vec<Finding> {
    let mut rows: BTreeMap<&Fallback, Vec<&Row>> = BTreeMap::new();
    for row in evidence.rows {
        for fallback in &row.settings.fallbacks {
            let rows = rows.entry(fallback).or_default();
            if !rows.iter().any(|known| known.name == row.name) {
                rows.push(row);
            }
        }
    }
    rows.into_iter().map(|(fallback, rows)| fell_back(fallback, &rows)).collect()
}

fn fell_back(fallback: &Fallback, rows: &[&Row]) -> Finding {
    let Fallback { wanted, got, because } = fallback;
    let text = format!("{}: {wanted} was wanted, {got} was used: {because}", names(rows));
    let figures = [
        ("rows", listed(rows)),
        ("wanted", json!(wanted)),
        ("got", json!(got)),
        ("because", json!(because)),
    ];
    finding("fallback", Severity::Warning, text, figures)
}

fn depth_not_reached(evidence: &Evidence) -> Option<Finding> {
    let short = |row: &&Row| row.settings.effective.iodepth < row.settings.asked.iodepth;
    let rows: Vec<&Row> = evidence.rows.iter().filter(short).collect();
    if rows.is_empty() {
        return None;
    }
    let mut shown = Vec::new();
    let mut figures = serde_json::Map::new();
    for row in rows {
        let (asked, reached) = (row.settings.asked.iodepth, row.settings.effective.iodepth);
        shown.push(format!("{} (asked {asked}, reached {reached})", row.name));
        figures.insert(row.name.clone(), json!({ "asked": asked, "reached": reached }));
    }
    let text = format!("fewer operations were in flight than were asked for: {}", shown.join(", "));
    let severity = Severity::Warning;
    Some(finding("depth-not-reached", severity, text, [("iodepth", Value::Object(figures))]))
}

fn generator_limited(evidence: &Evidence) -> Option<Finding> {
    let limit_bytes_per_s = GENERATOR_SHARE_MAX * evidence.generator_bytes_per_s;
    // What is written as a whole file, and a message, was made before its clock started.
    let near = |row: &&Row| {
        row.direction == Direction::Write
            && !row.is_of_whole_files()
            && !row.is_of_messages()
            && row.throughput_bytes_per_s.median > limit_bytes_per_s
    };
    let rows: Vec<&Row> = evidence.rows.iter().filter(near).collect();
    if rows.is_empty() || limit_bytes_per_s <= 0.0 {
        return None;
    }
    let text = format!(
        "{}: data can be made ready at {}, which is less than twice the throughput: the disk may be \
         faster than this",
        names(&rows),
        rate(evidence.generator_bytes_per_s),
    );
    let figures =
        [("rows", listed(&rows)), ("generator_bytes_per_s", json!(evidence.generator_bytes_per_s))];
    Some(finding("generator-limited", Severity::Warning, text, figures))
}

fn debug_build(evidence: &Evidence) -> Option<Finding> {
    let text = "this program was built without optimisation: its CPU figures and its fastest rows \
                mean little; build with --release";
    let figures = [("debug_build", json!(true))];
    evidence.debug_build.then(|| finding("debug-build", Severity::Warning, text.into(), figures))
}

fn leftovers(evidence: &Evidence) -> Option<Finding> {
    if evidence.leftovers.is_empty() {
        return None;
    }
    let text = format!(
        "an earlier run was killed and left {}; `wrote clean {}` removes it",
        evidence.leftovers.join(", "),
        evidence.target.path
    );
    let figures = [("folders", json!(evidence.leftovers))];
    Some(finding("leftovers", Severity::Info, text, figures))
}

fn left_out(evidence: &Evidence) -> Option<Finding> {
    if evidence.left_out.is_empty() {
        return None;
    }
    let each = evidence.left_out.iter().map(|(row, because)| format!("{row} ({because})"));
    let text = format!("not measured: {}", each.collect::<Vec<_>>().join(", "));
    let figures = evidence.left_out.iter().map(|(row, because)| (row.clone(), json!(because)));
    let figures = Value::Object(figures.collect());
    Some(finding("left-out", Severity::Info, text, [("rows", figures)]))
}

fn finding<const N: usize>(
    id: &str,
    severity: Severity,
    text: String,
    evidence: [(&str, Value); N],
) -> Finding {
    let evidence = evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Finding { id: id.into(), severity, text, evidence }
}

/// The rows' names; of many the first few, since the evidence lists them all.
fn names(rows: &[&Row]) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    match names.len().checked_sub(NAMES_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMES_MAX].join(", ")),
        _ => names.join(", "),
    }
}

fn listed(rows: &[&Row]) -> Value {
    rows.iter().map(|row| json!(row.name)).collect()
}
