//! Tests of `examine` and `alignment` on real file systems.

use fixtures::{Loop, Mounted, or_skip, run};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use wrote::device::{BlockDevice, Target, alignment, examine};

const MIB: u64 = 1 << 20;

#[test]
fn each_file_system_is_described_with_its_disk() {
    for (fs, size_bytes) in [("ext4", 64 * MIB), ("xfs", 320 * MIB), ("btrfs", 256 * MIB)] {
        let disk = Loop::attach(size_bytes);
        let mounted = or_skip!(disk.and_then(|disk| file_system_on_a_disk(fs, disk)));
        direct_transfers_work_as_aligned(&mounted);
    }
}

/// Creates a file system on a whole loop device, and checks its description.
fn file_system_on_a_disk(fs: &str, disk: Loop) -> Result<Mounted, String> {
    let name = disk.node().file_name().unwrap().to_str().unwrap().to_owned();
    let image = disk.image().to_owned();
    let size_bytes = image.metadata().unwrap().len();
    let number = rdev(disk.node());
    let mounted = Mounted::disks(fs, vec![disk])?;

    let target = examine(mounted.path()).unwrap();
    assert_eq!(target.path, mounted.path());
    assert_eq!(target.mount_point, mounted.path());
    assert_eq!(target.filesystem, fs);
    assert!(target.mount_options.iter().any(|option| option == "rw"), "{target:?}");
    assert!(target.capacity_bytes <= size_bytes, "{target:?}");
    assert!(target.capacity_bytes > size_bytes / 2, "{target:?}");
    assert!(target.free_bytes < target.capacity_bytes, "{target:?}");
    assert!(target.free_bytes > size_bytes / 4, "{target:?}");
    assert!(!target.read_only);
    assert_eq!(target.in_memory, examine(image.parent().unwrap()).unwrap().in_memory);

    let device = block(&target);
    assert_eq!(device.name, name);
    assert_eq!((device.major, device.minor), number);
    assert_eq!(device.disks, Vec::<String>::new());
    assert_eq!(device.model, Some(format!("file {}", image.display())));
    assert_eq!(device.capacity_bytes, size_bytes);
    assert!(device.logical_block_bytes >= 512);
    assert!(device.physical_block_bytes >= device.logical_block_bytes);

    Ok(mounted)
}

#[test]
fn a_btrfs_subvolume_lies_on_its_file_systems_disk() {
    let mounted = or_skip!(Mounted::image("btrfs", 256 * MIB));
    let subvolume = mounted.path().join("subvolume");
    let made = run("btrfs", &["subvolume".as_ref(), "create".as_ref(), subvolume.as_os_str()]);
    or_skip!(made);
    assert_ne!(subvolume.metadata().unwrap().dev(), mounted.path().metadata().unwrap().dev());
    let (top, below) = (examine(mounted.path()).unwrap(), examine(&subvolume).unwrap());
    assert_eq!(below.mount_point, top.mount_point);
    assert_eq!(block(&below), block(&top));
}

#[test]
fn a_partition_is_the_device_and_its_disk_lies_below() {
    let mounted = or_skip!(Mounted::partition("ext4", 64 * MIB));
    let target = examine(mounted.path()).unwrap();
    let device = block(&target);
    let [disk] = device.disks.as_slice() else { panic!("{device:?}") };
    assert_eq!(device.name, format!("{disk}p1"));
    assert_eq!((device.major, device.minor), rdev(&Path::new("/dev").join(&device.name)));
    assert_eq!(device.capacity_bytes, 63 * MIB);
    let image = device.model.as_ref().and_then(|model| model.strip_prefix("file "));
    assert!(image.is_some_and(|image| Path::new(image).is_file()), "{device:?}");
    direct_transfers_work_as_aligned(&mounted);
}

#[test]
fn an_overlay_lies_where_its_upper_folder_lies() {
    let upper = Mounted::image("ext4", 64 * MIB);
    let overlay = upper.and_then(|upper| {
        let below = examine(upper.path()).unwrap();
        Mounted::overlay(upper).map(|overlay| (overlay, below))
    });
    let (overlay, below) = or_skip!(overlay);
    let target = examine(overlay.path()).unwrap();
    assert_eq!(target.filesystem, "overlay");
    assert_eq!(block(&target), block(&below));
    assert_eq!(target.in_memory, below.in_memory);
    direct_transfers_work_as_aligned(&overlay);
}

#[test]
fn an_overlay_over_tmpfs_is_in_memory() {
    let overlay = or_skip!(Mounted::tmpfs(16 * MIB).and_then(Mounted::overlay));
    let target = examine(overlay.path()).unwrap();
    assert!(target.in_memory);
    let because = because(&target);
    assert!(because.starts_with("overlay: upper folder "), "{because}");
    assert!(because.ends_with(": tmpfs keeps files in memory: no block device"), "{because}");
}

#[test]
fn tmpfs_is_memory_and_has_no_block_device() {
    let mounted = or_skip!(Mounted::tmpfs(16 * MIB));
    let target = examine(mounted.path()).unwrap();
    assert_eq!(target.filesystem, "tmpfs");
    assert_eq!(target.mount_point, mounted.path());
    assert_eq!((target.capacity_bytes, target.free_bytes), (16 * MIB, 16 * MIB));
    assert!(target.in_memory);
    assert!(target.mount_options.iter().any(|option| option == "size=16384k"), "{target:?}");
    assert_eq!(because(&target), "tmpfs keeps files in memory: no block device");
    direct_transfers_work_as_aligned(&mounted);
}

#[test]
fn a_bind_mount_of_a_folder_lies_on_the_device_of_that_folder() {
    let both = Mounted::image("ext4", 64 * MIB).and_then(|mounted| {
        let folder = mounted.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        Mounted::bind(&folder).map(|bound| (mounted, bound))
    });
    let (mounted, bound) = or_skip!(both);
    let target = examine(bound.path()).unwrap();
    assert_eq!(target.mount_point, bound.path());
    assert_eq!(block(&target), block(&examine(mounted.path()).unwrap()));
}

#[test]
fn btrfs_and_an_overlay_on_it_are_written_in_whole_blocks() {
    let overlay = Mounted::image("btrfs", 256 * MIB).and_then(|btrfs| {
        whole_blocks(&btrfs);
        Mounted::overlay(btrfs)
    });
    let overlay = or_skip!(overlay);
    whole_blocks(&overlay);
}

/// Asserts that transfers are aligned to the file system's block, not to the smaller block of its
/// disk.
fn whole_blocks(mounted: &Mounted) {
    let target = examine(mounted.path()).unwrap();
    let block_bytes = rustix::fs::statvfs(mounted.path()).unwrap().f_bsize;
    assert!(block_bytes > block(&target).logical_block_bytes.into(), "{target:?}");
    let file = File::create_new(mounted.path().join("aligned")).unwrap();
    assert_eq!(u64::from(alignment(&file, &target).unwrap().0), block_bytes);
}

/// Writes and reads directly with the minimum alignment.
fn direct_transfers_work_as_aligned(mounted: &Mounted) {
    let target = examine(mounted.path()).unwrap();
    let path = mounted.path().join("direct");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&path)
        .unwrap();
    let alignment = alignment(&file, &target).expect("direct I/O");
    let (offset_bytes, memory_bytes) = alignment;
    assert!(offset_bytes.is_power_of_two() && memory_bytes.is_power_of_two(), "{alignment:?}");
    let (offset_bytes, memory_bytes) = (offset_bytes as usize, memory_bytes as usize);

    let mut memory = vec![0x5a; 2 * offset_bytes + 3 * memory_bytes];
    let start = memory.as_ptr().align_offset(2 * memory_bytes) + memory_bytes;
    let piece = &mut memory[start..start + offset_bytes];
    file.write_all_at(piece, 3 * offset_bytes as u64).unwrap();
    piece.fill(0);
    file.read_exact_at(piece, 3 * offset_bytes as u64).unwrap();
    assert!(piece.iter().all(|&byte| byte == 0x5a), "{alignment:?}");
}

fn block(target: &Target) -> &BlockDevice {
    target.device.as_ref().unwrap()
}

fn because(target: &Target) -> String {
    target.device.clone().unwrap_err()
}

fn rdev(node: &Path) -> (u32, u32) {
    let number = node.metadata().unwrap().rdev();
    (rustix::fs::major(number), rustix::fs::minor(number))
}
