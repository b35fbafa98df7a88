//! Records of one size over blocks that were written earlier, each durable before the next one.

use wrote::engine::Options;
use wrote::{Disk, Error, FileOptions, Ioengine};

const SIZE: usize = 4096;

pub fn save(path: &str, all: &[[u8; SIZE]]) -> Result<(), Error> {
    let disk = Disk::open(&Options::new(Ioengine::Psync, 1, SIZE))?;
    let options = FileOptions::new().write(true).direct(true);
    // its blocks were written before
    let file = disk.open_file(path, &options)?;
    for (number, record) in all.iter().enumerate() {
        let mut buffer = disk.lease()?; // aligned in memory
        buffer.copy_from_slice(record);
        // survives a power loss
        file.write_durable(buffer, (number * SIZE) as u64)?;
    }
    file.close()
}
