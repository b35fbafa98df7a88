//! Advice on writing a whole file, and on copying one.

#[cfg(test)]
mod examples;

use crate::choice::{Choice, body_of, speed};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Advice, Answer, Row, SourceCache};

const EXAMPLES: &str = include_str!("advice/examples.rs");

/// A method that may be recommended.
struct Advised {
    row: &'static str,
    action: &'static str,
    /// A short description of the method.
    how: &'static str,
    /// The function whose body is shown.
    function: &'static str,
}

const fn advised_way(
    row: &'static str,
    action: &'static str,
    how: &'static str,
    function: &'static str,
) -> Advised {
    Advised { row, action, how, function }
}

const WAYS: [Advised; 8] = [
    advised_way(
        "ways/file/write_all",
        "Write everything by one write_all; sync_all at the end",
        "one write_all, sync_all",
        "write_all",
    ),
    advised_way(
        "ways/file/bufwriter-4k",
        "Write small pieces through a BufWriter; sync_all at the end",
        "BufWriter, sync_all",
        "bufwriter",
    ),
    advised_way(
        "ways/file/chunks-8m",
        "Write in chunks of 8 MiB straight to the file; sync_all at the end",
        "write() of 8 MiB, sync_all",
        "chunks",
    ),
    advised_way(
        "ways/file/writer",
        "Write pieces of any size to a wrote::Writer, and finish it",
        "wrote::Writer, finish",
        "writer",
    ),
    advised_way("ways/file/stream-8m", STREAM, STREAM_HOW, "stream"),
    advised_way("ways/file/stream-8m-dropped", STREAM, STREAM_HOW, "stream"),
    advised_way("ways/file/copy", COPY, COPY_HOW, "copy"),
    advised_way("ways/file/copy-dropped", COPY, COPY_HOW, "copy"),
];

/// The purpose for which there is code in other languages.
const WRITING: &str = "writing a file";
/// The row of a method without a flush.
const UNFLUSHED: &str = "ways/file/fs-write";

const STREAM: &str = "Read into a buffer of 8 MiB and write_all from it; sync_all at the end";
const STREAM_HOW: &str = "8 MiB at once, sync_all";
const COPY: &str = "Copy by wrote::copy";
const COPY_HOW: &str = "wrote::copy";

/// Recommends how to write a file and how to copy one, among the methods that survive a power loss.
/// If fewer than two such methods were measured, there is no recommendation.
pub(crate) fn advise(evidence: &Evidence) -> [Option<Advice>; 2] {
    let [written, copied] = durable(evidence);
    [(WRITING, written), ("copying a file", copied)].map(|(purpose, rows)| {
        let choice = Choice::of(rows.iter().copied()).filter(|_| rows.len() >= 2)?;
        let Advised { action, function, .. } = advised(choice.row)?;
        Some(Advice {
            purpose: purpose.into(),
            action: (*action).into(),
            because: format!("{}: {}", choice.row.name, choice.reason(speed)),
            code: body_of(EXAMPLES, function),
            recipe: (purpose == WRITING).then(|| "Writing a long file".into()),
            ..Advice::default()
        })
    })
}

/// Answers how fast a file is written and copied durably, and how fast it is written if it may be
/// lost.
pub(crate) fn answers(evidence: &Evidence) -> Vec<Answer> {
    let answer = |question: &str, row: &Row, how: &str| Answer {
        question: question.into(),
        row: row.name.clone(),
        how: how.into(),
        ..Answer::default()
    };
    let [written, copied] = durable(evidence);
    let durable = [("File, durable", written), ("Copy, durable", copied)];
    let durable = durable.into_iter().filter_map(|(question, rows)| {
        let row = Choice::of(rows.into_iter())?.row;
        Some(answer(question, row, advised(row)?.how))
    });
    let unflushed = evidence.rows.iter().find(|row| row.name == UNFLUSHED);
    let lost = unflushed.map(|row| answer("File, may be lost", row, "std::fs::write"));
    durable.chain(lost).collect()
}

/// Returns the rows of written files, and of copied files, that survive a power loss.
fn durable<'a>(evidence: &Evidence<'a>) -> [Vec<&'a Row>; 2] {
    let of = |cache| -> Vec<&Row> {
        let is_of = |row: &&Row| {
            row.settings.asked.source_cache == cache && row.is_durable() && advised(row).is_some()
        };
        evidence.rows.iter().filter(is_of).collect()
    };
    // Copies of uncached files are preferred, because they are what occurs in practice, and copies
    // of cached files take hardly any time.
    let copies = match of(Some(SourceCache::Dropped)) {
        dropped if dropped.len() >= 2 => dropped,
        _ => of(Some(SourceCache::Warm)),
    };
    [of(None), copies]
}

fn advised(row: &Row) -> Option<&'static Advised> {
    WAYS.iter().find(|way| way.row == row.name)
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
        rows.push(way("ways/file/fs-write", None, 1e9));
        let answers = answers(&evidence(&target(), &rows));
        let told = answers.iter().map(|of| (&*of.question, &*of.row, &*of.how));
        assert!(told.eq([
            ("File, durable", "ways/file/writer", "wrote::Writer, finish"),
            ("File, may be lost", "ways/file/fs-write", "std::fs::write"),
        ]));
    }

    #[test]
    fn a_way_of_ours_that_does_not_win_is_not_advised() {
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
        assert!(WAYS.iter().all(|way| !body_of(EXAMPLES, way.function).is_empty()));
    }
}
