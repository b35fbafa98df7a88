//! Tests of `Reader` on the real kernel: files of each kind, and files that change while they are
//! read.

use crate::folder;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wrote::{Error, Reader, ReaderOptions};

/// Returns `len` bytes that do not repeat within a page or a buffer.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 7 + place / 4093) as u8).collect()
}

/// Returns options with small buffers, so that even short files are read directly.
fn small() -> ReaderOptions {
    Reader::options().bs(16 << 10).iodepth(4)
}

fn drop_pages(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// Opens a file without read-ahead by the kernel, so that pages get into the cache only when they
/// are read.
fn open_alone(path: &Path) -> Reader {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    small().from_file(file)
}

fn all(mut reader: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn a_file_of_every_length_is_read_to_its_last_byte_cold_and_warm() {
    let (_folder, path) = folder();
    let lens = (0..40).map(|number| 90_000 + number * 131);
    for len in [0, 1, 511, 512, 4096, 8192, 8193, 65_536, 131_072, 131_073].into_iter().chain(lens)
    {
        let bytes = content(len);
        std::fs::write(&path, &bytes).unwrap();
        for cold in [false, true] {
            if cold {
                drop_pages(&path);
            }
            assert!(all(open_alone(&path)) == bytes, "{len} bytes, cold: {cold}");
        }
    }
}

#[test]
fn a_long_file_is_read_with_the_usual_options_by_bytes_lines_and_pieces() {
    let (_folder, path) = folder();
    let bytes = content(14_000_001);
    std::fs::write(&path, &bytes).unwrap();
    for cold in [false, true] {
        let open = || {
            if cold {
                drop_pages(&path);
            }
            Reader::open(&path).unwrap()
        };
        assert!(open().bytes().map(Result::unwrap).eq(bytes.iter().copied()));
        let lines: Vec<Vec<u8>> = open().split(b'\n').map(Result::unwrap).collect();
        assert!(lines.join(&b'\n') == bytes);
        let mut reader = open();
        let mut piece = [0; 1000];
        for expected in bytes.chunks(1000) {
            reader.read_exact(&mut piece[..expected.len()]).unwrap();
            assert!(piece[..expected.len()] == *expected);
        }
        assert_eq!(reader.read(&mut piece).unwrap(), 0);
        let effective = reader.effective();
        assert!(effective.iodepth <= 7 && effective.iodepth >= 1, "{effective:?}");
    }
}

#[test]
fn a_file_that_grows_is_read_on_and_one_that_shrinks_ends_where_it_ends_now() {
    for cold in [false, true] {
        let (_folder, path) = folder();
        let bytes = content(500_000);
        std::fs::write(&path, &bytes[..300_000]).unwrap();
        if cold {
            drop_pages(&path);
        }
        let mut reader = open_alone(&path);
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == bytes[..300_000]);
        assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
        let mut grown = OpenOptions::new().append(true).open(&path).unwrap();
        grown.write_all(&bytes[300_000..]).unwrap();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == bytes, "cold: {cold}");

        if cold {
            drop_pages(&path);
        }
        let mut reader = open_alone(&path);
        let mut first = vec![0; 100_000];
        reader.read_exact(&mut first).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
        let rest = all(&mut reader);
        // Only bytes that were read ahead may still be returned.
        assert!(bytes[100_000..].starts_with(&rest), "cold: {cold}");
        assert_eq!(reader.len().unwrap(), 50_000);
        reader.seek(SeekFrom::Start(0)).unwrap();
        assert!(all(reader) == bytes[..50_000]);
    }
}

#[test]
fn pipes_and_devices_are_read_as_they_come_and_folders_refused_in_one_line() {
    let (folder, _) = folder();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let bytes = content(300_000);
    let writer = {
        let (pipe, bytes) = (pipe.clone(), bytes.clone());
        std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(pipe).unwrap();
            pipe.write_all(&bytes).unwrap();
        })
    };
    let mut reader = Reader::open(&pipe).unwrap();
    let mut first = [0; 10];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(first, bytes[..10]);
    assert_eq!(reader.stream_position().unwrap(), 10);
    // This seek stays within the buffer.
    reader.seek(SeekFrom::Start(0)).unwrap();
    assert!(reader.seek(SeekFrom::Start(400_000)).is_err());
    assert!(all(reader) == bytes);
    writer.join().unwrap();

    let error = Reader::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Refused { errno: libc::EISDIR, .. }), "{error}");
    let error = std::io::Error::from(Reader::open(folder.path().join("no")).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let mut zeros = Reader::open("/dev/zero").unwrap();
    let mut some = vec![1; 1_000_000];
    zeros.read_exact(&mut some).unwrap();
    assert!(some.iter().all(|&byte| byte == 0));
    assert!(all(Reader::open("/dev/null").unwrap()).is_empty());
}

#[test]
fn a_file_of_proc_is_read_whole_though_its_length_says_0() {
    let reader = Reader::open("/proc/cpuinfo").unwrap();
    assert_eq!(reader.len().unwrap(), 0);
    let lines: Vec<String> = reader.lines().map(Result::unwrap).collect();
    let expected = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    assert_eq!(lines.len(), expected.lines().count());
    assert!(lines[0].starts_with("processor"), "{}", lines[0]);
}

#[test]
fn a_file_that_the_caller_opened_is_read_from_where_it_stands() {
    let (_folder, path) = folder();
    let bytes = content(200_000);
    std::fs::write(&path, &bytes).unwrap();
    let mut file = File::open(&path).unwrap();
    file.seek(SeekFrom::Start(1234)).unwrap();
    let mut reader = Reader::from(file.try_clone().unwrap());
    assert_eq!(reader.stream_position().unwrap(), 1234);
    assert!(all(&mut reader) == bytes[1234..]);
    assert_eq!(file.stream_position().unwrap(), 1234);

    // The file no longer has a name, and is not in the page cache.
    drop_pages(&path);
    std::fs::remove_file(&path).unwrap();
    let reader = small().from_file(file);
    assert!(all(reader) == bytes[1234..]);

    // Unaligned direct reads fail on such a file.
    std::fs::write(&path, &bytes).unwrap();
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    if let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        assert!(all(Reader::from(file)) == bytes);
    }
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    assert!(Reader::from(write_only).read(&mut [0; 10]).is_err());
}

#[test]
fn a_reader_goes_to_another_thread_with_what_it_read_ahead() {
    let (_folder, path) = folder();
    let bytes = content(3_000_000);
    std::fs::write(&path, &bytes).unwrap();
    drop_pages(&path);
    let mut reader = open_alone(&path);
    let mut found = Vec::new();
    while found.len() < bytes.len() {
        reader = std::thread::scope(|scope| {
            let found = &mut found;
            let read = move || {
                let mut piece = vec![0; 333_333];
                let len = reader.read(&mut piece).unwrap();
                found.extend_from_slice(&piece[..len]);
                reader
            };
            scope.spawn(read).join().unwrap()
        });
    }
    assert!(found == bytes);
    let boxed: Box<dyn BufRead + Send> = Box::new(Reader::open(&path).unwrap());
    drop(boxed);
}
