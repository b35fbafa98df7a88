//! Tests of `write_many`: each file is complete at any moment, and all of them are durable at the
//! end.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wrote::engine::Fault;
use wrote::{Action, Error, Sim, write_many};

const FILES: usize = 7;
/// The environment variable with the folder, for a test that runs itself again alone in another
/// process.
const FOLDER: &str = "WROTE_TEST_MANY";

/// Returns the path of a file. The files are in two folders.
fn path(number: usize) -> PathBuf {
    PathBuf::from(format!("/sim/{}/{number}", number % 2))
}

fn old(number: usize) -> Option<Vec<u8>> {
    (!number.is_multiple_of(3)).then(|| vec![b'o'; 700 * number])
}

fn new(number: usize) -> Vec<u8> {
    vec![b'n'; 3000 * (number % 4)]
}

fn disk(seed: u64) -> Sim {
    let sim = Sim::new(seed);
    for number in 0..FILES {
        if let Some(old) = old(number) {
            sim.disk().write_unflushed(path(number), old).unwrap();
        }
    }
    sim.sync();
    sim
}

fn save(sim: &Sim) -> Result<(), Error> {
    let disk = sim.disk();
    let result = disk.write_many((0..FILES).map(|n| (path(n), new(n))));
    assert_eq!(disk.outstanding(), 0);
    result
}

fn operations() -> u64 {
    let sim = disk(1);
    let before = sim.operations();
    save(&sim).unwrap();
    sim.operations() - before
}

/// Returns the number of files with new content, and asserts that all others have their old
/// content.
fn count_new(found: impl Fn(usize) -> Option<Vec<u8>>) -> usize {
    let is_new = |number: &usize| {
        let found = found(*number);
        let is_new = found == Some(new(*number));
        assert!(is_new || found == old(*number), "{number}: a part or a mix");
        is_new
    };
    (0..FILES).filter(is_new).count()
}

#[test]
fn every_file_is_old_or_new_after_an_error_and_after_a_power_loss_at_any_operation() {
    let mut seen = [0; FILES + 1];
    for operation in 0..operations() {
        for seed in 0..20 {
            let sim = disk(seed * 1000 + operation);
            sim.fault(sim.operations() + operation, Fault::PowerLoss);
            save(&sim).unwrap_err();
            seen[count_new(|number| sim.after_power_loss(path(number)))] += 1;
        }
        let sim = disk(operation);
        sim.fault(sim.operations() + operation, Fault::Once(5));
        let error = save(&sim).unwrap_err();
        assert_eq!(error.errno(), 5);
        count_new(|number| sim.contents(path(number)));
        assert!(sim.names().iter().all(|name| !name.to_string_lossy().contains(".wrote-")));
        let is_folder = matches!(&error, Error::File { action: Action::SyncFolder, .. });
        let is_ours = (0..FILES).any(|number| error.path() == Some(&*path(number)));
        assert!(is_folder || is_ours, "{error}");
    }
    assert!(seen[0] > 0 && seen[FILES] > 0 && seen[1..FILES].iter().any(|&seen| seen > 0));
}

#[test]
fn all_of_them_survive_a_power_loss_at_the_end_and_the_flushes_of_folders_are_shared() {
    // W1
    for seed in 0..100 {
        let sim = disk(seed);
        save(&sim).unwrap();
        assert_eq!(count_new(|number| sim.after_power_loss(path(number))), FILES);
    }
    // There is one write per buffer or part of it, a flush and a rename per file, and a sync of
    // each of the two folders.
    let writes: usize = (0..FILES).map(|number| new(number).len().div_ceil(4096)).sum();
    assert_eq!(operations() as usize, writes + 2 * FILES + 2);
}

#[test]
fn many_files_are_saved_with_links_and_permissions_and_an_error_names_its_file() {
    let folder = fixtures::folder();
    let place = |number: usize| folder.path().join(format!("{}/{number}", number % 3));
    (0..3).for_each(|number| fs::create_dir(folder.path().join(number.to_string())).unwrap());
    fs::write(place(7), b"secret").unwrap();
    fs::set_permissions(place(7), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("../0/0", place(8)).unwrap();
    let content = |number: usize| number.to_string().repeat(number);
    // The first two paths lead to the same file. Its final content is the later one.
    let files = [(place(8), "by the link".to_owned())];
    let others = (0..300).filter(|&number| number != 8);
    write_many(files.into_iter().chain(others.map(|n| (place(n), content(n))))).unwrap();
    for number in (0..300).filter(|&number| number != 8) {
        assert_eq!(fs::read_to_string(place(number)).unwrap(), content(number));
    }
    assert!(fs::symlink_metadata(place(8)).unwrap().is_symlink());
    assert_eq!(fs::metadata(place(7)).unwrap().mode() & 0o777, 0o600);
    let missing = folder.path().join("no/file");
    let files = [(place(1), "again"), (missing.clone(), ""), (place(2), "again")];
    let error = write_many(files).unwrap_err();
    assert_eq!((error.errno(), error.path()), (libc::ENOENT, Some(&*missing)));
    assert_eq!(fs::read_to_string(place(1)).unwrap(), content(1));
    let names = (0..3).flat_map(|n| fixtures::names(&folder.path().join(n.to_string())));
    assert_eq!(names.count(), 300, "nothing of our own is left");
    write_many([("", ""); 0]).unwrap();
}

#[test]
fn a_process_that_may_open_few_files_saves_as_many() {
    let test = "a_process_that_may_open_few_files_saves_as_many";
    let Some(folder) = std::env::var_os(FOLDER) else {
        let folder = fixtures::folder();
        return fixtures::again(module_path!(), test, FOLDER, folder.path());
    };
    let whole = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(60), ..whole }).unwrap();
    let place = |number: usize| Path::new(&folder).join(number.to_string());
    write_many((0..300).map(|number| (place(number), number.to_string()))).unwrap();
    for number in 0..300 {
        assert_eq!(fs::read_to_string(place(number)).unwrap(), number.to_string());
    }
}
