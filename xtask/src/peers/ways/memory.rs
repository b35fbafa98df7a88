//! Peak memory of `wrote copy`, of a file and of one that is many times as long: the same.

use super::copy::{copy, make, words};
use super::table::mebibytes;
use super::{Measured, Ways};
use crate::failure::{Failure, Tried};
use std::fs::remove_file;

/// The head of the table.
pub const HEAD: &str = "\
| peak memory | sizes | shorter | longer | difference | asked |
|---|---|---:|---:|---:|---|";

const SHORTER_BYTES: u64 = GIB;
const LONGER_BYTES: u64 = 16 * GIB;
/// What is left free besides the files.
const RESERVE_BYTES: u64 = 4 * GIB;
const MOST_ROUNDS: u32 = 3;
const MOST_MEMORY_BYTES: u64 = 64 << 20;
const MOST_DIFFERENCE_BYTES: u64 = 4 << 20;
const GIB: u64 = 1 << 30;

const SHORTER: &str = "shorter";
const LONGER: &str = "longer";

/// What both copies took at their peak.
#[derive(Debug)]
pub struct MemoryLine {
    /// Bytes of both files; `None` where there is no room for the longer.
    sizes: Option<[u64; 2]>,
    /// Of each round the memory of both, in bytes.
    rounds: Vec<[u64; 2]>,
}

/// Measures it; with less room than that takes, with a longer file that is shorter.
pub fn measure(ways: &Ways) -> Result<Measured, Failure> {
    let statistics = rustix::fs::statvfs(ways.folder).tried(ways.folder.display())?;
    let line = match longer_bytes(statistics.f_bavail.saturating_mul(statistics.f_frsize)) {
        Some(longer) => measure_sizes(ways, [SHORTER_BYTES, longer])?,
        None => MemoryLine { sizes: None, rounds: vec![] },
    };
    eprintln!("{}", line.row());
    let commands = vec![words("wrote", LONGER).join(" ")];
    Ok(Measured { memory: vec![line], commands, ..Measured::default() })
}

/// The longer file's length where so much is free: the file and its copy are there at once.
fn longer_bytes(available_bytes: u64) -> Option<u64> {
    let room = available_bytes.saturating_sub(RESERVE_BYTES) / 2 / GIB * GIB;
    (room > SHORTER_BYTES).then(|| room.min(LONGER_BYTES))
}

fn measure_sizes(ways: &Ways, sizes: [u64; 2]) -> Result<MemoryLine, Failure> {
    let files = [SHORTER, LONGER];
    for (file, bytes) in files.into_iter().zip(sizes) {
        make(ways, file, bytes)?;
    }
    let wrote = ways.programs.wrote.to_string_lossy();
    let memory = |number: usize| {
        let words = words(&wrote, files[number]);
        copy(ways, &words, sizes[number]).map(|outcome| outcome.memory_bytes)
    };
    let rounds = ways.rounds.min(MOST_ROUNDS);
    let rounds =
        (0..rounds).map(|_| Ok([memory(0)?, memory(1)?])).collect::<Result<_, Failure>>()?;
    for file in files.map(|file| ways.folder.join(file)) {
        remove_file(&file).tried(file.display())?;
    }
    Ok(MemoryLine { sizes: Some(sizes), rounds })
}

impl MemoryLine {
    /// The line of the table: the most of all rounds.
    pub fn row(&self) -> String {
        let what = "`wrote copy`, random data, durable";
        let asked = format!(
            "difference ≤ {}, each < {}",
            mebibytes(MOST_DIFFERENCE_BYTES as f64),
            mebibytes(MOST_MEMORY_BYTES as f64)
        );
        let Some([shorter, longer]) = self.sizes else {
            return format!("| {what} | not run: no room | | | | {asked}, not run |");
        };
        let [short, long] = [0, 1].map(|side| self.most(|round| round[side]));
        let difference = self.most(|round| round[0].abs_diff(round[1]));
        let is_met = difference <= MOST_DIFFERENCE_BYTES && short.max(long) < MOST_MEMORY_BYTES;
        format!(
            "| {what} | {} GiB, {} GiB | {} | {} | {} | {asked}, {} |",
            shorter / GIB,
            longer / GIB,
            mebibytes(short as f64),
            mebibytes(long as f64),
            mebibytes(difference as f64),
            if is_met { "met" } else { "not met" },
        )
    }

    fn most(&self, figure: impl Fn(&[u64; 2]) -> u64) -> u64 {
        self.rounds.iter().map(figure).max().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::programs::Programs;
    use super::super::super::trial::fake;
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_most_of_all_rounds_counts() {
        let line =
            |rounds: Vec<[u64; 2]>| MemoryLine { sizes: Some([GIB, 16 * GIB]), rounds }.row();
        assert_eq!(
            line(vec![[20 * MIB, 21 * MIB], [22 * MIB, 20 * MIB]]),
            "| `wrote copy`, random data, durable | 1 GiB, 16 GiB | 22.0 MiB | 21.0 MiB | 2.0 MiB \
             | difference ≤ 4.0 MiB, each < 64.0 MiB, met |"
        );
        assert!(line(vec![[20 * MIB, 25 * MIB]]).ends_with(", not met |"));
        assert!(line(vec![[64 * MIB, 64 * MIB]]).ends_with(", not met |"));
        assert!(line(vec![]).ends_with(", not met |"));
    }

    #[test]
    fn the_longer_file_is_as_long_as_there_is_room_for_it_twice() {
        assert_eq!(longer_bytes(100 * GIB), Some(16 * GIB));
        assert_eq!(longer_bytes(20 * GIB + 5), Some(8 * GIB));
        assert_eq!(longer_bytes(7 * GIB), None);
        let row = MemoryLine { sizes: None, rounds: vec![] }.row();
        assert!(row.contains("| not run: no room |") && row.ends_with(", not run |"), "{row}");
        let columns = |line: &str| line.matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(&row)));
    }

    #[test]
    fn both_are_copied_in_each_of_at_most_three_rounds_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = Programs { wrote: "/bin/wrote".into(), fio: "fio".into() };
        let trials = fake::trials(folder.path(), 1000, 1.0);
        let size = "512k".parse().expect("a size");
        let folder = folder.path();
        let ways = Ways { trials: &trials, programs: &programs, folder, size: &size, rounds: 7 };
        let line = measure_sizes(&ways, [1000, 1000]).expect("scripts");
        assert_eq!(line.rounds, [[2 << 20, 2 << 20]; 3]);
        assert!(!folder.join(SHORTER).exists() && !folder.join(LONGER).exists());
    }
}
