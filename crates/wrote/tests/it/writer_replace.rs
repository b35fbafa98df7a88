//! Tests of `Writer::replace` and `finish`, on the real kernel and on a simulated disk, and of
//! files that the caller has opened. The module `faults` tests each error and each power loss.

use crate::folder;
use fixtures::names;
use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wrote::{Error, Sim, SyncPolicy, Writer, WriterOptions};

const BS_BYTES: usize = 4096;

fn content(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|place| (place / 251 + place * 7 + 1) as u8).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_old_content_stays_until_the_new_is_finished_and_nothing_else_is_left() {
    let (folder, path) = folder();
    for old in [None, Some(content(9, 1000))] {
        for len in [0, 1, 4096, 100_001, 9_000_000] {
            for (direct, durable) in [(true, true), (false, true), (true, false)] {
                let _ = fs::remove_file(&path);
                if let Some(old) = &old {
                    fs::write(&path, old).unwrap();
                }
                let new = content(len, len);
                let mut writer =
                    Writer::options().replace(true).direct(direct).open(&path).unwrap();
                for piece in new.chunks(77_777) {
                    writer.write_all(piece).unwrap();
                }
                assert_eq!(fs::read(&path).ok(), old);
                let written = if durable { writer.finish() } else { writer.close() }.unwrap();
                assert_eq!((written.bytes, written.durable), (len as u64, durable));
                assert!(fs::read(&path).unwrap() == new);
                assert_eq!(names(folder.path()), ["file"]);
            }
        }
    }
}

#[test]
fn a_writer_finishes_in_its_own_folder_after_another_got_the_name() {
    // W1, W7
    let (folder, _) = folder();
    let [name, own] = ["name", "own"].map(|it| folder.path().join(it));
    fs::create_dir(&name).unwrap();
    let mut replacing = Writer::replace(name.join("file")).unwrap();
    let mut writing = Writer::create(name.join("other")).unwrap();
    fs::rename(&name, &own).unwrap();
    fs::create_dir(&name).unwrap();
    fs::write(name.join("file"), b"of another").unwrap();
    replacing.write_all(b"new").unwrap();
    replacing.finish().unwrap();
    writing.write_all(b"synced").unwrap();
    writing.sync_data().unwrap();
    writing.close().unwrap();
    assert_eq!(names(&own), ["file", "other"]);
    assert_eq!(fs::read(own.join("file")).unwrap(), b"new");
    assert_eq!(names(&name), ["file"]);
    assert_eq!(fs::read(name.join("file")).unwrap(), b"of another");
}

#[test]
fn a_replacement_dropped_unfinished_leaves_the_old_content_alone() {
    // W7
    let (folder, path) = folder();
    fs::write(&path, b"old").unwrap();
    let mut writer = Writer::replace(&path).unwrap();
    writer.write_all(&content(0, 5_000_000)).unwrap();
    writer.sync_data().unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["file"]);
    let error = Writer::options().replace(true).append(true).open(&path).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(Writer::replace(folder.path()).unwrap_err().to_string().contains("is a folder"));
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_new_name_that_is_taken_meanwhile_is_not_replaced() {
    // W7
    let (folder, path) = folder();
    let options = || Writer::options().replace(true).create_new(true);
    let mut first = options().open(&path).unwrap();
    let mut second = options().open(&path).unwrap();
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    first.finish().unwrap();
    assert_eq!(second.finish().unwrap_err().errno(), libc_eexist());
    assert_eq!(options().open(&path).unwrap_err().errno(), libc_eexist());
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(names(folder.path()), ["file"]);
}

fn libc_eexist() -> i32 {
    rustix::io::Errno::EXIST.raw_os_error()
}

#[test]
fn a_secret_has_its_permissions_from_its_first_byte_and_a_replaced_file_the_old_ones() {
    let (folder, path) = folder();
    let staged = |folder: &Path| {
        let name = names(folder).into_iter().find(|name| name.contains(".wrote-")).unwrap();
        mode(&folder.join(name))
    };
    for old in [None, Some(0o644), Some(0o666)] {
        if let Some(old) = old {
            fs::write(&path, b"old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(old)).unwrap();
        }
        let mut writer = Writer::options().replace(true).mode(0o600).open(&path).unwrap();
        assert_eq!(staged(folder.path()), 0o600);
        writer.write_all(b"secret").unwrap();
        writer.finish().unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::remove_file(&path).unwrap();
    }
    fs::write(&path, b"old").unwrap();
    for old in [0o600, 0o640, 0o751] {
        fs::set_permissions(&path, fs::Permissions::from_mode(old)).unwrap();
        let writer = Writer::replace(&path).unwrap();
        assert_eq!(staged(folder.path()) & !old, 0, "never more than the old file");
        writer.finish().unwrap();
        assert_eq!(mode(&path), old);
    }
    fs::remove_file(&path).unwrap();
    Writer::options().mode(0o600).open(&path).unwrap().finish().unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_file_that_the_caller_opened_is_written_from_where_it_stands() {
    let (_folder, path) = folder();
    for direct in [false, true] {
        for len in [3, 100_000] {
            fs::write(&path, content(0, 50_000)).unwrap();
            let mut file = OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(1001)).unwrap();
            let mut writer = Writer::options().bs(BS_BYTES).direct(direct).from_file(file).unwrap();
            assert_eq!(writer.stream_position().unwrap(), 1001);
            writer.write_all(&content(7, len)).unwrap();
            let written = writer.finish().unwrap();
            let mut expected = content(0, 50_000);
            expected.resize(expected.len().max(1001 + len), 0);
            expected[1001..1001 + len].copy_from_slice(&content(7, len));
            assert_eq!(written.bytes, expected.len() as u64);
            assert!(fs::read(&path).unwrap() == expected);
        }
    }
    fs::write(&path, b"old").unwrap();
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let mut writer = Writer::try_from(file).unwrap();
    writer.write_all(b" and new").unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old and new");
}

#[test]
fn a_given_file_needs_no_name_and_is_refused_where_it_can_not_be_written() {
    let (folder, path) = folder();
    let mut file = tempfile::tempfile_in(folder.path()).unwrap();
    let mut writer = Writer::from_file(file.try_clone().unwrap()).unwrap();
    writer.write_all(&content(0, 300_000)).unwrap();
    assert!(writer.finish().unwrap().durable);
    let mut found = Vec::new();
    file.read_to_end(&mut found).unwrap();
    assert!(found == content(0, 300_000));

    fs::write(&path, b"old").unwrap();
    let error = Writer::from_file(File::open(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("reading only"), "{error}");
    let error = Writer::from_file(OpenOptions::new().write(true).open("/dev/null").unwrap());
    assert!(matches!(error, Err(Error::Refused { .. })));
    let file = || OpenOptions::new().write(true).open(&path).unwrap();
    for options in [Writer::options().replace(true), Writer::options().create_new(true)] {
        assert!(matches!(options.from_file(file()), Err(Error::Refused { .. })));
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn slices_are_written_whole_and_in_order_with_one_sync() {
    let bytes = content(0, 60_000);
    for sync in [SyncPolicy::No, SyncPolicy::Always] {
        let sim = Sim::new(4);
        let mut writer = options().sync(sync).on(&sim.disk()).open("/sim/file").unwrap();
        let mut left = &bytes[..];
        for lens in [[0, 3, 5], [4000, 90, 7], [4096, 4096, 4096], [20_000, 0, 1]].iter().cycle() {
            if left.is_empty() {
                break;
            }
            let mut slices = Vec::new();
            let mut total = 0;
            for &len in lens {
                let (now, later) = left.split_at(len.min(left.len()));
                slices.push(IoSlice::new(now));
                left = later;
                total += now.len();
            }
            let before = sim.operations();
            assert_eq!(writer.write_vectored(&slices).unwrap(), total);
            if sync == SyncPolicy::Always && total < BS_BYTES {
                // A sync takes a write, a truncation and a flush, and the first one also syncs the
                // folder.
                assert!(sim.operations() - before <= 5, "one sync for all slices");
            }
        }
        writer.finish().unwrap();
        assert!(sim.contents(Path::new("/sim/file")).unwrap() == bytes);
    }
}

fn options() -> WriterOptions {
    Writer::options().bs(BS_BYTES).iodepth(3)
}
