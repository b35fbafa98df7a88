//! A test of engines that share one kernel thread. The test runs itself again in another process,
//! in order to count the threads of that process.

use fixtures::skip_here;
use std::path::Path;
use wrote::engine::{Engine, Op, Options};
use wrote::{FileOptions, Ioengine};

const BUFFER_BYTES: usize = 4096;

/// Returns the number of kernel threads that take operations from this process's rings, which are
/// recognized by their names.
fn kernel_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("iou-sqp")).count()
}

fn write_and_check(engine: &mut Engine, path: &Path) {
    let options = FileOptions::new().create_new(true).write(true).direct(true);
    let file = engine.open_file(path, &options).unwrap();
    for block in 0..200_u8 {
        let mut buffer = engine.lease().unwrap();
        buffer.fill(block);
        let offset = u64::from(block) * BUFFER_BYTES as u64;
        engine.queue(0, Op::Write { file, offset, buffer, durable: false });
    }
    engine.flush(file).unwrap();
    let found = std::fs::read(path).unwrap();
    assert_eq!(found.len(), 200 * BUFFER_BYTES);
    for (block, bytes) in found.chunks(BUFFER_BYTES).enumerate() {
        assert!(bytes.iter().all(|&byte| byte == block as u8));
    }
}

/// Returns an accepted reason for the lack of a kernel thread, if any: either the first engine has
/// none, or the user's processes have used up the locked memory that rings need.
fn refused(engine: &Engine, first: &Engine) -> Option<String> {
    if engine.effective().sqpoll {
        return None;
    }
    let mut fallbacks = engine.effective().fallbacks.iter();
    let because =
        &fallbacks.find(|fallback| ["sqpoll", "io_uring"].contains(&fallback.wanted))?.because;
    let is_excused = !first.effective().sqpoll || because.contains("Cannot allocate memory");
    is_excused.then(|| because.clone())
}

#[test]
fn engines_that_ask_for_one_kernel_thread_share_it_and_outlive_each_other() {
    const ALONE: &str = "WROTE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = "engines_that_ask_for_one_kernel_thread_share_it_and_outlive_each_other";
        return fixtures::again(module_path!(), test, ALONE, "1");
    }
    let folder = fixtures::folder();
    let path = |number: usize| folder.path().join(number.to_string());
    let by = |cpu| Options::new(Ioengine::IoUring, 8, BUFFER_BYTES).sqpoll(1000, cpu);
    let options = by(None);
    let mut engines: Vec<Engine> = (0..3).map(|_| Engine::open(&options).unwrap()).collect();
    if let Some(because) = engines.iter().find_map(|engine| refused(engine, &engines[0])) {
        return skip_here!(&because);
    }
    assert!(engines.iter().all(|engine| engine.effective().ring_flags.contains(&"SQPOLL")));
    for (number, engine) in engines.iter_mut().enumerate() {
        write_and_check(engine, &path(number));
    }
    assert_eq!(kernel_threads(), 1);
    // The first ring is dropped first, and the others are attached to it.
    drop(engines.remove(0));
    for (number, engine) in engines.iter_mut().enumerate() {
        write_and_check(engine, &path(10 + number));
    }
    // A late engine attaches to one of the remaining rings.
    let mut late = Engine::open(&options).unwrap();
    if let Some(because) = refused(&late, &engines[0]) {
        return skip_here!(&because);
    }
    assert!(late.effective().sqpoll);
    write_and_check(&mut late, &path(20));
    assert_eq!(kernel_threads(), 1);
    // An engine with another option gets another thread.
    let mut other = Engine::open(&by(Some(0))).unwrap();
    if let Some(because) = refused(&other, &engines[0]) {
        return skip_here!(&because);
    }
    write_and_check(&mut other, &path(30));
    assert_eq!(kernel_threads(), 2);
}
