//! Measures the drive's rate as a baseline for the languages.

use crate::plan::{Call, Plan};
use crate::progress::Ticker;
use crate::scenario::Scenario;
use crate::scenarios::Peak;
use crate::settings::Common;
use crate::site::Site;
use wrote::device::Target;
use wrote_jobs::machine::target;
use wrote_result::Error;
use wrote_result::document::{Direction, Row};
use wrote_result::langs::Drive;

const PEAK: &str = "peak";
/// The block size and depth at which most drives stream fastest.
const BS_BYTES: u64 = 512 << 10;
const IODEPTH: u32 = 64;
const RUNS: u32 = 3;
/// The file is as long as the languages', but at least long enough to keep the drive busy at this
/// depth, and at most as long as a rate requires.
const FILE_BYTES_MIN: u64 = 64 << 20;
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Plans the cells for files of `size_bytes`. `None` if the file system is in memory or has no room
/// for the cells' file.
pub(super) fn cells(target: &Target, size_bytes: u64) -> Result<Option<Plan<'static>>, Error> {
    let size_bytes =
        size_bytes.clamp(FILE_BYTES_MIN, FILE_BYTES_MAX).min(target::room_bytes(target));
    if target.in_memory || size_bytes < FILE_BYTES_MIN {
        return Ok(None);
    }
    let common = Common {
        size_bytes: Some(size_bytes),
        stream_bs_bytes: Some(BS_BYTES),
        iodepth: Some(IODEPTH),
        runs: Some(RUNS),
        ..Common::default()
    };
    Ok(Peak::default()
        .plan(&Call { only: &[PEAK.into()], common: &common, target, within: None, speed: None })?
        .pop())
}

/// Measures the cells. If that fails, notes it and continues with the languages.
pub(super) fn measure(
    mut cells: Plan,
    site: &Site,
    ticker: &mut Ticker,
) -> Result<Option<Drive>, Error> {
    match cells.measure(None, &Site { scenario: PEAK, ..*site }, ticker) {
        Ok(measured) => Ok(fastest(&measured.scenario.rows)),
        Err(Error::Failed(because)) if !site.peers.are_many() => {
            ticker.note(&format!("the drive's own rate is left out: {because}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the rates of the fastest direct row of each direction. Without a direct row the drive's
/// rate is unknown, because other rows may not leave the page cache.
fn fastest(rows: &[Row]) -> Option<Drive> {
    let of = |direction: Direction| {
        let direct = rows.iter().filter(|row| row.settings.effective.direct);
        let median = |row: &&Row| row.throughput_bytes_per_s.median;
        direct
            .filter(|row| row.direction == direction)
            .max_by(|a, b| median(a).total_cmp(&median(b)))
    };
    let (write, read) = (of(Direction::Write)?, of(Direction::Read)?);
    Some(Drive {
        write_row: write.name.clone(),
        write_bytes_per_s: write.throughput_bytes_per_s,
        read_row: read.name.clone(),
        read_bytes_per_s: read.throughput_bytes_per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_jobs::sample::place;
    use wrote_result::sample::row;

    fn of(direction: Direction, name: &str, bytes_per_s: f64, direct: bool) -> Row {
        let mut row = row(name, "os-crash", &[bytes_per_s; 3]);
        row.direction = direction;
        row.settings.effective.direct = direct;
        row
    }

    #[test]
    fn the_fastest_cell_of_each_direction_counts_and_only_where_it_was_direct() {
        let rows = [
            of(Direction::Read, "peak/read/a", 3e9, true),
            of(Direction::Read, "peak/read/b", 4e9, true),
            of(Direction::Write, "peak/write/a", 2e9, true),
            of(Direction::Write, "peak/write/cached", 9e9, false),
        ];
        let drive = fastest(&rows).unwrap();
        assert_eq!(
            (drive.write_row.as_str(), drive.read_row.as_str()),
            ("peak/write/a", "peak/read/b")
        );
        assert_eq!((drive.write_bytes_per_s.median, drive.read_bytes_per_s.median), (2e9, 4e9));
        assert_eq!(fastest(&rows[..2]), None);
        assert_eq!(fastest(&rows[3..]), None);
    }

    #[test]
    fn the_cells_are_few_and_their_file_is_bounded_by_the_room() {
        let planned = |size, target: &Target| cells(target, size).unwrap();
        let disk = place(1 << 40, 1 << 39);
        let grid = planned(256_000_000, &disk).unwrap();
        assert_eq!((grid.space_bytes, grid.runs_total()), (244 << 20, 6 * RUNS));
        assert_eq!(planned(1, &disk).unwrap().space_bytes, FILE_BYTES_MIN);
        assert_eq!(planned(1 << 40, &disk).unwrap().space_bytes, FILE_BYTES_MAX);
        let small = place(10 << 30, (1 << 30) + (100 << 20));
        assert_eq!(planned(256_000_000, &small).unwrap().space_bytes, 100 << 20);
    }

    #[test]
    fn memory_and_a_disk_without_room_have_no_rate() {
        let mut memory = place(1 << 40, 1 << 39);
        memory.in_memory = true;
        assert!(cells(&memory, 1 << 28).unwrap().is_none());
        assert!(cells(&place(10 << 30, 1 << 30), 1 << 28).unwrap().is_none());
    }
}
