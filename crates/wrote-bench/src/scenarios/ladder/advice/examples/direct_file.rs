//! Records of one size over blocks that were written before, each durable before the next.

use wrote::engine::Options;
use wrote::{Disk, Error, FileOptions, Ioengine};

pub fn save<const SIZE: usize>(path: &str, records: &[[u8; SIZE]]) -> Result<(), Error> {
    let disk = Disk::open(&Options::new(Ioengine::Psync, 1, SIZE))?;
    let options = FileOptions::new().write(true).direct(true);
    let file = disk.open_file(path, &options)?; // its blocks were written before
    for (number, record) in records.iter().enumerate() {
        let mut buffer = disk.lease()?; // aligned in memory
        buffer.copy_from_slice(record);
        file.write_durable(buffer, (number * SIZE) as u64)?; // survives a power loss
    }
    file.close()
}
