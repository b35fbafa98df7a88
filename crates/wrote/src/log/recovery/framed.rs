//! Recovery of a framed log: what stands behind its end is kept aside, and cut.

use super::super::chain::{self, End, Segment};
use super::super::input::Input;
use super::super::rest::{self, Behind, Identity, Rest};
use super::super::walk::Walk;
use super::{Active, Found, Recovered, Sealed, aside, damaged, new_log_id};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// What of a segment is behind the end of the log.
struct Later<'a> {
    path: &'a Path,
    /// The end of the last byte that is not zero.
    end: u64,
}

pub(super) fn recover(
    engine: &mut Engine,
    folder: &Path,
    names: &[(u64, PathBuf)],
) -> Result<Found, Error> {
    let segments = chain::look(engine, names)?;
    let Some(End { last, walk, input }) = chain::end(engine, folder, &segments, true)? else {
        return begin_anew(engine, folder, &segments);
    };
    let recovered = cut(engine, folder, &segments, last, &walk, input)?;
    Ok(found(&segments[..=last], &walk, recovered))
}

/// Makes the end of the walk the end of the log, unless records behind it were durable.
fn cut(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    last: usize,
    walk: &Walk,
    mut input: Input,
) -> Result<Recovered, Error> {
    let header = segments[last].header.expect("it was walked through");
    let names: Vec<(u64, PathBuf)> =
        segments[last + 1..].iter().map(|segment| (segment.number, segment.path.clone())).collect();
    let Behind { rest, later, lost } =
        rest::behind(engine, &mut input, walk, header.log_id, &names)?;
    if let Some((path, offset)) = lost {
        let what = format!("record {} can't be read, and was durable once", walk.sequence);
        return Err(damaged(folder, &path, offset, &what));
    }
    let later = names.iter().zip(&later).map(|((_, path), rest)| Later { path, end: rest.end });
    let later: Vec<Later> = later.collect();

    let first_sequence = segments[0].header.map_or(0, |header| header.first_sequence);
    let mut recovered = Recovered {
        records: walk.sequence.saturating_sub(first_sequence),
        closed: walk.is_closed()
            && rest.end == walk.end
            && later.iter().all(|later| later.end == 0),
        torn_bytes: rest.end - walk.end,
        ..Recovered::default()
    };
    if rest.end > walk.end {
        recovered.kept_aside.push(aside::copy(engine, &mut input, walk.end, rest.end, "torn")?);
        // The copy must be found before what it was copied from is gone.
        engine.sync_folder(folder)?;
    }
    put_aside(engine, &later, &mut recovered)?;
    if input.len_bytes != walk.end {
        engine.truncate(input.file, walk.end)?;
        engine.flush(input.file)?;
    }
    input.close(engine)?;
    engine.sync_folder(folder)?;
    Ok(recovered)
}

/// Takes files out of the log: those in which nothing was written yet are removed. The newest goes first,
/// so that there is never a gap.
fn put_aside(engine: &mut Engine, later: &[Later], recovered: &mut Recovered) -> Result<(), Error> {
    for Later { path, end } in later.iter().rev() {
        recovered.torn_bytes += end;
        if *end == 0 {
            engine.remove(path)?;
        } else {
            recovered.kept_aside.push(aside::rename(engine, path)?);
        }
    }
    Ok(())
}

/// Nothing was ever whole in this log: what there is of it is kept aside.
fn begin_anew(engine: &mut Engine, folder: &Path, segments: &[Segment]) -> Result<Found, Error> {
    let mut later = Vec::with_capacity(segments.len());
    for Segment { path, .. } in segments {
        let Rest { end, .. } = rest::scan_file(engine, path, 0, Identity::Lost)?;
        later.push(Later { path, end });
    }
    let mut recovered = Recovered::default();
    put_aside(engine, &later, &mut recovered)?;
    engine.sync_folder(folder)?;
    Ok(Found::nothing(new_log_id(), recovered))
}

fn found(segments: &[Segment], walk: &Walk, recovered: Recovered) -> Found {
    let header = |segment: &Segment| segment.header.expect("its order was checked");
    let (active, sealed) = segments.split_last().expect("one was walked through");
    let sealed = sealed.iter().zip(&segments[1..]).map(|(segment, next)| Sealed {
        path: segment.path.clone(),
        bytes: segment.file_bytes,
        end_sequence: header(next).first_sequence,
        written_at_ns: header(next).created_at_ns,
    });
    Found {
        recovered,
        log_id: header(active).log_id,
        sealed: sealed.collect(),
        active: Some(Active {
            path: active.path.clone(),
            number: active.number,
            bytes: walk.end,
            block_bytes: header(active).block_bytes,
            created_at_ns: header(active).created_at_ns,
            last_checksum: walk.last.map_or(0, |(_, checksum)| checksum),
            after_cut: !walk.is_between_batches(),
        }),
        first_sequence: header(&segments[0]).first_sequence,
        next_sequence: walk.sequence,
    }
}
