//! Tests of asynchronous readers and writers in tasks on tokio.

use std::fs::{self, File, OpenOptions};
use std::future::poll_fn;
use std::io::{SeekFrom, Write};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWriteExt,
};
use tokio::runtime::{Builder, Runtime};
use wrote::{Reader, Sim, Writer};

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 7 + place / 4093) as u8).collect()
}

/// Returns a runtime with one thread, so that a poll that waits for the disk would stop every task.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn pipe(folder: &Path) -> (impl AsyncBufRead + AsyncSeek + Send + Unpin + use<>, File) {
    let path = folder.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // The pipe is opened for reading, too. Otherwise the open would wait for the other end.
    let writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    (Reader::open(&path).unwrap().into_async().unwrap(), writer)
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn tasks_read_the_bytes_that_tasks_wrote() {
    let folder = fixtures::folder();
    runtime().block_on(async {
        for len in [0, 1, 4096, 131_072, 131_073, 1_000_001, 9_000_000] {
            let path = folder.path().join(len.to_string());
            let bytes = content(len);
            let mut writer = is_send(Writer::create(&path).unwrap().into_async().unwrap());
            for piece in bytes.chunks(10_007) {
                writer.write_all(piece).await.unwrap();
            }
            writer.shutdown().await.unwrap();
            writer.shutdown().await.unwrap();
            assert!(writer.write_all(b"more").await.is_err());
            assert!(fs::read(&path).unwrap() == bytes);

            let mut reader = is_send(Reader::open(&path).unwrap().into_async().unwrap());
            let mut found = Vec::new();
            reader.read_to_end(&mut found).await.unwrap();
            assert!(found == bytes);
            let mut lines = Reader::open(&path).unwrap().into_async().unwrap().split(b'\n');
            let mut count = 0;
            while lines.next_segment().await.unwrap().is_some() {
                count += 1;
            }
            let newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            assert!(count == newlines || count == newlines + 1, "{count} of {newlines}");
        }
    });
}

#[test]
fn a_read_that_waits_neither_stops_the_other_tasks_nor_takes_a_poll() {
    let folder = fixtures::folder();
    let (mut reader, mut writer) = pipe(folder.path());
    let polls = Arc::new(AtomicU32::new(0));
    runtime().block_on(async {
        let count = Arc::clone(&polls);
        let task = tokio::spawn(async move {
            let mut bytes = [0; 5];
            {
                let mut read = pin!(reader.read_exact(&mut bytes));
                poll_fn(|context| {
                    count.fetch_add(1, Ordering::Relaxed);
                    read.as_mut().poll(context)
                })
                .await
                .unwrap();
            }
            bytes
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(polls.load(Ordering::Relaxed) <= 1, "{polls:?} polls with nothing to read");
        writer.write_all(b"hello").unwrap();
        assert_eq!(task.await.unwrap(), *b"hello");
        assert!(polls.load(Ordering::Relaxed) <= 4, "{polls:?} polls");
    });
}

#[test]
fn a_reader_seeks_and_loses_no_byte_where_a_seek_fails() {
    let folder = fixtures::folder();
    let path = folder.path().join("file");
    let bytes = content(2_000_000);
    fs::write(&path, &bytes).unwrap();
    runtime().block_on(async {
        let mut reader = Reader::open(&path).unwrap().into_async().unwrap();
        let mut at = 0_usize;
        for (to, place) in [
            (SeekFrom::Start(10), 10),
            (SeekFrom::Start(1_500_000), 1_500_000),
            (SeekFrom::Current(-1_400_000), 100_100),
            (SeekFrom::End(-100), 1_999_900),
            (SeekFrom::Start(0), 0),
            (SeekFrom::Current(50), 150),
        ] {
            assert_eq!(reader.seek(to).await.unwrap(), place, "{to:?} at {at}");
            let mut some = [0; 100];
            reader.read_exact(&mut some).await.unwrap();
            at = place as usize;
            assert!(some == bytes[at..at + 100]);
            at += 100;
        }
        assert!(reader.seek(SeekFrom::Current(-1000)).await.is_err());
        assert_eq!(reader.stream_position().await.unwrap(), at as u64);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        assert!(rest == bytes[at..]);

        let (mut reader, mut writer) = pipe(folder.path());
        writer.write_all(b"one two").unwrap();
        let mut some = [0; 3];
        reader.read_exact(&mut some).await.unwrap();
        // The seek takes effect after the thread's next read, which is waiting.
        writer.write_all(b" three").unwrap();
        drop(writer);
        assert!(reader.seek(SeekFrom::Start(1000)).await.is_err());
        let mut rest = String::new();
        reader.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, " two three");
    });
}

#[test]
fn an_error_in_the_background_comes_back_for_ever() {
    // W2
    runtime().block_on(async {
        let sim = Sim::new(1);
        sim.set_capacity(300_000);
        let options = Writer::options().bs(4096).iodepth(2).on(&sim.disk());
        let mut writer = options.open("/sim/file").unwrap().into_async().unwrap();
        let first = loop {
            if let Err(error) = writer.write_all(&content(50_000)).await {
                break error;
            }
        };
        assert_eq!(first.kind(), std::io::ErrorKind::StorageFull);
        for _ in 0..2 {
            assert_eq!(writer.write(b"more").await.unwrap_err().to_string(), first.to_string());
            assert_eq!(writer.flush().await.unwrap_err().to_string(), first.to_string());
            assert_eq!(writer.shutdown().await.unwrap_err().to_string(), first.to_string());
        }
    });
}

#[test]
fn a_dropped_writer_is_finished_by_its_thread_and_a_replacement_removed() {
    let folder = fixtures::folder();
    let (path, kept) = (folder.path().join("file"), folder.path().join("kept"));
    fs::write(&kept, b"old").unwrap();
    let bytes = content(500_000);
    runtime().block_on(async {
        let mut writer = Writer::create(&path).unwrap().into_async().unwrap();
        writer.write_all(&bytes).await.unwrap();
        drop(writer);
        let mut writer = Writer::replace(&kept).unwrap().into_async().unwrap();
        writer.write_all(&bytes).await.unwrap();
        drop(writer);
        // The loop ends when both threads have exited. The time limit of the test detects a hang.
        while fs::read(&path).unwrap() != bytes || fs::read_dir(folder.path()).unwrap().count() > 2
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(fs::read(&kept).unwrap(), b"old");
        let mut writer = Writer::replace(&kept).unwrap().into_async().unwrap();
        writer.write_all(b"new").await.unwrap();
        writer.shutdown().await.unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"new");
    });
}
