//! Advice that follows from the ladder: on streams, on small durable records, and on data that may
//! be lost.

#[cfg(test)]
mod examples;

use crate::choice::{Choice, is_void, ratio, records, settings, speed};
use wrote_jobs::findings::{Evidence, stayed_in_memory};
use wrote_result::document::{Advice, Blocks, Flush, Ioengine, Row, fastest};
use wrote_result::recipes;
use wrote_result::units::block_size;

const WRITER: &str = include_str!("advice/examples/writer.rs");
const WRITER_CACHED: &str = include_str!("advice/examples/writer_cached.rs");
const WRITER_UNSYNCED: &str = include_str!("advice/examples/writer_unsynced.rs");
const WRITER_CACHED_UNSYNCED: &str = include_str!("advice/examples/writer_cached_unsynced.rs");
const LOG: &str = include_str!("advice/examples/log.rs");
const DIRECT_FILE: &str = include_str!("advice/examples/direct_file.rs");

/// The minimum gain from flushing several records together that the advice mentions.
const TOGETHER_GAIN_MIN: f64 = 2.0;

pub(crate) fn advise(evidence: &Evidence) -> impl Iterator<Item = Advice> {
    [streaming(evidence), small_records(evidence), may_be_lost(evidence)].into_iter().flatten()
}

/// Recommends the best stream that is durable at its end; `None` if none was measured.
fn streaming(evidence: &Evidence) -> Option<Advice> {
    let durable = |row: &&Row| row.workload == "stream" && row.is_durable();
    let choice = Choice::of(evidence.rows.iter().filter(durable))?;
    let because = format!("{}: {}", choice.row.name, choice.reason(speed));
    Some(advice("streaming", choice.row, because))
}

/// Recommends the best method that makes each record durable before the next one; `None` if none
/// was measured.
fn small_records(evidence: &Evidence) -> Option<Advice> {
    let durable = |row: &&Row| row.workload == "small" && row.is_durable();
    let each = |row: &&Row| durable(row) && settings(row).sync.is_each();
    let choice = Choice::of(evidence.rows.iter().filter(each))?;
    let mut because = format!("{}: {}", choice.row.name, choice.reason(records));
    let together = fastest(evidence.rows.iter().filter(|row| durable(row) && !each(row)));
    if let Some(together) = together {
        let gain = ratio(together, choice.row);
        if gain >= TOGETHER_GAIN_MIN {
            because += &format!(
                ". Where many records may be acknowledged together, one flush for all of them is \
                 {} times as fast ({}: {})",
                together.times(choice.row),
                together.name,
                records(together),
            );
        }
    }
    Some(advice("small durable records", choice.row, because))
}

/// Recommends the best of all streams, or of the small writes if no stream was measured.
fn may_be_lost(evidence: &Evidence) -> Option<Advice> {
    let of = |workload| {
        let is_of = move |row: &&Row| row.workload == workload && !is_void(evidence, row);
        evidence.rows.iter().filter(is_of)
    };
    let choice = Choice::of(of("stream")).or_else(|| Choice::of(of("small")))?;
    let row = choice.row;
    let mut because = format!("{}: {}", row.name, choice.reason(speed));
    if row.is_durable() {
        because += ". It survives a power loss all the same: nothing is gained by giving that up";
    } else if stayed_in_memory(evidence, row) == Some(true) {
        because += ". That is the speed of memory: it lasts while the page cache has room";
    }
    Some(advice("data that may be lost", row, because))
}

fn advice(purpose: &str, row: &Row, because: String) -> Advice {
    let recipe = recipe(row);
    Advice {
        purpose: purpose.into(),
        action: action(row),
        because,
        with_wrote: with_wrote(row).map(shown),
        code: recipe.map_or(String::new(), |title| recipes::code(title, "rust")),
        recipe: recipe.map(Into::into),
        ..Advice::default()
    }
}

/// Returns the chapter with the code in all languages; `None` for writes that may be lost.
fn recipe(row: &Row) -> Option<&'static str> {
    let settings = settings(row);
    let title = match settings.blocks {
        Blocks::Written => "Overwriting in place",
        _ if row.workload == "small" => "Appending records",
        _ => "Writing a long file",
    };
    row.is_durable().then_some(title)
}

/// Describes the recommended action, from the effective settings.
fn action(row: &Row) -> String {
    let settings = settings(row);
    let place = match settings.blocks {
        Blocks::Written => "Write the file's blocks once beforehand, then overwrite them",
        Blocks::Allocated => "Allocate the file beforehand (fallocate), then write",
        _ => "Write",
    };
    let cache = if settings.direct { "directly (O_DIRECT)" } else { "through the page cache" };
    let queue = match settings.ioengine {
        Ioengine::IoUring => format!(", {} in flight through io_uring", settings.iodepth),
        Ioengine::Threads => format!(", {} in flight on a pool of threads", settings.iodepth),
        _ => String::new(),
    };
    let jobs = match settings.numjobs {
        0 | 1 => String::new(),
        jobs => format!(", by {jobs} threads with a file each"),
    };
    let flush = match settings.sync {
        Flush::FdatasyncAtEnd => "; fdatasync once at the end",
        Flush::FdatasyncEach => "; fdatasync after each",
        Flush::ODsyncEach => "; the file opened with O_DSYNC, so that each write is flushed",
        _ => "; no flush",
    };
    let size = block_size(settings.bs_bytes);
    let std = match settings.direct && settings.blocks != Blocks::Written && row.is_durable() {
        true => " (without wrote, the code below goes through the page cache)",
        false => "",
    };
    format!("{place} {cache} in pieces of {size}{queue}{jobs}{flush}{std}")
}

/// Returns the example that writes as the row does, with this library. A stream is flushed only at
/// its end. Overwriting a stream in place has no example, because `Writer` creates a new file.
fn with_wrote(row: &Row) -> Option<&'static str> {
    let settings = settings(row);
    let in_place = settings.blocks == Blocks::Written;
    let is_record = row.workload == "small" && settings.sync.is_each();
    match (is_record, settings.direct, settings.sync != Flush::None) {
        (true, ..) if in_place => Some(DIRECT_FILE),
        (true, ..) => Some(LOG),
        _ if in_place => None,
        (_, true, true) => Some(WRITER),
        (_, false, true) => Some(WRITER_CACHED),
        (_, true, false) => Some(WRITER_UNSYNCED),
        (_, false, false) => Some(WRITER_CACHED_UNSYNCED),
    }
}

/// Returns an example as it is shown, without its module comment.
fn shown(file: &str) -> String {
    let lines = file.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    lines.collect::<Vec<&str>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_jobs::sample::evidence;
    use wrote_result::sample::{row, target};

    const DURABLE: &str = "power-loss";
    const CACHED: &str = "process-crash";

    fn with_cpu(mut row: Row, cpu_s_per_gb: f64) -> Row {
        for run in &mut row.runs {
            (run.cpu_user_s, run.cpu_system_s) = (0.0, cpu_s_per_gb);
        }
        row
    }

    fn around(median: f64) -> [f64; 3] {
        [median * 0.99, median, median * 1.01]
    }

    fn advice_for(purpose: &str, rows: &[Row]) -> Option<Advice> {
        let target = target();
        advise(&evidence(&target, rows)).find(|advice| advice.purpose == purpose)
    }

    #[test]
    fn nothing_is_advised_without_measured_rows() {
        assert!(advise(&evidence(&target(), &[])).next().is_none());
    }

    #[test]
    fn streaming_takes_the_fastest_that_survives_a_power_loss() {
        let rows = [
            row("stream/cached", CACHED, &around(5e9)),
            row("stream/cached-fdatasync-at-end", DURABLE, &around(1e9)),
            row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &around(2e9)),
            row("stream/o_dsync-each", DURABLE, &around(0.5e9)),
        ];
        let advice = advice_for("streaming", &rows).unwrap();
        assert_eq!(
            advice.action,
            "Write directly (O_DIRECT) in pieces of 512 KiB, 64 in flight through io_uring; \
             fdatasync once at the end (without wrote, the code below goes through the page \
             cache)"
        );
        assert_eq!(
            advice.because,
            "stream/direct-io_uring-fdatasync-at-end: 2.00 GB/s at 100 ms of CPU per GB; \
             2.00 times stream/cached-fdatasync-at-end (1.00 GB/s)"
        );
    }

    #[test]
    fn of_two_that_cannot_be_told_apart_the_simpler_is_advised_and_it_is_said() {
        // M8
        let fast = row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &[1.9e9, 2.0e9, 2.1e9]);
        let cheap = row("stream/fdatasync-each", DURABLE, &[1.85e9, 1.95e9, 2.05e9]);
        let rows = [with_cpu(fast, 0.3), with_cpu(cheap, 0.1)];
        let because = advice_for("streaming", &rows).unwrap().because;
        assert_eq!(
            because,
            "stream/fdatasync-each: 1.95 GB/s at 100 ms of CPU per GB, with no difference \
             found from stream/direct-io_uring-fdatasync-at-end (2.00 GB/s at 300 ms of CPU \
             per GB), and is simpler"
        );
    }

    #[test]
    fn of_two_as_simple_the_cheaper_is_advised() {
        let fast = row("stream/o_dsync-each", DURABLE, &[1.9e9, 2.0e9, 2.1e9]);
        let cheap = row("stream/fdatasync-each", DURABLE, &[1.85e9, 1.95e9, 2.05e9]);
        let rows = [with_cpu(fast, 0.3), with_cpu(cheap, 0.1)];
        let because = advice_for("streaming", &rows).unwrap().because;
        assert!(because.starts_with("stream/fdatasync-each"), "{because}");
        assert!(because.ends_with("and is cheaper"), "{because}");
    }

    #[test]
    fn of_ways_too_noisy_to_tell_apart_the_simplest_is_advised() {
        let fast = row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &[1.0e9, 3.0e9]);
        let slow = row("stream/o_dsync-each", DURABLE, &[0.4e9, 1.4e9]);
        let rows = [with_cpu(fast, 0.3), with_cpu(slow, 0.1)];
        let because = advice_for("streaming", &rows).unwrap().because;
        assert_eq!(
            because,
            "stream/o_dsync-each: 900 MB/s at 100 ms of CPU per GB, with no difference found \
             from stream/direct-io_uring-fdatasync-at-end (2.00 GB/s at 300 ms of CPU per GB), and \
             is simpler"
        );
    }

    #[test]
    fn single_runs_are_compared_by_their_speed_alone() {
        let fast = row("stream/cached-fdatasync-at-end", DURABLE, &[2e9]);
        let cheap = row("stream/o_dsync-each", DURABLE, &[1.99e9]);
        let rows = [with_cpu(fast, 0.3), with_cpu(cheap, 0.1)];
        let because = advice_for("streaming", &rows).unwrap().because;
        assert!(because.starts_with("stream/cached-fdatasync-at-end"), "{because}");
        assert!(because.ends_with("one run, so nothing is known of how much it varies"));
    }

    #[test]
    fn small_records_are_durable_each_by_itself_and_counted() {
        let rows = [
            row("small/cached", CACHED, &around(900e6)),
            row("small/cached-fdatasync-at-end", DURABLE, &around(400e6)),
            row("small/fdatasync-each", DURABLE, &around(4.096e6)),
            row("small/direct-o_dsync-each-overwrite", DURABLE, &around(40.96e6)),
        ];
        let advice = advice_for("small durable records", &rows).unwrap();
        assert!(advice.action.starts_with("Write the file's blocks once beforehand"));
        assert_eq!(
            advice.because,
            "small/direct-o_dsync-each-overwrite: 10.0 k records/s of 4 KiB at 100 ms of CPU per \
             GB; 10.0 times small/fdatasync-each (1.00 k records/s of 4 KiB). Where many records \
             may be acknowledged together, one flush for all of them is 9.77 times as fast \
             (small/cached-fdatasync-at-end: 97.7 k records/s of 4 KiB)"
        );
    }

    #[test]
    fn without_a_flush_each_no_small_record_is_called_durable() {
        let rows = [row("small/cached-fdatasync-at-end", DURABLE, &around(400e6))];
        assert!(advice_for("small durable records", &rows).is_none());
        let in_memory = [row("small/fdatasync-each", CACHED, &around(400e6))];
        assert!(advice_for("small durable records", &in_memory).is_none());
    }

    #[test]
    fn data_that_may_be_lost_takes_the_fastest_of_all_and_memory_is_called_so() {
        let mut cached = row("stream/cached", CACHED, &around(5e9));
        cached.runs.iter_mut().for_each(|run| run.device_written_bytes = Some(0));
        let durable = row("stream/cached-fdatasync-at-end", DURABLE, &around(1e9));
        let because = advice_for("data that may be lost", &[cached, durable]).unwrap().because;
        assert!(because.contains("5.00 GB/s at 100 ms of CPU per GB; 5.00 times"), "{because}");
        assert!(because.contains("the speed of memory"), "{because}");
    }

    #[test]
    fn a_ratio_with_a_noisy_row_is_told_roughly() {
        let rows = [
            row("small/fdatasync-each", DURABLE, &around(4.096e6)),
            row("small/cached-fdatasync-at-end", DURABLE, &[20e6, 40.96e6, 70e6]),
        ];
        let because = advice_for("small durable records", &rows).unwrap().because;
        assert!(
            because.contains("one flush for all of them is about 10 times as fast"),
            "{because}"
        );
    }

    #[test]
    fn in_memory_no_way_around_the_page_cache_is_advised() {
        let rows = [
            row("stream/direct-psync", CACHED, &around(10e9)),
            row("stream/cached", CACHED, &around(3e9)),
        ];
        let target = target();
        let evidence = Evidence { in_memory: true, ..evidence(&target, &rows) };
        let advice = advise(&evidence).next().unwrap();
        assert!(advice.action.starts_with("Write through the page cache"), "{advice:?}");
    }

    #[test]
    fn safety_that_costs_nothing_is_named() {
        let rows = [
            row("stream/direct-io_uring-fdatasync-at-end", DURABLE, &around(3e9)),
            row("stream/cached", CACHED, &around(1e9)),
        ];
        let because = advice_for("data that may be lost", &rows).unwrap().because;
        assert!(because.ends_with("nothing is gained by giving that up"), "{because}");
        let small = [row("small/cached", CACHED, &around(1e9))];
        assert!(advice_for("data that may be lost", &small).is_some());
    }
}

#[cfg(test)]
mod library_tests {
    use super::*;
    use crate::choice::CODE_COLUMNS_MAX;
    use crate::sample::row;
    use std::fs;

    fn of_row(name: &str) -> Option<String> {
        with_wrote(&row(name, "power-loss", &[1.0])).map(shown)
    }

    #[test]
    fn each_way_of_the_ladder_is_shown_with_the_librarys_own_means() {
        let has = |name: &str, words: &[&str]| {
            let text = of_row(name).unwrap_or_else(|| panic!("{name} has no lines"));
            words.iter().for_each(|word| assert!(text.contains(word), "{name}: {text}"));
        };
        has("stream/direct-io_uring-fdatasync-at-end", &["Writer::create", "finish()"]);
        has("stream/cached-fdatasync-at-end", &["direct(false)", "finish()"]);
        has("stream/cached", &["direct(false)", "close()"]);
        has("stream/direct-io_uring", &["Writer::create", "close()"]);
        has("stream/o_dsync-each", &["direct(false)", "finish()"]);
        has("small/fdatasync-each", &["Log::options()", "wait()?"]);
        has("small/o_dsync-each", &["Log::options()"]);
        has("small/direct-o_dsync-each-overwrite", &["write_durable"]);
        assert_eq!(of_row("stream/direct-io_uring-overwrite"), None);
    }

    #[test]
    fn the_code_shown_is_the_file_compiled_and_fits_a_terminal() {
        for file in
            [WRITER, WRITER_CACHED, WRITER_UNSYNCED, WRITER_CACHED_UNSYNCED, LOG, DIRECT_FILE]
        {
            let shown = shown(file);
            assert!(file.ends_with(&format!("\n\n{shown}\n")), "{shown}");
            assert!(shown.starts_with("use ") && shown.lines().count() <= 20, "{shown}");
            assert!(shown.lines().all(|line| line.len() <= CODE_COLUMNS_MAX), "{shown}");
        }
    }

    #[test]
    fn the_lines_that_are_shown_write_the_bytes() {
        let folder = fixtures::folder();
        let at = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
        let pieces: Vec<Vec<u8>> = (1..100_u8).map(|length| vec![length; length.into()]).collect();
        let whole = pieces.concat();
        type Stream = fn(&str, Vec<Vec<u8>>) -> std::io::Result<()>;
        let streams: [Stream; 4] = [
            examples::writer::stream,
            examples::writer_cached::stream,
            examples::writer_unsynced::stream,
            examples::writer_cached_unsynced::stream,
        ];
        for (number, stream) in streams.into_iter().enumerate() {
            let path = at(&format!("stream-{number}"));
            stream(&path, pieces.clone()).unwrap();
            assert_eq!(fs::read(path).unwrap(), whole, "{number}");
        }
        examples::log::append(&at("log"), &[b"one", b"two"]).unwrap();
        let records = wrote::LogReader::open(at("log"), 0).unwrap();
        let records: Vec<Vec<u8>> = records.map(|record| record.unwrap().bytes).collect();
        assert_eq!(records, [b"one", b"two"]);
        let (path, records) = (at("records"), [[1; 4096], [2; 4096], [3; 4096]]);
        fs::write(&path, [0; 4 * 4096]).unwrap();
        examples::direct_file::save(&path, &records).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [records.concat(), vec![0; 4096]].concat());
    }
}
