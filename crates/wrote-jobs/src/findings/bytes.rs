//! Findings on where a row's bytes went: to the device, to memory, and how many others moved meanwhile.

use super::{Evidence, jobs};
use serde_json::json;
use wrote_machine::watch::CachedLoop;
use wrote_result::document::{Direction, Finding, Row, Run, Severity};
use wrote_result::finding::{finding, listed, names};
use wrote_result::units::{bytes, rate};

/// A row of which the device saw less than this part of the file bytes was written to memory.
const REACHED_SHARE_MIN: f64 = 0.9;
/// Traffic that is not ours counts from this part of our bytes on, and from this many bytes on.
const FOREIGN_SHARE_MIN: f64 = 0.1;
const FOREIGN_BYTES_MIN: u64 = 64_000_000;
/// A direct row of whose bytes the page cache holds this part, or more, went through it; of fewer bytes
/// than these nothing is said.
const CACHED_SHARE_MIN: f64 = 0.5;
const CACHED_BYTES_MIN: u64 = 65_536;
/// A device that writes this many times what the file was given, and so much more, writes much more.
const AMPLIFIED_MIN: f64 = 1.5;
const AMPLIFIED_BYTES_MIN: u64 = 4_000_000;

pub(super) fn find(evidence: &Evidence) -> Vec<Finding> {
    let single = [
        ram_not_disk(evidence, Direction::Write),
        ram_not_disk(evidence, Direction::Read),
        direct_not_honoured(evidence),
        busy_neighbour(evidence),
        write_amplification(evidence),
    ];
    single.into_iter().flatten().collect()
}

/// Whether most of what a row wrote or read never passed the device while the row's clock ran; `None`
/// where the device's counters do not say.
pub fn stayed_in_memory(evidence: &Evidence, row: &Row) -> Option<bool> {
    // What was made smaller on its way did not stay behind.
    let shrinks = row.settings.effective.data.is_some() && jobs::compresses(evidence);
    let moved = Moved::of(row).filter(|_| counts(evidence) && !shrinks)?;
    Some((moved.device_bytes as f64) < REACHED_SHARE_MIN * moved.file_bytes as f64)
}

/// Whether the counters of the target's device say where bytes went.
pub fn counts(evidence: &Evidence) -> bool {
    evidence.device_counts && evidence.target.device.is_some() && !evidence.in_memory
}

/// Bytes of its source that a row reads while its clock runs.
pub fn source_bytes(row: &Row) -> u64 {
    let copies = row.settings.effective.source_cache.is_some();
    if copies { row.runs.iter().map(|run| run.bytes).sum() } else { 0 }
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
            contrary_bytes: contrary_bytes.saturating_sub(source_bytes(row)),
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
    // Of rows that were to go past memory more is to be said.
    let in_memory = |row: &&Row| {
        row.direction == direction
            && !row.settings.effective.direct
            && stayed_in_memory(evidence, row) == Some(true)
    };
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

/// Rows that went past the page cache as far as the kernel said, and did not.
fn direct_not_honoured(evidence: &Evidence) -> Option<Finding> {
    let below = cached_loop(evidence);
    let is_told = |row: &&Row| {
        row.settings.effective.direct
            && (is_in_page_cache(row)
                || missed_the_device(evidence, row)
                || below.is_some() && is_unflushed_write(row))
    };
    let rows: Vec<&Row> = evidence.rows.iter().filter(is_told).collect();
    if rows.is_empty() {
        return None;
    }
    let sum =
        |figure: fn(&Run) -> u64| rows.iter().flat_map(|row| &row.runs).map(figure).sum::<u64>();
    let file_bytes = sum(|run| run.bytes);
    let cached_bytes = sum(|run| run.page_cache_bytes.unwrap_or(0));
    let unseen_bytes: u64 = rows
        .iter()
        .filter(|row| missed_the_device(evidence, row))
        .filter_map(|row| Moved::of(row))
        .map(|moved| moved.file_bytes.saturating_sub(moved.device_bytes))
        .sum();
    let mut signs = Vec::new();
    if rows.iter().any(|row| is_in_page_cache(row)) {
        signs.push(format!("the page cache holds {} afterwards", bytes(cached_bytes)));
    }
    if unseen_bytes > 0 {
        signs.push(format!("{} never passed the device within the run", bytes(unseen_bytes)));
    }
    let of_loop = below.filter(|_| rows.iter().any(|row| is_unflushed_write(row)));
    signs.extend(of_loop.map(|below| {
        format!("{} puts what is not flushed into the page cache of {}", below.disk, below.file)
    }));
    let text = format!(
        "{}: O_DIRECT was taken and not honoured: of {} {}: this is not the speed of direct I/O, and what it survives is what the page cache does",
        names(&rows),
        bytes(file_bytes),
        signs.join(", and "),
    );
    let figures = [
        ("rows", listed(&rows)),
        ("file_bytes", json!(file_bytes)),
        ("page_cache_bytes", json!(cached_bytes)),
        ("unseen_bytes", json!(unseen_bytes)),
        ("cached_loop", json!(of_loop.map(|below| &below.disk))),
    ];
    Some(finding("direct-not-honoured", Severity::Warning, text, figures))
}

/// Of what was never written no device is asked, however it is read: that is said by itself.
fn missed_the_device(evidence: &Evidence, row: &Row) -> bool {
    let is_unwritten = row.runs.iter().any(|run| run.unwritten_bytes > Some(0));
    !is_unwritten && stayed_in_memory(evidence, row) == Some(true)
}

/// A loop device below the path that goes through the page cache of a file on a disk.
fn cached_loop<'a>(evidence: &'a Evidence) -> Option<&'a CachedLoop> {
    evidence.watched.before.cached_loops.first().filter(|_| !evidence.in_memory)
}

fn is_unflushed_write(row: &Row) -> bool {
    row.direction == Direction::Write && row.settings.effective.sync == "none"
}

/// Whether a good part of what a row moved is in the page cache afterwards. A run that comes back to the
/// same bytes moves more than the file has.
fn is_in_page_cache(row: &Row) -> bool {
    let mut bytes = [0_u64; 2];
    for run in &row.runs {
        let Some(cached_bytes) = run.page_cache_bytes else { continue };
        let moved_bytes = run.bytes.min(row.settings.effective.size_bytes.max(cached_bytes));
        bytes = [bytes[0] + cached_bytes, bytes[1] + moved_bytes];
    }
    bytes[0] >= CACHED_BYTES_MIN && bytes[0] as f64 >= CACHED_SHARE_MIN * bytes[1] as f64
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

/// Rows whose every write is flushed, or every so many: what their flushes make the file system write is
/// a part of their price, as long as nobody else is known to have written meanwhile.
fn write_amplification(evidence: &Evidence) -> Option<Finding> {
    if busy_neighbour(evidence).is_some() || !counts(evidence) {
        return None;
    }
    let flushes = |row: &&Row| {
        let sync = row.settings.effective.sync.as_str();
        let often = sync == "always" || sync.ends_with("-each") || sync.contains("-every-");
        row.direction == Direction::Write && often
    };
    let amplified: Vec<(&Row, Moved)> = evidence
        .rows
        .iter()
        .filter(flushes)
        .filter_map(|row| Some((row, Moved::of(row)?)))
        .filter(|(_, moved)| is_amplified(moved))
        .collect();
    let factor = |moved: &Moved| moved.device_bytes as f64 / moved.file_bytes as f64;
    let (worst, most) = amplified.iter().max_by(|a, b| factor(&a.1).total_cmp(&factor(&b.1)))?;
    let rows: Vec<&Row> = amplified.iter().map(|(row, _)| *row).collect();
    let others = match others_were_quiet(evidence) {
        true => "",
        false => "; or someone else wrote meanwhile, which rows with such flushes can't tell",
    };
    let text = format!(
        "{}: the device wrote more than the file was given, {:.1} bytes for each in {}: journal, metadata and part-filled blocks of every flush; a flash drive wears out so much faster{others}",
        names(&rows),
        factor(most),
        worst.name,
    );
    let factors = amplified.iter().map(|(row, moved)| (row.name.clone(), json!(factor(moved))));
    let sum = |figure: fn(&Moved) -> u64| amplified.iter().map(|(_, m)| figure(m)).sum::<u64>();
    let figures = [
        ("rows", listed(&rows)),
        ("file_bytes", json!(sum(|moved| moved.file_bytes))),
        ("device_written_bytes", json!(sum(|moved| moved.device_bytes))),
        ("device_bytes_per_file_byte", serde_json::Value::Object(factors.collect())),
    ];
    Some(finding("write-amplification", Severity::Info, text, figures))
}

/// Whether a row that moves little more than its own bytes saw no others' beside them.
fn others_were_quiet(evidence: &Evidence) -> bool {
    let is_alone =
        |moved: Moved| moved.foreign_bytes() as f64 <= FOREIGN_SHARE_MIN * moved.file_bytes as f64;
    let witnesses = evidence.rows.iter().filter(|row| moves_its_own_bytes_alone(row));
    let mut seen = witnesses.filter_map(Moved::of).peekable();
    seen.peek().is_some() && seen.all(is_alone)
}

fn is_amplified(moved: &Moved) -> bool {
    moved.device_bytes as f64 > AMPLIFIED_MIN * moved.file_bytes as f64
        && moved.device_bytes - moved.file_bytes >= AMPLIFIED_BYTES_MIN
}
