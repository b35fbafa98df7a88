//! The target of a run: the file system and device under its path, for the result.

use std::fs::File;
use wrote::device::{BlockDevice, Target};
use wrote_result::document as result;

/// Returns the block device below the target.
pub fn device_of(target: &Target) -> Option<&BlockDevice> {
    target.device.as_ref().ok()
}

/// Describes a target for the result, with the alignments of `file`, which lies there.
pub fn shown_target(target: &Target, file: Option<&File>) -> result::Target {
    let alignment = file.and_then(|file| wrote::device::alignment(file, target));
    result::Target {
        path: target.path.display().to_string(),
        filesystem: target.filesystem.clone(),
        mount_options: target.mount_options.clone(),
        capacity_bytes: target.capacity_bytes,
        free_bytes: target.free_bytes,
        dio_offset_align_bytes: alignment.map(|alignment| alignment.offset_bytes),
        dio_memory_align_bytes: alignment.map(|alignment| alignment.memory_bytes),
        has_journal: target.has_journal,
        device: device_of(target).map(shown),
        no_device_because: target.device.as_ref().err().cloned(),
        limits: Vec::new(),
    }
}

fn shown(device: &BlockDevice) -> result::Device {
    result::Device {
        name: device.name.clone(),
        disks: device.disks.clone(),
        model: device.model.clone(),
        capacity_bytes: device.capacity_bytes,
        rotational: device.rotational,
        scheduler: device.scheduler.clone(),
        logical_block_bytes: device.logical_block_bytes,
        physical_block_bytes: device.physical_block_bytes,
        optimal_io_bytes: Some(device.optimal_io_bytes).filter(|bytes| *bytes > 0),
        write_cache: device.write_cache.clone(),
        fua: device.fua,
        io_poll: device.io_poll,
        nr_requests: device.nr_requests,
    }
}
