//! Advice on writing a whole file, and on copying one.

#[cfg(test)]
mod examples;

use crate::choice::{Choice, body_of, speed};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Advice, Row, SourceCache};

const EXAMPLES: &str = include_str!("advice/examples.rs");

/// Rows that may be advised: the name, the advice, and the function whose body is shown.
const WAYS: [(&str, &str, &str); 8] = [
    ("ways/file/write_all", "Write everything by one write_all; sync_all at the end", "write_all"),
    (
        "ways/file/bufwriter-4k",
        "Write small pieces through a BufWriter; sync_all at the end",
        "bufwriter",
    ),
    (
        "ways/file/chunks-8m",
        "Write in chunks of 8 MiB straight to the file; sync_all at the end",
        "chunks",
    ),
    ("ways/file/writer", "Write pieces of any size to a wrote::Writer, and finish it", "writer"),
    ("ways/file/stream-8m", STREAM, "stream"),
    ("ways/file/stream-8m-dropped", STREAM, "stream"),
    ("ways/file/copy", COPY, "copy"),
    ("ways/file/copy-dropped", COPY, "copy"),
];

const STREAM: &str = "Read into a buffer of 8 MiB and write_all from it; sync_all at the end";
const COPY: &str = "Copy by wrote::copy";

/// Advises how to write and how to copy, among the ways that survive power loss. Without at least
/// two measured ways there is no advice.
pub(crate) fn advise(evidence: &Evidence) -> [Option<Advice>; 2] {
    let of = |cache| -> Vec<&Row> {
        let is_of = |row: &&Row| {
            row.settings.asked.source_cache == cache && row.is_durable() && advised(row).is_some()
        };
        evidence.rows.iter().filter(is_of).collect()
    };
    // Prefers uncached files, as copied in practice; a cached copy ends at once.
    let copies = match of(Some(SourceCache::Dropped)) {
        dropped if dropped.len() >= 2 => dropped,
        _ => of(Some(SourceCache::Warm)),
    };
    [("writing a file", of(None)), ("copying a file", copies)]
        .map(|(purpose, rows)| if rows.len() < 2 { None } else { choose(purpose, &rows) })
}

fn choose(purpose: &str, rows: &[&Row]) -> Option<Advice> {
    let choice = Choice::of(rows.iter().copied())?;
    let (action, function) = advised(choice.row)?;
    Some(Advice {
        purpose: purpose.into(),
        action: action.into(),
        because: format!("{}: {}", choice.row.name, choice.reason(speed)),
        with_wrote: None,
        code: body_of(EXAMPLES, function),
    })
}

fn advised(row: &Row) -> Option<(&'static str, &'static str)> {
    let (_, action, function) = WAYS.iter().find(|(name, ..)| *name == row.name)?;
    Some((action, function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{evidence, row, target};
    use std::fs;
    use wrote_result::document::View;

    fn way(name: &str, source_cache: Option<SourceCache>, rate: f64) -> Row {
        let mut row = row(name, "power-loss", &[rate * 0.99, rate, rate * 1.01]);
        (row.latency_ns, row.view) = (None, Some(View::Files));
        for settings in [&mut row.settings.asked, &mut row.settings.effective] {
            settings.source_cache = source_cache;
        }
        row
    }

    fn advice(rows: &[Row]) -> Vec<Advice> {
        advise(&evidence(&target(), rows)).into_iter().flatten().collect()
    }

    #[test]
    fn the_fastest_way_that_survives_a_power_loss_is_advised_with_its_code() {
        let mut rows = vec![
            way("ways/file/write_all", None, 1e9),
            way("ways/file/writer", None, 2e9),
            way("ways/file/constant-8m", None, 5e9),
        ];
        rows.push(Row {
            survives: Some(wrote_result::document::Survives::ProcessCrash),
            ..way("ways/file/chunks-8m", None, 9e9)
        });
        let advice = advice(&rows);
        assert_eq!(advice.len(), 1);
        assert_eq!(advice[0].purpose, "writing a file");
        assert!(advice[0].action.contains("wrote::Writer"), "{advice:?}");
        assert!(advice[0].code.contains("writer.finish()?;"), "{advice:?}");
        assert!(advice[0].because.contains("2.00 times ways/file/write_all"), "{advice:?}");
    }

    #[test]
    fn what_does_not_win_is_not_advised_though_it_is_ours() {
        let rows = [way("ways/file/write_all", None, 2e9), way("ways/file/writer", None, 1e9)];
        assert!(advice(&rows)[0].action.starts_with("Write everything by one write_all"));
        assert!(advice(&rows[1..]).is_empty());
    }

    #[test]
    fn copies_are_judged_by_a_source_that_is_not_in_memory() {
        let rows = [
            way("ways/file/stream-8m", Some(SourceCache::Warm), 3e9),
            way("ways/file/copy", Some(SourceCache::Warm), 2e9),
            way("ways/file/stream-8m-dropped", Some(SourceCache::Dropped), 1e9),
            way("ways/file/copy-dropped", Some(SourceCache::Dropped), 2e9),
        ];
        let dropped = advice(&rows);
        assert_eq!(
            (dropped[0].purpose.as_str(), dropped[0].action.as_str()),
            ("copying a file", COPY)
        );
        assert_eq!(advice(&rows[..2])[0].action, STREAM);
    }

    #[test]
    fn the_lines_that_are_shown_write_the_file() {
        let folder = fixtures::folder();
        let (folder, path) = (folder.path(), folder.path().join("file"));
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let pieces: Vec<&[u8]> = bytes.chunks(1000).collect();
        let source = folder.join("source");
        fs::write(&source, &bytes).unwrap();
        let written = |name: &str| {
            assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
            assert!(body_of(EXAMPLES, name).contains("?;"), "{name}");
            fs::remove_file(&path).unwrap();
        };
        examples::write_all(&path, folder, &bytes).unwrap();
        written("write_all");
        examples::bufwriter(&path, folder, &pieces).unwrap();
        written("bufwriter");
        examples::chunks(&path, folder, &bytes).unwrap();
        written("chunks");
        examples::writer(&path, &pieces).unwrap();
        written("writer");
        examples::stream(&source, &path, folder).unwrap();
        written("stream");
        examples::copy(&source, &path).unwrap();
        written("copy");
        assert!(WAYS.iter().all(|(.., function)| !body_of(EXAMPLES, function).is_empty()));
    }
}
